"""Gateways of several clusters that serve the same models: who forwards what to whom, from which load on, and the
latency and price of the way."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from math import ceil

import yaml

from rayhelm.catalog.tasks import get_task
from rayhelm.closed import ClosedCamel
from rayhelm.planner.access.remote_weights import weigh_remotes
from rayhelm.planner.plan import GatewayPlan, ModelPlan, RemotePlan
from rayhelm.spec.fleet import Fleet
from rayhelm.spec.gateway import Gateway
from rayhelm.spec.models import STABLE, Replicas
from rayhelm.spec.remotes import rank_remotes

__all__ = ["join_gateways", "warn_remotes"]

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
        if model in fleet.models and (versions := tuple(one for one in here[model] if one in there.get(model, {})))
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
    spec, traffic = fleet.models[model], _load_traffic()
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
    forwarded = [model for model in gateway.models if any(model in remote.models for remote in remotes.values())]
    bounds = {}
    for model in forwarded:
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
                    f"gateway of cluster `{name}` forwards nothing to cluster `{other}`: both serve no model under one"
                    " name (`servedAs`)"
                )
    for tenant, declared in fleet.tenants.items():
        for model, version in declared.pinned_versions.items():
            for name, gateway in gateways.items():
                if version not in gateway.versions.get(model, {version: None}):
                    yield (
                        f"tenant `{tenant}` is pinned to version `{version}` of `{model}`, which cluster `{name}` does"
                        " not have: its requests get the other versions there"
                    )
