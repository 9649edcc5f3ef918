"""A learner with a journal: every verb is durable when it returns."""

from multiplay.studies.study import Study
from multiplay.studies.verification import Verified

__all__ = ["Study", "Verified"]
