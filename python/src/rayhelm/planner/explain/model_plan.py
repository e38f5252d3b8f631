"""Build the plan of a model from the chosen candidate."""

from math import ceil
from typing import Any

from rayhelm.facts.model import Checkpoint
from rayhelm.facts.tensors import count_weights
from rayhelm.fleet.models import STABLE, Replicas
from rayhelm.fleet.names import derive_kubernetes_name
from rayhelm.planner.explain.model_warnings import list_unknown, list_warnings, warn_slow_growth
from rayhelm.planner.explain.prefill_decode import plan_roles
from rayhelm.planner.explain.reasons import choose_routing, explain_choice
from rayhelm.planner.memory.accounting import MemoryResult
from rayhelm.planner.memory.adapter_slots import AdapterSlots, count_adapter_bytes
from rayhelm.planner.memory.parallelism import split_layers
from rayhelm.planner.placement.autoscaling import choose_autoscaling, choose_target, explain_autoscaling
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.choose import Choice
from rayhelm.planner.placement.cost import compute_token_price
from rayhelm.planner.placement.model_spec import ResolvedModelSpec
from rayhelm.planner.plan import AdapterPlan, Estimate, ModelPlan, StagePlan
from rayhelm.planner.shape import ReplicaShape
from rayhelm.planner.speed.coefficients import load_coefficients
from rayhelm.planner.speed.estimate import Interval

__all__ = ["build_model_plan"]


def build_model_plan(
    choice: Choice,
    read_gib_per_s: float | None = None,
    aliases: tuple[str, ...] = (),
) -> ModelPlan:
    """Build the plan of a model. `read_gib_per_s`: rate at which a node reads weights; None if the fleet sets none.
    `aliases`: further names of its served name."""
    chosen = choice.candidate
    model_spec, split = chosen.model_spec, chosen.split
    spec, hour, slots = model_spec.declared, chosen.price_per_hour, model_spec.adapters
    low, high = _find_bounds(chosen)
    hosts = _list_hosts(chosen)
    target, stages = choose_target(chosen), _build_stages(chosen, hosts)
    scaling = choose_autoscaling(chosen, stages, low, read_gib_per_s)
    return ModelPlan(
        model=model_spec.name,
        written=model_spec.written,
        served_as=spec.served_as.model if spec.served_as else model_spec.name,
        version=(spec.served_as.version if spec.served_as else None) or STABLE,
        application=derive_kubernetes_name(spec.served_as.model if spec.served_as else model_spec.name),
        service=model_spec.service,
        source=spec.source,
        revision=spec.revision,
        architecture=model_spec.model.architecture,
        task=spec.task,
        cluster=split.inventory.pool.cluster,
        pool=split.inventory.name,
        hosts=hosts,
        gpu=split.gpu_name,
        tensor_parallel_size=split.shape.tp,
        pipeline_parallel_size=split.shape.pp,
        data_parallel_size=split.shape.dp,
        expert_parallel=split.shape.has_expert_parallel,
        prefill_decode=plan_roles(chosen),
        layer_partition=split.shape.partition or (),
        load_share=round(model_spec.share.part, 6) if model_spec.share else 1.0,
        replicas=chosen.replicas,
        min_replicas=low,
        max_replicas=high,
        gpus=round(chosen.gpus, 4),
        gpu_fraction=chosen.share,
        nodes_per_replica=split.nodes,
        stages=stages,
        routing=choose_routing(chosen),
        max_model_len=chosen.context,
        max_num_seqs=chosen.max_num_seqs,
        max_num_batched_tokens=chosen.max_num_batched_tokens,
        gpu_memory_utilization=chosen.utilization,
        target_ongoing_requests=target,
        max_ongoing_requests=max(2, ceil(1.5 * target)),
        scaling=scaling,
        aliases=aliases,
        adapters={
            name: AdapterPlan(
                source=adapter.source,
                revision=adapter.revision,
                base_model=adapter.base_model or spec.source,
                rank=adapter.rank,
            )
            for name, adapter in spec.adapters.items()
        },
        adapter_slots=slots.count if slots else 0,
        adapter_rank=slots.rank if slots else 0,
        adapter_gib=_compute_adapter_gib(model_spec.model, slots.rank) if slots else 0.0,
        engine=_collect_engine_arguments(chosen),
        checkpoint_gib=_count_published_gib(model_spec),
        kv_cache_tokens=chosen.memory.tokens * split.shape.dp if chosen.memory else None,
        tight=chosen.tight,
        estimate=_estimate(chosen),
        price_per_hour=None if hour is None else round(hour, 4),
        price_per_million_output_tokens=_compute_price_of_tokens(chosen),
        pinned=_list_pinned(chosen),
        reasons=(*explain_choice(choice), *explain_autoscaling(chosen, stages, scaling, (low, high), read_gib_per_s)),
        warnings=(*list_warnings(chosen), *warn_slow_growth(chosen, low, scaling.load_s)),
        unknown=tuple(list_unknown(chosen)),
    )


def _count_published_gib(model_spec: ResolvedModelSpec) -> float | None:
    return round(count_weights(model_spec.published).bytes / 2**30, 2) if model_spec.published else None


def _compute_adapter_gib(model: Checkpoint, rank: int) -> float:
    (whole,) = count_adapter_bytes(model, ReplicaShape(), AdapterSlots(1, rank))
    return round(whole / 2**30, 3)


