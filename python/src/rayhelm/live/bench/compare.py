"""The measured speed of a model beside the one that the plan promises."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from rayhelm.errors import FleetError, collect
from rayhelm.fleet.measurements import FleetMeasurements
from rayhelm.fleet.models import ModelSpec
from rayhelm.fleet.speed_measurements import SpeedMeasurement
from rayhelm.live.bench.load import BenchResult
from rayhelm.planner.plan import ModelPlan
from rayhelm.planner.speed.estimate import Interval, SpeedEstimate
from rayhelm.planner.speed.query import SpeedQuery, answer_query

__all__ = ["LoadComparison", "build_measurement", "choose_concurrency", "compare", "merge_models", "place"]


@dataclass(frozen=True)
class LoadComparison:
    """One load: what was measured, and what was expected of it."""

    result: BenchResult
    expected: SpeedEstimate | None
    """Of one replica with its part of the requests; None if it cannot be estimated."""
    why_not: str = ""


def choose_concurrency(plan: ModelPlan) -> tuple[int, ...]:
    """Return the requests in flight to measure: one, those of the planned load, and the most that the plan takes."""
    planned = (plan.estimate.concurrency or 0) * plan.serving_replicas
    most = plan.target_ongoing_requests * plan.serving_replicas
    return tuple(sorted({1, max(1, round(planned)), max(1, most)}))


def compare(result: BenchResult, plan: ModelPlan, replicas: int) -> LoadComparison:
    """Estimate the load that was measured, as `rayhelm estimate` does."""
    estimate, problems = collect(lambda: _estimate(result, plan, replicas))
    return LoadComparison(result, estimate, problems[0].message if problems else "")


def _estimate(result: BenchResult, plan: ModelPlan, replicas: int) -> SpeedEstimate:
    if plan.gpu_fraction < 1 or len({stage.gpu for stage in plan.stages}) > 1:
        raise FleetError("`rayhelm estimate` takes whole GPUs of one kind")
    if plan.prefill_decode:
        raise FleetError("`rayhelm estimate` has no replicas for prompts and answers apart")
    query = SpeedQuery(
        model=plan.source,
        gpu=plan.stages[0].gpu,
        tensor_parallel_size=plan.tensor_parallel_size,
        pipeline_parallel_size=plan.pipeline_parallel_size,
        data_parallel_size=plan.data_parallel_size,
        expert_parallel=plan.expert_parallel,
        input_tokens=round(result.input_tokens),
        output_tokens=max(1, round(result.output_tokens)),
        concurrency=result.load.concurrency / replicas,
        engine={**plan.engine, "max_num_seqs": plan.max_num_seqs, "max_model_len": plan.max_model_len},
    )
    found = answer_query(query)
    rate = found.output_tokens_per_second
    whole = Interval(low=rate.low * replicas, mid=rate.mid * replicas, high=rate.high * replicas)
    return found.model_copy(update={"output_tokens_per_second": whole})


def place(value: float, expected: Interval, *, is_time: bool) -> str:
    """Return where a measured figure lies: `as planned`, `faster` or `slower`."""
    if expected.low <= value <= expected.high:
        return "as planned"
    return "faster" if (value < expected.low) == is_time else "slower"


def build_measurement(
    result: BenchResult, plan: ModelPlan, spec: ModelSpec, replicas: int, version: str, now: datetime
) -> SpeedMeasurement:
    """Return what the measurements of the fleet keep of a load."""
    return SpeedMeasurement(
        source=spec.source,
        revision=spec.revision,
        engine=dict(spec.engine),
        gpus=tuple(stage.gpu for stage in plan.stages),
        tensor_parallel_size=plan.tensor_parallel_size,
        data_parallel_size=plan.data_parallel_size,
        gpu_fraction=plan.gpu_fraction,
        replicas=replicas,
        concurrency=result.load.concurrency,
        input_tokens=round(result.input_tokens, 1),
        output_tokens=round(result.output_tokens, 1),
        ttft_s=float(f"{result.ttft_s:.4g}"),
        tpot_s=float(f"{result.tpot_s:.4g}"),
        output_tokens_per_second=float(f"{result.output_tokens_per_second:.4g}"),
        requests=result.requests,
        failed=result.failed,
        vllm=version,
        measured_at=now,
    )


def merge_models(earlier: FleetMeasurements | None, model: str, rows: Sequence[SpeedMeasurement]) -> FleetMeasurements:
    """Return the earlier measurements with these rows; rows of the same model, shape and load are replaced."""
    kept = earlier or FleetMeasurements()
    same: Mapping[object, SpeedMeasurement] = {_identify(each): each for each in (*kept.models.get(model, ()), *rows)}
    return FleetMeasurements(pools=kept.pools, models={**kept.models, model: tuple(same.values())})


def _identify(row: SpeedMeasurement) -> object:
    return row.shape, row.gpu_fraction, round(row.input_tokens, -1), round(row.output_tokens, -1)
