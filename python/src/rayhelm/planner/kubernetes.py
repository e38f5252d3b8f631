"""Older versions of Kubernetes: what was not run there, and what has no effect."""

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Literal

import yaml

from rayhelm.facts.closed import Closed
from rayhelm.facts.versions import is_at_least, versions
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.pools import Cluster

__all__ = ["KubernetesFeature", "load_features", "warn_old_kubernetes"]


class KubernetesFeature(Closed):
    """A feature of Kubernetes that the charts use."""

    since: str
    """First version in which it is stable."""
    what: str
    """What differs before."""
    needs: Literal["logs", "tenants"]
    """Part of the fleet file that uses it."""


@cache
def load_features() -> dict[str, KubernetesFeature]:
    text = files("rayhelm").joinpath("data/kubernetes/features.yaml").read_text(encoding="utf-8")
    return {name: KubernetesFeature.model_validate(row) for name, row in yaml.safe_load(text).items()}


def warn_old_kubernetes(fleet: Fleet) -> Iterator[str]:
    """Yield a warning for each cluster whose version is rendered only."""
    known = versions().kubernetes
    for name, cluster in fleet.clusters.items():
        if cluster.kubernetes not in known.rendered:
            continue
        missing = [
            feature.what
            for feature in load_features().values()
            if not is_at_least(cluster.kubernetes, feature.since) and _uses(feature, cluster, fleet)
        ]
        yield (
            f"cluster `{name}` has Kubernetes {cluster.kubernetes}: the charts are checked against the schemas of this"
            f" version, and nothing was run on it (run: {', '.join(known.supported)})"
            + (f". There, {'; '.join(missing)}" if missing else "")
        )


def _uses(feature: KubernetesFeature, cluster: Cluster, fleet: Fleet) -> bool:
    uses = {"logs": cluster.logs.stdout, "tenants": bool(fleet.tenants)}
    return uses[feature.needs]
