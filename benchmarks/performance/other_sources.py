"""Measurements of other sources than those of the fit: published figures, and a model with experts of 8 bits.

They give two factors, for saturated engines and for experts in 8 or 16 bits, and widen the intervals. Each source and
each family of models is left out in turn to see whether the intervals hold."""

import csv
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import exp, log, sqrt
from pathlib import Path
from statistics import mean, median, pstdev
from typing import Any, NamedTuple

from rayhelm.planner.speed.coefficients import Band, BandChoice, Bands
from rayhelm.planner.speed.estimate import describe_doubt, find_band
from rayhelm.planner.speed.model import compute_speed
from rayhelm.planner.speed.neighbors import correct, find_rows
from rayhelm.planner.speed.query import SpeedQuery, answer_query, read_replica
from rayhelm.planner.speed.rows import describe_unmeasured
from rayhelm.planner.speed.unmeasured import find_saturation, has_wide_experts

__all__ = ["Case", "Factors", "cross_validate", "fit_factors", "list_cases", "list_published", "widen"]

HERE = Path(__file__).parent
CONFIGS = HERE.parents[1] / "tests/facts/architecture_configs"
_GPUS = {"h100_sxm": "H100-SXM-80GB", "h200_sxm": "H200-SXM-141GB", "b200_sxm": "B200-SXM-180GB"}
_TUNED = tuple(_GPUS.values())
"""GPUs of the rows of the fit."""
_SPREADS = 2.0
"""Standard deviations of an interval that few sources give."""
_TAIL = 0.05


class Case(NamedTuple):
    """One measured figure."""

    name: str
    source: str
    family: str
    gpu: str
    in_flight: float
    figure: str
    slower: float
    """Logarithm of the measured time over the one of the model of speed, or of the rate the other way around."""
    confidence: float
    saturation: float
    is_wide: bool
    band: BandChoice
    is_dense: bool


class Factors(NamedTuple):
    """Factors on all times."""

    saturation: float
    wide_experts: float

    def remainder(self, case: Case) -> float:
        """Return the logarithm of measured over estimated with the factors."""
        known = case.saturation * log(self.saturation) + case.is_wide * log(self.wide_experts)
        return case.slower - (1 - case.confidence) * known


def list_cases() -> list[Case]:
    return [*_list_public(), *_list_silicon()]


def fit_factors(cases: Sequence[Case]) -> Factors:
    """Return the medians: of dense and 4-bit models for saturated engines, then of the families with wide experts."""
    saturated = [each.slower / each.saturation for each in cases if each.saturation > 0.5 and not each.is_wide]
    factor = exp(median(saturated)) if saturated else 1.0
    families: dict[str, list[float]] = defaultdict(list)
    for each in cases:
        if each.is_wide:
            families[each.family].append(Factors(factor, 1.0).remainder(each))
    wide = exp(median(median(values) for values in families.values()))
    return Factors(float(f"{factor:.3g}"), float(f"{wide:.3g}"))


def widen(figure: str, bands: Bands, cases: Sequence[Case], factors: Factors) -> Bands:
    """Return the intervals of a figure with those of the other sources."""
    plain = [each for each in cases if not each.is_wide]
    calm = [factors.remainder(each) for each in plain if not each.saturation and each.gpu in _TUNED]
    installed = _orient(figure, 0.0, mean(calm) + _SPREADS * pstdev(calm), len(calm))
    saturated = [factors.remainder(each) for each in plain if each.saturation]
    spread = _SPREADS * pstdev(saturated)
    few = _orient(figure, mean(saturated) - spread, mean(saturated) + spread, len(saturated))
    wide = [each for each in cases if each.is_wide and each.figure in (figure, "throughput")]
    ends = _orient(figure, *_cut([(factors.remainder(each), each.family) for each in wide]), len(wide))
    # The factor of wide experts has few families: the estimate without it stays inside, as far as without a GPU's rows.
    other = bands.other_gpu
    fast = log(other.low) if figure != "throughput" else -log(other.high)
    without = _orient(figure, fast - log(factors.wide_experts), 0.0, 0)
    return bands.model_copy(
        update={
            "installed": installed,
            "saturated": _join(other, installed, few),
            "wide_experts": _join(other, installed, ends, without),
        }
    )


