"""The reason of each decision of the planner, with its figures."""

from collections.abc import Iterator

from rayhelm.facts.tensors import count_weights
from rayhelm.fleet.models import ModelSpec, Replicas
from rayhelm.fleet.names import derive_kubernetes_name
from rayhelm.planner.explain.load_reasons import (
    explain_burst,
    explain_prefixes,
    explain_spare,
    format_figure,
    format_load,
)
from rayhelm.planner.explain.prefill_decode import explain_roles
from rayhelm.planner.explain.split_reasons import explain_experts, explain_pipeline, explain_ranks, explain_tensor
from rayhelm.planner.placement.candidates import IDLE_CONCURRENCY, Candidate
from rayhelm.planner.placement.choose import Choice
from rayhelm.planner.placement.model_spec import LoadShare, ResolvedModelSpec
from rayhelm.planner.placement.pool_network import PoolNetwork
from rayhelm.planner.placement.prefix_cache import PREFIX_PAYS_FROM, is_prefix_routed
from rayhelm.planner.placement.resolve import SEQUENCES
from rayhelm.planner.plan import Reason
from rayhelm.planner.speed.assumptions import load_assumptions

__all__ = ["choose_routing", "explain_choice"]


def explain_choice(choice: Choice) -> tuple[Reason, ...]:
    chosen = choice.candidate
    return (
        *_explain_name(chosen),
        *_explain_architecture(chosen),
        _explain_pool(choice),
        *_explain_network(choice),
        *_explain_quantization(chosen),
        *_explain_sharing(chosen),
        *_explain_memory(chosen),
        *_explain_adapters(chosen),
        explain_tensor(chosen),
        explain_pipeline(chosen),
        *explain_ranks(chosen),
        *explain_experts(chosen),
        *_explain_fraction(chosen),
        _explain_context(chosen),
        _explain_sequences(chosen),
        *_explain_eager(chosen),
        *explain_burst(chosen),
        *(explain_roles(chosen) if chosen.capacity.roles else (*explain_spare(chosen), _explain_replicas(chosen))),
        *explain_prefixes(chosen),
        _explain_routing(chosen),
        *_explain_price(chosen),
    )


def _explain_name(chosen: Candidate) -> Iterator[Reason]:
    """Yield the Kubernetes name, if it is not the name that clients send."""
    model_spec = chosen.model_spec
    name = derive_kubernetes_name(model_spec.name)
    if name != model_spec.name:
        shown = model_spec.service if model_spec.service == name else f"{name} in service {model_spec.service}"
        because = f"derived from `{model_spec.name}`, the name that clients send"
        yield Reason(decision="kubernetes_name", chosen=shown, because=because)


def _explain_architecture(chosen: Candidate) -> Iterator[Reason]:
    """Yield the model whose shape the fleet file states for weights that cannot be read."""
    declared, model = chosen.model_spec.declared, chosen.model_spec.model
    if declared.architecture:
        because = f"`architecture` of the fleet file: memory and speed are its own, and {declared.source} was not read"
        yield Reason(decision="architecture", chosen=model.id, because=because)


def _explain_quantization(chosen: Candidate) -> Iterator[Reason]:
    """Yield what vLLM makes of a checkpoint of 16 bits when it loads it."""
    published, quantization = chosen.model_spec.published, chosen.model_spec.model.quantization
    if published and quantization:
        read, held = (count_weights(each).bytes / 2**30 for each in (published, chosen.model_spec.model))
        because = f"pinned in the fleet file: vLLM reads {read:.1f} GiB and quantizes them to {held:.1f} GiB"
        yield Reason(decision="quantization", chosen=quantization.method, because=because)


def choose_routing(chosen: Candidate) -> str:
    """Return the prefix affinity for tasks and traffic with a shared prefix and more than one replica."""
    pinned = chosen.model_spec.declared.replicas
    most = pinned.max if isinstance(pinned, Replicas) else chosen.replicas
    if roles := chosen.capacity.roles:
        most = roles.prefill.replicas
    is_routed = is_prefix_routed(chosen.model_spec, chosen.capacity.undivided_hits)
    return "prefix-affinity" if is_routed and most > 1 else "least-loaded"


