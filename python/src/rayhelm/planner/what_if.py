"""Change a fleet for a comparison: other traffic, GPUs or settings, without an edit of its file."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter

from rayhelm.errors import Fix, FleetError, Problem, UsageError, each_problem
from rayhelm.facts import load_catalog
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.load import LoadedFleet
from rayhelm.fleet.merge_patch import apply_change
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
    build: Callable[[Section, str], Section]
    """Returns the merge patch of one model or pool of the fleet file. Raises ValueError with what is allowed."""


@dataclass(frozen=True)
class FleetChange:
    """One part of `--what-if`."""

    text: str
    """`POOL.gpu=L4-24GB`."""
    patch: Section
    """Merge patch of the fleet file."""


def parse_changes(text: str, loaded: LoadedFleet) -> tuple[FleetChange, ...]:
    """Parse `traffic=2x,POOL.gpu=L4-24GB`. Raises UsageError with what is allowed."""
    changes: list[FleetChange] = []
    data = loaded.data
    for part in filter(None, map(str.strip, text.split(","))):
        change = _parse_change(part, data, loaded.fleet)
        changes.append(change)
        data = apply_change(data, change.patch)
    if not changes:
        raise UsageError(f"--what-if is empty. {_describe_keys()}")
    return tuple(changes)


def _parse_change(part: str, data: Mapping[str, Any], fleet: Fleet) -> FleetChange:
    left, equals, value = (each.strip() for each in part.partition("="))
    name, _, key = left.rpartition(".")
    if not equals or not value:
        raise UsageError(f"--what-if `{part}` is not KEY=VALUE. {_describe_keys()}")
    if key not in _KEYS:
        near = nearest(key, _KEYS)
        hint = f"; did you mean `{near[0]}`?" if near else "."
        raise UsageError(f"--what-if: unknown key `{key}`{hint} {_describe_keys()}")
    section = _KEYS[key].section
    known = sorted(data[section])
    if name and name not in known:
        kind = section.removesuffix("s")
        raise UsageError(f"--what-if `{part}`: no {kind} is called `{name}`; there are {', '.join(known)}")
    names = [name] if name else known
    if key == "traffic" and not any(fleet.models[each].states_traffic for each in names):
        which = f"model `{name}` has" if name else "the models have"
        raise UsageError(f"--what-if `{part}`: {which} no `traffic` in the fleet file")
    patch = {section: {each: _build_patch(key, each, value, data[section][each] or {}) for each in names}}
    return FleetChange(f"{left}={value}", patch)


def _describe_keys() -> str:
    keys = "; ".join(f"`{key.example}` ({key.what})" for key in _KEYS.values())
    return f"Allowed, joined with commas: {keys}. MODEL.KEY or POOL.KEY changes one of them, KEY all"


def plan_changed(loaded: LoadedFleet, changes: tuple[FleetChange, ...]) -> ChangedPlan:
    """Plan the changed fleet, with the nodes that it lacks. Raises FleetError if it has no plan for another reason; its
    problems name the change."""
    with each_problem(lambda problem: _name_change(problem, changes)):
        return plan_with_more_capacity(loaded.change(*(each.patch for each in changes)))


def _name_change(problem: Problem, changes: tuple[FleetChange, ...]) -> Problem:
    text = ",".join(change.text for change in changes)
    return replace(problem, message=f"with --what-if {text}: {problem.message}")


def _build_patch(key: str, name: str, value: str, entry: Section) -> Section:
    """Return the change of one model or pool. Raises UsageError with what is allowed."""
    try:
        patch = _KEYS[key].build(entry, value)
    except ValueError as error:
        raise UsageError(f"--what-if {key}={value}: {error}") from None
    # Pools with the same GPU are refused if no label distinguishes their nodes.
    is_labeled = key != "gpu" or entry.get("nodeSelector")
    return patch if is_labeled else {**patch, "nodeSelector": {_POOL_LABEL: name}}


def _read_factor(value: str) -> float:
    found = _FACTOR.fullmatch(value)
    if not found or not 0 < float(found[1]) <= 1000:
        raise ValueError("a factor from above 0x to 1000x is allowed, such as 2x or 0.5x")
    return float(found[1])


def _change_traffic(model: Section, value: str) -> Section:
    factor, traffic = _read_factor(value), model.get("traffic")
    return {"traffic": {"requestsPerSecond": float(traffic["requestsPerSecond"]) * factor}} if traffic else {}


def _change_objective(key: str) -> Callable[[Section, str], Section]:
    def change(_: Section, value: str) -> Section:
        try:
            TypeAdapter(Duration).validate_python(value)
        except ValueError:
            raise ValueError("a duration with its unit is allowed, such as 500ms or 2s") from None
        return {"slo": {key: value}}

    return change


def _change_source(model: Section, value: str) -> Section:
    try:
        source = load_catalog().model(value).id
    except FleetError as error:
        raise ValueError(_describe(error)) from None
    why = model.get("unpinnedReason", "another checkpoint, for a comparison")
    return {"source": source, "revision": None, "unpinnedReason": why}


def _change_sequences(_: Section, value: str) -> Section:
    if not value.isdecimal() or not 1 <= int(value) <= 8192:
        raise ValueError("a number from 1 to 8192 is allowed")
    return {"engine": {"max_num_seqs": int(value)}}


def _change_gpu(pool: Section, value: str) -> Section:
    """Set the GPU as it is written, so that the plan warns of an ambiguous name. The price of the pool was that of
    another GPU, so the one of the catalog counts."""
    if "/" in value:
        raise ValueError("a whole GPU is allowed; `sharing` of the pool partitions it")
    try:
        load_catalog().gpu(value)
    except FleetError as error:
        raise ValueError(_describe(error)) from None
    hosts = pool.get("hosts")
    changed = {"hosts": [{**host, "gpu": value} for host in hosts]} if hosts else {"gpu": value}
    return {"price": None, **changed}


def _change_nodes(pool: Section, value: str) -> Section:
    if pool.get("hosts"):
        raise ValueError("only for pools with `nodes`; name one: POOL.nodes=2x")
    if value.isdecimal() and int(value) >= 1:
        return {"nodes": int(value)}
    try:
        factor = _read_factor(value)
    except ValueError:
        raise ValueError("a number of nodes, or a factor such as 2x, is allowed") from None
    return {"nodes": max(1, round(int(pool.get("nodes") or 1) * factor))}


def _change_price(_: Section, value: str) -> Section:
    try:
        price = float(value)
    except ValueError:
        price = -1.0
    if not 0 < price < 1e6:
        raise ValueError("USD per GPU and hour, a number above 0, is allowed")
    return {"price": f"{price:g} USD/h"}


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
