"""Shares of forwarded requests among remote gateways of the same priority, by planned capacity."""

from collections.abc import Callable, Mapping

from rayhelm.fleet.models import STABLE
from rayhelm.planner.plan import GatewayPlan, ModelPlan, RemotePlan

__all__ = ["weigh_remotes"]

LARGEST = 100
"""Weight of the cluster with the largest capacity."""


def weigh_remotes(
    remotes: Mapping[str, RemotePlan],
    pinned: Mapping[str, int | None],
    gateways: Mapping[str, GatewayPlan],
    models: Mapping[str, ModelPlan],
) -> dict[str, RemotePlan]:
    """Return the remote gateways with their weights. A model that one gateway of a priority serves alone has none."""
    weights: dict[str, dict[str, int]] = {name: {} for name in remotes}
    reasons: dict[str, dict[str, str]] = {name: {} for name in remotes}
    for model, names in _group(remotes):
        if len(names) < 2:
            continue
        if all(pinned[name] for name in names):
            shares = {name: pinned[name] or 0 for name in names}
            why = dict.fromkeys(names, "pinned")
        else:
            capacities, unit = _measure(
                {name: [models[each] for each in gateways[name].versions[model][STABLE].models] for name in names}
            )
            most = max(capacities.values())
            shares = {name: max(1, round(LARGEST * capacity / most)) for name, capacity in capacities.items()}
            why = {name: f"{capacity:.4g} {unit}" for name, capacity in capacities.items()}
        for name in names:
            weights[name][model], reasons[name][model] = shares[name], why[name]
    return {
        name: remote.model_copy(update={"weights": weights[name], "weight_reasons": reasons[name]})
        for name, remote in remotes.items()
    }


def _group(remotes: Mapping[str, RemotePlan]) -> list[tuple[str, list[str]]]:
    """Return the remote gateways that share the requests to a model: those of one priority."""
    found: dict[tuple[int, str], list[str]] = {}
    for name, remote in remotes.items():
        for model in remote.models:
            found.setdefault((remote.priority, model), []).append(name)
    return [(model, names) for (_, model), names in found.items()]


def _measure(ends: Mapping[str, list[ModelPlan]]) -> tuple[dict[str, float], str]:
    """Return the capacity of each cluster with all replicas, and its unit. Without an estimate of one, it is the number
    of requests that the autoscaler plans per replica."""
    tokens = _sum(ends, lambda model: model.estimate.tokens_per_second or 0)
    if all(tokens.values()):
        return tokens, "tokens/s"
    return _sum(ends, lambda model: model.target_ongoing_requests), "requests in flight"


def _sum(ends: Mapping[str, list[ModelPlan]], rate: Callable[[ModelPlan], float]) -> dict[str, float]:
    return {
        name: 0.0 if not all(rate(model) for model in found) else sum(rate(m) * m.max_serving_replicas for m in found)
        for name, found in ends.items()
    }
