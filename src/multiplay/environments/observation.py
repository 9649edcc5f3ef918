"""What a world says of one round; and, for one more version, how worlds used to say it."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

from multiplay.feedback import Feedback
from multiplay.moved import warn
from multiplay.types import FloatArray, IntArray


class Observation(NamedTuple):
    """All that a world says of one round. Policies are given the feedback only.

    Attributes
    ----------
    feedback : Feedback
        The losses of the units that were played.
    means : array of shape (trials, d)
        The expected loss of one unit of each arm.
    averages : array of shape (trials, d)
        The average loss of all n_i units of each arm, played or not.
    """

    feedback: Feedback
    means: FloatArray
    averages: FloatArray


class OldWorld:
    """Worlds as they were, for one more version: ``means`` and ``averages`` were attributes."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "observe" in cls.__dict__:
            cls.observe = _says_it_at_once(cls.observe)  # type: ignore[attr-defined]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> FloatArray:
            if name not in ("means", "averages") or "said_last" not in self.__dict__:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            warn(f"world.{name} is now world.observe(action).{name}")
            return self.said_last[name]


def _says_it_at_once(observe: Callable[[Any, IntArray], Any]) -> Callable[[Any, IntArray], Any]:
    """Let an ``observe`` that returns a bare feedback return an ``Observation``."""

    @wraps(observe)
    def observed(self: Any, action: IntArray) -> Observation:
        said: Observation | Feedback = observe(self, action)
        if isinstance(said, Feedback):
            warn("observe() now returns Observation(feedback, means, averages), not the feedback")
            said = Observation(said, self.means, self.averages)
        self.said_last = {"means": said.means, "averages": said.averages}
        return said

    return observed


def _of_the_feedback(observation: Observation, name: str) -> Any:
    """Return what an observation had while it was the feedback."""
    if name not in ("count", "total", "units", "first", "mean", "flip"):
        raise AttributeError(f"'Observation' object has no attribute {name!r}")
    warn(f"world.observe(action).{name} is now world.observe(action).feedback.{name}", 3)
    return getattr(observation.feedback, name)


if not TYPE_CHECKING:
    Observation.__getattr__ = lambda self, name: _of_the_feedback(self, name)
    Observation.count = property(lambda self: _of_the_feedback(self, "count"))  # tuples have one
