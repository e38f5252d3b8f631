"""Build the observation of an edit from the events of its RayService."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from cluster.edits.normalize import HASH, rename_all, strip_status
from cluster.edits.observation import Observation, Outcome, PodCounts, Progression, ServePut
from cluster.edits.recorder import Event
from cluster.edits.service_state import ServiceState, get_state, iterate_states
from cluster.kit.cluster import Object
from rayhelm.check.forecast.differences import FieldChange, list_changes
from testbed.ray_stand_in.memory import Put as ReceivedPut

__all__ = ["build_observation"]

MAX_ERROR = 160
"""Characters of an error that are kept; the rest is text of other programs."""


def build_observation(
    events: Sequence[Event],
    mark: int,
    puts: Iterable[ReceivedPut] = (),
    *,
    messages: Iterable[str] = (),
    errors: Iterable[str] = (),
    is_refused: bool = False,
) -> Observation:
    """Build what happened after `mark`, a resource version.

    `puts` are those that Ray received after it, `messages` those of the API server on the edit, `errors` those of the
    operator when it has reconciled.
    """
    before, after = get_state(events, mark), get_state(events)
    names = _names(events, mark, before)
    tally = _Tally(events, mark)
    sent = _puts(puts, before, after)
    changed = _changed(before, after)
    invalid = after.conditions.get("Ready", "").endswith("ValidationFailed")
    words = [*messages, *([_message(after)] if invalid else [])]
    errors = rename_all(list(errors), names)
    observation = Observation(
        outcome="refused" if is_refused else "invalid" if invalid else _outcome(before, after, changed, sent),
        messages=tuple(words),
        active_clusters=(before.active, after.active),
        hash="kept" if _hash(before) == _hash(after) else "changed",
        clusters=tally.clusters.count,
        gpus=tally.gpus.count,
        endpoints=tally.endpoints.count,
        reported_endpoints=after.service["status"].get("numServeEndpoints", 0),
        conditions=tuple(tally.conditions),
        errors=() if invalid else tuple(dict.fromkeys(error[:MAX_ERROR] for error in errors)),
        puts=sent,
        pods=_pods(before, after),
        changed=changed,
    )
    return Observation.model_validate(rename_all(observation.model_dump(), names))


class _Range:
    """A count over time; `pick` is `max` or `min`."""

    def __init__(self, pick: Any) -> None:
        self._pick = pick
        self._values: list[int] = []

    def add(self, value: int) -> None:
        self._values.append(value)

    @property
    def count(self) -> Progression:
        return Progression(before=self._values[0], during=self._pick(self._values), after=self._values[-1])


class _Tally:
    """Counts and conditions at every state."""

    def __init__(self, events: Sequence[Event], mark: int) -> None:
        self.clusters, self.gpus, self.endpoints = _Range(max), _Range(max), _Range(min)
        self.conditions: list[str] = []
        last: dict[str, str] = {}
        for state in iterate_states(events, mark, get_state(events, mark)):
            self.clusters.add(len(state.list_all("RayCluster")))
            self.gpus.add(state.gpus)
            self.endpoints.add(state.endpoints)
            now = state.conditions
            self.conditions += [f"{name} {words}" for name, words in now.items() if last.get(name) != words]
            self.conditions += [f"{name} is removed" for name in last if name not in now]
            last = now


def _outcome(before: ServiceState, after: ServiceState, changed: dict[str, Any], puts: Sequence[ServePut]) -> Outcome:
    if after.is_suspended:
        return "suspended"
    if before.active != after.active:
        return "new cluster"
    known = {item["metadata"]["name"] for item in before.list_all("RayCluster")}
    if after.pending and after.pending not in known:
        return "new cluster, waiting"
    # `RayCluster A -> B` compares two RayClusters; B can be older than the edit.
    kinds = {name.split()[0] for name in changed if " -> " not in name}
    if "RayCluster" in kinds:
        return "in place"
    if kinds & {"Service", "Pod"} or before.pending != after.pending:
        return "beside"
    return "serve config" if puts else "nothing"


def _names(events: Sequence[Event], mark: int, before: ServiceState) -> dict[str, str]:
    there = [item["metadata"]["name"] for item in before.list_all("RayCluster")]
    later = [
        event.object["metadata"]["name"] for event in events if event.kind == "RayCluster" and event.version > mark
    ]
    numbered = enumerate(dict.fromkeys([*there, *later]), 1)
    return {before.service["metadata"]["name"]: "<rs>", **{name: f"<rs>-{number}" for number, name in numbered}}


def _changed(before: ServiceState, after: ServiceState) -> dict[str, dict[str, FieldChange]]:
    found = {"RayService": list_changes(strip_status(before.service), strip_status(after.service))}
    for title, old, new in _pairs(before, after):
        found[title] = {**found.get(title, {}), **list_changes(strip_status(old), strip_status(new))}
    return {title: differences for title, differences in found.items() if differences}


def _pairs(before: ServiceState, after: ServiceState) -> Iterable[tuple[str, Object, Object]]:
    """Pair objects before and after; also a replaced RayCluster and its head Service with their successors."""
    old, new = before.active, after.pending or after.active
    if old != new:
        for kind, end in (("RayCluster", ""), ("Service", "-head-svc")):
            pair = before.get(kind, f"{old}{end}"), after.get(kind, f"{new}{end}")
            if pair[0] and pair[1]:
                title = f"{kind} {old}{end} -> {new}{end}"
                yield title, rename_all(pair[0], {old: "<rc>"}), rename_all(pair[1], {new: "<rc>"})
    for kind in ("RayCluster", "Service", "Pod"):
        for item in before.list_all(kind):
            if same := after.get(kind, item["metadata"]["name"]):
                yield f"Pod of {_group(item)}" if kind == "Pod" else f"{kind} {item['metadata']['name']}", item, same


def _pods(before: ServiceState, after: ServiceState) -> dict[str, PodCounts]:
    old = {pod["metadata"]["uid"]: _group(pod) for pod in before.list_all("Pod")}
    new = {pod["metadata"]["uid"]: _group(pod) for pod in after.list_all("Pod")}
    kept = Counter(old[uid] for uid in old.keys() & new.keys())
    added = Counter(new[uid] for uid in new.keys() - old.keys())
    removed = Counter(old[uid] for uid in old.keys() - new.keys())
    return {
        name: PodCounts(kept=kept[name], added=added[name], removed=removed[name])
        for name in sorted({*kept, *added, *removed})
    }


def _group(pod: Object) -> str:
    labels = pod["metadata"]["labels"]
    return "head" if labels["ray.io/node-type"] == "head" else str(labels["ray.io/group"])


def _puts(puts: Iterable[ReceivedPut], before: ServiceState, after: ServiceState) -> tuple[ServePut, ...]:
    first, edited = (_config(state) for state in (before, after))
    found: list[ServePut] = []
    for received in puts:
        config = "first" if received.body == first else "edited" if received.body == edited else "other"
        put = ServePut(to=received.cluster, config=config, status=received.status)
        if found and found[-1].model_copy(update={"repeated": False}) == put:
            found[-1] = put.model_copy(update={"repeated": True})
        else:
            found.append(put)
    return tuple(found)


def _config(state: ServiceState) -> Any:
    try:
        return yaml.safe_load(state.service["spec"].get("serveConfigV2", ""))
    except yaml.YAMLError:
        return None


def _hash(state: ServiceState) -> str:
    cluster = state.get("RayCluster", state.active)
    return str(cluster["metadata"]["annotations"].get(HASH)) if cluster else ""


def _message(state: ServiceState) -> str:
    conditions = state.service["status"]["conditions"]
    return next(item["message"] for item in conditions if item["type"] == "Ready")
