"""Fit coefficients to rows, and predict other rows with them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from performance.solve import Prior, solve
from rayhelm.planner.speed.coefficients import Band, Bands, SpeedCoefficients
from rayhelm.planner.speed.model import count_running, list_first_token_terms, list_step_terms
from rayhelm.planner.speed.rows import MeasuredRow, load_rows, replica_of_row

__all__ = ["MOST_IN_FLIGHT", "fit_rows", "list_usable_rows", "start"]

PRIORS = Path(__file__).parent / "priors.yaml"
MOST_IN_FLIGHT = 256
"""Rows with more requests in flight were limited by settings of the engine that they do not record."""
_EQUAL_WEIGHT = 30
"""Rows of one model and GPU above which more of them do not weigh more together."""


def list_usable_rows() -> list[MeasuredRow]:
    return [row for row in load_rows() if row.load.concurrency <= MOST_IN_FLIGHT]


def start() -> SpeedCoefficients:
    """Return the expected values of all coefficients, with empty intervals."""
    priors = yaml.safe_load(PRIORS.read_text())
    band = Band(low=1.0, high=1.0, rows=0)
    bands = Bands(**dict.fromkeys(Bands.model_fields, band))
    return SpeedCoefficients(
        source="",
        memory_efficiency=priors["memory_efficiency"],
        compute_efficiency=priors["compute_efficiency"],
        vendor_factor=priors["vendor_factor"],
        tpot={name: prior[0] for name, prior in priors["tpot"].items()},
        ttft={name: prior[0] for name, prior in priors["ttft"].items()},
        saturation_factor=1.0,
        wide_experts_factor=1.0,
        tpot_bands=bands,
        ttft_bands=bands,
        throughput_bands=bands,
        errors={},
    )


def fit_rows(rows: Sequence[MeasuredRow]) -> SpeedCoefficients:
    """Return coefficients that are fitted to these rows: first a decode step, then the time to first token."""
    priors: dict[str, dict[str, Any]] = yaml.safe_load(PRIORS.read_text())
    fitted = start()
    terms = [list_step_terms(replica_of_row(row), row.load, fitted) for row in rows]
    tpot = solve(terms, [row.tpot_s for row in rows], _weigh(rows), _priors(priors["tpot"]))
    fitted = fitted.model_copy(update={"tpot": tpot})
    timed = [(row, row.ttft_s) for row in rows if row.ttft_s is not None and not _is_queued(row)]
    first = [_list_first_token_terms(row, fitted) for row, _ in timed]
    ttft = solve(first, [seconds for _, seconds in timed], _weigh([row for row, _ in timed]), _priors(priors["ttft"]))
    return fitted.model_copy(update={"ttft": ttft})


def _list_first_token_terms(row: MeasuredRow, fitted: SpeedCoefficients) -> dict[str, float]:
    replica = replica_of_row(row)
    running, _ = count_running(replica, row.load)
    step = list_step_terms(replica, row.load, fitted)
    tpot = sum(fitted.tpot[name] * value for name, value in step.items())
    return list_first_token_terms(replica, row.load, tpot, fitted, running)


def _is_queued(row: MeasuredRow) -> bool:
    _, limit = count_running(replica_of_row(row), row.load)
    return bool(limit)


def _weigh(rows: Sequence[MeasuredRow]) -> list[float]:
    """Return the weight of each row: models and GPUs with many rows do not outweigh the others."""
    counts = Counter((row.model, row.weights, row.gpu) for row in rows)
    return [_EQUAL_WEIGHT / max(_EQUAL_WEIGHT, counts[row.model, row.weights, row.gpu]) for row in rows]


def _priors(section: Mapping[str, Sequence[float]]) -> dict[str, Prior]:
    return {name: (values[0], values[1], values[2]) for name, values in section.items()}
