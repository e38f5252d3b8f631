"""Forecast what KubeRay does with a RayService when its manifest, or the operator's version, changes.

The decisions are those of `reconcileRayCluster` and `shouldPrepareNewCluster` (KubeRay 1.6.2,
ray-operator/controllers/ray/rayservice_controller.go), and of 1.7.0 where it was observed to differ. The effect of each
field is in the table that `edits` reads. Tests compare the forecast with every observed edit, and with random ones.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import yaml

from rayhelm.check.forecast.differences import list_changes
from rayhelm.check.forecast.edits import KubeRayEffect, list_changed_paths, load_edit_table, match_path
from rayhelm.check.forecast.stored import list_dropped_fields, load_field_facts, store
from rayhelm.check.forecast.validation import INCREMENTAL, find_invalid, find_refused
from rayhelm.facts.versions import is_at_least

__all__ = ["Forecast", "LiveCluster", "LiveService", "ServiceEffect", "Surroundings", "forecast_service", "install"]

ServiceEffect = Literal[
    "nothing",
    "beside",
    "serve config",
    "in place",
    "new cluster",
    "new cluster, waiting",  # another RayCluster is created, and cannot take over
    "held back",  # the pods change, and upgradeStrategy prevents another RayCluster
    "suspended",  # 1.7.0: every RayCluster of the service is deleted
    "invalid",  # the operator reports the RayService as invalid, and applies nothing
    "refused",  # the API server refuses the manifest
]
_SWITCH_FIELDS = ("replicas", "minReplicas", "maxReplicas", "scaleStrategy", "template.spec.tolerations",
                  "template.spec.schedulingGates")  # fmt: skip
"""Fields of a group that reach the pods when a RayCluster is created or changed in place."""
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_NO_YAML = "serveConfigV2 is not YAML with keys"


@dataclass(frozen=True)
class Surroundings:
    """What the outcome depends on besides the manifest."""

    kuberay: str
    """Version of the operator."""
    incremental: bool | None = None
    """Feature gate RayServiceIncrementalUpgrade; None: the default of the version."""
    ray_starts: bool = True
    """Whether the applications of a new RayCluster start."""
    has_gateway: bool = True
    """Whether a Gateway controller accepts the Gateway of an incremental upgrade."""
    restarts: bool = False
    """Whether the operator restarts."""

    @property
    def is_incremental(self) -> bool:
        default = self.kuberay in load_field_facts().incremental
        return default if self.incremental is None else self.incremental


@dataclass(frozen=True)
class LiveCluster:
    """A RayCluster of the service."""

    spec: Mapping[str, Any]
    """The `rayClusterConfig` from which it was made, or with which it was last updated, in stored form."""
    kuberay: str
    """Version of the operator that wrote it."""
    config: str
    """The serveConfigV2 that Ray has received."""


@dataclass(frozen=True)
class LiveService:
    """A RayService as it is on the cluster, in stored form."""

    service: Mapping[str, Any]
    active: LiveCluster | None
    pending: LiveCluster | None = None
    is_invalid: bool = False


@dataclass(frozen=True)
class Forecast:
    """What happens to a RayService."""

    effect: ServiceEffect
    reasons: tuple[str, ...] = ()
    """Sentences."""
    changes: tuple[str, ...] = ()
    """Paths that differ from the RayCluster that is updated or replaced."""
    at_next_switch: tuple[str, ...] = ()
    """Changed paths that the running RayCluster does not receive."""
    added_groups: tuple[str, ...] = ()
    config_changes: bool = False
    """Whether Ray receives another configuration."""
    dropped: tuple[str, ...] = ()
    """Fields that the API server drops."""
    changes_services: bool = False
    """Whether the pods that receive traffic change."""
    is_absorbed: bool = False
    """Whether another operator version marks a change of the pods as rolled out, and running pods never receive it."""


def install(service: Mapping[str, Any], kuberay: str) -> LiveService:
    """Return the state of a RayService after its installation, with everything rolled out."""
    stored = store(service, kuberay)
    spec = stored["spec"]
    return LiveService(stored, LiveCluster(spec.get("rayClusterConfig", {}), kuberay, spec.get("serveConfigV2", "")))


def forecast_service(
    live: LiveService, after: Mapping[str, Any] | None, where: Surroundings
) -> tuple[Forecast, LiveService]:
    """Forecast what happens when the manifest `after` is applied; None applies nothing.

    Also returns the state afterwards. For a version of KubeRay that was not observed, it uses the closest one.
    """
    manifest = live.service if after is None else after
    if refusals := tuple(find_refused(manifest)):
        return Forecast("refused", refusals), live
    stored = store(manifest, where.kuberay)
    dropped = tuple(list_dropped_fields(manifest, where.kuberay))
    if invalid := tuple(find_invalid(stored, where.kuberay, incremental=where.is_incremental)):
        return Forecast("invalid", invalid, dropped=dropped), replace(live, service=stored, is_invalid=True)
    if stored["spec"].get("suspend") is True:
        reason = "`suspend: true` deletes every RayCluster and the Services of the RayService; no request is answered"
        return Forecast("suspended", (reason,)), LiveService(stored, None)
    found, state = _Reconciliation(live, stored, where).run()
    return replace(found, dropped=dropped), state


class _Reconciliation:
    """One edit."""

    def __init__(self, live: LiveService, stored: Mapping[str, Any], where: Surroundings) -> None:
        self._live, self._stored, self._where = live, stored, where
        self._goal: Mapping[str, Any] = stored["spec"].get("rayClusterConfig", {})
        self._config = str(stored["spec"].get("serveConfigV2", ""))
        self._reasons: list[str] = []
        self._added: tuple[str, ...] = ()
        self._is_absorbed = False

    def run(self) -> tuple[Forecast, LiveService]:
        active, pending = self._live.active, self._live.pending
        base = pending or active
        changed = self._list_paths(base) if base else set[str]()
        replaced = pending is not None and pending.kuberay != self._where.kuberay
        updated_active = self._update(active, is_active=True) if not pending else active
        updated_pending = None if replaced else self._update(pending, is_active=False)
        in_place = updated_active is not active or (not replaced and updated_pending is not pending)
        cluster = updated_pending or (None if replaced else updated_active)
        differs = self._needs_new(cluster) and not self._is_blocked()
        is_new = differs and (self._is_switching() or active is None)
        held = differs and not is_new
        new = LiveCluster(self._goal, self._where.kuberay, self._config) if is_new or replaced else updated_pending
        takes_over = new is not None and not self._find_obstacles(updated_active)
        sends = self._sends_config(new if takes_over else updated_active, is_new=is_new)
        effect = self._pick_effect(
            is_new=is_new or replaced, takes_over=takes_over, in_place=in_place, held=held, sends=sends
        )
        if is_new and not takes_over:
            self._reasons += self._find_obstacles(updated_active)
        state = self._build_state(updated_active, new, takes_over=takes_over)
        is_switched = effect in ("new cluster", "new cluster, waiting", "in place")
        waiting = () if is_switched else tuple(sorted(path for path in changed if is_applied_at_switch(path)))
        return (
            Forecast(
                effect,
                tuple(self._reasons),
                tuple(sorted(changed)),
                waiting,
                self._added,
                sends,
                changes_services=self._changes_services(),
                is_absorbed=self._is_absorbed,
            ),
            state,
        )

    def _pick_effect(self, *, is_new: bool, takes_over: bool, in_place: bool, held: bool, sends: bool) -> ServiceEffect:
        if takes_over:
            return "new cluster"
        if is_new:
            return "new cluster, waiting"
        if in_place:
            return "in place"
        if held:
            self._reasons.append(self._explain_held())
            return "held back"
        if self._changes_services():
            return "beside"
        return "serve config" if sends else "nothing"

    def _list_paths(self, cluster: LiveCluster) -> set[str]:
        before: Mapping[str, Any] = {"spec": {"rayClusterConfig": cluster.spec}}
        if cluster.kuberay != self._where.kuberay:
            before = store(before, self._where.kuberay)  # the CRD of the new version has other defaults
        return list_changed_paths(list_changes({"spec": before["spec"]}, {"spec": {"rayClusterConfig": self._goal}}))

    def _compare(self, cluster: LiveCluster) -> KubeRayEffect:
        """Return what the table says about the difference."""
        table = load_edit_table()
        return table.predict(self._list_paths(cluster), table.find_observed(self._where.kuberay))

    def _update(self, cluster: LiveCluster | None, *, is_active: bool) -> LiveCluster | None:
        """Update a RayCluster in place where KubeRay does."""
        if cluster is None:
            return None
        new = replace(cluster, spec=self._goal, kuberay=self._where.kuberay)
        if is_active and cluster.kuberay != self._where.kuberay:
            self._is_absorbed = self._compare(cluster) == "new cluster"
            self._reasons.append(
                f"KubeRay {self._where.kuberay} overwrites the RayCluster of {cluster.kuberay} in place;"
                " running pods stay as they are, and pods that start later have the new specification"
            )
            return new
        suspends = bool(self._goal.get("suspend"))
        if not is_at_least(self._where.kuberay, "1.7.0") and suspends != bool(cluster.spec.get("suspend")):
            end = "deletes all pods; the RayService stays Ready=True" if suspends else "creates the pods again"
            self._reasons.append(f"`rayClusterConfig.suspend` changes: KubeRay {self._where.kuberay} {end}")
            return new
        if self._compare(cluster) == "in place":
            old = {group.get("groupName") for group in cluster.spec.get("workerGroupSpecs", [])}
            names = [str(group.get("groupName")) for group in self._goal.get("workerGroupSpecs", [])]
            self._added = tuple(name for name in names if name not in old)
            return new
        return cluster

    def _needs_new(self, cluster: LiveCluster | None) -> bool:
        if cluster is None:
            return not self._live.pending
        return self._compare(cluster) == "new cluster"

    def _is_blocked(self) -> bool:
        """Return whether the operator's pass ends with an error at the pending RayCluster, before it names another."""
        is_blocked = self._live.pending is not None and not _is_mapping(self._config)
        if is_blocked:
            self._reasons.append(f"{_NO_YAML}: the pending RayCluster is neither replaced, nor does it take over")
        return is_blocked

    def _is_switching(self) -> bool:
        kind = self._stored["spec"].get("upgradeStrategy", {}).get("type", "NewCluster")
        return kind == "NewCluster" or (kind == INCREMENTAL and self._where.is_incremental)

    def _find_obstacles(self, active: LiveCluster | None) -> list[str]:
        """Return why a new RayCluster cannot take over."""
        return [*self._list_obstacles(active)]

    def _list_obstacles(self, active: LiveCluster | None) -> Iterable[str]:
        if self._goal.get("upgradeStrategy"):
            yield "rayClusterConfig.upgradeStrategy is set: KubeRay refuses the new RayCluster, which gets no pods"
        if self._goal.get("suspend"):
            yield "rayClusterConfig.suspend is set: the new RayCluster gets no pods"
        kinds = (
            [spec.get("headGroupSpec", {}).get("serviceType", "ClusterIP") for spec in (self._goal, active.spec)]
            if active
            else []
        )
        if kinds and kinds[0] != kinds[1] and "ClusterIP" in kinds:
            yield f"headGroupSpec.serviceType changes to {kinds[0]}: the API server refuses the head Service"
        containers = self._goal.get("headGroupSpec", {}).get("template", {}).get("spec", {}).get("containers", [{}])
        ports = [str(port.get("name", "")) for port in containers[0].get("ports", [])] if containers else []
        if ports and not any(name.startswith("serve") for name in ports):
            yield "the head container has ports and none is named `serve`: the new RayCluster never takes over"
        params = self._goal.get("headGroupSpec", {}).get("rayStartParams", {})
        if params.get("dashboard-host") in _LOOPBACK or str(params.get("include-dashboard", "")).lower() == "false":
            yield "the operator cannot reach Ray's dashboard in the new RayCluster: it gets no applications"
        if not _is_mapping(self._config):
            yield f"{_NO_YAML}: the new RayCluster gets no applications"
        if not self._where.ray_starts:
            yield "the applications of the new RayCluster do not start"
        kind = self._stored["spec"].get("upgradeStrategy", {}).get("type")
        if kind == INCREMENTAL and active and not self._where.has_gateway:
            yield "no Gateway controller accepts the Gateway of the incremental upgrade"

    def _explain_held(self) -> str:
        kind = self._stored["spec"].get("upgradeStrategy", {}).get("type")
        if kind == INCREMENTAL:
            return (
                f"KubeRay {self._where.kuberay} has the feature gate RayServiceIncrementalUpgrade off, and treats"
                " NewClusterWithIncrementalUpgrade like None"
            )
        return "the pods change, and `upgradeStrategy.type: None` prevents another RayCluster"

    def _sends_config(self, cluster: LiveCluster | None, *, is_new: bool) -> bool:
        if cluster is None or not _is_mapping(self._config):
            return False
        return is_new or self._where.restarts or cluster.config != self._config

    def _changes_services(self) -> bool:
        key = "excludeHeadPodFromServeSvc"
        old, new = (bool(service["spec"].get(key)) for service in (self._live.service, self._stored))
        return old != new

    def _build_state(self, active: LiveCluster | None, new: LiveCluster | None, *, takes_over: bool) -> LiveService:
        config = self._config if _is_mapping(self._config) else (active.config if active else "")
        if takes_over and new:
            return LiveService(self._stored, replace(new, config=config))
        served = replace(active, config=config) if active else None
        return LiveService(self._stored, served, new)


def is_applied_at_switch(path: str) -> bool:
    """Return whether a running RayCluster does not receive a change of the field, and the next one does."""
    group = "spec.rayClusterConfig.*"
    return any(match_path(f"{group}.{name}", path) for name in _SWITCH_FIELDS) or match_path(
        "spec.rayClusterConfig.upgradeStrategy", path
    )


def _is_mapping(config: str) -> bool:
    """Return whether the operator sends the configuration; it does not send what is not YAML."""
    try:
        return isinstance(yaml.safe_load(config), dict)
    except yaml.YAMLError:
        return False
