"""The cluster has what the fleet renders: every object, with every rendered field, and no release that was removed."""

import shlex
from collections.abc import Iterator
from functools import partial

from rayhelm.live.cluster.kinds import (
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    RAY_SERVICES,
    RENDERED,
    RESOURCE_QUOTAS,
)
from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.differences import find_differences, format_value
from rayhelm.live.doctor.facts import PART_OF, Facts, Object, labels_of, namespace_of
from rayhelm.live.doctor.failures import find_in_each
from rayhelm.live.doctor.finding import Finding, Severity, name_object

_RELEASE = "meta.helm.sh/release-name"
_MOST = 4
"""Fields that a finding names."""
_BY_KIND = {(kind.api_version, kind.name): kind for kind in RENDERED}
_PRUNED = (RAY_SERVICES, DEPLOYMENTS, RESOURCE_QUOTAS)
"""Kinds of which each release has one: an object that the fleet does not render is a release that was removed."""


def _find(facts: Facts) -> Iterator[Finding]:
    scaled = {
        (namespace_of(item), item["spec"]["scaleTargetRef"]["name"])
        for item in facts.get_all(HORIZONTAL_POD_AUTOSCALERS)
    }
    for file, items in facts.releases:
        yield from find_in_each(items, partial(_find_drift, file=file, scaled=scaled, facts=facts))
    yield from _find_removed(facts)


def _find_drift(item: Object, file: str, scaled: set[tuple[str, str]], facts: Facts) -> Iterator[Finding]:
    kind = _BY_KIND.get((item["apiVersion"], item["kind"]))
    # Download Jobs may be deleted after they ended, and their pod template cannot be changed.
    if kind is None or item["kind"] == "Job":
        return
    live = facts.find(kind, namespace_of(item), item["metadata"]["name"])
    if live is None:
        yield _describe_missing(item, file)
    else:
        yield from _describe_differences(item, live, file, scaled)


def _describe_missing(item: Object, file: str) -> Finding:
    return Finding(
        object=name_object(item),
        evidence=f"it does not exist; {file} renders it",
        cause="it was deleted, or the release was never applied",
        fix=_apply(file),
    )


def _describe_differences(item: Object, live: Object, file: str, scaled: set[tuple[str, str]]) -> Iterator[Finding]:
    is_scaled = (namespace_of(item), item["metadata"]["name"]) in scaled
    compared = {key: value for key, value in item.items() if key not in ("metadata", "status")}
    if is_scaled and item["kind"] == "Deployment":
        compared["spec"] = {key: value for key, value in compared["spec"].items() if key != "replicas"}
    labels = {
        key: value for key, value in labels_of(item).items() if not key.startswith(("helm.sh/", "app.kubernetes.io/"))
    }
    found = [*find_differences(compared, live), *find_differences(labels, labels_of(live), "metadata.labels")]
    if not found:
        return
    parts = [
        f"{path}: {format_value(is_now)} instead of {format_value(wanted)}" for path, wanted, is_now in found[:_MOST]
    ]
    more = f"; and {len(found) - _MOST} more fields" if len(found) > _MOST else ""
    managers = {entry.get("manager", "") for entry in live["metadata"].get("managedFields") or []}
    by_hand = sorted(
        managers & {"kubectl-edit", "kubectl-patch", "kubectl-client-side-apply", "kubectl-scale", "kubectl"}
    )
    yield Finding(
        object=name_object(item),
        evidence="; ".join(parts) + more,
        cause=f"it was changed in the cluster with {', '.join(by_hand)}"
        if by_hand
        else "the release was not applied since the fleet file changed, or another program changed it",
        fix=_apply(file),
    )


def _find_removed(facts: Facts) -> Iterator[Finding]:
    wanted = {(item["kind"], namespace_of(item), item["metadata"]["name"]) for item in facts.manifests}
    for kind in _PRUNED:
        for item in facts.get_all(kind):
            is_ours = labels_of(item).get(PART_OF[0]) == PART_OF[1] and not _is_doctor(item)
            if is_ours and (kind.name, namespace_of(item), item["metadata"]["name"]) not in wanted:
                # Tenants can write this annotation: it must not end the command.
                release = shlex.quote(item["metadata"].get("annotations", {}).get(_RELEASE, "RELEASE"))
                yield Finding(
                    object=name_object(item),
                    evidence="it is in the cluster, and the fleet does not render it",
                    cause="its release was removed from the fleet file and not from the cluster; its GPUs stay used",
                    fix=f"helm uninstall {release} -n {namespace_of(item)}    # or prune it with Argo CD",
                )


def _is_doctor(item: Object) -> bool:
    """Return whether an object is the doctor's own Deployment: its values are not in the fleet file."""
    return item["kind"] == "Deployment" and "rayhelm.dev/doctor" in item["spec"]["selector"].get("matchLabels", {})


def _apply(file: str) -> str:
    chart, _, rest = file.partition("/")
    release = rest.rpartition("/")[2].removesuffix(".yaml")
    return (
        f"rayhelm render FLEET -o DIR && helm upgrade --install {release} charts/{chart} -f DIR/{file}    # or sync it"
    )


CHECK = Check(
    title="drift between the fleet file and the cluster",
    severity=Severity.warning,
    find=_find,
    reads=RENDERED,
    needs_fleet=True,
)
