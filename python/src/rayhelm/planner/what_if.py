"""Change a fleet for a comparison: other traffic, GPUs or settings, without an edit of its file."""

import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter

from rayhelm.errors import Fix, FleetError, Problem, UsageError, each_problem
from rayhelm.facts import load_catalog
from rayhelm.fleet.document import Document
from rayhelm.fleet.load import LoadedFleet, parse_fleet
from rayhelm.fleet.nearest import nearest
from rayhelm.fleet.units import Duration
from rayhelm.planner.added_capacity import ChangedPlan, plan_with_more_capacity

__all__ = ["FleetChange", "parse_changes", "plan_changed"]

Section = dict[str, Any]

_FACTOR = re.compile(r"(\d+(?:\.\d+)?)x")
_POOL_LABEL = "rayhelm.dev/pool"


@dataclass(frozen=True)
class _Key:
    """A key of `--what-if`."""

    section: str
    """`models` or `pools`."""
    example: str
    what: str
    apply: Callable[[Section, str], None]
    """Changes one model or pool of the fleet file. Raises ValueError with what is allowed."""


@dataclass(frozen=True)
class FleetChange:
    """One part of `--what-if`."""

    key: str
    name: str
    """Model or pool; empty for all."""
    value: str


def parse_changes(text: str, loaded: LoadedFleet) -> tuple[FleetChange, ...]:
    """Parse `traffic=2x,POOL.gpu=L4-24GB`. Raises UsageError with what is allowed."""
    changes = tuple(_parse_change(part.strip(), loaded) for part in text.split(",") if part.strip())
    if not changes:
        raise UsageError(f"--what-if is empty. {_describe_keys()}")
    return changes


def _parse_change(part: str, loaded: LoadedFleet) -> FleetChange:
    left, equals, value = part.partition("=")
    name, _, key = left.strip().rpartition(".")
    if not equals or not value.strip():
        raise UsageError(f"--what-if `{part}` is not KEY=VALUE. {_describe_keys()}")
    if key not in _KEYS:
        near = nearest(key, _KEYS)
        hint = f"; did you mean `{near[0]}`?" if near else "."
        raise UsageError(f"--what-if: unknown key `{key}`{hint} {_describe_keys()}")
    known = sorted(loaded.document.data[_KEYS[key].section])
    if name and name not in known:
        kind = _KEYS[key].section.removesuffix("s")
        raise UsageError(f"--what-if `{part}`: no {kind} is called `{name}`; there are {', '.join(known)}")
    change, names = FleetChange(key, name, value.strip()), [name] if name else list(known)
    if key == "traffic" and not any(loaded.fleet.models[each].states_traffic for each in names):
        which = f"model `{name}` has" if name else "the models have"
        raise UsageError(f"--what-if `{part}`: {which} no `traffic` in the fleet file")
    for each in names:
        _apply(change, each, copy.deepcopy(loaded.document.data))
    return change


def _describe_keys() -> str:
    keys = "; ".join(f"`{key.example}` ({key.what})" for key in _KEYS.values())
    return f"Allowed, joined with commas: {keys}. MODEL.KEY or POOL.KEY changes one of them, KEY all"


def plan_changed(loaded: LoadedFleet, changes: tuple[FleetChange, ...]) -> ChangedPlan:
    """Plan the changed fleet, with the nodes that it lacks. Raises FleetError if it has no plan for another reason; its
    problems name the change."""
    data = copy.deepcopy(loaded.document.data)
    for change in changes:
        for name in [change.name] if change.name else list(data[_KEYS[change.key].section]):
            _apply(change, name, data)

    def build(changed: Section) -> LoadedFleet:
        document = Document(loaded.document.file, changed, loaded.document.lines)
        return replace(parse_fleet(document), measured=loaded.measured)

    with each_problem(lambda problem: _name_change(problem, changes)):
        return plan_with_more_capacity(build(data), build)


def _name_change(problem: Problem, changes: tuple[FleetChange, ...]) -> Problem:
    text = ",".join(f"{change.name}.{change.key}={change.value}".lstrip(".") for change in changes)
    return replace(problem, message=f"with --what-if {text}: {problem.message}")


def _apply(change: FleetChange, name: str, data: Section) -> None:
    key = _KEYS[change.key]
    entry = data[key.section][name] = dict(data[key.section][name] or {})
    try:
        key.apply(entry, change.value)
    except ValueError as error:
        raise UsageError(f"--what-if {change.key}={change.value}: {error}") from None
    if change.key == "gpu" and not entry.get("nodeSelector"):
        # Pools with the same GPU are refused if no label distinguishes their nodes.
        entry["nodeSelector"] = {_POOL_LABEL: name}


