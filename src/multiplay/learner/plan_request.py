"""Plan requests: what was asked for with a key, compared when the key is used again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from multiplay._support.checks import shortened, true_or_false
from multiplay._support.hints import Hint, Option, Verb
from multiplay.errors import Conflict, InvalidInput
from multiplay.learner.engine import checked_key
from multiplay.learner.plays import CANCELLED, PENDING

MOST_SHOWN = 200  # characters of a request in an error
REPLACE_HINT = Hint(
    "Use {} to cancel that plan and make a new one, or a different key for a different request.",
    Option("replace", "True"),
)


class PlanRequest(NamedTuple):
    """What a play was asked for, without its key and its time.

    Attributes
    ----------
    actions : str
        The digest of the set; "" for the usual one.
    limits : dict
        The limits of the plan that were given: at_most, exclude, fixed.
    features : str
        The values of the features, as text.
    baseline : dict or None
        The plan that was given for the allowance, if one was.
    ahead : tuple of str
        The digests of the sets of the plays after it.
    """

    actions: str = ""
    limits: Mapping[str, Any] = MappingProxyType({})
    features: str = ""
    baseline: Mapping[str, int] | None = None
    ahead: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        actions: str,
        limits: Mapping[str, Any],
        features: Any,
        baseline: Mapping[str, int] | None,
        ahead: Sequence[str],
    ) -> PlanRequest:
        """Return a request in the form in which equal requests are equal."""
        if not (actions or any(limits.values()) or features or baseline or ahead):
            return NO_REQUEST  # one object: a learner keeps one for each play
        given = {name: value for name, value in limits.items() if value}
        if "exclude" in given:
            given["exclude"] = sorted({*given["exclude"]})
        values = json.dumps(features, sort_keys=True) if features else ""
        units = None if baseline is None else {arm: k for arm, k in baseline.items() if k}
        return cls(actions, given, values, units, tuple(ahead))

    def plain(self) -> list[Any]:
        """Return the request as plain data."""
        return [self.actions, dict(self.limits), self.features, self.baseline, [*self.ahead]]

    def __str__(self) -> str:
        """Return the request in words.

        Examples
        --------
        >>> str(PlanRequest())
        'no limits'
        >>> str(PlanRequest(limits={"exclude": ["Lyon->north"], "at_most": {"Lyon->south": 2}}))
        'without Lyon->north, at most 2 of Lyon->south'
        """
        at_most, fixed = (self.limits.get(name, {}) for name in ("at_most", "fixed"))
        parts = [
            *(["a set of its own"] if self.actions else []),
            *(f"without {arm}" for arm in self.limits.get("exclude", ())),
            *(f"at most {units} of {arm}" for arm, units in at_most.items()),
            *(f"exactly {units} of {arm}" for arm, units in fixed.items()),
            *([f"the features {self.features}"] if self.features else []),
            *([f"the baseline {dict(self.baseline)}"] if self.baseline is not None else []),
            *([f"{len(self.ahead)} sets ahead"] if self.ahead else []),
        ]
        return shortened(", ".join(parts), MOST_SHOWN) or "no limits"

    def is_free(
        self, key: str, then: PlanRequest | None, asked: float, status: str, replace: bool
    ) -> bool:
        """Return whether a key that was used before can name a new play.

        Not if the request is the same. Raise ``Conflict`` if the key must not be used.

        Parameters
        ----------
        key
            The key.
        then, asked, status
            What its last play was asked for, None if that is not known; the time, and the status
            of that play.
        replace
            Whether the play is to be replaced.
        """
        if status == CANCELLED:
            return True
        if replace and status != PENDING:
            expected, got = "a key whose plan is pending", f"{key!r}, whose plan was {status}"
            wrong = Verb("retract", "play")
            hint = Hint("Use a different key; if the report was wrong, use {} first.", wrong)
            raise Conflict("key", expected, got, hint)
        if not replace and then is not None and then != self:
            raise self._different(key, then, asked, status)
        return replace

    def _different(self, key: str, then: PlanRequest, asked: float, status: str) -> Conflict:
        """Return the error of a key that was used for another request."""
        planned = f"{datetime.fromtimestamp(asked, UTC):%Y-%m-%d at %H:%M} UTC"
        now = f"{self}" if f"{self}" != f"{then}" else f"{self}, with other values"
        hint: str = "Use a different key for a different request."
        if status == PENDING:
            hint = REPLACE_HINT
        expected = f"the request of {key!r}, planned on {planned}: {then}"
        return Conflict("key", expected, now, hint)


NO_REQUEST = PlanRequest()  # the usual set without limits


def checked_replace(key: str | None, replace: Any) -> tuple[str | None, bool]:
    """Return the key and ``replace`` of ``ask`` after checking them."""
    known = None if key is None else checked_key(key)
    if replace is False:
        return known, False
    replaces = true_or_false("replace", replace, "Leave it out.")
    if replaces and known is None:
        hint = Hint("Use the key of the plan that is replaced, or {}.", Verb("cancel", "play"))
        raise InvalidInput("replace", "a key with it", "no key", hint)
    return known, replaces
