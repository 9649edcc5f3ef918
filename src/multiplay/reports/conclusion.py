"""What came out, in a sentence."""

from multiplay._support.formatting import between, number
from multiplay.reports.tables import ranked_pairs
from multiplay.results import Result, interval

MOST_NAMED = 3


def conclusion(result: Result) -> str:
    """Say which policy ends with the least regret, by how much, and whether that is decided.

    It is decided where the interval of a paired difference excludes 0; the intervals hold for all
    pairs at once.
    """
    best, *others = result.ranked
    mean, low, high = interval(result.final(best))
    trials, measure = result.regret.sizes["trial"], result.label
    if not others:
        amount = f"{number(mean)} (95 % interval: {between(low, high)})"
        return f"{best} ends with a {measure} of {amount}; there is no other policy."
    pairs = ranked_pairs(result)
    against = pairs[pairs["A"] == best].set_index("B")
    behind = {policy: number(abs(against["difference"][policy])) for policy in others}
    following = f"{behind[others[0]]} less than {others[0]}, the next one"
    if trials == 1:
        return (
            f"{best} ends with the least {measure} ({number(mean)}), {following}, "
            "but one trial decides nothing."
        )
    paired = f"in the paired comparison of {trials} trials"
    undecided = [policy for policy in others if against["verdict"][policy] != "A lower"]
    if not undecided:
        margin = between(-against["ci high"][others[0]], -against["ci low"][others[0]])
        return (
            f"{best} ends with the least {measure} ({number(mean)}), and this is decided: it has "
            f"{following} (95 % interval: {margin}), {paired}."
        )
    chance = "the difference" if len(undecided) == 1 else "the differences"
    amounts = {policy: f"{behind[policy]} more" for policy in undecided}
    same = {policy: "the same" for policy in undecided if behind[policy] == "0"}
    named = listed([f"{policy} ({amount})" for policy, amount in (amounts | same).items()])
    decided = len(others) - len(undecided)
    rest = f"; against {counted(decided)} it is decided" if decided else ""
    return (
        f"Nothing is decided between {best}, which ends with the least {measure} "
        f"({number(mean)}), and {named}: {paired}, {chance} can be chance{rest}."
    )


def counted(policies: int) -> str:
    """Return how many other policies there are.

    Examples
    --------
    >>> counted(1), counted(2)
    ('the other policy', 'the other 2 policies')
    """
    return "the other policy" if policies == 1 else f"the other {policies} policies"


def listed(words: list[str]) -> str:
    """Return words as people list them, the first ones by name.

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b", "c"]), listed(["a", "b", "c", "d", "e"])
    ('a', 'a, b and c', 'a, b, c and 2 others')
    """
    if len(words) > MOST_NAMED + 1:
        words = [*words[:MOST_NAMED], f"{len(words) - MOST_NAMED} others"]
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
