"""Turns a choice into the plan of a model."""

from math import ceil

from rayhelm.catalog.tensors import weights
from rayhelm.planner.explain.model_warnings import unknown_of, warnings_of
from rayhelm.planner.explain.reasons import reasons_of, routing_of
from rayhelm.planner.memory.accounting import Outcome
from rayhelm.planner.memory.parallelism import split_layers
from rayhelm.planner.placement.autoscaling import scaling_of, scaling_reasons, target_of
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.choose import Choice
from rayhelm.planner.placement.cost import price_per_million_output_tokens
from rayhelm.planner.placement.inventory import HostSite
from rayhelm.planner.placement.performance import roofline
from rayhelm.planner.plan import Estimate, ModelPlan, Stage
from rayhelm.spec.models import STABLE, Replicas

__all__ = ["describe"]


def describe(choice: Choice, hosts: tuple[HostSite, ...], read_gib_per_s: float | None = None) -> ModelPlan:
    """`read_gib_per_s`: how fast a node reads weights, where the fleet file says."""
    chosen = choice.candidate
    wish, split = chosen.wish, chosen.split
    spec, hour = wish.spec, chosen.price_per_hour
    low, high = _bounds(chosen)
    target, stages = target_of(chosen), _stages(chosen, hosts)
    scaling = scaling_of(chosen, stages, low, read_gib_per_s)
    return ModelPlan(
        model=wish.name,
        answers_to=spec.served_as.model if spec.served_as else wish.name,
        version=(spec.served_as.version if spec.served_as else None) or STABLE,
        service=wish.service,
        source=spec.source,
        revision=spec.revision,
        architecture=wish.model.architecture,
        task=spec.task,
        cluster=split.pool.pool.cluster,
        pool=split.pool.name,
        hosts=() if split.pool.alike else tuple(host.name for host in hosts),
        gpu=split.gpu_name,
        tensor_parallel_size=split.tp,
        pipeline_parallel_size=split.pp,
        layer_partition=split.partition or (),
        replicas=chosen.replicas,
        min_replicas=low,
        max_replicas=high,
        gpus=round(chosen.gpus, 4),
        gpu_fraction=chosen.share,
        nodes_per_replica=split.nodes,
        stages=stages,
        routing=routing_of(chosen),
        max_model_len=chosen.context,
        max_num_seqs=chosen.max_num_seqs,
        max_num_batched_tokens=chosen.max_num_batched_tokens,
        gpu_memory_utilization=chosen.utilization,
        target_ongoing_requests=target,
        max_ongoing_requests=max(2, ceil(1.5 * target)),
        scaling=scaling,
        engine=_engine(chosen),
        kv_cache_tokens=chosen.outcome.tokens if chosen.outcome else None,
        tight=chosen.tight,
        estimate=_estimate(chosen),
        price_per_hour=None if hour is None else round(hour, 4),
        price_per_million_output_tokens=_token_price(chosen),
        pinned=_pinned(chosen),
        reasons=(*reasons_of(choice), *scaling_reasons(chosen, stages, scaling, (low, high), read_gib_per_s)),
        warnings=tuple(warnings_of(chosen)),
        unknown=tuple(unknown_of(chosen)),
    )


def _bounds(chosen: Candidate) -> tuple[int, int]:
    """Autoscaling between one replica and what the planned load needs, unless pinned."""
    pinned = chosen.wish.spec.replicas
    if isinstance(pinned, Replicas):
        return pinned.min, pinned.max
    if isinstance(pinned, int):
        return pinned, pinned
    return 1, chosen.replicas


def _stages(chosen: Candidate, hosts: tuple[HostSite, ...]) -> tuple[Stage, ...]:
    split, model = chosen.split, chosen.wish.model
    names = [""] * split.pp if split.pool.alike or len(hosts) != split.pp else [host.name for host in hosts]
    if chosen.outcome is None:
        held = round(weights(model).bytes / 2**30 / split.cards, 2)
        layers = split_layers(model.layers, split.pp)
        return tuple(
            Stage(gpu=gpu.id, host=name, layers=count, weights_gib=held, kv_gib=0.0)
            for gpu, name, count in zip(split.gpus, names, layers, strict=True)
        )
    return tuple(
        Stage(
            gpu=stage.gpu.id,
            host=name,
            layers=stage.layers,
            weights_gib=round(stage.weights / 2**30, 2),
            kv_gib=round(_cache_gib(chosen.outcome, stage.block), 2),
        )
        for stage, name in zip(chosen.outcome.stages, names, strict=True)
    )


def _cache_gib(outcome: Outcome, block: int) -> float:
    """All stages hold as many blocks as the weakest can."""
    return outcome.blocks * block / 2**30


def _engine(chosen: Candidate) -> dict[str, bool | int | float | str | None]:
    """Arguments beyond those that have fields of their own: pinned ones, and what the card asks for."""
    own = {"max_num_seqs", "max_num_batched_tokens", "gpu_memory_utilization", "max_model_len"}
    arguments = {key: value for key, value in chosen.wish.spec.engine.items() if key not in own}
    if not all(gpu.bf16 for gpu in chosen.split.gpus) and not chosen.wish.own_engine:
        arguments.setdefault("dtype", "half")
    if chosen.eager:
        arguments.setdefault("enforce_eager", True)
    return arguments


def _estimate(chosen: Candidate) -> Estimate:
    capacity, fitted = chosen.capacity, roofline()
    if capacity.ttft_s is None:
        return Estimate()
    answer = chosen.wish.spec.traffic.output_tokens if chosen.wish.spec.traffic else None
    tokens = capacity.requests_per_second * answer if capacity.requests_per_second and answer else None
    return Estimate(
        ttft_s=round(capacity.ttft_s, 4),
        tpot_s=_rounded(capacity.tpot_s),
        concurrency=_rounded(capacity.load_concurrency, 2),
        tokens_per_second=_rounded(tokens, 1),
        error=f"TTFT {fitted.ttft_error}; TPOT {fitted.tpot_error}" if chosen.wish.generates else "Never measured",
    )


def _token_price(chosen: Candidate) -> float | None:
    """At the planned load, or at what the replicas can carry of it."""
    traffic, capacity = chosen.wish.spec.traffic, chosen.capacity
    if not traffic:
        return None
    rate = traffic.requests_per_second
    if capacity.overloaded and capacity.requests_per_second:
        rate = min(rate, capacity.requests_per_second * capacity.replicas)
    return _rounded(price_per_million_output_tokens(chosen.price_per_hour, rate, traffic.output_tokens))


def _pinned(chosen: Candidate) -> tuple[str, ...]:
    spec = chosen.wish.spec
    pins = {
        "pool": spec.pool,
        "parallelism": spec.parallelism,
        "replicas": spec.replicas,
        "gpu_fraction": spec.gpu_fraction,
    }
    return (*(name for name, pin in pins.items() if pin is not None), *(f"engine.{key}" for key in spec.engine))


def _rounded(value: float | None, digits: int = 4) -> float | None:
    return None if value is None else round(value, digits)
