"""Lines of progress where no terminal is attached."""

import time

import pytest

from multiplay._support import deadline


def test_a_part_is_reported_while_it_runs_and_when_it_is_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "EVERY", 0.01)
    printed = ""
    with deadline.reported("stochastic regime"):
        while "stochastic regime: running (" not in printed:
            time.sleep(0.01)
            printed += capsys.readouterr().err
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("stochastic regime: done (")


def test_a_part_that_fails_is_not_done(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), deadline.reported("lower bounds"):
        raise ZeroDivisionError
    assert capsys.readouterr().err == ""


def test_a_terminal_gets_no_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with deadline.reported("lower bounds"):
        pass
    assert capsys.readouterr().err == ""
