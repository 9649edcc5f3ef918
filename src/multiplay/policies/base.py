"""What every policy has."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Self

from multiplay.actions import ActionSet
from multiplay.feedback import Feedback
from multiplay.streams import Rng
from multiplay.types import Arrays, IntArray


@dataclass(frozen=True)
class Play:
    """An action in every trial, and what the policy must remember of it until the losses come."""

    action: IntArray
    memo: Arrays = field(default_factory=dict)


class Policy(ABC):
    """A frozen configuration; what it learns lives in a state, a plain dict of arrays.

    Every array of the state has the trials first. So a state can be copied, compared and saved
    without knowing the policy, and late feedback is judged by the memo of its own play. A policy is
    a frozen dataclass, whose fields are its settings.
    """

    @abstractmethod
    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Return the state before the first round."""

    @classmethod
    def example(cls) -> Self:
        """Return an instance to try things on, with the defaults of all settings."""
        return cls()

    @abstractmethod
    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Choose an action in every trial; the state stays as it is."""

    @abstractmethod
    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        """Learn from the losses of one play: changes the state."""
