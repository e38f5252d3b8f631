"""Replay a recorded edit with the forecast instead of the operator."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cluster.edits.observation import EditCase, EditStep
from cluster.edits.patch import apply_patch
from rayhelm.check.forecast.service import Forecast, LiveService, Surroundings, forecast_service, install

__all__ = ["GATEWAY_CONTROLLER", "replay"]

GATEWAY_CONTROLLER = False
"""The control plane of the tests has no Gateway controller."""
NO_ROOM = ("stuck-no-room",)
"""Edits in which no GPU is free for the pods of another RayCluster."""


def replay(edit: EditCase, base: Mapping[str, Any], kuberay: str, other: str = "") -> tuple[str, Forecast]:
    """Return the outcome of an edit in the terms of an observation, and the last forecast.

    `base` is the chart's RayService, `kuberay` the operator under test, `other` the one before or after it.
    """
    first = other if edit.operator == "takes over from other" else kuberay
    last = other if edit.operator == "other takes over" else kuberay
    where = Surroundings(first, ray_starts=edit.id not in NO_ROOM, has_gateway=GATEWAY_CONTROLLER)
    player = _Player(base, where)
    for step in edit.before:
        player.make(step)
    before = player.live
    player.where = replace(player.where, kuberay=last, restarts=edit.operator != "runs")
    player.found = []
    if edit.operator != "runs":
        _play_without_operator(player, edit)
    else:
        for step in edit.steps:
            player.make(step)
    return _conclude(before, player), player.found[-1]


def _play_without_operator(player: "_Player", edit: EditCase) -> None:
    """The operator that starts sees the result of all steps."""
    for step in edit.steps:
        if step.patch is not None:
            player.manifest = apply_patch(player.manifest, step.patch)
        player.where = _change_ray(player.where, step)
    player.reconcile()


class _Player:
    def __init__(self, base: Mapping[str, Any], where: Surroundings) -> None:
        self.manifest: Mapping[str, Any] = base
        self.live = install(base, where.kuberay)
        self.where = where
        self.found: list[Forecast] = []

    def make(self, step: EditStep) -> None:
        self.where = _change_ray(self.where, step)
        before = self.manifest
        if step.patch is not None:
            self.manifest = apply_patch(self.manifest, step.patch)
        self.reconcile()
        if self.found[-1].effect == "refused":
            self.manifest = before

    def reconcile(self) -> None:
        where = self.where if _tolerates_gpus(self.manifest) else replace(self.where, ray_starts=False)
        forecast, self.live = forecast_service(self.live, self.manifest, where)
        self.found.append(forecast)


def _tolerates_gpus(service: Mapping[str, Any]) -> bool:
    """Whether the workers can run on the nodes of the tests, whose GPUs have a taint."""
    groups = service["spec"]["rayClusterConfig"].get("workerGroupSpecs", [])
    tolerations = [group["template"]["spec"].get("tolerations", []) for group in groups]
    return all(any(each.get("key") == "nvidia.com/gpu" for each in some) for some in tolerations)


def _change_ray(where: Surroundings, step: EditStep) -> Surroundings:
    return replace(where, ray_starts=step.ray == "heals") if step.ray else where


def _conclude(before: LiveService, player: _Player) -> str:
    """Return the outcome of several steps: the strongest, as an observation counts them."""
    effects = [each.effect for each in player.found]
    for outcome in ("refused", "invalid", "suspended"):
        if effects[-1] == outcome:
            return outcome
    if "new cluster" in effects:
        return "new cluster"
    known = {id(before.pending)}
    if player.live.pending and id(player.live.pending) not in known and "new cluster, waiting" in effects:
        return "new cluster, waiting"
    # An edit that is held back can still change other things.
    effects += ["serve config"] if any(each.config_changes for each in player.found) else []
    effects += ["beside"] if any(each.changes_services for each in player.found) else []
    order = ("in place", "beside", "serve config")
    return next((each for each in order if each in effects), "nothing")
