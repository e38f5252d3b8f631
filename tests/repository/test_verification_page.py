"""The counts in docs/verification.md are those of the data and of the tests."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from network.test_comparison import TOO_LITTLE, TOO_MUCH
from observe.test_live import SERIES_WITHOUT_DATA, reason_without_data
from policies.kit.cases import CASES, NAMES
from rayhelm.observe.rules.alerts import load_alerts
from rayhelm.observe.rules.recordings import load_recordings
from shared.dashboard_queries import queries_of

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/verification.md").read_text()


def count_start_up_logs() -> int:
    with (ROOT / "tests/shared/data/vllm_memory_measured.csv").open() as lines:
        return len(list(csv.DictReader(lines)))


def count_measured_rows() -> int:
    rows: int = yaml.safe_load((ROOT / "benchmarks/performance/result.yaml").read_text())["rows"]
    return rows


def count_edits() -> int:
    return len(yaml.safe_load((ROOT / "tests/cluster/edits/observed/1.7.0.yaml").read_text())["rows"])


def count_random_edits() -> int:
    return len(json.loads((ROOT / "tests/cluster/edits/random-1.6.2.json").read_text())["outcomes"])


def count_live_queries() -> int:
    texts = (text for file in (ROOT / "dashboards").glob("*.json") for text in queries_of(file).values())
    return sum(not reason_without_data(text) for text in texts)


def count_live_rules() -> int:
    rules = (rule for group in load_recordings().values() for rule in group)
    return sum(rule.series not in SERIES_WITHOUT_DATA for rule in rules)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (r"Compared with (\d+) published vLLM start-up logs", count_start_up_logs),
        (r"Compared with (\d+) measured rows", count_measured_rows),
        (r"after each of (\d+) edits", count_edits),
        (r"makes (\d+) random edits", count_random_edits),
        (r"\| (\d+) objects, offline and on the real API server", lambda: len(CASES)),
        (
            r"(\d+) of them try to bypass the one accepted form of serveConfigV2",
            lambda: sum(case.policy == "serve-config-form" and not case.good for case in CASES),
        ),
        # One more test breaks the policy of a release that is rendered alone.
        (r"(\d+) broken policies must be reported", lambda: len(TOO_MUCH) + len(TOO_LITTLE) + 1),
        (r"returns data \((\d+) queries\)", count_live_queries),
        (r"every recording rule that needs no GPU \((\d+)\)", count_live_rules),
        (r"each of the (\d+) alerts", lambda: len(load_alerts())),
        (r"with all (\d+) policies", lambda: len(NAMES)),
    ],
)
def test_count_on_the_page_is_the_present_one(text: str, count: Callable[[], int]) -> None:
    (written,) = re.findall(text, PAGE)
    assert int(written) == count()
