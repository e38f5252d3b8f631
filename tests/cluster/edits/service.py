"""One RayService under edit: what is done to it, and how it comes to rest."""

import json
import re
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from cluster.edits.dump import renamed
from cluster.edits.looks import Looks
from cluster.edits.observe import observe
from cluster.edits.recorder import Event, Recorder
from cluster.edits.rest import is_done, is_settled
from cluster.edits.story import Moment, state_at
from cluster.kit.cluster import Cluster
from cluster.kit.wait import eventually
from rayhelm.forecast.observed import Edit, Observed, Step

__all__ = ["Place", "Service"]

FORMS = {dict: "application/merge-patch+json", list: "application/json-patch+json"}
LOOKS, MORE_LOOKS = 3, 5
"""Of the operator, at least a second apart, without a change of anything: where all is done, and where something is
left to be done (a cluster that waits to take over, or to be deleted), which must not be taken for the end too soon."""

_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Place:
    """Where the services of one phase live."""

    cluster: Cluster
    namespace: str
    recorder: Recorder
    looks: Looks


@dataclass
class Service:
    """The RayService of one edit."""

    edit: Edit
    place: Place
    said: list[str] = field(default_factory=list)
    """Warnings and refusals of the API server, since the mark."""
    is_refused: bool = False
    _told: float = 0.0
    """When something was done last, in seconds since 1970."""
    _version: int = 0
    """Of the store, after the last patch."""
    _mark: int = 0
    _marked: float = 0.0

    @property
    def name(self) -> str:
        return f"e-{self.edit.id}"

    @property
    def events(self) -> list[Event]:
        return self.place.recorder.of(self.name)

    # -- doing -----------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """From nothing to the RayService that is edited."""
        self.becomes_ready()
        self.do(self.edit.before)

    def do(self, steps: Iterable[Step]) -> None:
        for step in steps:
            self._do(step)
            if step.ray != "fails":
                self.rest()

    def do_unseen(self, steps: Iterable[Step]) -> None:
        """While no operator runs: what it did before is not what it does with this."""
        for step in steps:
            self._do(step)
        self._told = time.time()

    def mark(self) -> None:
        """What happens from now on is the edit's doing."""
        self.said.clear()
        self._mark, self._marked = state_at(self.events).version, time.time()

    def observed(self) -> Observed:
        """Since the mark. What Ray was told to do wrong is over then."""
        ray, looks, namespace = self.place.cluster.place.ray, self.place.looks, self.place.namespace
        events = self.events
        puts = [put for put in ray.puts(namespace, self.name) if put.time > self._marked]
        errors = looks.errors(namespace, self.name, self._since(state_at(events)))
        ray.heal(namespace, self.name)
        found = observe(events, self._mark, puts, said=self.said, errors=errors, is_refused=self.is_refused)
        return Observed.model_validate(renamed(found.model_dump(), {namespace: "<namespace>"}))

    def _do(self, step: Step) -> None:
        ray = self.place.cluster.place.ray
        if step.ray == "fails":
            ray.fail(self.place.namespace, self.name, applications={"chat": "DEPLOY_FAILED"}, only_new=True)
        elif step.ray == "heals":
            ray.heal(self.place.namespace, self.name)
        elif step.scale:
            self._scale(step.scale)
        else:
            self._patch("rayservices", self.name, step.patch)
        self._told = time.time()

    def _scale(self, workers: dict[str, int]) -> None:
        now = state_at(self.events)
        found = now.named("RayCluster", now.active)
        assert found
        groups = [group["groupName"] for group in found["spec"]["workerGroupSpecs"]]
        path = "/spec/workerGroupSpecs/{}/replicas"
        change = [{"op": "add", "path": path.format(groups.index(name)), "value": n} for name, n in workers.items()]
        self._patch("rayclusters", now.active, change)

    def _patch(self, kind: str, name: str, change: Any) -> None:
        """As the API server's own client does, for its warnings."""
        with _one_at_a_time:
            answer = self.place.cluster.api.patch(
                version="ray.io/v1",
                namespace=self.place.namespace,
                url=f"{kind}/{name}",
                headers={"Content-Type": FORMS[type(change)]},
                data=json.dumps(change),
            )
        self.said += [
            text.replace('\\"', '"')
            for text in re.findall(r'299 - "((?:[^"\\]|\\.)*)"', answer.headers.get("Warning", ""))
        ]
        told = answer.json()
        if answer.ok:
            self._version = int(told["metadata"]["resourceVersion"])
            return
        self.is_refused = True
        self.said.append(told["message"])

    # -- waiting ---------------------------------------------------------------------------------------------------

    def becomes_ready(self) -> None:
        eventually(lambda: self._is("Ready", "True"), f"{self.name} being Ready", shows=self.tell)
        self.rest()

    def rest(self) -> None:
        """Until nothing is left to be done, or the operator has looked again and again without doing it."""
        eventually(self._rests, f"{self.name} coming to rest", shows=self.tell)

    def tell(self) -> str:
        now = state_at(self.events)
        pods = [f"{pod['metadata']['name']}: {pod['status'].get('phase')}" for pod in now.all("Pod")]
        return "\n".join([json.dumps(now.service.get("status", {}), indent=1), *pods])

    def _is(self, name: str, status: str) -> bool:
        events = self.events
        return bool(events) and state_at(events).conditions.get(name, "").startswith(status)

    def _rests(self) -> bool:
        now, looks, namespace = state_at(self.events), self.place.looks, self.place.namespace
        invalid = {
            name for item in now.all("RayCluster") if looks.is_invalid(namespace, name := item["metadata"]["name"])
        }
        if now.version < self._version or not is_settled(now, invalid):
            return False
        if now.conditions.get("Ready", "").endswith("ValidationFailed") and now.version > self._version:
            return True  # said after the last edit; the operator looks no more
        return looks.since(namespace, self.name, self._since(now)) >= (LOOKS if is_done(now) else MORE_LOOKS)

    def _since(self, now: Moment) -> float:
        """When something was done or changed last."""
        return max(now.heard, self._told, self._marked)
