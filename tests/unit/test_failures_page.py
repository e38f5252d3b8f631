"""The page of failures tells what was measured, and every row of it."""

import json
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


def test_the_page_has_the_table_of_the_result(page: ModuleType) -> None:
    text = page.PAGE.read_text()
    assert page.table(RESULT["rows"]) in text
    assert page.with_table(text, RESULT["rows"]) == text


def test_every_row_was_measured_as_it_stands_there(page: ModuleType) -> None:
    from failures.rows import ROWS

    measured = [(row["name"], row["what"], row["workers"]) for row in RESULT["rows"]]
    assert measured == [(row.name, row.what, row.setting.workers) for row in ROWS]


def test_a_table_of_another_result_takes_the_place_of_the_old_one(page: ModuleType) -> None:
    text = page.with_table(page.PAGE.read_text(), [RESULT["rows"][0] | {"answered": 123456}])
    assert "123,456" in text
    assert RESULT["rows"][1]["what"] not in text


def test_no_request_is_lost_but_with_what_had_it_in_its_hands() -> None:
    """A gateway that is killed, and what is there only once: a head without Redis, a worker."""
    alone = {"gateway killed", "head killed, no Redis", "lone worker killed"}
    assert {row["name"] for row in RESULT["rows"] if row["lost"] or row["cut"]} <= alone
    assert all(row["answered"] > 100 for row in RESULT["rows"])