def _explain_pool(choice: Choice) -> Reason:
    chosen, other = choice.candidate, choice.runner_up
    pool = chosen.split.inventory
    if share := chosen.model_spec.share:
        because = _describe_share(share, chosen.model_spec)
    elif chosen.model_spec.declared.pool:
        because = "pinned in the fleet file"
    elif choice.moved:
        because = choice.moved
    elif other is None:
        because = "the model fits in no other pool or split"
    else:
        because = f"{choice.advantage}; second choice: {_format_shape(other)} on pool `{other.split.inventory.name}`"
    if higher := choice.cramped:
        because += (
            f"; {_format_shape(higher)} on pool `{higher.split.inventory.name}` ranks higher, but too few GPUs are free"
        )
    numbers: dict[str, float | int | str] = {"gpus": chosen.gpus}
    if chosen.price_per_hour is not None:
        numbers["usd_per_hour"] = round(chosen.price_per_hour, 4)
    if other and other.price_per_hour is not None:
        numbers["next_usd_per_hour"] = round(other.price_per_hour, 4)
    return Reason(decision="pool", chosen=pool.name, because=because, numbers=numbers)


def _describe_share(share: LoadShare, model_spec: ResolvedModelSpec) -> str:
    others = " and ".join(f"`{name}`" for name in share.names if name != model_spec.name)
    have = "have" if len(share.names) > 2 else "has"
    filled = "one of the `pools` in the fleet file, which are filled in their order"
    if model_spec.declared.replicas is None:
        # The number of replicas can differ from `share.replicas`: the split is chosen again for this part of the load.
        return f"{filled}; it has {share.part:.1%} of the requests, and {others} {have} the rest"
    return (
        f"{filled}: {share.replicas} of {share.planned} replicas, {share.part:.1%} of the requests; {others} {have}"
        " the others, and the gateway joins them"
    )


def _explain_network(choice: Choice) -> Iterator[Reason]:
    """Yield what was measured of the network of the pool, and of the pool of the second choice."""
    mine = choice.candidate.split.inventory.network
    if mine.basis:
        unused = (
            "; this replica runs on one host and sends nothing over it" if choice.candidate.split.nodes == 1 else ""
        )
        yield _describe_network("network", mine, f"{mine.basis}{unused}")
    second = [choice.runner_up] if choice.runner_up else []
    named = {choice.candidate.split.inventory.name}
    for other, why in (*((each, "is the second choice") for each in second), *_list_misses(choice)):
        inventory = other.split.inventory
        if other.split.nodes > 1 and inventory.network.basis and inventory.name not in named:
            named.add(inventory.name)
            because = f"{_format_shape(other)} on pool `{inventory.name}` {why}: {inventory.network.basis}"
            yield _describe_network("network_of_other_pool", inventory.network, because)


def _list_misses(choice: Choice) -> Iterator[tuple[Candidate, str]]:
    yield from ((each, "misses the SLO, even with one request at a time") for each in choice.missing_slo)


def _describe_network(decision: str, network: PoolNetwork, because: str) -> Reason:
    numbers: dict[str, float | int | str] = {"gb_per_s": round(network.gb_per_s or 0.0, 4)}
    if network.latency_s:
        numbers["latency_us"] = round(network.latency_s * 1e6, 1)
    return Reason(decision=decision, chosen=str(network), because=because, numbers=numbers)


def _explain_sharing(chosen: Candidate) -> Iterator[Reason]:
    """Yield why the model runs on a part of a GPU that other services share."""
    partitioning, gpu = chosen.split.inventory.partitioning, chosen.split.gpu
    if partitioning:
        numbers: dict[str, float | int | str] = {
            "gpus": round(gpu.part, 4),
            "usable_gib": round(gpu.usable_gib or 0.0, 2),
            "gpu_memory_utilization": chosen.utilization,
        }
        yield Reason(decision="sharing", chosen=str(partitioning), because=partitioning.because, numbers=numbers)


def _format_shape(candidate: Candidate) -> str:
    return f"{candidate.replicas} x {candidate.split.shape}"


