"""The convex hull of an action set: minimise over it, draw an action with a given mean."""

from multiplay.hull.base import FixedHull, Hull, Regulariser
from multiplay.hull.decomposition import DecompositionHull
from multiplay.hull.lifted import LiftedHull
from multiplay.hull.network import NetworkHull
from multiplay.hull.transport import TransportHull

__all__ = [
    "DecompositionHull",
    "FixedHull",
    "Hull",
    "LiftedHull",
    "NetworkHull",
    "Regulariser",
    "TransportHull",
]
