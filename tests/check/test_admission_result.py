"""The table of docs/verification.md has the figures of `make bench-admission`."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULT = json.loads((ROOT / "benchmarks/admission/result.json").read_text())


@pytest.mark.parametrize("kind", RESULT["kinds"])
def test_verification_page_has_the_measured_latency_of_admission(kind: str) -> None:
    row = RESULT["kinds"][kind]
    line = (
        f"| {kind} | {row['without_ms']} ms | {row['with_ms']} ms | "
        f"{row['ratio']} ({row['ratios'][0]} to {row['ratios'][-1]}) |"
    )
    page = (ROOT / "docs/verification.md").read_text()
    assert line in page
    assert f"with all {RESULT['policies']} policies" in page
    assert f"a load average of {RESULT['load_average']}" in page
