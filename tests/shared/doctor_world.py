"""A healthy cluster from recorded answers, in which faults can be planted."""

import base64
import copy
import fnmatch
from datetime import datetime
from functools import cache
from typing import Any

import yaml

from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.deploy.render.files import Rendered, render_plan
from rayhelm.fleet.load import load_fleet
from rayhelm.live.cluster.kinds import EVENTS, PODS, RAY_CLUSTERS, RENDERED, Kind
from rayhelm.live.cluster.reader import ClusterReader
from rayhelm.live.cluster.recorded import RecordedTransport
from rayhelm.live.doctor.access import list_kinds
from rayhelm.live.doctor.facts import Facts
from rayhelm.live.doctor.finding import DoctorReport
from rayhelm.live.doctor.run import run_checks
from rayhelm.planner.planner import plan_fleet
from shared.doctor_recording import read_recording
from shared.plant import Change, Plant

KINDS = {kind.name: kind for kind in (*list_kinds(), *RENDERED)}


class World:
    """Answers of an API server. Changes belong to one world."""

    def __init__(self, fleet: Rendered | None) -> None:
        self.fleet = fleet
        self.answers: dict[str, Any] = copy.deepcopy(read_recording())
        self.forbidden: frozenset[str] = frozenset()
        self.answers.setdefault(EVENTS.path(), {"items": []})
        self.now = max(datetime.fromisoformat(time) for time in _list_times(self.answers))
        for item in rendered_objects():
            self._render(copy.deepcopy(item))
        keys = {"keys": base64.b64encode(f"{'0' * 64} ci\n".encode()).decode()}
        self.create({"kind": "Secret", "metadata": {"name": "gateway-keys-lab", "namespace": "gateway"}, "data": keys})

    def _render(self, item: Any) -> None:
        """Write a rendered object over the recorded one, and its pod templates into the pods of KubeRay."""
        recorded = next((old for old in self.items(KINDS[item["kind"]]) if _name_of(old) == _name_of(item)), None)
        if recorded is None:
            self.create(item)
        else:
            merge(recorded, item)
        if item["kind"] != "RayService":
            return
        config = item["spec"]["rayClusterConfig"]
        for cluster in self.items(RAY_CLUSTERS):
            merge(cluster["spec"], config)
        groups = {"head": config["headGroupSpec"]} | {each["groupName"]: each for each in config["workerGroupSpecs"]}
        for pod in self.items(PODS):
            labels = pod["metadata"]["labels"]
            name = "head" if labels.get("ray.io/node-type") == "head" else labels.get("ray.io/group", "")
            if name in groups:
                merge(pod["spec"]["containers"][0], groups[name]["template"]["spec"]["containers"][0])

    def items(self, kind: Kind) -> list[Any]:
        found: list[Any] = self.answers.setdefault(kind.path(), {"items": []})["items"]
        return found

    def facts(self, **more: Any) -> Facts:
        transport = RecordedTransport(self.answers, self.forbidden)
        return Facts(ClusterReader(transport, "`recorded`"), self.fleet, "main", now=self.now, **more)

    def examine(self, *checks: str, **more: Any) -> DoctorReport:
        """Run all checks, or some."""
        return run_checks(self.facts(**more), wanted=checks or None)

    def plant(self, fault: Plant) -> None:
        for item in fault.create:
            self.create(item)
        for change in fault.change:
            self.change(change)
        for kind, namespace, name in fault.delete:
            self.delete(kind, namespace, name)

    def create(self, item: Any) -> None:
        kind = KINDS.get(item["kind"])
        item = copy.deepcopy(item)
        item["metadata"].setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        item["metadata"].setdefault("generation", 1)
        if kind is None:  # a Secret, which is never listed
            self.answers[f"/api/v1/namespaces/{item['metadata']['namespace']}/secrets/{item['metadata']['name']}"] = (
                item
            )
        else:
            self.items(kind).append(item)

    def change(self, change: Change) -> None:
        found = [
            item
            for item in self.items(change.kind)
            if fnmatch.fnmatch(item["metadata"]["name"], change.name)
            and item["metadata"].get("namespace", "") == change.namespace
        ]
        assert found, change
        for item in found:
            merge(item, change.patch, is_strategic=change.is_strategic)

    def delete(self, kind: Kind, namespace: str, name: str) -> None:
        self.answers.pop(kind.path(namespace, name), None)
        items = self.items(kind)
        items[:] = [item for item in items if _name_of(item) != (namespace, name)]


def merge(item: Any, patch: Any, *, is_strategic: bool = False) -> None:
    """Merge a patch into an object, as the API server does."""
    for key, value in patch.items():
        if value is None:
            item.pop(key, None)
        elif isinstance(value, dict) and isinstance(item.get(key), dict):
            merge(item[key], value, is_strategic=is_strategic)
        elif is_strategic and isinstance(value, list) and isinstance(value[0], dict):
            for each in value:
                merge(next(old for old in item[key] if old["name"] == each["name"]), each, is_strategic=True)
        else:
            item[key] = copy.deepcopy(value)


@cache
def fleet() -> Rendered:
    """Fleet two-workstations, for the operator of the recording."""
    import tempfile
    from pathlib import Path

    document = yaml.safe_load((charts_dir().parent / "values/two-workstations/fleet.yaml").read_text())
    document["clusters"]["main"]["kuberay"] = "1.6.2"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "fleet.yaml")
        file.write_text(yaml.safe_dump(document))
        return render_plan(plan_fleet(load_fleet(file)))


@cache
def rendered_objects() -> tuple[Any, ...]:
    """Return the objects of the fleet, without Jobs, which the recording has."""
    facts = Facts(ClusterReader(RecordedTransport({})), fleet(), "main")
    return tuple(item for item in facts.manifests if item["kind"] != "Job")


def _name_of(item: Any) -> tuple[str, str]:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


def _list_times(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value[key] for key in ("creationTimestamp", "lastTransitionTime") if isinstance(value.get(key), str)]
        return own + [time for item in value.values() for time in _list_times(item)]
    return [time for item in value for time in _list_times(item)] if isinstance(value, list) else []
