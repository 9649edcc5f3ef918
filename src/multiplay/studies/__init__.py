"""Studies: learners with a journal, durable after every verb."""

from multiplay.studies.replica import Verified
from multiplay.studies.study import Study

__all__ = ["Study", "Verified"]
