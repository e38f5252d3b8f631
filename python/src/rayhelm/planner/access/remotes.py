"""Gateways of several clusters: who forwards which models to whom, from which load on, and the latency and price of the
way."""

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from importlib.resources import files
from math import ceil

import yaml

from rayhelm.facts.closed import ClosedCamel
from rayhelm.facts.tasks import get_task
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.gateway import Gateway
from rayhelm.fleet.models import STABLE, Replicas
from rayhelm.fleet.remotes import rank_remotes
from rayhelm.planner.access.remote_weights import weigh_remotes
from rayhelm.planner.plan import GatewayPlan, ModelPlan, RemotePlan

__all__ = ["find_forwarded", "join_gateways", "warn_remotes"]

_DEFAULT_PODS = 2
"""Smallest number of pods of a gateway whose `replicas` are not set (`autoscaling.minReplicas` of the chart)."""


class _Traffic(ClosedCamel):
    """Bytes of a request and its streamed response between two gateways."""

    request_bytes: int
    prompt_bytes_per_token: float
    response_bytes: int
    stream_bytes_per_token: float
    source: str


@cache
def _load_traffic() -> _Traffic:
    text = files("rayhelm").joinpath("data/network/forwarded_requests.yaml").read_text(encoding="utf-8")
    return _Traffic.model_validate(yaml.safe_load(text))


def find_forwarded(cluster: str, served: Mapping[str, Collection[str]], fleet: Fleet) -> dict[str, list[str]]:
    """Return the names that the cluster does not serve itself, each with the clusters to which its gateway forwards.
    `served` has the names by the cluster that serves them."""
    remotes = [other for other in fleet.clusters[cluster].gateway.remotes if other in served]
    return {
        name: found
        for name in (*fleet.models, *fleet.adapters)
        if name not in served[cluster]
        and _is_forwarded(name, fleet)
        and (found := [other for other in remotes if name in served[other]])
    }


def _is_forwarded(name: str, fleet: Fleet) -> bool:
    return fleet.models[fleet.served_by(name)].forwarding != "none"


def join_gateways(
    gateways: Mapping[str, GatewayPlan], models: Mapping[str, ModelPlan], fleet: Fleet
) -> dict[str, GatewayPlan]:
    """Return the gateways with their remotes. One that another gateway names accepts its requests, so it has that one
    as a remote without models."""
    joined = {}
    for name, gateway in gateways.items():
        declared = fleet.clusters[name].gateway.remotes
        ranks = rank_remotes(declared)
        remotes = weigh_remotes(
            {
                other: _plan_remote(name, other, ranks[other], gateways, models, fleet)
                for other in declared
                if other in gateways
            },
            {other: remote.weight for other, remote in declared.items()},
            gateways,
            models,
        )
        for other in gateways:
            if name in fleet.clusters[other].gateway.remotes and other not in remotes:
                remotes[other] = RemotePlan(
                    host="",
                    port=443,
                    priority=1,
                    secret=f"gateway-remote-{other}",
                    models={},
                    latency_s=None,
                    price_per_gigabyte=None,
                )
        joined[name] = gateway.model_copy(
            update={
                "remotes": {other: remotes[other] for other in sorted(remotes)},
                "spill_above": _plan_bounds(name, gateway, remotes, models, fleet),
            }
        )
    return joined


def _plan_remote(
    name: str,
    other: str,
    rank: int,
    gateways: Mapping[str, GatewayPlan],
    models: Mapping[str, ModelPlan],
    fleet: Fleet,
) -> RemotePlan:
    declared = fleet.clusters[name].gateway.remotes[other]
    here, there = gateways[name].versions, gateways[other].versions
    shared = {
        model: versions
        for model in here
        if _is_forwarded(model, fleet)
        # A version without models is one that the other gateway forwards too.
        and (versions := tuple(one for one in here[model] if (end := there.get(model, {}).get(one)) and end.models))
    }
    unknown = []
    if declared.latency is None:
        unknown.append("latency: `latency` is not set, and rayhelm does not measure it")
    if declared.price_per_gigabyte is None:
        unknown.append("price of the traffic: `pricePerGigabyte` is not set")
    prices = {}
    for model in shared:
        size = _count_bytes(model, fleet)
        prices[model] = (
            None if size is None or declared.price_per_gigabyte is None else size / 1e3 * declared.price_per_gigabyte
        )
        if size is None:
            unknown.append(f"bytes of a request to `{model}`: it has no `traffic`, or answers with no text")
    return RemotePlan(
        host=declared.host or fleet.clusters[other].gateway.host or "",
        port=declared.port,
        priority=rank,
        secret=declared.secret or f"gateway-remote-{other}",
        models=shared,
        latency_s=declared.latency,
        price_per_gigabyte=declared.price_per_gigabyte,
        price_per_million_requests=prices,
        unknown=tuple(unknown),
    )


