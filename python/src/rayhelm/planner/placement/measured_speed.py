"""Measurements of `rayhelm bench` in a plan: the rows of a split, and why others are not used."""

from collections.abc import Iterable, Iterator

from rayhelm.fleet.measurements import FleetMeasurements
from rayhelm.fleet.speed_measurements import SpeedMeasurement
from rayhelm.planner.placement.model_spec import ResolvedModelSpec
from rayhelm.planner.speed.replica import Load, Replica
from rayhelm.planner.speed.rows import MeasuredRow

__all__ = ["find_doubt", "list_own_rows", "warn_speed_measurements"]


def list_own_rows(model_spec: ResolvedModelSpec, replica: Replica) -> tuple[MeasuredRow, ...]:
    """Return the rows of this split of the model. Another split has another speed, and its rows say nothing here."""
    return tuple(
        _build_row(model_spec, measurement, replica)
        for measurement in model_spec.measured
        if not find_doubt(model_spec, measurement) and _is_of(measurement, replica)
    )


def warn_speed_measurements(
    measured: FleetMeasurements | None, model_specs: Iterable[ResolvedModelSpec]
) -> Iterator[str]:
    """Yield the measurements of models that no plan of this fleet uses, and why."""
    if not measured:
        return
    known = {each.name: each for each in model_specs}
    for name, measurements in measured.models.items():
        where = f"{measured.file}: model `{name}`"
        if name not in known:
            yield f"{where} is not in the fleet file: its measurements are not used; remove them"
            continue
        for each in measurements:
            if doubt := find_doubt(known[name], each):
                again = f"; measure again: rayhelm bench FLEET --model {name}"
                yield f"{where}, {each.shape}: not used, {doubt}{'' if known[name].separates_prefill else again}"


def find_doubt(model_spec: ResolvedModelSpec, measurement: SpeedMeasurement) -> str:
    """Return why a measurement is not one of the model as it is now; empty if it is."""
    declared = model_spec.declared
    if model_spec.separates_prefill:
        return "prompts and answers of the model are computed on different replicas"
    if (measurement.source, measurement.revision) != (declared.source, declared.revision):
        return "other weights were served then"
    if measurement.engine != declared.engine:
        return "other engine arguments were set then"
    return measurement.why_not


def _is_of(measurement: SpeedMeasurement, replica: Replica) -> bool:
    return (
        measurement.gpus == tuple(gpu.id for gpu in replica.gpus)
        and measurement.tensor_parallel_size == replica.shape.tp
        and measurement.data_parallel_size == replica.shape.dp
        and abs(measurement.gpu_fraction - replica.share) < 1e-6
    )


def _build_row(model_spec: ResolvedModelSpec, measurement: SpeedMeasurement, replica: Replica) -> MeasuredRow:
    concurrency = measurement.concurrency / measurement.replicas
    return MeasuredRow(
        model=model_spec.name,
        weights="",
        kv_cache_dtype=model_spec.kv_cache_dtype,
        gpu=replica.gpus[0].id,
        shape=replica.shape,
        load=Load(measurement.input_tokens, measurement.output_tokens, concurrency),
        ttft_s=measurement.ttft_s,
        tpot_s=measurement.tpot_s,
        vllm=measurement.vllm,
        source="rayhelm bench",
        row=f"{measurement.shape}, {measurement.measured_at:%Y-%m-%d}",
        replica=replica,
    )
