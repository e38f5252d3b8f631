"""The first fixes of every refused fleet file lead to an accepted file, and change nothing without a word."""

import pytest

from shared.first_fixes import follow_first_fixes
from shared.refused_fleets import read_fleet, read_refused

ROWS = 780
"""Fewer rows mean that the file was renewed with a part of the tests."""


def test_first_fixes_lead_to_accepted_files_and_keep_their_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    """All files that tests of fleets, plans and values refuse. What no key can solve, such as a model whose config.json
    is missing, has a command or advice, and counts as solved."""
    rows = read_refused()
    failures = {
        name: failure for name, text in rows.items() if (failure := follow_first_fixes(text, read_fleet).failure)
    }
    share = 1 - len(failures) / len(rows)
    with capsys.disabled():
        print(f"\n{len(rows)} refused fleet files; the first fixes of {share:.1%} lead to an accepted file")
    assert len(rows) >= ROWS
    assert not failures, "\n".join(f"{name}: {failure}" for name, failure in failures.items())
