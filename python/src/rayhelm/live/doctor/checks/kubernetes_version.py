"""The API server has a version that rayhelm is tested with, and the one that the fleet file names."""

from collections.abc import Iterator

from rayhelm.facts.versions import versions
from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.facts import Facts
from rayhelm.live.doctor.finding import Finding, Severity


def _find(facts: Facts) -> Iterator[Finding]:
    answer = facts.reader.get_path("/version")
    version = f"{answer['major']}.{answer['minor'].rstrip('+')}"
    supported, rendered = versions().kubernetes.supported, versions().kubernetes.rendered
    if version not in supported:
        checked = "rayhelm ran on no cluster of this version; its objects were checked against the version's schemas"
        yield Finding(
            object="API server",
            evidence=f"version {version}; tested: {', '.join(supported)}",
            cause=checked if version in rendered else "rayhelm was not tested with this version of Kubernetes",
            fix="kubectl version    # then upgrade the control plane, or rayhelm",
        )
    if not facts.rendered:
        return
    planned = facts.rendered.plan.declared.clusters[facts.region].kubernetes
    if planned != version:
        yield Finding(
            object="API server",
            evidence=f"version {version}; the fleet file says {planned}",
            cause="the manifests were rendered for another version, so fields can be missing or too new",
            fix=f"clusters:\n  {facts.region}: {{kubernetes: '{version}'}}",
        )


CHECK = Check(title="version of Kubernetes", severity=Severity.warning, find=_find)
