"""Settings of Ray Serve's autoscaler for a model: target, initial replicas and delays, each with its reason.

Models with a fixed number of replicas get no reasons, because nothing scales."""

from collections.abc import Iterator
from math import ceil, floor

from rayhelm.fleet.models import Replicas
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.load_time import (
    count_weights_per_node,
    estimate_load_s,
    find_read_rate,
    load_load_times,
)
from rayhelm.planner.plan import AutoscalingPlan, Reason, StagePlan
from rayhelm.planner.speed.assumptions import load_assumptions

__all__ = ["choose_autoscaling", "choose_target", "explain_autoscaling"]

LOOK_BACK_S = 30.0
"""Seconds: three reports of a replica, which come every 10 s."""
UPSCALE_PART, UPSCALE_LEAST_S, UPSCALE_MOST_S = 0.1, 15.0, 60.0
"""A new replica serves only after its load time, so the delay is a small part of the load time. Seconds."""
DOWNSCALE_LOADS, DOWNSCALE_LEAST_S = 2.0, 600.0
"""A replica that is removed too early costs another load time, so it is kept for two. Seconds."""
TO_ZERO_DELAYS = 3.0
"""Factor for the last replica: the next request would wait for the whole load time."""


def choose_target(chosen: Candidate) -> int:
    """Return the requests in flight per replica: the planned part of the most that it can have."""
    if chosen.capacity.roles:
        return chosen.capacity.roles.decode.in_flight
    return max(1, floor(chosen.capacity.concurrency * load_assumptions().replica_utilization))


def _count_read_gib(chosen: Candidate, stages: tuple[StagePlan, ...]) -> float:
    """Return the weights that the node with most of them reads, GiB."""
    held = count_weights_per_node(stages, chosen.split.shape.tp * chosen.split.shape.dp, chosen.split.nodes)
    return held * chosen.model_spec.read_ratio


def choose_autoscaling(
    chosen: Candidate, stages: tuple[StagePlan, ...], low: int, gib_per_s: float | None
) -> AutoscalingPlan:
    """Choose the settings. `low`: minimum number of replicas. `gib_per_s`: read rate of the fleet file; None for the
    default."""
    gib = _count_read_gib(chosen, stages)
    node_start = chosen.split.inventory.pool.node_start or 0.0
    seconds = round(
        estimate_load_s(gib, find_read_rate(gib_per_s, chosen.split.inventory.network).gib_per_s) + node_start
    )
    down = max(DOWNSCALE_LEAST_S, _round(DOWNSCALE_LOADS * seconds, 30))
    return AutoscalingPlan(
        initial_replicas=max(low, chosen.replicas),
        load_s=seconds,
        look_back_s=LOOK_BACK_S,
        upscale_delay_s=min(max(_round(UPSCALE_PART * seconds, 5), UPSCALE_LEAST_S), UPSCALE_MOST_S),
        downscale_delay_s=down,
        downscale_to_zero_delay_s=TO_ZERO_DELAYS * down if low == 0 else None,
        policy=chosen.model_spec.declared.scaling,
        ttft_s=chosen.model_spec.declared.slo.ttft if chosen.model_spec.declared.scaling == "engine-queue" else None,
    )


def explain_autoscaling(
    chosen: Candidate,
    stages: tuple[StagePlan, ...],
    scaling: AutoscalingPlan,
    bounds: tuple[int, int],
    gib_per_s: float | None,
) -> Iterator[Reason]:
    low, high = bounds
    if low == high:
        return
    if chosen.capacity.roles is None:
        yield _explain_target(chosen)
    yield from _explain_policy(scaling)
    yield _explain_bounds(chosen, low, high)
    yield _load(chosen, stages, scaling, gib_per_s)
    if low == 0:
        yield _explain_ingress(chosen)
    yield from _explain_initial(scaling, low)
    yield from _explain_delays(scaling)


def _explain_target(chosen: Candidate) -> Reason:
    capacity, share = chosen.capacity, load_assumptions().replica_utilization
    return Reason(
        decision="target_ongoing_requests",
        chosen=str(choose_target(chosen)),
        because=(
            f"{share:.0%} of the {capacity.concurrency} requests that a replica can have in flight (limited by"
            f" {capacity.bound_by}). The default of Ray Serve LLM, 1e9, would never scale"
        ),
        numbers={"concurrency": capacity.concurrency, "utilization": share},
    )


def _explain_policy(scaling: AutoscalingPlan) -> Iterator[Reason]:
    if scaling.policy != "engine-queue":
        return
    aim = f" and by the time to first token, {scaling.ttft_s:g} s" if scaling.ttft_s else ""
    yield Reason(
        decision="scaling",
        chosen=scaling.policy,
        because=f"set in the fleet file: the target is corrected by the queue length of the engines{aim}",
    )


