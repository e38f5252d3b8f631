"""The checks of the doctor on objects with fields of other types: none ends a check, or hides the other objects."""

import copy
import json
import random
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest

from rayhelm.live.cluster.kinds import RAY_SERVICES, RENDERED, RESOURCE_QUOTAS, SECRETS, Kind
from rayhelm.live.doctor.access import list_kinds
from rayhelm.live.doctor.finding import CheckState, DoctorReport
from shared.doctor_world import World, fleet
from shared.plant import load_plants

ODD: tuple[Any, ...] = (
    None,
    "many",
    "",
    "\ud800",
    "2026-01-01T00:00:00",
    "NaN",
    9,
    -1,
    10**30,
    float("nan"),
    True,
    [],
    ["x"],
    [None],
    [[]],
    {},
    {"x": "y"},
    {"x": None},
    {"x": []},
)
OURS = {"metadata", "spec", "status", "data", "endpoints", "message", "involvedObject", "type", "lastTimestamp"}
SEED = 20_261_127


def list_paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each field, below the top fields that the checks read."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if path or key in OURS:
            yield from list_paths(item, (*path, key))


def replace(item: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a copy with another value at a path."""
    if not path:
        return value
    changed = copy.copy(item)
    changed[path[0]] = replace(item[path[0]], path[1:], value)
    return changed


def plant_every_fault(world: World) -> None:
    """Every field that a check reads is in an object then."""
    for fault in chain.from_iterable(load_plants().values()):
        for item in fault.create:
            world.create(item)
    quota = copy.deepcopy(world.items(RESOURCE_QUOTAS)[0])
    # The checks read namespaces with parts of an installation.
    world.create({**quota, "metadata": {**quota["metadata"], "namespace": "other"}})


def describe(report: DoctorReport) -> set[tuple[str, str, str]]:
    return {(each.check, each.object, each.evidence) for each in report.findings}


def odd_items(world: World, kind: Kind) -> list[Any]:
    """Copies of each object of a kind in another namespace, each with one field of another type."""
    generator = random.Random(f"{SEED} {kind.name}")
    found = []
    for item in world.items(kind)[:12]:
        paths = [path for path in list_paths(item) if path]
        chosen = generator.sample(paths, min(len(paths), 40))
        for number, path in enumerate(chosen):
            odd = copy.deepcopy(item)
            odd["metadata"]["name"] = f"{odd['metadata']['name'][:40]}-odd{number}"
            if kind.is_namespaced:
                odd["metadata"]["namespace"] = "other"
            found.append(replace(odd, path, generator.choice(ODD)))
    return found


KINDS = sorted({*list_kinds(), *RENDERED} - {SECRETS})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_odd_object_hides_no_finding_of_others(kind: Kind) -> None:
    world = World(fleet())
    plant_every_fault(world)
    expected = {each for each in describe(world.examine()) if not each[1].startswith("pool ")}
    world.items(kind).extend(odd_items(world, kind))
    report = world.examine()
    missing = {(check, name) for check, name, _ in expected} - {(check, name) for check, name, _ in describe(report)}
    assert not missing
    assert not [each for each in report.findings if "could not check" in each.cause and each.check != "secrets"]


def odd_config(**fields: Any) -> str:
    model = {"model_loading_config": {"model_id": "odd"}, "placement_group_config": {"bundles": [{"GPU": 1}]}}
    return json.dumps({"applications": [{"name": "odd", "args": {"llm_configs": [{**model, **fields}]}}]})


SERVE_CONFIGS = {
    "applications is a text": '{"applications": "x"}',
    "application is a text": '{"applications": ["x"]}',
    "arguments are a list": '{"applications": [{"name": "odd", "args": ["x"]}]}',
    "models are names of files": '{"applications": [{"name": "odd", "args": {"llm_configs": ["model.yaml"]}}]}',
    "model is a number": '{"applications": [{"name": "odd", "args": {"llm_config": 7}}]}',
    "config is a list": "[1]",
    "replicas are a text": odd_config(deployment_config={"autoscaling_config": {"max_replicas": "many"}}),
    "replicas are a number as text": odd_config(deployment_config={"autoscaling_config": {"max_replicas": "9"}}),
    "replicas are auto": odd_config(deployment_config={"num_replicas": "auto"}),
    "replicas are huge": odd_config(deployment_config={"num_replicas": 10**400}),
    "GPUs are a text": odd_config(placement_group_config={"bundles": [{"GPU": "many", "lab.worker-group": 1}]}),
    "GPUs are infinite": odd_config(placement_group_config={"bundles": [{"GPU": 1e400, "lab.worker-group": 1}]}),
    "bundles are an object": odd_config(placement_group_config={"bundles": {"GPU": 1}}),
    "name is no text": odd_config(model_loading_config={"model_id": ["odd"]}),
    "name is half a character": odd_config(model_loading_config={"model_id": "\ud800"}),
    "levels have no end": "[" * 100_000,
    "digits have no end": '{"applications": ' + "9" * 10_000 + "}",
}


@pytest.mark.parametrize("text", SERVE_CONFIGS.values(), ids=SERVE_CONFIGS)
def test_odd_serve_config_of_a_tenant_ends_no_check(text: str) -> None:
    world = World(fleet())
    odd = copy.deepcopy(world.items(RAY_SERVICES)[0])
    odd["metadata"] |= {"name": "aaa-odd", "namespace": "other"}
    odd["spec"]["serveConfigV2"] = text
    # First and last: a check that ends at the odd object hides what follows it.
    world.items(RAY_SERVICES).insert(0, odd)
    for fault in load_plants()["serve-scaling"]:
        world.plant(fault)
        report = world.examine("serve-scaling")
        assert "RayService lab/qwen3-32b" in {each.object for each in report.findings}
        assert report.checks[0].state is CheckState.findings


def test_serve_config_with_another_type_is_a_finding_with_its_field() -> None:
    world = World(fleet())
    world.items(RAY_SERVICES)[0]["spec"]["serveConfigV2"] = SERVE_CONFIGS["GPUs are a text"]
    (finding,) = world.examine("serve-scaling").findings
    assert finding.object.startswith("RayService lab/")
    assert "placement_group_config.bundles.0.GPU" in finding.evidence


def test_numbers_of_a_serve_config_may_be_texts_as_for_ray() -> None:
    world = World(fleet())
    world.items(RAY_SERVICES)[0]["spec"]["serveConfigV2"] = SERVE_CONFIGS["replicas are a number as text"]
    (finding,) = world.examine("serve-scaling").findings
    assert "None-9 replicas, target_ongoing_requests None" in finding.evidence
