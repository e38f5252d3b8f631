"""Each value of the chart tenant, changed, changes what is rendered or is refused: none is offered for show."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from charts.kit import accepted_first, example, over
from rayhelm.charts.helm import render
from rayhelm.errors import FleetError
from rayhelm.values.tenant import TenantValues

BY_THE_SCHEMA = "refused by the schema"
Path = tuple[str, ...]

FULLEST = TenantValues.model_validate(example("tenant/everything")).model_dump(
    by_alias=True, exclude_none=True, mode="json"
)
ACTIVE = {"podSecurity.reason": {"podSecurity": {"level": "baseline"}}}
"""What acts only beside something that the fullest example does not do."""


def leaves(node: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(node, dict) and node:
        for key, value in node.items():
            yield from leaves(value, (*path, key))
    elif path != ("global",):
        yield path, node


def others(value: Any) -> list[Any]:
    """Values near this one."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1, 0]
    if isinstance(value, dict):
        return [
            {"added": "x"},
            {"added": {"namespace": "x"}},
            {"added": {"cidrs": ["10.0.0.0/8"], "ports": [1]}},
            {"nvidia.com/gpu": 1},
            {"added": {"cidrs": ["10.0.0.0/8"]}},
        ]
    if isinstance(value, list):
        return [["added"], ["added/x"], [7], ["10.9.0.0/16"]]
    return ["changed", "", "1Gi", "7", "restricted", "SecretStore", "ClusterSecretStore", "v1beta2", "v1.35", "5m"]


def changed(values: Any, path: Path, value: Any) -> Any:
    text = "".join(f"{{{json.dumps(key)}: " for key in path) + json.dumps(value) + "}" * len(path)
    return over(values, json.loads(text))


@cache
def outcome(values: str) -> str:
    try:
        return render("tenant", "research", "tenants", json.loads(values))
    except FleetError as error:
        return error.problems[0].rule or BY_THE_SCHEMA


LEAVES = list(leaves(FULLEST))


@pytest.mark.parametrize(("path", "value"), LEAVES, ids=[".".join(path) for path, _ in LEAVES])
def test_every_value_acts(path: Path, value: Any) -> None:
    values = over(FULLEST, ACTIVE.get(".".join(path), {}))
    before = outcome(json.dumps(values))
    assert before.startswith("---"), before
    candidates = accepted_first(TenantValues, (changed(values, path, other) for other in others(value)))
    assert any(outcome(json.dumps(each)) not in (before, BY_THE_SCHEMA) for each in candidates)