def _count_bytes(model: str, fleet: Fleet) -> float | None:
    """Return the bytes of a request and its response; None if they are unknown. Responses are counted as streams."""
    spec, traffic = fleet.models[fleet.served_by(model)], _load_traffic()
    if not spec.traffic or not get_task(spec.task).needs_output_tokens:
        return None
    return (
        traffic.request_bytes
        + traffic.prompt_bytes_per_token * spec.traffic.input_tokens
        + traffic.response_bytes
        + traffic.stream_bytes_per_token * (spec.traffic.output_tokens or 0)
    )


def _plan_bounds(
    name: str,
    gateway: GatewayPlan,
    remotes: Mapping[str, RemotePlan],
    models: Mapping[str, ModelPlan],
    fleet: Fleet,
) -> dict[str, int]:
    shared = [
        model
        for model in gateway.models
        if model in fleet.models
        and model not in gateway.forwarded
        and any(model in remote.models for remote in remotes.values())
    ]
    bounds = {}
    for model in shared:
        declared = fleet.models[model].spill_above
        if declared == "planned":
            capacity = sum(
                models[each].target_ongoing_requests * models[each].max_serving_replicas
                for each in gateway.versions[model][STABLE].models
            )
            bounds[model] = max(1, ceil(capacity / _count_pods(fleet.clusters[name].gateway)))
        elif declared:
            bounds[model] = declared
    return bounds


def _count_pods(gateway: Gateway) -> int:
    """Return the smallest number of pods."""
    if isinstance(gateway.replicas, Replicas):
        return gateway.replicas.min
    return gateway.replicas or _DEFAULT_PODS


def warn_remotes(gateways: Mapping[str, GatewayPlan], fleet: Fleet) -> Iterator[str]:
    for name, cluster in fleet.clusters.items():
        for other in cluster.gateway.remotes:
            if name not in gateways or other not in gateways:
                missing = name if name not in gateways else other
                yield (
                    f"gateway of cluster `{name}` forwards nothing to cluster `{other}`: no tenant may call a model in"
                    f" `{missing}`, so it has no gateway"
                )
            elif not gateways[name].remotes[other].models:
                yield (
                    f"gateway of cluster `{name}` forwards nothing to cluster `{other}`: the models of `{other}` that"
                    " tenants may call have `forwarding: none`"
                )
        if name in gateways and cluster.gateway.remotes:
            yield from _find_unreachable(name, gateways, fleet)
    for tenant, declared in fleet.tenants.items():
        for model, version in declared.pinned_versions.items():
            for name, gateway in gateways.items():
                if version not in gateway.versions.get(model, {version: None}):
                    yield (
                        f"tenant `{tenant}` is pinned to version `{version}` of `{model}`, which cluster `{name}` does"
                        " not have: its requests get the other versions there"
                    )


def _find_unreachable(name: str, gateways: Mapping[str, GatewayPlan], fleet: Fleet) -> Iterator[str]:
    """Yield models for which the gateway of a cluster that forwards requests does not answer."""
    for other, gateway in gateways.items():
        for model in gateway.models:
            if model in gateways[name].models or model in gateway.forwarded or not _is_forwarded(model, fleet):
                continue
            yield (
                f"gateway of cluster `{name}` does not answer for `{model}`, which cluster `{other}` serves: name"
                f" `{other}` in its `gateway.remotes`, or set `forwarding: none` for the model"
            )
