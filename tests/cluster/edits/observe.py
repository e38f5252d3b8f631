"""From the events of one RayService to what the operator did with its edit."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from cluster.edits.dump import HASH, Change, changes, renamed, stored
from cluster.edits.recorder import Event
from cluster.edits.story import Moment, state_at, states
from cluster.kit.cluster import Object
from rayhelm.forecast.observed import Count, Observed, Outcome, Pods, Put
from testbed.ray_stand_in.memory import Put as Heard

__all__ = ["observe"]

LONG = 160
"""Characters of an error; what follows are others' words."""


def observe(
    events: Sequence[Event],
    mark: int,
    puts: Iterable[Heard] = (),
    *,
    said: Iterable[str] = (),
    errors: Iterable[str] = (),
    is_refused: bool = False,
) -> Observed:
    """What happened after `mark`, a version of the store.

    `puts` are those that Ray heard after it, `said` what the API server said to the edit, `errors` those
    of the operator at rest."""
    before, after = state_at(events, mark), state_at(events)
    names = _names(events, mark, before)
    tally = _Tally(events, mark)
    heard = _puts(puts, before, after)
    changed = _changed(before, after)
    invalid = after.conditions.get("Ready", "").endswith("ValidationFailed")
    words = [*said, *([_message(after)] if invalid else [])]
    errors = renamed(list(errors), names)
    told = Observed(
        outcome="refused" if is_refused else "invalid" if invalid else _outcome(before, after, changed, heard),
        said=tuple(words),
        serves=(before.active, after.active),
        hash="kept" if _hash(before) == _hash(after) else "changed",
        clusters=tally.clusters.count,
        gpus=tally.gpus.count,
        endpoints=tally.endpoints.count,
        endpoints_said=after.service["status"].get("numServeEndpoints", 0),
        conditions=tuple(tally.conditions),
        errors=() if invalid else tuple(dict.fromkeys(error[:LONG] for error in errors)),
        puts=heard,
        pods=_pods(before, after),
        changed=changed,
    )
    return Observed.model_validate(renamed(told.model_dump(), names))


class _Range:
    """A number over time: at first, at most (or at least), and at last."""

    def __init__(self, pick: Any) -> None:
        self._pick = pick
        self._seen: list[int] = []

    def take(self, value: int) -> None:
        self._seen.append(value)

    @property
    def count(self) -> Count:
        return Count(before=self._seen[0], on_the_way=self._pick(self._seen), after=self._seen[-1])


class _Tally:
    """What can be counted at every moment."""

    def __init__(self, events: Sequence[Event], mark: int) -> None:
        self.clusters, self.gpus, self.endpoints = _Range(max), _Range(max), _Range(min)
        self.conditions: list[str] = []
        last: dict[str, str] = {}
        for moment in states(events, mark, state_at(events, mark)):
            self.clusters.take(len(moment.all("RayCluster")))
            self.gpus.take(moment.gpus)
            self.endpoints.take(moment.endpoints)
            now = moment.conditions
            self.conditions += [f"{name} {words}" for name, words in now.items() if last.get(name) != words]
            self.conditions += [f"{name} is gone" for name in last if name not in now]
            last = now


def _outcome(before: Moment, after: Moment, changed: dict[str, Any], puts: Sequence[Put]) -> Outcome:
    if before.active != after.active:
        return "new cluster"
    known = {item["metadata"]["name"] for item in before.all("RayCluster")}
    if after.pending and after.pending not in known:
        return "new cluster, waiting"
    kinds = {name.split()[0] for name in changed}
    if "RayCluster" in kinds:
        return "in place"
    if kinds & {"Service", "Pod"} or before.pending != after.pending:
        return "beside"
    return "serve config" if puts else "nothing"


def _names(events: Sequence[Event], mark: int, before: Moment) -> dict[str, str]:
    there = [item["metadata"]["name"] for item in before.all("RayCluster")]
    later = [
        event.object["metadata"]["name"] for event in events if event.kind == "RayCluster" and event.version > mark
    ]
    numbered = enumerate(dict.fromkeys([*there, *later]), 1)
    return {before.service["metadata"]["name"]: "<rs>", **{name: f"<rs>-{number}" for number, name in numbered}}


def _changed(before: Moment, after: Moment) -> dict[str, dict[str, Change]]:
    found = {"RayService": changes(stored(before.service), stored(after.service))}
    for title, old, new in _pairs(before, after):
        found[title] = {**found.get(title, {}), **changes(stored(old), stored(new))}
    return {title: told for title, told in found.items() if told}


def _pairs(before: Moment, after: Moment) -> Iterable[tuple[str, Object, Object]]:
    """Objects that were there before and after; of RayClusters and their head's Service also those that took over."""
    old, new = before.active, after.pending or after.active
    if old != new:
        for kind, end in (("RayCluster", ""), ("Service", "-head-svc")):
            pair = before.named(kind, f"{old}{end}"), after.named(kind, f"{new}{end}")
            if pair[0] and pair[1]:
                title = f"{kind} {old}{end} -> {new}{end}"
                yield title, renamed(pair[0], {old: "<rc>"}), renamed(pair[1], {new: "<rc>"})
    for kind in ("RayCluster", "Service", "Pod"):
        for item in before.all(kind):
            if same := after.named(kind, item["metadata"]["name"]):
                yield f"Pod of {_group(item)}" if kind == "Pod" else f"{kind} {item['metadata']['name']}", item, same


def _pods(before: Moment, after: Moment) -> dict[str, Pods]:
    old = {pod["metadata"]["uid"]: _group(pod) for pod in before.all("Pod")}
    new = {pod["metadata"]["uid"]: _group(pod) for pod in after.all("Pod")}
    kept = Counter(old[uid] for uid in old.keys() & new.keys())
    added = Counter(new[uid] for uid in new.keys() - old.keys())
    gone = Counter(old[uid] for uid in old.keys() - new.keys())
    return {name: Pods(kept=kept[name], added=added[name], gone=gone[name]) for name in sorted({*kept, *added, *gone})}


def _group(pod: Object) -> str:
    labels = pod["metadata"]["labels"]
    return "head" if labels["ray.io/node-type"] == "head" else str(labels["ray.io/group"])


def _puts(puts: Iterable[Heard], before: Moment, after: Moment) -> tuple[Put, ...]:
    first, edited = (_config(moment) for moment in (before, after))
    found: list[Put] = []
    for heard in puts:
        config = "first" if heard.body == first else "edited" if heard.body == edited else "other"
        put = Put(to=heard.cluster, config=config, status=heard.status)
        if found and found[-1].model_copy(update={"again_and_again": False}) == put:
            found[-1] = put.model_copy(update={"again_and_again": True})
        else:
            found.append(put)
    return tuple(found)


def _config(moment: Moment) -> Any:
    try:
        return yaml.safe_load(moment.service["spec"].get("serveConfigV2", ""))
    except yaml.YAMLError:
        return None


def _hash(moment: Moment) -> str:
    cluster = moment.named("RayCluster", moment.active)
    return str(cluster["metadata"]["annotations"].get(HASH)) if cluster else ""


def _message(moment: Moment) -> str:
    conditions = moment.service["status"]["conditions"]
    return next(item["message"] for item in conditions if item["type"] == "Ready")
