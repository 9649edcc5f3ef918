"""Every policy plays for a seed what it played before, with each option and each constraint."""

from functools import cache

import golden_plays
import pytest

RENEW = "python tests/support/golden_plays.py --renew"
PARTS = golden_plays.parts()


@cache
def kept() -> dict[str, str]:
    lines = golden_plays.KEPT.read_text("utf-8").splitlines()
    return dict(line.split(": ", 1) for line in lines)


@pytest.mark.parametrize("part", PARTS)
def test_plays_are_those_of_the_file(part: str) -> None:
    made = dict(golden_plays.kept(part))
    old = {name: line for name, line in kept().items() if golden_plays.part_of(name) == part}
    differ = [
        f"{name}\n kept: {old.get(name)}\n made: {made.get(name)}"
        for name in {**old, **made}
        if old.get(name) != made.get(name)
    ]
    shown = "\n".join(differ[:3])
    assert not differ, (
        f"{len(differ)} cases differ in {golden_plays.KEPT.name}:\n{shown}\n"
        f"New cases are added by `{RENEW}`. Other plays for the same seed must be meant."
    )


def test_every_line_belongs_to_a_part() -> None:
    assert {golden_plays.part_of(name) for name in kept()} == set(PARTS)
