"""Policies: how to learn. One algorithm, one file."""

from multiplay.policies.base import Play, Policy
from multiplay.policies.baselines import EpsilonGreedy, FollowTheLeader, RandomAction
from multiplay.policies.combucb import CombUCB
from multiplay.policies.duplicated import Duplicated
from multiplay.policies.escb import ESCB
from multiplay.policies.exploration import ExplorationByOptimisation
from multiplay.policies.fplix import FPLIX
from multiplay.policies.ftrl import FTRL
from multiplay.policies.gaussiancts import GaussianCTS
from multiplay.policies.genadainf import GenAdaINF
from multiplay.policies.gencts import GenCTS
from multiplay.policies.genlbinfv import GenLBINFV
from multiplay.policies.hybrid import Hybrid
from multiplay.policies.lbinf import LBINF
from multiplay.policies.lints import LinTS
from multiplay.policies.linucb import LinUCB
from multiplay.policies.scaledscribble import ScaledScribble
from multiplay.policies.threeworlds import BestOfThreeWorlds

__all__ = [
    "ESCB",
    "FPLIX",
    "FTRL",
    "LBINF",
    "BestOfThreeWorlds",
    "CombUCB",
    "Duplicated",
    "EpsilonGreedy",
    "ExplorationByOptimisation",
    "FollowTheLeader",
    "GaussianCTS",
    "GenAdaINF",
    "GenCTS",
    "GenLBINFV",
    "Hybrid",
    "LinTS",
    "LinUCB",
    "Play",
    "Policy",
    "RandomAction",
    "ScaledScribble",
]
