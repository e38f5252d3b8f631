"""The report of a comparison. Its JSON is a contract (`rayhelm diff --format json`)."""

from typing import Literal

from rayhelm.facts.closed import Closed

__all__ = [
    "Danger",
    "DiffReport",
    "GpuNeed",
    "KeptObject",
    "ModelReport",
    "QuotaNeed",
    "ReleaseEffect",
    "ReleaseReport",
    "UpgradeWave",
]

ReleaseEffect = Literal[
    "nothing",
    "objects only",  # objects besides the RayService change
    "bounds at next switch",  # replicas, bounds or tolerations that the running RayCluster does not receive
    "replicas",  # Ray Serve scales models, and restarts none
    "serve config",  # Ray Serve receives another configuration in place
    "in place",  # KubeRay changes the running RayCluster
    "new cluster",  # KubeRay creates another RayCluster, which takes over
    "new cluster, waiting",  # ... which cannot take over
    "held back",  # the pods change, and the upgrade strategy prevents another RayCluster
    "suspended",
    "invalid",  # KubeRay reports the RayService as invalid and applies nothing
    "refused",  # the API server or the chart refuses it
    "install",
    "uninstall",
]
Danger = Literal["new-cluster", "held-back", "no-room", "requests-at-risk", "absorbed", "refused", "removed"]
"""What `--fail-on` can name."""


class ModelReport(Closed):
    """One model of a release that is loaded again, scaled, added or removed."""

    model: str
    change: Literal["loaded", "restarted", "scaled", "added", "removed"]
    load_seconds: float | None = None
    """Time to load its weights; None if it is not known."""
    requests_per_second: float | None = None
    """Planned traffic."""


class KeptObject(Closed):
    """An object that stays although its release leaves, or does not render it any more."""

    object: str
    """Kind and name."""
    kept_by: tuple[str, ...]
    """`Helm`, `Argo CD`, or both; the other one deletes it."""
    costs: str = ""
    """What it goes on costing; empty if nothing is known to cost."""
    removal: str
    """Command that removes it for good."""


class ReleaseReport(Closed):
    """What happens to one release."""

    cluster: str
    chart: str
    release: str
    namespace: str
    effect: ReleaseEffect
    reasons: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Changed fields of the RayService."""
    at_next_switch: tuple[str, ...] = ()
    added_objects: tuple[str, ...] = ()
    changed_objects: tuple[str, ...] = ()
    pruned_objects: tuple[str, ...] = ()
    kept_objects: tuple[KeptObject, ...] = ()
    """Objects that are not rendered any more and stay."""
    models: tuple[ModelReport, ...] = ()
    requests: str = ""
    """Requests at risk, with the measurement that it is based on."""
    seconds: float | None = None
    """Estimated time until the change is complete, besides the start of pods; None if it is not known."""
    time_basis: str = ""
    price_before: float | None = None
    """USD per hour; None if it is not known."""
    price_after: float | None = None
    dangers: tuple[Danger, ...] = ()
    advice: tuple[str, ...] = ()


class GpuNeed(Closed):
    """GPUs of a pool at the planned load."""

    cluster: str
    pool: str
    """Pool, or worker groups where pools are not known."""
    resource: str
    before: int
    meanwhile: int
    """While all changes are made at the same time."""
    after: int
    capacity: int | None = None
    """GPUs of the pool after the change; None if it is not known."""

    @property
    def is_short(self) -> bool:
        return self.capacity is not None and self.meanwhile > self.capacity


class QuotaNeed(Closed):
    """GPUs of a namespace at the planned load, against its ResourceQuota."""

    cluster: str
    namespace: str
    resource: str
    meanwhile: int
    limit: int

    @property
    def is_short(self) -> bool:
        return self.meanwhile > self.limit


class UpgradeWave(Closed):
    """RayServices that can be changed at the same time, when the wave before is complete."""

    releases: tuple[str, ...]
    missing: tuple[str, ...] = ()
    """GPUs that are missing for the first of them, with their pool or namespace; empty if there are enough."""


class DiffReport(Closed):
    """What replacing OLD by NEW does."""

    old: str
    new: str
    releases: tuple[ReleaseReport, ...]
    unchanged: int
    """Releases without any change; they are not listed."""
    gpus: tuple[GpuNeed, ...] = ()
    quotas: tuple[QuotaNeed, ...] = ()
    waves: tuple[UpgradeWave, ...] = ()
    """The order of changes that the free GPUs allow; empty if all fit at the same time."""
    price_before: float | None = None
    """USD per hour of all models with a known price."""
    price_after: float | None = None
    dangers: tuple[Danger, ...] = ()
    advice: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
