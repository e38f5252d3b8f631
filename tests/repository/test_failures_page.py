"""The page about failures has the measured table."""

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RESULT: dict[str, Any] = json.loads((ROOT / "benchmarks/failures/result.json").read_text())


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from failures import page

    return page


def test_page_has_the_table_of_the_result(page: ModuleType) -> None:
    text = page.PAGE.read_text()
    assert page.build_table(RESULT["rows"]) in text
    assert page.replace_table(text, RESULT["rows"]) == text


def test_every_row_has_a_result(page: ModuleType) -> None:
    from failures.rows import ROWS

    measured = [(row["name"], row["event"], row["workers"]) for row in RESULT["rows"]]
    assert measured == [(row.name, row.event, row.setting.workers) for row in ROWS]


def test_replace_table_removes_the_old_table(page: ModuleType) -> None:
    text = page.replace_table(page.PAGE.read_text(), [RESULT["rows"][0] | {"answered": 123456}])
    assert "123,456" in text
    assert RESULT["rows"][1]["event"] not in text


def test_figures_of_diff_are_those_of_the_result(page: ModuleType) -> None:
    text = page.FIGURES.read_text()
    assert page.replace_figures(text, RESULT["rows"]) == text
    assert page.replace_figures(re.sub(r"answered: \d+", "answered: 1", text), RESULT["rows"]) == text


def test_requests_fail_only_with_the_only_pod_or_their_gateway() -> None:
    """A gateway pod that is killed, a head without Redis, and the only worker."""
    alone = {"gateway killed", "head killed, no Redis", "single worker killed"}
    assert {row["name"] for row in RESULT["rows"] if row["failed"] or row["interrupted"]} <= alone
    assert all(row["answered"] > 100 for row in RESULT["rows"])
