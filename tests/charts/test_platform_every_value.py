"""Each value of the chart platform, changed, changes what is rendered or is refused: none is offered for show."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from charts.kit import accepted_first, example, over
from rayhelm.charts.helm import render
from rayhelm.errors import FleetError
from rayhelm.values.platform import PlatformValues

BY_THE_SCHEMA = "refused by the schema"
Path = tuple[str, ...]

FULLEST = PlatformValues.model_validate(example("platform/everything")).model_dump(
    by_alias=True, exclude_none=True, mode="json"
)
QUANTILE = {"series": ["ray_vllm_time_to_first_token_seconds"], "aggregate": "Quantile"}
MIG = {"gpu": "H100-SXM-80GB", "mig": {"3g.40gb": 1}, "replicas": 0}
ACTIVE: dict[str, Any] = {
    **{f"nvidia.pools.{name}.gpu": {"nvidia": {"pools": {name: MIG}}} for name in ("sliced", "bounded")},
    "nvidia.pools.isolated.strategy": {
        "nvidia": {"pools": {"isolated": {"mig": {"3g.40gb": None, "1g.10gb": None}, "replicas": 2}}}
    },
    **{
        f"metrics.rules.{name}.quantile": {"metrics": {"rules": {name: QUANTILE}}}
        for name in ("rayhelm_preemptions", "haproxy_requests_waiting")
    },
    **{
        f"policies.{name}.reason": {"policies": {name: {"action": "Warn", "reason": "two services break it"}}}
        for name, policy in FULLEST["policies"].items()
        if policy.get("action") == "Deny"
    },
    "metrics.adapter.tls.skipVerifyReason": {
        "metrics": {"adapter": {"tls": {"caBundle": "", "skipVerifyReason": "x"}}}
    },
}
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
        return [value + 1, 0, 0.5]
    if isinstance(value, dict):
        return [{"added": "x"}, {"added": "a reason of its own"}, {"3g.40gb": 1}]
    if isinstance(value, list):
        return [["added"], ["added/x"], [7], ["10.9.0.0/16"]]
    modes = ["mps", "timeSlicing", "mixed", "single", "CPX_NPS1", "SPX_NPS1", "intel/intel-gpu-plugin:0.35.0"]
    return [*modes, "changed", "7", "Audit", "Max", "ConfigMap", "HPA", "KEDA", "http://changed", f"sha256:{'7' * 64}"]


def changed(values: Any, path: Path, value: Any) -> Any:
    text = "".join(f"{{{json.dumps(key)}: " for key in path) + json.dumps(value) + "}" * len(path)
    return over(values, json.loads(text))


@cache
def outcome(values: str) -> str:
    try:
        return render("platform", "platform", "rayhelm-system", json.loads(values))
    except FleetError as error:
        return error.problems[0].rule or BY_THE_SCHEMA


LEAVES = list(leaves(FULLEST))


@pytest.mark.parametrize(("path", "value"), LEAVES, ids=[".".join(path) for path, _ in LEAVES])
def test_every_value_acts(path: Path, value: Any) -> None:
    values = over(FULLEST, ACTIVE.get(".".join(path), {}))
    before = outcome(json.dumps(values))
    assert before.startswith("---"), before
    candidates = accepted_first(PlatformValues, (changed(values, path, other) for other in others(value)))
    assert any(outcome(json.dumps(each)) not in (before, BY_THE_SCHEMA) for each in candidates)
