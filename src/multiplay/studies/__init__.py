"""A learner with a journal: every verb is durable when it returns."""

from multiplay.studies.replica import Verified
from multiplay.studies.study import Study

__all__ = ["Study", "Verified"]
