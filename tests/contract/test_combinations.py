"""Every pair of options and constraints works, or is refused as the table of combinations says."""

from itertools import combinations

import combinations as table
import combined
import pytest
from combinations import OF_OPTIONS, OF_POLICIES, OPTIONS, POLICIES, REASONS

OUTCOME = "a pair differs from tests/support/combinations.py; docs/combinations.md is made from it"


WORKS, NO_OPTION = "works", ""
# What decides on the plan of a day, or on what is reported of it
CONSTRAINTS = ("features", "switching cost", "baseline", "hard promise", "soft promise")
REPORTS = ("varying set", "missing units", "external plans", "forget")


def outcome(policy: str, *options: str) -> str:
    """Return what a combination does: it works, or the argument of its error."""
    error = combined.refusal(combined.setup(policy, *options))
    if error is None:
        return WORKS
    return NO_OPTION if isinstance(error, combined.NoSuchOption) else error.argument


def of_options(*options: str) -> str:
    """Return what options do with the policy of the table."""
    return outcome("FeatureCTS" if "features" in options else "BootstrapCTS", *options)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_with_each_option(policy: str) -> None:
    made = {option: outcome(policy, option) for option in OPTIONS}
    refused = {option: one.argument for (of, option), one in OF_POLICIES.items() if of == policy}
    assert made == {**dict.fromkeys(OPTIONS, WORKS), **refused}, OUTCOME


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_with_the_later_ones(option: str) -> None:
    pairs = [pair for pair in table.together(2) if pair[0] == option]
    made = {pair: of_options(*pair) for pair in pairs}
    kept = {pair: OF_OPTIONS[pair].argument if pair in OF_OPTIONS else WORKS for pair in pairs}
    assert made == kept, OUTCOME


def check_together(options: tuple[str, ...]) -> None:
    """Options work together where each two of them do, and have the error of one pair else."""
    allowed = {refusal.argument for refusal in table.refusals(*options)} or {WORKS}
    assert of_options(*options) in allowed, options


@pytest.mark.parametrize("count", range(3, len(CONSTRAINTS) + 1))
def test_more_than_two_constraints(count: int) -> None:
    for options in combinations(CONSTRAINTS, count):
        check_together(options)
        for report in REPORTS:
            check_together((*options, report))


@pytest.mark.slow  # a minute
def test_three_options_work_together_where_each_two_of_them_do() -> None:
    for options in table.together(3):
        check_together(options)


def test_the_table_has_all_policies_and_options() -> None:
    assert set(combined.POLICIES) == set(POLICIES)
    assert list(combined.OPTIONS) == list(OPTIONS)
    assert set(OF_OPTIONS) <= set(combinations(OPTIONS, 2))
    assert {reason for _, reason in table.REFUSED.values()} == set(REASONS)


def test_the_page_is_made_from_the_table() -> None:
    assert table.PAGE.read_text("utf-8") == table.page(), "run python tests/support/combinations.py"