def cross_validate(bands: Mapping[str, Bands], cases: Sequence[Case]) -> dict[str, Any]:
    """Return the parts of the figures inside intervals that their source, or their family, did not take part in."""
    report = {}
    for name, group in (("source_left_out", lambda each: each.source), ("family_left_out", lambda each: each.family)):
        found = [(each, is_inside) for each, is_inside in _leave_out(bands, cases, group)]
        report[name] = {
            title: {"figures": len(inside), "inside": round(100 * mean(inside), 1)}
            for title, belongs in _SETS.items()
            if (inside := [is_inside for each, is_inside in found if belongs(each)])
        }
    return report


_SETS: dict[str, Callable[[Case], bool]] = {
    "all published": lambda each: "aiconfigurator" not in each.source,
    "H100 and H200, saturated": lambda each: each.gpu in _TUNED and each.saturation > 0 and not _is_silicon(each),
    "H100 and H200, 1 to 40 in flight": lambda each: (
        each.gpu in _TUNED and each.in_flight <= 40 and not _is_silicon(each)
    ),
    "A100, RTX 3090, RTX 4090": lambda each: each.gpu.startswith(("A100", "RTX")),
    "MI300X, dense": lambda each: each.gpu.startswith("MI300X") and each.is_dense,
    "experts in 8 or 16 bits, published": lambda each: each.is_wide and not _is_silicon(each),
    "MiniMax-M2.5, TPOT": lambda each: _is_silicon(each) and each.figure == "tpot",
    "MiniMax-M2.5, TTFT": lambda each: _is_silicon(each) and each.figure == "ttft",
    "MiniMax-M2.5, throughput": lambda each: _is_silicon(each) and each.figure == "throughput",
}
"""Sets of the report."""


def _is_silicon(case: Case) -> bool:
    return "aiconfigurator" in case.source


def _leave_out(
    bands: Mapping[str, Bands], cases: Sequence[Case], group: Callable[[Case], str]
) -> Iterator[tuple[Case, bool]]:
    for name in sorted({group(each) for each in cases}):
        others = [each for each in cases if group(each) != name]
        factors = fit_factors(others)
        widened = {figure: widen(figure, bands[figure], others, factors) for figure in bands}
        for each in cases:
            if group(each) == name:
                band, left = each.band.choose(widened[each.figure]), factors.remainder(each)
                low, high = sorted((log(band.low), log(band.high)))
                value = -left if each.figure == "throughput" else left
                yield each, low <= value <= high


def list_published() -> Iterator[tuple[str, float, tuple[float, float]]]:
    """Yield each published figure with the interval that `rayhelm estimate` prints."""
    for row, query, figure, measured in _read_public():
        answer = answer_query(query)
        interval = {
            "tpot": answer.tpot_s,
            "ttft": answer.ttft_s,
            "throughput": answer.output_tokens_per_second,
        }[figure]
        yield row["id"], measured, (interval.low, interval.high)


def _list_public() -> Iterator[Case]:
    for row, query, figure, measured in _read_public():
        # One laboratory measures all of its models alike: it is one source.
        source = row["source"].split(",")[0].split(" (")[0].split(" performance-lab")[0]
        yield from _compare(row["id"], source, query, {figure: measured})


def _read_public() -> Iterator[tuple[dict[str, str], SpeedQuery, str, float]]:
    for row in csv.DictReader((HERE / "public_cases.csv").read_text().splitlines()):
        asked = json.loads(row["query"])
        if "config" in asked:
            asked["config"] = str(CONFIGS / asked["config"])
        figure = {"tok/s": "throughput", "tpot ms": "tpot", "ttft ms": "ttft"}[row["unit"]]
        yield (
            row,
            SpeedQuery.model_validate(asked),
            figure,
            float(row["measured"]) / (1 if figure == "throughput" else 1e3),
        )


