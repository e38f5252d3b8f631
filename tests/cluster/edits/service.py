"""The RayService of one edit: make the steps, and wait until it has reconciled."""

import json
import re
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from cluster.edits.build_observation import build_observation
from cluster.edits.normalize import rename_all
from cluster.edits.observation import EditCase, EditStep, Observation
from cluster.edits.reconcile_log import ReconcileLog
from cluster.edits.reconciled import is_done, is_reconciled
from cluster.edits.recorder import Event, Recorder
from cluster.edits.service_state import ServiceState, get_state
from cluster.kit.cluster import Cluster
from cluster.kit.wait import eventually

__all__ = ["EditNamespace", "EditedService"]

PATCH_TYPES = {dict: "application/merge-patch+json", list: "application/json-patch+json"}
RECONCILES, MORE_RECONCILES = 3, 5
"""Reconciliations, at least a second apart, without any change: when nothing is left to do, and when something is (a
cluster that waits to take over or to be deleted)."""

_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class EditNamespace:
    """Namespace of the services of one phase."""

    cluster: Cluster
    namespace: str
    recorder: Recorder
    log: ReconcileLog


@dataclass
class EditedService:
    """The RayService of one edit."""

    edit: EditCase
    place: EditNamespace
    messages: list[str] = field(default_factory=list)
    """Warnings and refusals of the API server, since the mark."""
    is_refused: bool = False
    _acted: float = 0.0
    """Time of the last action, in seconds since 1970."""
    _version: int = 0
    """Resource version after the last patch."""
    _mark: int = 0
    _marked: float = 0.0

    @property
    def name(self) -> str:
        return f"e-{self.edit.id}"

    @property
    def events(self) -> list[Event]:
        return self.place.recorder.list_events(self.name)

    # -- actions -----------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Wait for the new RayService, and make the steps before the edit."""
        self.wait_until_ready()
        self.make_steps(self.edit.before)

    def make_steps(self, steps: Iterable[EditStep]) -> None:
        for step in steps:
            self._do(step)
            if step.ray != "fails":
                self.wait_until_reconciled()

    def make_steps_without_operator(self, steps: Iterable[EditStep]) -> None:
        """Make the steps while no operator runs."""
        for step in steps:
            self._do(step)
        self._acted = time.time()

    def mark(self) -> None:
        """Observe from now on."""
        self.messages.clear()
        self._mark, self._marked = get_state(self.events).version, time.time()

    def observe(self) -> Observation:
        """Return what happened since the mark, and end the simulated failures of Ray."""
        ray, log, namespace = self.place.cluster.place.ray, self.place.log, self.place.namespace
        events = self.events
        puts = [put for put in ray.puts(namespace, self.name) if put.time > self._marked]
        errors = log.errors(namespace, self.name, self._since(get_state(events)))
        ray.heal(namespace, self.name)
        found = build_observation(
            events, self._mark, puts, messages=self.messages, errors=errors, is_refused=self.is_refused
        )
        return Observation.model_validate(rename_all(found.model_dump(), {namespace: "<namespace>"}))

    def _do(self, step: EditStep) -> None:
        ray = self.place.cluster.place.ray
        if step.ray == "fails":
            ray.fail(self.place.namespace, self.name, applications={"chat": "DEPLOY_FAILED"}, only_new=True)
        elif step.ray == "heals":
            ray.heal(self.place.namespace, self.name)
        elif step.scale:
            self._scale(step.scale)
        else:
            self._patch("rayservices", self.name, step.patch)
        self._acted = time.time()

    def _scale(self, workers: dict[str, int]) -> None:
        now = get_state(self.events)
        found = now.get("RayCluster", now.active)
        assert found
        groups = [group["groupName"] for group in found["spec"]["workerGroupSpecs"]]
        path = "/spec/workerGroupSpecs/{}/replicas"
        change = [{"op": "add", "path": path.format(groups.index(name)), "value": n} for name, n in workers.items()]
        self._patch("rayclusters", now.active, change)

    def _patch(self, kind: str, name: str, change: Any) -> None:
        """Patch without kubectl, to read the warnings of the API server."""
        with _one_at_a_time:
            answer = self.place.cluster.api.patch(
                version="ray.io/v1",
                namespace=self.place.namespace,
                url=f"{kind}/{name}",
                headers={"Content-Type": PATCH_TYPES[type(change)]},
                data=json.dumps(change),
            )
        self.messages += [
            text.replace('\\"', '"')
            for text in re.findall(r'299 - "((?:[^"\\]|\\.)*)"', answer.headers.get("Warning", ""))
        ]
        body = answer.json()
        if answer.ok:
            self._version = int(body["metadata"]["resourceVersion"])
            return
        self.is_refused = True
        self.messages.append(body["message"])

    # -- waiting ---------------------------------------------------------------------------------------------------

    def wait_until_ready(self) -> None:
        eventually(lambda: self._is("Ready", "True"), f"{self.name} to be Ready", shows=self.describe)
        self.wait_until_reconciled()

    def wait_until_reconciled(self) -> None:
        """Wait until nothing is left to do, or the operator has reconciled several times without a change."""
        eventually(self._is_reconciled, f"{self.name} to reconcile", shows=self.describe)

    def describe(self) -> str:
        now = get_state(self.events)
        pods = [f"{pod['metadata']['name']}: {pod['status'].get('phase')}" for pod in now.list_all("Pod")]
        return "\n".join([json.dumps(now.service.get("status", {}), indent=1), *pods])

    def _is(self, name: str, status: str) -> bool:
        events = self.events
        return bool(events) and get_state(events).conditions.get(name, "").startswith(status)

    def _is_reconciled(self) -> bool:
        now, log, namespace = get_state(self.events), self.place.log, self.place.namespace
        invalid = {
            name for item in now.list_all("RayCluster") if log.is_invalid(namespace, name := item["metadata"]["name"])
        }
        if now.version < self._version or not is_reconciled(now, invalid):
            return False
        if now.conditions.get("Ready", "").endswith("ValidationFailed") and now.version > self._version:
            return True  # the operator has stopped reconciling it
        if now.is_suspended and not now.list_all("RayCluster"):
            return True
        return log.count_since(namespace, self.name, self._since(now)) >= (
            RECONCILES if is_done(now) else MORE_RECONCILES
        )

    def _since(self, now: ServiceState) -> float:
        """Time of the last action or change."""
        return max(now.time, self._acted, self._marked)
