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
    Allowance as Allowance,
    Estimate as Estimate,
    Learner as Learner,
    PendingPlay as PendingPlay,
    Plan as Plan,
    PromiseReport as PromiseReport,
    Receipt as Receipt,
    Remaining as Remaining,
    TableCheck as TableCheck,
    TableProblem as TableProblem,
    Why as Why,
    Words as Words,
)
from multiplay.policies import *
from multiplay.promises import (
    AtLeast as AtLeast,
    AtMost as AtMost,
    Promise as Promise,
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
from multiplay.savings import Saved as Saved
from multiplay.simulation.simulate import simulate as simulate
from multiplay.studies import (
    Study as Study,
    Verified as Verified,
)
from multiplay.types import Arrays as Arrays
from multiplay.version import __version__ as __version__

__all__: list[str]
