"""What to do instead of a change that is dangerous."""

from collections.abc import Iterator, Sequence

from rayhelm.check.diff.report import GpuNeed, QuotaNeed, ReleaseReport, UpgradeWave

__all__ = ["QUEUE_LABEL", "advise_fleet", "advise_release"]

INCREMENTAL = "NewClusterWithIncrementalUpgrade"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""Label of objects that Kueue admits."""


def advise_release(report: ReleaseReport, strategy: str, *, is_queued: bool = False) -> Iterator[str]:
    """Yield what to do about one RayService. `strategy`: its upgradeStrategy after the change; `is_queued`: Kueue
    admits it."""
    name, namespace = report.release, report.namespace
    if is_queued and report.effect in ("held back", "new cluster", "new cluster, waiting"):
        yield (
            "Kueue admits one Ray cluster of a RayService: a second one gets no pods and the upgrade never ends. Set"
            f" upgrade.strategy to None, and recreate the service: kubectl delete rayservice {name} -n {namespace}, and"
            " sync. No request is answered until Kueue admits it and its models are loaded"
        )
    elif report.effect == "held back":
        yield (
            f"free or add GPUs, so that the plan selects NewCluster; or recreate the service in a maintenance window:"
            f" kubectl delete rayservice {name} -n {namespace}, and sync. No request is answered until its models are"
            " loaded"
        )
    if report.effect == "new cluster, waiting":
        yield "fix the reason before merging; the running cluster continues to serve, and a second one keeps its GPUs"
    if report.effect in ("invalid", "refused"):
        yield "fix the manifest before merging: KubeRay applies none of it"
    if report.effect == "bounds at next switch":
        path = "spec.workerGroupSpecs[].maxReplicas"
        yield (
            f"the running RayCluster keeps its bounds: merge an edit of the pods too, or patch {path} of the RayCluster"
            f" of {name} with kubectl"
        )
    alone = [each.model for each in report.models if each.change == "restarted"]
    if "requests-at-risk" in report.dangers and alone:
        yield (
            f"run two replicas of {', '.join(alone)} before the change, or edit the pods in the same change: then a new"
            " cluster takes over when it is ready"
        )
    # Without the danger, other models with the same name take the requests.
    if report.effect in ("uninstall", "suspended") and ("requests-at-risk" in report.dangers or not report.models):
        yield "move the clients to another model first (servedAs, versions of the gateway), then remove it"
    if "absorbed" in report.dangers:
        yield (
            "merge the new operator version alone, and this edit afterwards: the operator marks the edit as rolled out,"
            " and running pods never receive it"
        )
    if report.effect == "new cluster" and strategy == "NewCluster" and report.pruned_objects:
        yield "objects are pruned while the old cluster still serves: prune after the switch (Argo CD: PruneLast=true)"


def advise_fleet(gpus: Sequence[GpuNeed], quotas: Sequence[QuotaNeed], waves: Sequence[UpgradeWave]) -> Iterator[str]:
    """Yield what to do about a whole change that the free GPUs do not allow at once."""
    for need in gpus:
        if need.is_short:
            yield (
                f"pool {need.pool}: {need.meanwhile} {need.resource} are needed meanwhile and the pool has"
                f" {need.capacity}: pods of a new cluster stay Pending, and the old one continues to serve"
            )
    for quota in quotas:
        if quota.is_short:
            yield (
                f"namespace {quota.namespace}: {quota.meanwhile} {quota.resource} are needed meanwhile and the quota is"
                f" {quota.limit}: pods stay Pending"
            )
    missing = [each for wave in waves for each in wave.missing]
    if len(waves) > 1:
        yield "merge in the order of upgrades, each wave when the services of the one before are Ready"
    if missing:
        yield (
            f"{', '.join(waves[-1].releases)} fit in no order: add {' and '.join(missing)} (`quota.gpus` of the tenant"
            f" for a namespace); or set upgrade.strategy to {INCREMENTAL}, which needs a part of them at a time"
            " (KubeRay 1.7.0 and a Gateway API controller); or None, and recreate the service in a maintenance window"
        )
