"""The table of all pairs of options, policies and constraints: what works, and what is refused.

Pairs that are not in ``REFUSED`` work. ``tests/contract/test_combinations.py`` builds and plays
every pair, and docs/combinations.md is written from this table::

    python tests/support/combinations.py

A pair that begins to work is deleted here; one that is refused needs the argument of its error, and
a reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[2] / "docs" / "combinations.md"

OPTIONS: dict[str, str] = {  # each with what it is, for the page
    "discount": "old reports fade: `discount=`",
    "window": "only the last rounds count: `window=`",
    "changes followed": "changes are found: `memory=Changes()`",
    "persistence followed": "losses that persist are found: `memory=Persists()`",
    "one seed": "one random number for all arms: `shared_seed=True`",
    "pseudo units": "pseudo units at the ends of the range other than one: `w=`",
    "rare planning": 'few calls of the solver: `replan="rarely"`',
    "ordered units": 'a mean for each unit of an arm: `unit_means="ordered"`',
    "copies of units": "an arm for each unit: `Duplicated(policy)`",
    "features": "features of arms or days: `features=`",
    "switching cost": "changed units cost something: `SwitchingCost(...)`",
    "baseline": "an allowance over the cost of a baseline: `Baseline(...)`",
    "hard promise": "a limit over a period that is kept: `AtMost(..., hard=True)`",
    "soft promise": "a limit over a period that has a price: `AtMost(..., hard=False)`",
    "varying set": "another set each day: `varying_set=True`",
    "known costs": "known costs of helpers in a `Model`",
    "not a sum": "a set whose value is not a sum over units: `Coverage`",
    "totals": "reports of totals instead of units",
    "missing units": 'reports that leave out units: `Reports(missing="ignore")`',
    "external plans": "plans that the learner did not choose: `learn`",
    "forget": "reports that no longer count: `forget`, `unforget`",
}

FTRL = ("GenLBINFV", "LBINF", "Hybrid", "GenAdaINF")
LISTS = ("ScaledScribble", "ExplorationByOptimisation", "BestOfThreeWorlds")
ROUND = ("LinTS", "LinUCB", *LISTS)  # they learn from the total of a round
INDEX = (
    *("BootstrapCTS", "GenCTS", "GaussianCTS", "PooledCTS", "CombUCB", "FollowTheLeader"),
    *("EpsilonGreedy", "BGCTS", "COSV", "GLRCUCB"),
)
WHOLE = ("ESCB", "OLSUCBC", "LinUCB")  # their index is one of whole plans
DRAWN = (*FTRL, "FPLIX", *LISTS)  # their plans are drawn with a given mean
POLICIES = (*INDEX, "FeatureCTS", "ESCB", "OLSUCBC", *FTRL, "FPLIX", *ROUND, "RandomAction")

MATHEMATICS, CHOICE, NOT_BUILT = "mathematics", "choice", "not built"
KINDS = {  # the kinds of reasons, with their headings on the page
    MATHEMATICS: "Refused by the mathematics",
    CHOICE: "One of the two",
    NOT_BUILT: "Not built yet",
}


class Reason(NamedTuple):
    """Why pairs are refused: the kind of the reason, and a sentence or two."""

    kind: str
    text: str


REASONS: dict[str, Reason] = {
    "memory": Reason(
        CHOICE, "Both say which reports count: a learner has one memory, or keeps all reports."
    ),
    "posterior": Reason(
        CHOICE,
        "Both say what is believed of an arm, and a policy has one posterior. `w` is a setting of "
        "the bootstrap; features are read by `FeatureCTS`, and by `Composed(FeatureModel(), ...)`.",
    ),
    "shared level": Reason(
        CHOICE, "`PooledCTS` draws one number for all arms of a round, and one for each arm."
    ),
    "sets": Reason(CHOICE, "These are two kinds of sets."),
    "nothing": Reason(CHOICE, "The policy learns nothing that the option could act on."),
    "listed": Reason(CHOICE, "The policy lists all plans before round 1, and calls no solver."),
    "own memory": Reason(CHOICE, "The policy finds changes by its own test, and then forgets all."),
    "quantile": Reason(
        MATHEMATICS,
        "One seed plays the same quantile of all arms. The quantiles of the draws are known for "
        "`w=1`; other weights would need an inverse that is computed numerically.",
    ),
    "path": Reason(
        MATHEMATICS,
        "The means of the units of an arm are drawn one from the other, and then made increasing. "
        "Such a draw uses many random numbers, and has no quantile.",
    ),
    "no draw": Reason(MATHEMATICS, "The policy draws nothing from what is believed of an arm."),
    "bonuses": Reason(
        MATHEMATICS,
        "The estimates and bounds of the policy are those of independent bonuses of the arms.",
    ),
    "means of units": Reason(
        MATHEMATICS,
        "Changes are found in the mean loss of an arm. Where units are ordered, this mean changes "
        "with the number of units that are played.",
    ),
    "squares": Reason(
        MATHEMATICS,
        "The variances are those of whole rounds, and do not follow from the units and the mean of "
        "an arm since a change.",
    ),
    "unit losses": Reason(
        MATHEMATICS, "Each unit has a mean of its own, and a total does not say what each one cost."
    ),
    "unit values": Reason(
        MATHEMATICS,
        "A unit of an arm has a mean cost of its own only where the cost of a plan is a sum over "
        "its units.",
    ),
    "sum": Reason(
        MATHEMATICS,
        "An allowance is a share of a cost, and the price of a promise is a cost of units: both "
        "need plans whose cost is a sum over units.",
    ),
    "linear": Reason(
        MATHEMATICS,
        "The policy needs a mean cost that is linear in the numbers of units: its estimates, its "
        "regression or its bounds are those of sums.",
    ),
    "random plan": Reason(
        MATHEMATICS,
        "The plan is drawn at random, and the estimates of the policy are computed from the "
        "distribution of the draw. A plan that a constraint changed has a different distribution.",
    ),
    "hull": Reason(
        MATHEMATICS,
        "The mean plan of each round is a new point of the hull, which is computed in every round.",
    ),
    "whole plans": Reason(
        MATHEMATICS,
        "The policy has an index of each whole plan and no cost of each arm. Costs of units cannot "
        "be added to it, and no solver minimises it.",
    ),
    "probability": Reason(
        MATHEMATICS,
        "The estimates of the policy are computed from the distribution of its own plans. A plan "
        "that was chosen by others has none.",
    ),
    "round total": Reason(
        MATHEMATICS,
        "The policy is told the total of a round only. With units missing there is no total, and "
        "no arm has a report of its own that could be forgotten.",
    ),
    "coordinates": Reason(
        NOT_BUILT,
        "The state is one of a fixed set: copies, coordinates, a list of plans, or a test of all "
        "arms. The prices of a soft promise are a different set each day.",
    ),
    "memory of sums": Reason(NOT_BUILT, "The policy keeps plain sums, in which all reports count."),
    "memory of estimates": Reason(
        NOT_BUILT,
        "The policy sums estimates of losses, with learning rates that count all rounds. Other "
        "rates, and other guarantees, would be needed to forget.",
    ),
    "old features": Reason(
        NOT_BUILT,
        "A report that leaves the window would have to be taken out with the features of its day, "
        "which are not kept. A discount, or following changes, needs none of them.",
    ),
    "persistence": Reason(
        NOT_BUILT,
        "The filters of losses that persist are those of the moments of arms, which `PooledCTS` "
        "and `BootstrapCTS` read.",
    ),
    "joint draw": Reason(
        NOT_BUILT, "The coefficients are drawn together, each with its own number."
    ),
    "planner": Reason(NOT_BUILT, "The policy calls the solver in every round."),
    "window of units": Reason(NOT_BUILT, "A window keeps reports of arms, not of their units."),
    "order": Reason(
        NOT_BUILT,
        "Ordered units have a posterior for coins (`GenCTS`) and losses (`BootstrapCTS`).",
    ),
    "margin of units": Reason(
        NOT_BUILT, "An allowance needs the variance of a difference of plans by unit."
    ),
    "copies": Reason(
        NOT_BUILT,
        "The policy chooses copies, which are arms of another set. Constraints, features and "
        "reports of arms are not translated to copies.",
    ),
    "lifted": Reason(
        NOT_BUILT,
        "Known costs of helpers are not linear in a plan. Other policies of this kind have one "
        "more coordinate for them ([known costs](known-costs.md)).",
    ),
}


class Refusal(NamedTuple):
    """What a pair is refused with.

    ``argument`` is that of the error; "" if the policy does not have the option, or if the pair
    cannot be written.
    """

    argument: str
    reason: str


Pairs = dict[tuple[str, str], Refusal]


def pairs(these: str | tuple[str, ...], others: str | tuple[str, ...], *refusal: str) -> Pairs:
    """Return the refusals of several pairs, all with the same argument and the same reason."""
    rows, columns = ((one,) if isinstance(one, str) else one for one in (these, others))
    return {(one, other): Refusal(*refusal) for one in rows for other in columns}


# Options with each other: with BootstrapCTS, or with FeatureCTS where features are declared
OF_OPTIONS: Pairs = {
    **pairs("discount", "window", "window", "memory"),
    **pairs(("discount", "window"), "changes followed", "memory", "memory"),
    **pairs(("discount", "window"), "persistence followed", "memory", "memory"),
    **pairs("changes followed", "persistence followed", "", "memory"),
    **pairs("persistence followed", "features", "memory", "persistence"),
    **pairs("window", "ordered units", "window", "window of units"),
    **pairs("window", "features", "", "old features"),
    **pairs("changes followed", "ordered units", "memory", "means of units"),
    **pairs("one seed", "pseudo units", "shared_seed", "quantile"),
    **pairs("one seed", "ordered units", "shared_seed", "path"),
    **pairs("one seed", "features", "", "joint draw"),
    **pairs("pseudo units", "features", "", "posterior"),
    **pairs("ordered units", "features", "", "posterior"),
    **pairs("ordered units", "baseline", "policy", "margin of units"),
    **pairs("ordered units", "not a sum", "actions", "unit values"),
    **pairs(("ordered units", "copies of units"), "totals", "losses", "unit losses"),
    **pairs("copies of units", "features", "policy", "copies"),
    **pairs("copies of units", ("switching cost", "baseline"), "policy", "copies"),
    **pairs("copies of units", "hard promise", "constraints", "copies"),
    **pairs("copies of units", ("soft promise", "varying set"), "policy", "coordinates"),
    **pairs("copies of units", ("missing units", "external plans", "forget"), "policy", "copies"),
    **pairs(("baseline", "hard promise", "soft promise"), "not a sum", "actions", "sum"),
    **pairs("known costs", "not a sum", "", "sets"),
}

MEMORIES = ("discount", "window", "changes followed", "persistence followed")
NOT_LEARNING = ("RandomAction",)
WITHOUT_MOMENTS = tuple(name for name in INDEX if name not in ("BootstrapCTS", "PooledCTS"))
PLAIN = ("ESCB", "OLSUCBC", "LinTS", "LinUCB")  # without memory
NO_DRAW = ("CombUCB", "FollowTheLeader", "EpsilonGreedy", "GLRCUCB", *WHOLE)
FIXED_SET = ("GLRCUCB", "OLSUCBC", *ROUND)

# Policies with each option; the later of two lines for the same pair counts
OF_POLICIES: Pairs = {
    **pairs(POLICIES, "pseudo units", "", "posterior"),
    **pairs(POLICIES, "features", "policy", "posterior"),
    **pairs(POLICIES, "ordered units", "", "order"),
    **pairs(PLAIN, MEMORIES, "", "memory of sums"),
    **pairs("COSV", "changes followed", "memory", "squares"),
    **pairs((*WITHOUT_MOMENTS, "FeatureCTS"), "persistence followed", "memory", "persistence"),
    **pairs(DRAWN, MEMORIES, "", "memory of estimates"),
    **pairs("GLRCUCB", MEMORIES, "", "own memory"),
    **pairs("FeatureCTS", "window", "", "old features"),
    **pairs(("FeatureCTS", "LinTS"), "one seed", "", "joint draw"),
    **pairs("PooledCTS", "one seed", "", "shared level"),
    **pairs((*NO_DRAW, *DRAWN), "one seed", "", "no draw"),
    **pairs("FPLIX", "one seed", "", "bonuses"),
    **pairs(("GLRCUCB", "LinTS", "FPLIX"), "rare planning", "", "planner"),
    **pairs((*WHOLE, *LISTS), "rare planning", "", "listed"),
    **pairs(FTRL, "rare planning", "", "hull"),
    **pairs((*WHOLE, *DRAWN, "LinTS"), "ordered units", "", "linear"),
    **pairs("FeatureCTS", "ordered units", "", "posterior"),
    **pairs(NOT_LEARNING, (*MEMORIES, "one seed", "pseudo units", "ordered units"), "", "nothing"),
    **pairs(NOT_LEARNING, "rare planning", "", "nothing"),
    **pairs(NOT_LEARNING, ("switching cost", "baseline"), "policy", "nothing"),
    **pairs(NOT_LEARNING, "hard promise", "constraints", "nothing"),
    **pairs(WHOLE, ("switching cost", "baseline"), "policy", "whole plans"),
    **pairs(WHOLE, "hard promise", "constraints", "whole plans"),
    **pairs(DRAWN, ("switching cost", "baseline"), "policy", "random plan"),
    **pairs(DRAWN, "hard promise", "constraints", "random plan"),
    **pairs(FIXED_SET, "varying set", "policy", "coordinates"),
    **pairs(("OLSUCBC", "LinUCB", *LISTS), "soft promise", "policy", "coordinates"),
    **pairs(("GenAdaINF", *LISTS), "known costs", "actions", "lifted"),
    **pairs(("ESCB", "OLSUCBC", *FTRL, "FPLIX", *ROUND), "not a sum", "actions", "linear"),
    **pairs(ROUND, ("missing units", "forget"), "policy", "round total"),
    **pairs(LISTS, "external plans", "policy", "probability"),
}
for policy, option in (  # what only some policies have
    ("BootstrapCTS", "pseudo units"),
    ("BootstrapCTS", "ordered units"),
    ("GenCTS", "ordered units"),
    ("FeatureCTS", "features"),
):
    del OF_POLICIES[policy, option]

REFUSED: Pairs = OF_OPTIONS | OF_POLICIES


def refusals(*options: str) -> list[Refusal]:
    """Return the refusals of the pairs among some options, which are in the order of the table."""
    return [OF_OPTIONS[pair] for pair in combinations(options, 2) if pair in OF_OPTIONS]


def together(count: int) -> Iterator[tuple[str, ...]]:
    """Yield all choices of so many options that can be written: a learner has one set."""
    for options in combinations(OPTIONS, count):
        if not {"known costs", "not a sum"} <= {*options}:
            yield options


# ------------------------------------------------------------ the page

WORKS = "✓"
BEGIN = """# Combinations of options