def _explain_memory(chosen: Candidate) -> Iterator[Reason]:
    if chosen.memory is None:
        return
    weakest = chosen.memory.weakest
    share, gib = chosen.utilization / weakest.gpu.memory_seen, 2**30
    adapters = f" {weakest.adapters / gib:.1f} of adapters," if weakest.adapters else ""
    yield Reason(
        decision="memory",
        chosen=f"{weakest.cache / gib:.1f} GiB {'of KV cache' if chosen.memory.config.cache else 'left'} per GPU",
        because=(
            f"budget {weakest.budget / gib:.1f} GiB ({share:.0%} of {weakest.gpu.usable_gib:.1f} GiB), minus"
            f" {weakest.weights / gib:.1f} GiB of weights,{adapters} {weakest.activation / gib:.1f} of activations,"
            f" {weakest.non_torch / gib:.1f} of non-torch memory, {weakest.cuda_graphs / gib:.1f} of CUDA graphs"
        ),
        numbers={
            "budget_gib": round(weakest.budget / gib, 2),
            "weights_gib": round(weakest.weights / gib, 2),
            "activation_gib": round(weakest.activation / gib, 2),
            "non_torch_gib": round(weakest.non_torch / gib, 2),
            "cuda_graph_gib": round(weakest.cuda_graphs / gib, 2),
            "kv_gib": round(weakest.cache / gib, 2),
            "error_gib": round(weakest.error / gib, 2),
            "kv_cache_tokens": chosen.memory.tokens,
        },
    )


def _explain_adapters(chosen: Candidate) -> Iterator[Reason]:
    """Yield the slots of adapters, and the memory that they take."""
    slots, declared = chosen.model_spec.adapters, chosen.model_spec.declared.adapters
    if not slots or not chosen.memory:
        return
    waiting = len(declared) - slots.count
    more = (
        f"; a request for one of the others waits until a slot is free ({waiting} more than slots)"
        if waiting > 0
        else ""
    )
    yield Reason(
        decision="adapter_slots",
        chosen=str(slots.count),
        because=(
            f"{', '.join(declared)}: vLLM reserves each slot at rank {slots.rank}, for every linear layer of the model,"
            f" used or not{more}"
        ),
        numbers={
            "adapters": len(declared),
            "rank": slots.rank,
            "adapter_slots_gib": round(chosen.memory.weakest.adapters / 2**30, 2),
        },
    )


def _explain_fraction(chosen: Candidate) -> Iterator[Reason]:
    if chosen.share == 1 and not chosen.model_spec.has_shared_service:
        return
    if chosen.model_spec.declared.gpu_fraction is not None:
        because = (
            "pinned in the fleet file. Ray schedules several models of one service on a GPU by this number, and"
            " `gpu_memory_utilization` limits the memory of each"
        )
    elif chosen.share < 1:
        because = _explain_share(chosen)
    else:
        because = "the model needs whole GPUs"
    yield Reason(
        decision="gpu_fraction",
        chosen=f"{chosen.share:g}",
        because=because,
        numbers={"gpu_memory_utilization": chosen.utilization},
    )


def _explain_share(chosen: Candidate) -> str:
    if chosen.model_spec.lengths.assumed and chosen.model_spec.generates:
        return (
            f"no `traffic` in the fleet file: the smallest part of a GPU with cache for {IDLE_CONCURRENCY} requests"
            " at a time"
        )
    return "the smallest part of a GPU that needs no more replicas for the load than whole GPUs do"


def _explain_context(chosen: Candidate) -> Reason:
    model, requested = chosen.model_spec.model, chosen.model_spec.declared.context
    if requested:
        because = "set in the fleet file"
    elif chosen.context == model.max_context:
        because = "the longest context of the model; it fits"
    elif chosen.context == model.usual_context:
        because = f"the context that vLLM takes by default; `context` of up to {model.max_context} is accepted"
    else:
        because = (
            f"the longest context that fits; {model.max_context} tokens, the model's maximum, need more KV cache than"
            " is left"
        )
    return Reason(
        decision="max_model_len",
        chosen=str(chosen.context),
        because=because,
        numbers={"model_max_context": model.max_context},
    )


def _explain_sequences(chosen: Candidate) -> Reason:
    if "max_num_seqs" in chosen.model_spec.declared.engine:
        because = "pinned in the fleet file"
    elif chosen.memory is None:
        because = "a small value: the memory of this engine or GPU is not known"
    elif chosen.max_num_seqs == SEQUENCES[0]:
        because = "stated, because vLLM uses another default if the importing process has no GPU"
    elif chosen.max_num_seqs > SEQUENCES[0]:
        because = f"{SEQUENCES[0]} would limit each replica, and the load would need more replicas"
    else:
        each = (
            "each sequence needs a block of the cache for CUDA graphs"
            if chosen.memory.config.state_blocks
            else "the sampler keeps one row of the vocabulary per sequence"
        )
        because = f"lowered until the engine starts with certainty: {each}"
    numbers: dict[str, float | int | str] = {"max_num_batched_tokens": chosen.max_num_batched_tokens}
    return Reason(decision="max_num_seqs", chosen=str(chosen.max_num_seqs), because=because, numbers=numbers)


