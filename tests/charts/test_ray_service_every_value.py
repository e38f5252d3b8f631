"""Each value of the chart has an effect: a changed value changes the render, or is refused."""

import json
from functools import cache
from typing import Literal, get_args, get_origin

import pytest

from charts.kit import accepted_first, example, over
from rayhelm.charts.helm import render
from rayhelm.charts.shape import keys
from rayhelm.errors import FleetError
from rayhelm.values.ray_service import RayServiceValues

BY_THE_SCHEMA = "refused by the schema"


def leaves(node, path=()):
    if isinstance(node, dict) and node:
        for key, value in node.items():
            yield from leaves(value, (*path, key))
    elif path not in (("global",), ("autoscaler", "version")):  # one has no use here, the other one choice
        yield path, node


def others(value):
    """Return values that differ from this one."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1, value * 2, value / 2, 0]
    if isinstance(value, dict):
        return [{"added": 1}, {"added": "x"}, {"ADDED": "1"}, {"namespace": "added"}]
    if isinstance(value, list):
        return [["added"], [7], [{"key": "added", "operator": "Exists"}], ["10.9.0.0/16"], []]
    return [f"{value}x", "changed", "", "example.com/gpu", "1Gi", "7", "1m", "2.61.0", "f" * 40, f"sha256:{'f' * 64}"]


def changed(values, path, value):
    return over(values, json.loads("".join(f'{{"{key}": ' for key in path) + json.dumps(value) + "}" * len(path)))


def outcome(values):
    return _outcome(json.dumps(values))


@cache
def _outcome(values):
    try:
        return render("ray-service", "chat", "models", json.loads(values))
    except FleetError as error:
        return error.problems[0].rule or BY_THE_SCHEMA


FULLEST = RayServiceValues.model_validate(example("everything")).model_dump(
    by_alias=True, exclude_none=True, mode="json"
)
LEAVES = list(leaves(FULLEST))
MODEL = "serve.applications.mixed.models.org/some-model.v1"
HUB = {"serve": {"applications": {"mixed": {"models": {"org/some-model.v1": {"source": "org/some-model"}}}}}}
TOKENIZER = {"serve": {"applications": {"mixed": {"models": {"org/some-model.v1": {"tokenizer": "org/tokenizer"}}}}}}
AFFINE = {
    "serve": {"applications": {"mixed": {"models": {"org/some-model.v1": {"router": {"kind": "PrefixAffinity"}}}}}}
}
# What acts only beside something that the fullest example does not do.
ACTIVE = {
    "auth.reason": {"auth": {"mode": "disabled", "reason": "x"}},
    "networkPolicy.reason": {"networkPolicy": {"enabled": False, "reason": "x"}},
    "networkPolicy.redis.peer.podLabels": {"networkPolicy": {"redis": {"peer": {"namespace": "redis"}}}},
    "weights.download.exclude": HUB,
    f"{MODEL}.revision": HUB,
    f"{MODEL}.tokenizerRevision": TOKENIZER,
    f"{MODEL}.router.imbalanceThreshold": AFFINE,
    f"{MODEL}.router.matchRateThreshold": AFFINE,
    "clusterDomain": {
        "upgrade": {"strategy": "NewCluster"},
        "networkPolicy": {"allowedGateways": {"clients": {"namespace": "ai-ml"}}},
    },
    "workerGroups.fast.rdma.hca": {"workerGroups": {"fast": {"rdma": {"resource": "rdma/hca"}}}},
    "workerGroups.fast.rdma.count": {"workerGroups": {"fast": {"rdma": {"resource": "rdma/hca"}}}},
}


@pytest.mark.parametrize(("path", "value"), LEAVES, ids=[".".join(path) for path, _ in LEAVES])
def test_every_value_changes_the_render_or_is_refused(path, value):
    """Each leaf of the fullest example changes the render when it changes, or is refused."""
    values = over(FULLEST, ACTIVE.get(".".join(path), {}))
    before = outcome(values)
    candidates = (changed(values, path, other) for other in choices(path) or others(value))
    assert any(outcome(each) not in (before, BY_THE_SCHEMA) for each in accepted_first(RayServiceValues, candidates))


def choices(path):
    """Return the values of a key with an enumeration."""
    model, annotation, parts = RayServiceValues, None, iter(path)
    for part in parts:
        if not model:
            return ()
        key = next(item for item in keys(model) if item.name == part)
        annotation, model = key.field.annotation, key.section or key.entry
        if key.entry:
            next(parts, None)
    parts = [part for part in get_args(annotation) if part is not type(None)]
    if len(parts) == 1:
        (annotation,) = parts
    return get_args(annotation) if get_origin(annotation) is Literal else ()
