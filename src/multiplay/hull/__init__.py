"""The convex hull of an action set: minimise over it, draw an action with a given mean."""

from multiplay.hull.base import Hull, Regulariser
from multiplay.hull.transport import TransportHull

__all__ = ["Hull", "Regulariser", "TransportHull"]