def _find_bounds(chosen: Candidate) -> tuple[int, int]:
    """Return the limits of autoscaling: pinned, or from the replicas for the quietest hour to those for the planned
    load."""
    if roles := chosen.capacity.roles:
        return roles.prefill.fewest + roles.decode.fewest, chosen.replicas
    pinned = chosen.model_spec.declared.replicas
    if isinstance(pinned, Replicas):
        return pinned.min, pinned.max
    if isinstance(pinned, int):
        return pinned, pinned
    return min((chosen.capacity.quiet or 1) + chosen.capacity.spare, chosen.replicas), chosen.replicas


def _list_hosts(chosen: Candidate) -> tuple[str, ...]:
    """Return the hosts of the first replica, in a pool with different hosts."""
    inventory = chosen.split.inventory
    return () if inventory.is_uniform else tuple(host.name for host in inventory.find_hosts_of(chosen.model_spec.name))


def _build_stages(chosen: Candidate, hosts: tuple[str, ...]) -> tuple[StagePlan, ...]:
    """Return the stages, with their hosts if each is on one of its own."""
    split, model = chosen.split, chosen.model_spec.model
    names = hosts if len(hosts) == split.shape.pp else ("",) * split.shape.pp
    if chosen.memory is None:
        weights_gib_per_gpu = round(count_weights(model).bytes / 2**30 / split.shape.gpu_count, 2)
        layers = split_layers(model.layers, split.shape.pp)
        return tuple(
            StagePlan(gpu=gpu.id, host=name, layers=count, weights_gib=weights_gib_per_gpu, kv_gib=0.0)
            for gpu, name, count in zip(split.gpus, names, layers, strict=True)
        )
    return tuple(
        StagePlan(
            gpu=stage.gpu.id,
            host=name,
            layers=stage.layers,
            weights_gib=round(stage.weights / 2**30, 2),
            kv_gib=round(_compute_cache_gib(chosen.memory, stage.block), 2),
        )
        for stage, name in zip(chosen.memory.stages, names, strict=True)
    )


def _compute_cache_gib(result: MemoryResult, block: int) -> float:
    """Return the KV cache of a stage, GiB. Every stage has as many blocks as the weakest one."""
    return result.blocks * block / 2**30


def _collect_engine_arguments(chosen: Candidate) -> dict[str, Any]:
    """Return engine arguments without a field of their own: pinned ones, and those that the GPU needs."""
    own = {"max_num_seqs", "max_num_batched_tokens", "gpu_memory_utilization", "max_model_len"}
    arguments = {key: value for key, value in chosen.model_spec.declared.engine.items() if key not in own}
    if not all(gpu.bf16 for gpu in chosen.split.gpus) and not chosen.model_spec.has_own_engine:
        arguments.setdefault("dtype", "half")
    if chosen.eager:
        arguments.setdefault("enforce_eager", True)
    if chosen.model_spec.has_deprecated_quantization:
        arguments.setdefault("allow_deprecated_quantization", True)
    return arguments


def _estimate(chosen: Candidate) -> Estimate:
    capacity, errors = chosen.capacity, load_coefficients().errors
    if capacity.ttft is None:
        return Estimate()
    answer = chosen.model_spec.declared.traffic.output_tokens if chosen.model_spec.declared.traffic else None
    tokens = capacity.requests_per_second * answer if capacity.requests_per_second and answer else None
    return Estimate(
        ttft_s=round(capacity.ttft.mid, 4),
        ttft_interval_s=_round_interval(capacity.ttft),
        tpot_s=_round(capacity.tpot.mid if capacity.tpot else None),
        tpot_interval_s=_round_interval(capacity.tpot) if capacity.tpot else None,
        basis=capacity.basis,
        concurrency=_round(capacity.load_concurrency, 2),
        tpot_concurrency=capacity.concurrency if capacity.tpot and not capacity.load_concurrency else None,
        tokens_per_second=_round(tokens, 1),
        error=f"Error of the model: TTFT {errors['ttft']}; TPOT {errors['tpot']}"
        if chosen.model_spec.generates
        else "Never measured",
    )


def _round_interval(interval: Interval) -> tuple[float, float]:
    return round(interval.low, 4), round(interval.high, 4)


def _compute_price_of_tokens(chosen: Candidate) -> float | None:
    """Return USD per million tokens at the planned load, or at the part of it that the replicas can serve."""
    traffic, capacity = chosen.model_spec.declared.traffic, chosen.capacity
    if not traffic:
        return None
    rate = traffic.requests_per_second
    if capacity.overloaded and capacity.requests_per_second:
        serving = capacity.roles.decode.replicas if capacity.roles else capacity.replicas
        rate = min(rate, capacity.requests_per_second * serving)
    return _round(compute_token_price(chosen.price_per_hour, rate, traffic.output_tokens))


def _list_pinned(chosen: Candidate) -> tuple[str, ...]:
    spec = chosen.model_spec.declared
    pins = {
        "pools": spec.pools or None,
        "pool": None if spec.pools else spec.pool,
        "parallelism": spec.parallelism,
        "replicas": spec.replicas,
        "gpu_fraction": spec.gpu_fraction,
    }
    return (*(name for name, pin in pins.items() if pin is not None), *(f"engine.{key}" for key in spec.engine))


def _round(value: float | None, digits: int = 4) -> float | None:
    return None if value is None else round(value, digits)
