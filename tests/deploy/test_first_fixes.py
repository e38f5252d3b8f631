"""The first fixes of every refused fleet file lead to an accepted file, and change nothing without a word."""

import pytest

from shared.first_fixes import follow_first_fixes
from shared.refused_fleets import read_fleet, read_refused

ROWS = 800
"""Fewer rows mean that the file was renewed with a part of the tests."""


def test_first_fixes_lead_to_accepted_files_and_keep_their_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    """All files that tests of fleets, plans and values refuse. What no key can solve, such as a model whose config.json
    is missing, has a command or advice, and counts as solved."""
    rows = read_refused()
    outcomes = {name: follow_first_fixes(text, read_fleet) for name, text in rows.items()}
    failures = {name: outcome.failure for name, outcome in outcomes.items() if outcome.failure}
    advised = sum(bool(outcome.left) and not outcome.failure for outcome in outcomes.values())
    with capsys.disabled():
        accepted = len(rows) - advised - len(failures)
        print(f"\n{len(rows)} refused fleet files: the first fixes of {accepted} lead to an accepted file", end="")
        print(f", of {advised} to a command or advice, of {len(failures)} to neither")
    assert len(rows) >= ROWS
    assert not failures, "\n".join(f"{name}: {failure}" for name, failure in failures.items())
