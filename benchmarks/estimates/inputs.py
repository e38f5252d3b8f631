"""What the result was computed from: a test compares it with the repository, and names the command that renews it."""

import hashlib
import json
from collections.abc import Mapping, Sequence

from estimates.questions import CACHES, MODES, build_question
from performance.validation import Residual, summarize
from rayhelm.planner.speed.rows import MeasuredRow

__all__ = ["compute_digest", "summarize_ours"]


def compute_digest(rows: Sequence[MeasuredRow]) -> str:
    """Return the SHA-256 of the measured figures of all rows, and of what is asked for each."""
    described = [
        [row.reference, row.tpot_s, row.ttft_s, *(build_question(row, each, MODES[0]) for each in CACHES.values())]
        for row in rows
    ]
    return hashlib.sha256(json.dumps([*MODES, described], sort_keys=True).encode()).hexdigest()


def summarize_ours(residuals: Sequence[Residual]) -> dict[str, Mapping[str, Mapping[str, float]]]:
    """Return the errors of our estimates over all rows, as `benchmarks/performance/result.yaml` has them for models
    that were left out of the fit."""
    groups = {
        "all": residuals,
        "dense": [each for each in residuals if not each.has_experts],
        "sparse": [each for each in residuals if each.has_experts],
    }
    return {name: {figure: summarize(figure, group) for figure in ("tpot", "ttft")} for name, group in groups.items()}