def _explain_eager(chosen: Candidate) -> Iterator[Reason]:
    if chosen.eager and "enforce_eager" not in chosen.model_spec.declared.engine:
        because = (
            "CUDA graphs and torch.compile would use memory that the KV cache needs. Decoding is slower without them"
        )
        yield Reason(decision="enforce_eager", chosen="true", because=because)


def _explain_replicas(chosen: Candidate) -> Reason:
    spec, capacity = chosen.model_spec.declared, chosen.capacity
    numbers: dict[str, float | int | str] = {"concurrency": capacity.concurrency, "bound_by": capacity.bound_by}
    if capacity.requests_per_second:
        numbers["requests_per_second_per_replica"] = round(capacity.requests_per_second, 3)
    if spec.replicas is not None:
        because = f"pinned in the fleet file; the estimate for the planned load is {capacity.needed}"
    elif not spec.traffic:
        because = "no `traffic` in the fleet file: one replica"
    elif not capacity.requests_per_second:
        because = "one replica: the speed of this GPU cannot be estimated"
    else:
        share = load_assumptions().replica_utilization
        because = (
            f"the load is {format_load(spec.traffic)} requests/s{_name_source(spec)}. A replica serves"
            f" {format_figure(capacity.requests_per_second)} requests/s with {capacity.concurrency} in flight"
            f" (limited by {capacity.bound_by}), and is planned to {share:.0%} of that"
        )
        numbers["utilization"] = share
        if deviation := chosen.model_spec.lengths.deviation:
            numbers["tokens_deviation"] = round(deviation)
        if capacity.spare:
            because += f". {capacity.needed} are for the load, and {capacity.spare} spare"
        if capacity.doubt:
            because += f". {capacity.doubt[0].upper()}{capacity.doubt[1:]}"
    if not chosen.model_spec.generates and capacity.requests_per_second:
        numbers["seconds_per_request"] = round(1 / capacity.requests_per_second, 4)
    return Reason(decision="replicas", chosen=str(chosen.replicas), because=because, numbers=numbers)


def _explain_routing(chosen: Candidate) -> Reason:
    kind, shared = choose_routing(chosen), chosen.model_spec.lengths.shared
    if kind == "prefix-affinity":
        of_prefill = ", over the prefill replicas" if chosen.capacity.roles else ""
        because = f"{shared:.0%} of a prompt is shared: a replica that has cached it computes only the rest{of_prefill}"
    elif not chosen.model_spec.task.has_shared_prefix:
        because = "requests of this task have no shared prefix"
    elif shared >= PREFIX_PAYS_FROM and not is_prefix_routed(chosen.model_spec, chosen.capacity.undivided_hits):
        because = "the cache of each replica holds nearly all prefixes"
    elif shared >= PREFIX_PAYS_FROM:
        because = f"there is only one {'prefill ' if chosen.capacity.roles else ''}replica"
    else:
        because = f"{shared:.0%} of a prompt is shared; routing by prefix pays from {PREFIX_PAYS_FROM:.0%}"
    return Reason(decision="routing", chosen=kind, because=because, numbers={"shared_prefix": shared})


def _explain_price(chosen: Candidate) -> Iterator[Reason]:
    if chosen.price_per_hour is None:
        return
    pool = chosen.split.inventory
    yield Reason(
        decision="price_per_hour",
        chosen=f"{chosen.price_per_hour:.2f} USD",
        because=f"{chosen.gpus:.4g} GPU{'s' if chosen.gpus > 1 else ''}, {pool.price_source}",
        numbers={"usd_per_gpu_hour": pool.price} if pool.price is not None else {},
    )


def _name_source(spec: ModelSpec) -> str:
    """Return where a load that the fleet file does not have comes from; empty for one that it has."""
    if spec.states_traffic or not spec.served_as:
        return ""
    return f", the part of `{spec.served_as.model}` that `servedAs.weight` sends"
