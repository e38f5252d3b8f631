"""Turns a choice into the plan of a model."""

from math import ceil, floor

from rayhelm.catalog.tensors import weights
from rayhelm.planner.candidates import Candidate
from rayhelm.planner.capacity import GENERATES
from rayhelm.planner.choose import Choice
from rayhelm.planner.cost import price_per_million_output_tokens
from rayhelm.planner.evaluate import Outcome
from rayhelm.planner.performance import missing_figures, roofline
from rayhelm.planner.placement import Placement
from rayhelm.planner.plan import Estimate, ModelPlan, Stage
from rayhelm.planner.reasons import reasons_of, routing_of
from rayhelm.spec.models import Replicas

__all__ = ["describe"]

_BUILDS = {"vllm-unofficial": "community builds only", "none": "no known build"}


def describe(choice: Choice, placements: tuple[Placement, ...]) -> ModelPlan:
    chosen = choice.candidate
    wish, split = chosen.wish, chosen.split
    spec, traffic, hour = wish.spec, wish.spec.traffic, chosen.price_per_hour
    low, high = _bounds(chosen)
    target = max(1, floor(chosen.capacity.concurrency * roofline().replica_utilisation))
    return ModelPlan(
        model=wish.name,
        service=wish.service,
        source=spec.source,
        revision=spec.revision,
        architecture=wish.model.architecture,
        task=spec.task,
        cluster=split.pool.pool.cluster,
        pool=split.pool.name,
        hosts=tuple(host.name for host in placements[0].hosts) if not split.pool.alike else (),
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
        stages=_stages(chosen),
        routing=routing_of(chosen),
        max_model_len=chosen.context,
        max_num_seqs=chosen.max_num_seqs,
        max_num_batched_tokens=chosen.max_num_batched_tokens,
        gpu_memory_utilization=chosen.utilization,
        target_ongoing_requests=target,
        max_ongoing_requests=max(2, ceil(1.5 * target)),
        engine=_engine(chosen),
        kv_cache_tokens=chosen.outcome.tokens if chosen.outcome else None,
        tight=chosen.tight,
        estimate=_estimate(chosen),
        price_per_hour=None if hour is None else round(hour, 4),
        price_per_million_output_tokens=_rounded(
            price_per_million_output_tokens(hour, traffic.requests_per_second, traffic.output_tokens)
            if traffic
            else None
        ),
        pinned=_pinned(chosen),
        reasons=reasons_of(choice),
        warnings=_warnings(chosen),
        unknown=_unknown(chosen),
    )


def _bounds(chosen: Candidate) -> tuple[int, int]:
    """Autoscaling between one replica and what the planned load needs, unless pinned."""
    pinned = chosen.wish.spec.replicas
    if isinstance(pinned, Replicas):
        return pinned.min, pinned.max
    if isinstance(pinned, int):
        return pinned, pinned
    return 1, chosen.replicas


def _stages(chosen: Candidate) -> tuple[Stage, ...]:
    names = [host.name for host in chosen.split.hosts] or [""] * chosen.split.pp
    if chosen.outcome is None:
        held = weights(chosen.wish.model).bytes / 2**30
        return (
            Stage(gpu=chosen.split.gpu.id, layers=chosen.wish.model.layers, weights_gib=round(held, 2), kv_gib=0.0),
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
    if not all(gpu.bf16 for gpu in chosen.split.gpus) and chosen.wish.model.engine == "vllm":
        arguments.setdefault("dtype", "half")
    if chosen.outcome and chosen.outcome.ask.eager:
        arguments.setdefault("enforce_eager", True)
    return arguments


def _estimate(chosen: Candidate) -> Estimate:
    capacity, fitted = chosen.capacity, roofline()
    if capacity.ttft_s is None:
        return Estimate()
    answer = chosen.wish.spec.traffic.output_tokens if chosen.wish.spec.traffic else None
    tokens = capacity.requests_per_second * answer if capacity.requests_per_second and answer else None
    decodes = chosen.wish.spec.task in GENERATES
    return Estimate(
        ttft_s=round(capacity.ttft_s, 4),
        tpot_s=_rounded(capacity.tpot_s),
        concurrency=_rounded(capacity.load_concurrency, 2),
        tokens_per_second=_rounded(tokens, 1),
        error=f"TTFT {fitted.ttft_error}" + (f"; TPOT {fitted.tpot_error}" if decodes else ""),
    )


def _pinned(chosen: Candidate) -> tuple[str, ...]:
    spec = chosen.wish.spec
    pins = {
        "pool": spec.pool,
        "parallelism": spec.parallelism,
        "replicas": spec.replicas,
        "gpu_fraction": spec.gpu_fraction,
    }
    return (*(name for name, pin in pins.items() if pin is not None), *(f"engine.{key}" for key in spec.engine))


def _warnings(chosen: Candidate) -> tuple[str, ...]:
    wish, capacity, found = chosen.wish, chosen.capacity, []
    if not wish.spec.revision and "/" in wish.spec.source and ":" not in wish.spec.source:
        why = f" ({wish.spec.unpinned_reason})" if wish.spec.unpinned_reason else ""
        found.append(f"no `revision`: the weights of {wish.spec.source} can change under you{why}")
    if chosen.tight:
        found.append("tight: by the error of the estimate it may not start; lower `context`, or use a larger card")
    if not capacity.meets_tpot:
        found.append("the tpot objective is out of reach by the estimate, even for one request alone")
    if not capacity.meets_ttft:
        found.append(f"the ttft objective is out of reach by the estimate: {capacity.ttft_s:.2g} s without queueing")
    found += [
        f"{gpu.id}: vLLM runs on it by {_BUILDS[gpu.engine]}; the pool's own `image` has to bring one"
        for gpu in dict.fromkeys(chosen.split.gpus)
        if gpu.engine != "vllm" and wish.model.engine == "vllm"
    ]
    return tuple(found)


def _unknown(chosen: Candidate) -> tuple[str, ...]:
    found = [
        f"{figure}: no speed, no replicas from traffic"
        for figure in dict.fromkeys(figure for gpu in chosen.split.gpus for figure in missing_figures(gpu))
    ]
    if chosen.outcome is None and chosen.wish.model.engine == "custom":
        found.append("working memory of an engine of one's own: only its weights were compared with the card")
    elif chosen.outcome is None:
        found.append(f"memory or engine of {chosen.split.gpu.id}: whether the model fits was not checked")
    if chosen.price_per_hour is None:
        gpus = ", ".join(dict.fromkeys(gpu.id for gpu in chosen.split.gpus))
        found.append(f"price of {gpus}: no cost; write the pool's `price`")
    elif not chosen.wish.spec.traffic:
        found.append("traffic: one replica is planned, and no price per token")
    return tuple(found)


def _rounded(value: float | None, digits: int = 4) -> float | None:
    return None if value is None else round(value, digits)