def _explain_bounds(chosen: Candidate, low: int, high: int) -> Reason:
    if isinstance(chosen.model_spec.declared.replicas, Replicas):
        because = "pinned in the fleet file"
    elif roles := chosen.capacity.roles:
        because = (
            f"each kind has its own limits: {roles.prefill.fewest} to {roles.prefill.replicas} prefill and"
            f" {roles.decode.fewest} to {roles.decode.replicas} decode replicas, with"
            f" {roles.prefill.in_flight} and {roles.decode.in_flight} requests in flight per replica"
        )
    elif chosen.capacity.quiet or chosen.capacity.spare:
        because = _explain_least(chosen)
    else:
        because = "from one replica without load to the number for the planned load"
    return Reason(decision="min_replicas, max_replicas", chosen=f"{low} to {high}", because=because)


def _explain_least(chosen: Candidate) -> str:
    """Return why more than one replica always runs."""
    capacity, traffic = chosen.capacity, chosen.model_spec.declared.traffic
    quiet = f"{capacity.quiet or 1} for the quietest hour"
    spare = f" and {capacity.spare} spare" if capacity.spare else ""
    text = f"{quiet}{spare}, to the number for the planned load"
    if traffic and traffic.daily_profile:
        mean = sum(traffic.daily_profile) / len(traffic.daily_profile)
        text += f". The busiest hour has {max(traffic.daily_profile) / mean:.2g} times the mean of the day"
    return text


def _load(
    chosen: Candidate, stages: tuple[StagePlan, ...], scaling: AutoscalingPlan, gib_per_s: float | None
) -> Reason:
    figures, gib = load_load_times(), _count_read_gib(chosen, stages)
    read = find_read_rate(gib_per_s, chosen.split.inventory.network)
    node = chosen.split.inventory.pool.node_start
    new = f"{node:g} s for a new node (`nodeStart`)" if node else "New nodes and image pulls take additional time"
    return Reason(
        decision="load_s",
        chosen=f"{scaling.load_s:g} s",
        because=(
            f"{gib:.1f} GiB of weights per node at {read.gib_per_s:.2g} GiB/s ({read.because}), plus"
            f" {figures.engine_start_s:g} s until the engine serves ({figures.engine_start_because}). {new}"
        ),
        numbers={"weights_gib_per_node": round(gib, 2), "gib_per_s": round(read.gib_per_s, 3)},
    )


def _explain_ingress(chosen: Candidate) -> Reason:
    return Reason(
        decision="ingress",
        chosen="on workers without a GPU",
        because=(
            f"`min` is 0: all ingress deployments of service `{chosen.model_spec.service}` run there, because a replica"
            " of each always runs and would keep the GPUs of its worker. These workers stay, and the price does not"
            " count them. The first request after a scale to zero waits for `load_s`, so every timeout in front of the"
            " gateway has to be longer"
        ),
    )


def _explain_initial(scaling: AutoscalingPlan, low: int) -> Iterator[Reason]:
    if scaling.initial_replicas > low:
        yield Reason(
            decision="initial_replicas",
            chosen=str(scaling.initial_replicas),
            because=(
                "a new cluster takes over with enough replicas for the planned load; others would be a load time"
                " late. Ray Serve starts with this number again after each edit of the model"
            ),
        )


def _explain_delays(scaling: AutoscalingPlan) -> Iterator[Reason]:
    yield Reason(
        decision="upscale_delay_s",
        chosen=f"{scaling.upscale_delay_s:g} s",
        because=(
            f"{UPSCALE_PART:.0%} of the load time, between {UPSCALE_LEAST_S:g} and {UPSCALE_MOST_S:g} s. A short"
            " delay adds replicas early; a long one avoids loads for short peaks"
        ),
        numbers={"look_back_s": scaling.look_back_s},
    )
    yield Reason(
        decision="downscale_delay_s",
        chosen=f"{scaling.downscale_delay_s:g} s",
        because=(
            f"{DOWNSCALE_LOADS:g} load times, at least {DOWNSCALE_LEAST_S:g} s: if the load returns within it, no"
            " replica has to load again"
        ),
    )
    if scaling.downscale_to_zero_delay_s is not None:
        yield Reason(
            decision="downscale_to_zero_delay_s",
            chosen=f"{scaling.downscale_to_zero_delay_s:g} s",
            because="longer for the last replica: the next request would wait for a whole load time",
        )


def _round(seconds: float, step: float) -> float:
    return ceil(seconds / step) * step