<!-- Written by tests/support/combinations.py: edit the table there. -->

Which options, constraints and policies work together: ✓ works, and a letter is the reason of a
refusal, which is below the tables. A test builds and plays every pair through the public interface,
and compares its errors with this page. Another one plays all choices of three options: three work
together where each two of them do. [Choosing a policy](choosing.md) says what the options are for.

A refusal is an `InvalidInput`, raised when the learner is created or when the option is used, and
nothing was changed then. Its `argument` is in brackets in the lists of reasons. Pairs without one
cannot be written: the policy does not have the option.

## Options
"""


def letters() -> dict[str, str]:
    """Return the letter of each reason that is used, in the order of the page."""
    used = {refusal.reason for refusal in REFUSED.values()}
    names = [name for kind in KINDS for name in REASONS if REASONS[name].kind == kind]
    return {name: _letter(k) for k, name in enumerate(name for name in names if name in used)}


def _letter(k: int) -> str:
    alphabet = "abcdefghijkmnpqrstuvwyz"  # without l, o and x, which look like other marks
    more, last = divmod(k, len(alphabet))
    return (alphabet[more - 1] if more else "") + alphabet[last]


def cell(one: str, other: str) -> str:
    """Return what a pair has in the table."""
    refusal = REFUSED.get((one, other))
    return WORKS if refusal is None else letters()[refusal.reason]


def page() -> str:
    """Return the page."""
    names = list(OPTIONS)
    number = {name: k for k, name in enumerate(names, 1)}
    found = [BEGIN, "| | option | what it does |", "|---|---|---|"]
    found += [f"| {number[name]} | {name} | {OPTIONS[name]} |" for name in names]
    found += ["", "## Options with each other", ""]
    found += ["With `BootstrapCTS`; with `FeatureCTS` where features are declared.", ""]
    found += _head(range(1, len(names)))
    for k, name in enumerate(names[1:], 1):
        cells = [cell(other, name) for other in names[:k]] + [""] * (len(names) - 1 - k)
        found.append(f"| {number[name]} {name} | {' | '.join(cells)} |")
    found += ["", "## Policies with each option", ""]
    found += _head(range(1, len(names) + 1))
    alike: dict[tuple[str, ...], list[str]] = {}
    for policy in POLICIES:
        alike.setdefault(tuple(cell(policy, name) for name in names), []).append(f"`{policy}`")
    found += [f"| {', '.join(some)} | {' | '.join(cells)} |" for cells, some in alike.items()]
    for kind, title in KINDS.items():
        found += ["", f"## {title}", "", *_reasons(kind)]
    return "\n".join(found) + "\n"


def _head(numbers: Iterable[int]) -> list[str]:
    columns = [str(number) for number in numbers]
    return [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]


def _reasons(kind: str) -> list[str]:
    lines = ["| | reason | pairs |", "|---|---|---|"]
    for name, letter in letters().items():
        if REASONS[name].kind == kind:
            lines.append(f"| {letter} | {REASONS[name].text} | {_pairs(name)} |")
    return lines


def _pairs(reason: str) -> str:
    """Return the pairs of a reason, with the arguments of their errors."""
    found: dict[tuple[str, str], list[str]] = {}
    for (one, other), refusal in REFUSED.items():
        if refusal.reason == reason:
            first = "policies" if one in POLICIES else one
            some = found.setdefault((first, refusal.argument), [])
            if other not in some:
                some.append(other)
    return "; ".join(
        f"{first} with {', '.join(some)}" + (f" (`{argument}`)" if argument else "")
        for (first, argument), some in found.items()
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
