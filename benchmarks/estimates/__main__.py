"""python -m estimates [--write FILE]

Errors of our estimates and of AIConfigurator's on the measured rows that both answer. Ours are made without any row of
the model. AIConfigurator gets the settings of each row, and answers from the kernel measurements in its package.
"""

import argparse
import datetime
import json
import platform
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from estimates.answers import ask, find_version
from estimates.compare import Pair, compare
from estimates.inputs import compute_digest, summarize_ours
from estimates.page import PAGE, replace_text
from estimates.questions import CACHES, MODES, build_question
from performance.training import list_usable_rows
from performance.validation import Residual, leave_out
from rayhelm.planner.speed.rows import MeasuredRow


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-estimates", description=__doc__)
    parser.add_argument("--write", type=Path, help="file for the result as JSON; the page is updated too")
    options = parser.parse_args()
    rows = list_usable_rows()
    residuals = leave_out(lambda row: row.model)
    ours = {id(each.row): each for each in residuals}
    result: dict[str, Any] = {
        "command": "make bench-estimates",
        "conditions": {
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "aiconfigurator": find_version(),
            "python": platform.python_version(),
            "machine": platform.machine(),
        },
        "rows": len(rows),
        "inputs": {"sha256": compute_digest(rows), "rayhelm_over_all_rows": summarize_ours(residuals)},
        "by_kv_cache": {name: _compare_with(rows, ours, precision) for name, precision in CACHES.items()},
    }
    text = json.dumps(result, indent=1) + "\n"
    sys.stdout.write(text)
    if options.write:
        options.write.write_text(text)
        PAGE.write_text(replace_text(PAGE.read_text(), result))
    return 0


def _compare_with(rows: Sequence[MeasuredRow], ours: dict[int, Residual], precision: str) -> dict[str, Any]:
    """Return the comparison with one precision of the KV cache in its answers."""
    pairs: list[Pair] = []
    refused: Counter[str] = Counter()
    left = list(rows)
    for mode in MODES:
        questions = [build_question(row, precision if row.kv_cache_dtype == "fp8" else None, mode) for row in left]
        asked = [(row, question) for row, question in zip(left, questions, strict=True) if question]
        refused["no data for the GPU"] += len(left) - len(asked)
        left = []
        for (row, _), answer in zip(asked, ask([question for _, question in asked]), strict=True):
            if error := answer.get("error"):
                left.append(row)
                refused[_shorten(error)] += mode == MODES[-1]
            else:
                pairs.append(Pair(ours[id(row)], answer, mode))
    return {
        "answered": dict(Counter(pair.mode for pair in pairs)),
        "not_answered": {why: count for why, count in refused.items() if count},
        "errors": compare(pairs),
    }


def _shorten(error: str) -> str:
    """Return the kind of an error and its first words, without the sizes of one row."""
    return " ".join(error.split()[:8])


if __name__ == "__main__":
    raise SystemExit(main())
