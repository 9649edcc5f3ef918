"""The public names of multiplay.policies: each is imported from its module on first use."""

from multiplay.policies.base import Play as Play, Policy as Policy
from multiplay.policies.baselines import (
    EpsilonGreedy as EpsilonGreedy,
    FollowTheLeader as FollowTheLeader,
    RandomAction as RandomAction,
)
from multiplay.policies.bgcts import BGCTS as BGCTS
from multiplay.policies.bootstrapcts import BootstrapCTS as BootstrapCTS
from multiplay.policies.combucb import CombUCB as CombUCB
from multiplay.policies.constrained import Constrained as Constrained
from multiplay.policies.cosv import COSV as COSV
from multiplay.policies.duplicated import Duplicated as Duplicated
from multiplay.policies.escb import ESCB as ESCB
from multiplay.policies.exploration import ExplorationByOptimisation as ExplorationByOptimisation
from multiplay.policies.featurects import FeatureCTS as FeatureCTS
from multiplay.policies.fplix import FPLIX as FPLIX
from multiplay.policies.ftrl import FTRL as FTRL
from multiplay.policies.gaussiancts import GaussianCTS as GaussianCTS
from multiplay.policies.genadainf import GenAdaINF as GenAdaINF
from multiplay.policies.gencts import GenCTS as GenCTS
from multiplay.policies.genlbinfv import GenLBINFV as GenLBINFV
from multiplay.policies.glrcucb import GLRCUCB as GLRCUCB
from multiplay.policies.hybrid import Hybrid as Hybrid
from multiplay.policies.index import Composed as Composed
from multiplay.policies.lbinf import LBINF as LBINF
from multiplay.policies.lints import LinTS as LinTS
from multiplay.policies.linucb import LinUCB as LinUCB
from multiplay.policies.olsucbc import OLSUCBC as OLSUCBC
from multiplay.policies.pooledcts import PooledCTS as PooledCTS
from multiplay.policies.rules import (
    Bound as Bound,
    Draw as Draw,
    Mean as Mean,
    Optimism as Optimism,
    OptimisticQuantile as OptimisticQuantile,
)
from multiplay.policies.scaledscribble import ScaledScribble as ScaledScribble
from multiplay.policies.threeworlds import BestOfThreeWorlds as BestOfThreeWorlds
from multiplay.posteriors.averages import Averages as Averages, Normal as Normal
from multiplay.posteriors.coins import Coins as Coins
from multiplay.posteriors.features import FeatureModel as FeatureModel
from multiplay.posteriors.memories import (
    Changes as Changes,
    Persists as Persists,
    Discount as Discount,
    Keep as Keep,
    Window as Window,
)
from multiplay.posteriors.moments import Moments as Moments
from multiplay.posteriors.pooled import Pooled as Pooled
