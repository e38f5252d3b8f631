"""Rows of the page about isolation name tests that exist."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "ci"))

from reference_isolation import load_isolation  # noqa: E402

ROWS = [row for part in load_isolation() for row in part.rows]


def find_tests(file: Path) -> set[str]:
    return {node.name for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.attempt.replace(" ", "-"))
def test_row_of_the_isolation_page_names_tests_that_exist(row) -> None:
    for test in row.tests:
        file, _, name = test.partition("::")
        assert name in find_tests(ROOT / file), test


def test_row_of_the_isolation_page_has_a_test_or_says_what_is_left() -> None:
    assert [row.attempt for row in ROWS if not row.tests and not row.limit] == []
