"""What the plan says about prompts and answers on different replicas: how many of each, and why."""

from collections.abc import Iterator
from math import ceil

from rayhelm.planner.explain.load_reasons import format_figure, format_load
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.kv_transfer import load_transfer_rules
from rayhelm.planner.placement.roles import RoleCapacity
from rayhelm.planner.plan import PrefillDecodePlan, Reason, RolePlan
from rayhelm.planner.speed.assumptions import load_assumptions

__all__ = ["explain_roles", "plan_roles", "warn_roles"]


def plan_roles(chosen: Candidate) -> PrefillDecodePlan | None:
    """Return both kinds of replicas; None if each replica computes prompts and answers."""
    roles = chosen.capacity.roles
    if roles is None:
        return None
    # As many as one forward pass takes, and as many again, so that the next pass does not wait for requests.
    batch = 2 * ceil(chosen.max_num_batched_tokens / chosen.model_spec.lengths.prompt)
    return PrefillDecodePlan(
        prefill=_plan_role(roles.prefill, max(batch, 2 * roles.prefill.in_flight)),
        decode=_plan_role(roles.decode, max(2, ceil(1.5 * roles.decode.in_flight))),
        connector=load_transfer_rules().connector,
        kv_cache_mb=round(roles.transfer.cache_bytes / 1e6, 1),
        transfer_s=round(roles.transfer.seconds, 5),
        prefill_s=round(roles.transfer.prefill_s, 5),
    )


def _plan_role(role: RoleCapacity, most: int) -> RolePlan:
    return RolePlan(
        replicas=role.replicas,
        min_replicas=role.fewest,
        max_replicas=role.replicas,
        target_ongoing_requests=role.in_flight,
        max_ongoing_requests=most,
        gpu_s_per_request=round(role.gpu_s, 4),
    )


def explain_roles(chosen: Candidate) -> Iterator[Reason]:
    """Yield why prompts and answers are apart, the transfer of the KV cache, and the numbers of replicas."""
    roles, pin = chosen.capacity.roles, chosen.model_spec.declared.parallelism
    if roles is None or pin is None:
        return
    network, rules, moved = chosen.split.inventory.network, load_transfer_rules(), roles.transfer
    measured = "" if network.measured else " (the rate of the catalog; measure it with `rayhelm probe`)"
    yield Reason(
        decision="prefill_decode",
        chosen=f"{roles.prefill.replicas} prefill + {roles.decode.replicas} decode",
        because=(
            f"pinned in the fleet file. The KV cache of a prompt moves over {network}{measured} in"
            f" {moved.share:.1%} of the time that the GPUs compute the prompt; the limit is {rules.most_share:.0%}."
            f" {rules.connector} moves it. No prompt interrupts the answers"
        ),
        numbers={
            "kv_cache_mb": round(moved.cache_bytes / 1e6, 1),
            "transfer_ms": round(moved.seconds * 1e3, 2),
            "prefill_ms": round(moved.prefill_s * 1e3, 1),
        },
    )
    ratio = roles.prefill.gpu_s / roles.decode.gpu_s
    yield Reason(
        decision="prefill_replicas, decode_replicas",
        chosen=f"{roles.prefill.replicas}, {roles.decode.replicas}",
        because=_explain_numbers(chosen),
        numbers={
            "prefill_gpu_s_per_request": round(roles.prefill.gpu_s, 4),
            "decode_gpu_s_per_request": round(roles.decode.gpu_s, 4),
            "prefill_gpu_s_by_decode_gpu_s": round(ratio, 3),
        },
    )


def _explain_numbers(chosen: Candidate) -> str:
    roles, pin, traffic = (
        chosen.capacity.roles,
        chosen.model_spec.declared.parallelism,
        chosen.model_spec.declared.traffic,
    )
    assert roles is not None
    seconds = (
        f"a request takes {format_figure(roles.prefill.gpu_s)} GPU-seconds for its prompt and"
        f" {format_figure(roles.decode.gpu_s)} for its answer, with {chosen.capacity.concurrency} answers at a time"
        f" (limited by {chosen.capacity.bound_by})"
    )
    if not traffic:
        return f"{seconds}. No `traffic` in the fleet file: one replica of each kind, or the pinned number"
    load = (
        f"for {format_load(traffic)} requests/s, each planned to at most {load_assumptions().replica_utilization:.0%}"
    )
    ttft = ", and to meet `slo.ttft`" if chosen.model_spec.declared.slo.ttft else ""
    needed = f"{roles.prefill.needed} and {roles.decode.needed} are needed {load}{ttft}"
    if roles.prefill.spare or roles.decode.spare:
        needed += f", with {roles.prefill.spare} and {roles.decode.spare} spare for `slo.capacityAvailability`"
    return f"{'pinned in the fleet file; ' if pin and pin.prefill else ''}{seconds}; {needed}"


def warn_roles(chosen: Candidate) -> Iterator[str]:
    roles = chosen.capacity.roles
    if roles is None:
        return
    for kind, role in (("prefill", roles.prefill), ("decode", roles.decode)):
        if role.is_overloaded:
            yield (
                f"{role.replicas} pinned {kind} replicas, and the planned load needs {role.needed}: requests will queue"
            )
    yield (
        f"prefill and decode on different replicas were not run on GPUs by rayhelm. The image has to contain"
        f" {load_transfer_rules().connector.removesuffix('Connector').upper()}: `ray[llm]` and the images"
        " `rayproject/ray-llm` install it"
    )
