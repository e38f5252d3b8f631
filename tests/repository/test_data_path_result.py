"""`make bench-data-path`: its result and the table of the page belong to what the charts render now."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "benchmarks/data_path/result.json"
STALE = "run make bench-data-path"
FIGURES = {"tokens_per_second": 7098.4, "first_token_s": 0.1402, "cpu_microseconds_per_token": 92.6}


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from data_path import page

    return page


def test_result_and_page_belong_to_the_present_inputs(page: ModuleType) -> None:
    """Without a result the page has no table."""
    from data_path.inputs import compute_digest

    text = page.PAGE.read_text()
    if not RESULT.exists():
        assert "<!-- measured -->\n<!-- end of measured -->" in text, STALE
        return
    result = json.loads(RESULT.read_text())
    assert result["inputs"] == compute_digest(), STALE
    assert page.replace_table(text, result) == text, STALE


def test_table_has_the_figures_of_each_server(page: ModuleType) -> None:
    row = {"streams": 64, **dict.fromkeys(("Python", "HAProxy", "Direct", "vllm serve"), FIGURES)}
    found: dict[str, Any] = {"measured": "2026-11-29", "cores": 2, "ray": "2.60.0", "vllm": "0.29.0"}
    table = page.build_table({**found, "tokens_per_stream": 128, "rounds": 3, "rows": [row]})
    assert "| 64 | `Direct` | 7,098 | 140 ms | 93 µs |" in table
    assert "| 64 | vllm serve | 7,098 | 140 ms | 93 µs |" in table