def _read_factor(value: str) -> float:
    found = _FACTOR.fullmatch(value)
    if not found or not 0 < float(found[1]) <= 1000:
        raise ValueError("a factor from above 0x to 1000x is allowed, such as 2x or 0.5x")
    return float(found[1])


def _change_traffic(model: Section, value: str) -> None:
    factor = _read_factor(value)
    if model.get("traffic"):
        traffic = model["traffic"] = dict(model["traffic"])
        traffic["requestsPerSecond"] = float(traffic["requestsPerSecond"]) * factor


def _change_objective(key: str) -> Callable[[Section, str], None]:
    def change(model: Section, value: str) -> None:
        try:
            TypeAdapter(Duration).validate_python(value)
        except ValueError:
            raise ValueError("a duration with its unit is allowed, such as 500ms or 2s") from None
        model["slo"] = {**(model.get("slo") or {}), key: value}

    return change


def _change_source(model: Section, value: str) -> None:
    try:
        model["source"] = load_catalog().model(value).id
    except FleetError as error:
        raise ValueError(_describe(error)) from None
    model.pop("revision", None)
    model.setdefault("unpinnedReason", "another checkpoint, for a comparison")


def _change_sequences(model: Section, value: str) -> None:
    if not value.isdecimal() or not 1 <= int(value) <= 8192:
        raise ValueError("a number from 1 to 8192 is allowed")
    model["engine"] = {**(model.get("engine") or {}), "max_num_seqs": int(value)}


def _change_gpu(pool: Section, value: str) -> None:
    """Set the GPU as it is written, so that the plan warns of an ambiguous name. The price of the pool was that of
    another GPU, so the one of the catalog counts."""
    if "/" in value:
        raise ValueError("a whole GPU is allowed; `sharing` of the pool partitions it")
    try:
        load_catalog().gpu(value)
    except FleetError as error:
        raise ValueError(_describe(error)) from None
    pool.pop("price", None)
    if pool.get("hosts"):
        pool["hosts"] = [{**host, "gpu": value} for host in pool["hosts"]]
    else:
        pool["gpu"] = value


def _change_nodes(pool: Section, value: str) -> None:
    if pool.get("hosts"):
        raise ValueError("only for pools with `nodes`; name one: POOL.nodes=2x")
    nodes = int(pool.get("nodes") or 1)
    if value.isdecimal() and int(value) >= 1:
        pool["nodes"] = int(value)
        return
    try:
        factor = _read_factor(value)
    except ValueError:
        raise ValueError("a number of nodes, or a factor such as 2x, is allowed") from None
    pool["nodes"] = max(1, round(nodes * factor))


def _change_price(pool: Section, value: str) -> None:
    try:
        price = float(value)
    except ValueError:
        price = -1.0
    if not 0 < price < 1e6:
        raise ValueError("USD per GPU and hour, a number above 0, is allowed")
    pool["price"] = f"{price:g} USD/h"


def _describe(error: FleetError) -> str:
    """Return the problem with the near names; an example, which is marked by its reason, if no name is near."""
    (problem, *_) = error.problems
    if isinstance(problem.fix, Fix) and problem.fix.why.startswith("an example"):
        return f"{problem.message}; {problem.fix.value} is {problem.fix.why}"
    names = [str(fix.value) for fix in (problem.fix, *problem.alternatives) if isinstance(fix, Fix)]
    return f"{problem.message}; near: {', '.join(names)}" if names else problem.message


_KEYS: Mapping[str, _Key] = {
    "traffic": _Key("models", "traffic=2x", "factor on requests per second", _change_traffic),
    "ttft": _Key("models", "ttft=500ms", "objective of the time to first token", _change_objective("ttft")),
    "tpot": _Key("models", "tpot=40ms", "objective of the time per output token", _change_objective("tpot")),
    "source": _Key("models", "source=Qwen/Qwen3-32B-FP8", "another checkpoint of the catalog", _change_source),
    "maxNumSeqs": _Key("models", "maxNumSeqs=512", "max_num_seqs of the engine", _change_sequences),
    "gpu": _Key("pools", "gpu=H200-SXM-141GB", "another GPU at the price of the catalog", _change_gpu),
    "nodes": _Key("pools", "nodes=2x", "factor on the nodes, or their number", _change_nodes),
    "price": _Key("pools", "price=2.5", "USD per GPU and hour", _change_price),
}
