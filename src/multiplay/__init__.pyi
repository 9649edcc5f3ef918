"""The public names of multiplay: each is imported from its module on first use."""

from multiplay import theory as theory
from multiplay.actions import *
from multiplay.environments import *
from multiplay.errors import (
    InvalidInput as InvalidInput,
    StoreError as StoreError,
)
from multiplay.features import *
from multiplay.feedback import Feedback as Feedback
from multiplay.hull import Regulariser as Regulariser
from multiplay.learner import (
    BaselineReport as BaselineReport,
    DataCheck as DataCheck,
    Estimate as Estimate,
    PendingPlay as PendingPlay,
    Plan as Plan,
    PromiseReport as PromiseReport,
    Receipt as Receipt,
    Remaining as Remaining,
    Reports as Reports,
    SwitchingReport as SwitchingReport,
    TableCheck as TableCheck,
    TableProblem as TableProblem,
    Why as Why,
    Words as Words,
    check_data as check_data,
)
from multiplay.policies import *
from multiplay.constraints import (
    AtLeast as AtLeast,
    AtMost as AtMost,
    Baseline as Baseline,
    Constraint as Constraint,
    Promise as Promise,
    SwitchingCost as SwitchingCost,
)
from multiplay.random import (
    Rng as Rng,
    Streams as Streams,
)
from multiplay.remote import (
    RemoteStudy as RemoteStudy,
    connect as connect,
)
from multiplay.results import (
    Result as Result,
    load as load,
)
from multiplay.savings import Savings as Savings
from multiplay.simulation.simulate import simulate as simulate
from multiplay.studies import (
    Import as Import,
    Learner as Learner,
    Study as Study,
    Verified as Verified,
)
from multiplay.types import Arrays as Arrays
from multiplay.version import __version__ as __version__

__all__: list[str]
