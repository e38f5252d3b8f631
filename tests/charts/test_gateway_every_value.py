"""A change of each value of chart gateway changes the rendered objects or is refused."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, get_args, get_origin

import pytest

from charts.kit import accepted_first, example, over
from rayhelm.charts.helm import render
from rayhelm.charts.shape import keys
from rayhelm.errors import FleetError
from rayhelm.values.gateway import GatewayValues

BY_THE_SCHEMA = "refused by the schema"
Path = tuple[str, ...]

FULLEST = GatewayValues.model_validate(example("gateway/everything")).model_dump(
    by_alias=True, exclude_none=True, mode="json"
)
ROUTE = {"exposure": {"kind": "HTTPRoute", "httpRoute": {"parent": {"name": "public"}}}}
KEDA = {"autoscaling": {"kind": "KEDA", "keda": {"serverAddress": "http://prometheus:9090"}}}
ACTIVE = {
    "replicas": {"autoscaling": {"kind": "None"}},
    "networkPolicy.reason": {"networkPolicy": {"enabled": False, "reason": "x"}},
    "exposure.httpRoute": ROUTE,
    "exposure.ingress.tlsReason": {"exposure": {"ingress": {"tlsSecret": "", "tlsReason": "x"}}},
    "autoscaling.keda": KEDA,
    "models.rank.versions.v1.endpoints.here.peer.podLabels": {
        "models": {"rank": {"versions": {"v1": {"endpoints": {"here": {"host": "rank.example", "service": ""}}}}}}
    },
}
"""Values that need other values than those of example `everything`."""


def leaves(node: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(node, dict) and node:
        for key, value in node.items():
            yield from leaves(value, (*path, key))
    elif path != ("global",):
        yield path, node


def others(value: Any) -> list[Any]:
    """Return values close to this one."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1, value - 1, value * 2, 0]
    if isinstance(value, dict):
        return [{"added": "x"}, {"added": {"namespace": "x"}}, {"/added": {}}, {"llama-8b": "stable"}]
    if isinstance(value, list):
        return [["added"], [7], [{"key": "added", "operator": "Exists"}], ["10.9.0.0/16"], ["10.9.0.1:53"], []]
    return [f"{value}x", "changed", "", "/changed", "1Gi", "4Gi", "3", "7m", "127.0.0.1", f"sha256:{'f' * 64}"]


def known(path: Path) -> tuple[str, Any]:
    """Return the path with `<name>` for chosen names, and the type. Entries of a plain map count as the map."""
    model: Any = GatewayValues
    annotation: Any = None
    found, parts = [], iter(path)
    for part in parts:
        found.append(part)
        key = next(item for item in keys(model) if item.name == part)
        annotation, model = key.field.annotation, key.section or key.entry
        if key.entry and next(parts, None):
            found.append("<name>")
        if not model:
            break
    return ".".join(found), annotation


def changed(values: Any, path: Path, value: Any) -> Any:
    text = "".join(f"{{{json.dumps(key)}: " for key in path) + json.dumps(value) + "}" * len(path)
    return over(values, json.loads(text))


@cache
def outcome(values: str) -> str:
    try:
        return render("gateway", "main-gateway", "models", json.loads(values))
    except FleetError as error:
        return error.problems[0].rule or BY_THE_SCHEMA


def active(path: Path) -> Any:
    name = ".".join(path)
    return next((overlay for start, overlay in ACTIVE.items() if name.startswith(start)), {})


def acts(path: Path, value: Any, annotation: Any) -> bool:
    values = over(FULLEST, active(path))
    before = outcome(json.dumps(values))
    assert before.startswith("---"), before
    choices = get_args(annotation) if get_origin(annotation) is Literal else others(value)
    candidates = accepted_first(GatewayValues, (changed(values, path, other) for other in choices))
    return any(outcome(json.dumps(each)) not in (before, BY_THE_SCHEMA) for each in candidates)


KEYS: dict[str, list[tuple[Path, Any, Any]]] = {}
for path, value in leaves(FULLEST):
    name, annotation = known(path)
    KEYS.setdefault(name, []).append((path, value, annotation))


@pytest.mark.parametrize("key", KEYS)
def test_every_value_has_an_effect(key: str) -> None:
    """At one position at least: not every model has several endpoints, or a `host`."""
    assert any(acts(*place) for place in KEYS[key])