def _list_silicon() -> Iterator[Case]:
    for row in csv.DictReader((HERE / "minimax_m2_5.csv").read_text().splitlines()):
        ranks = row["id"].split("_ep")[-1].split("_")[0] if "_ep" in row["id"] else "none"
        query = SpeedQuery(
            config=str(CONFIGS / "MiniMaxAI--MiniMax-M2.5.json"),
            gpu=_GPUS[row["system"]],
            tensor_parallel_size=int(float(row["tp_size"])),
            data_parallel_size=int(float(row["dp"])),
            expert_parallel=ranks not in ("none", "1"),
            input_tokens=int(row["isl"]),
            output_tokens=int(row["osl"]),
            concurrency=float(row["concurrency"]),
            engine={"quantization": "fp8"},
        )
        figures = {
            "tpot": float(row["silicon_tpot_ms"]) / 1e3,
            "ttft": float(row["silicon_ttft_ms"]) / 1e3,
            "throughput": float(row["out_tok_s_total_derived"]),
        }
        yield from _compare(row["id"], "aiconfigurator", query, figures)


def _compare(name: str, source: str, query: SpeedQuery, measured: Mapping[str, float]) -> Iterator[Case]:
    replica, load, _ = read_replica(query)
    speed = compute_speed(replica, load)
    rows = () if speed.limit == "max_num_seqs" else find_rows(replica)
    correction = correct(replica, load, rows, str(query.engine.get("kv_cache_dtype") or "auto"))
    doubt = describe_doubt(speed, correction, describe_unmeasured(load))
    tpot, ttft = speed.tpot_s * exp(correction.tpot), speed.ttft_s * exp(correction.ttft)
    rate = load.concurrency * load.output_tokens / (ttft + (load.output_tokens - 1) * tpot)
    for figure, value in measured.items():
        slower = log(rate / value) if figure == "throughput" else log(value / {"tpot": tpot, "ttft": ttft}[figure])
        yield Case(
            name=name,
            source=source,
            family=(query.model or Path(query.config or "").stem).split("/")[-1].split("--")[-1],
            gpu=query.gpu,
            in_flight=load.concurrency,
            figure=figure,
            slower=slower,
            confidence=correction.confidence,
            saturation=find_saturation(replica, speed.running),
            is_wide=has_wide_experts(replica),
            band=find_band(replica, speed, correction, doubt),
            is_dense=replica.model.experts is None,
        )


def _cut(values: Iterable[tuple[float, str]]) -> tuple[float, float]:
    """Return the tails of the remainders. Families with many figures weigh more than others, but less than their
    number."""
    ordered = sorted(values)
    counts = Counter(family for _, family in ordered)
    weights = [1 / sqrt(counts[family]) for _, family in ordered]
    return _find_quantile(ordered, weights, _TAIL), -_find_quantile(
        [(-value, family) for value, family in reversed(ordered)], weights[::-1], _TAIL
    )


def _find_quantile(ordered: Sequence[tuple[float, str]], weights: Sequence[float], part: float) -> float:
    passed = 0.0
    for (value, _), weight in zip(ordered, weights, strict=True):
        passed += weight
        if passed > part * sum(weights):
            return value
    return ordered[-1][0]


def _orient(figure: str, fast: float, slow: float, rows: int) -> Band:
    """Return a band from logarithms of times: a slow time is a low rate."""
    low, high = (-slow, -fast) if figure == "throughput" else (fast, slow)
    return Band(low=round(exp(low), 3), high=round(exp(high), 3), rows=rows)


def _join(*bands: Band) -> Band:
    return Band(
        low=min(band.low for band in bands),
        high=max(band.high for band in bands),
        rows=max(band.rows for band in bands),
    )
