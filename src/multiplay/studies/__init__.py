"""Studies: learners with a journal, in memory or durable after every verb."""

from multiplay.studies.imports import Import
from multiplay.studies.learner import Learner
from multiplay.studies.replica import Verified
from multiplay.studies.study import Study

__all__ = ["Import", "Learner", "Study", "Verified"]
