"""Every row of bad values is refused by every layer that claims it, with its own words."""

import pytest
from pydantic import ValidationError

from charts.kit import HELMS, example, over, rendered
from rayhelm.charts.helm import render
from rayhelm.charts.rules import rules
from rayhelm.charts.schema import values_schema
from rayhelm.errors import FleetError
from rayhelm.values.ray_service import RayServiceValues

RULES = rules("ray-service")
ROWS = [
    pytest.param(name, bad, id=f"{name}-{number}")
    for name, rule in RULES.items()
    for number, bad in enumerate(rule.bad)
]


SPLIT = {"tensorParallelSize": 2, "pipelineParallelSize": 2}


def chat(**model):
    return {"serve": {"applications": {"chat": {"models": {"llama-8b": model}}}}}


def rows(layer):
    return [row for row in ROWS if layer in RULES[row.values[0]].layers]


def test_there_are_bad_values_for_every_rule():
    assert all(rule.bad for rule in RULES.values())
    assert len(ROWS) > 60


@pytest.mark.parametrize(("name", "bad"), rows("chart"))
def test_the_chart_refuses_it_and_says_how_to_mend_it(name, bad):
    problem = refused(name, bad)
    assert problem.rule == name
    assert problem.mend
    assert "{path}" not in problem.message + problem.mend
    assert "<no value>" not in str(problem)


@pytest.mark.parametrize(("name", "bad"), rows("schema"))
def test_the_schema_refuses_it(name, bad):
    with pytest.raises(FleetError, match="don't meet the specifications of the schema"):
        rendered(bad)


@pytest.mark.parametrize(("name", "bad"), rows("model"))
def test_the_model_refuses_it(name, bad):
    with pytest.raises(ValidationError):
        RayServiceValues.model_validate(over(example("minimal"), bad))


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.since or rule.until])
def test_a_rule_of_one_kuberay_is_silent_with_the_other(name):
    rule = RULES[name]
    other = "1.6.2" if rule.since else "1.7.0"
    for bad in rule.bad:
        assert broken(over(bad, {"kuberay": {"version": other}})) != name


@pytest.mark.parametrize(
    "good",
    [
        {"workerGroups": {"gpu": {"gpu": {"count": 4}}}, **chat(engine={"tensorParallelSize": 2})},
        {"workerGroups": {"gpu": {"gpu": {"count": 4}}}, **chat(engine=SPLIT, placementStrategy="STRICT_PACK")},
        {"workerGroups": {"gpu": {"gpu": {"count": 2}, "maxReplicas": 4}}, **chat(engine=SPLIT)},
        chat(gpuFraction=0.5, engine={"gpuMemoryUtilization": 0.5}, autoscaling={"minReplicas": 4, "maxReplicas": 4}),
        chat(engine={"extra": {"data_parallel_size": 1}}),
        chat(autoscaling={"minReplicas": 0, "initialReplicas": 2, "downscaleToZeroDelaySeconds": 1800}),
        chat(autoscaling={"targetOngoingRequests": 128}, maxOngoingRequests=128),
        chat(gpuFraction=0.5, engine={"gpuMemoryUtilization": 0.5}, autoscaling={"minReplicas": 1, "maxReplicas": 1}),
        {"workerGroups": {"gpu": {"minReplicas": 2, "spread": {"topology.kubernetes.io/zone": {"maxSkew": 2}}}}},
        {"workerGroups": {"gpu": {"numOfHosts": 2, "minReplicas": 1, "spread": {"kubernetes.io/hostname": {}}}}},
        {"workerGroups": {"spare": {"gpu": {"count": 0}, "resources": {"cpu": 8, "memory": "48Gi"}}}},
        {"networkPolicy": {"dns": {"peer": {"namespace": ""}, "cidrs": ["169.254.20.10/32"]}}},
        {"weights": {"mountPath": "/tmp-models/weights"}},
        {"head": {"nodeSelector": {"example.com/" + 63 * "a": 63 * "b", "empty": "", "Pool_1.a": 4}}},
        {"head": {"tolerations": [{"operator": "Exists"}, {"key": "example.com/Pool"}, {"key": "a", "value": ""}]}},
        {"head": {"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}]}},
        {"annotations": {"Example.com/team": "any text: at all"}},
        {"workerGroups": {"gpu": {"gpu": {"resource": "nvidia.com/mig-1g.5gb", "product": "NVIDIA-H100-80GB-HBM3"}}}},
        {"workerGroups": {"gpu": {"gpu": {"vendor": "intel", "product": "Max_1550"}}}},
        {"image": {"pullSecrets": ["registry.example", "1st"]}},
        {"networkPolicy": {"gateways": {"door": {"namespace": "1st"}}}},
    ],
)
def test_what_is_good_is_not_refused(good):
    assert broken(good) == ""


@pytest.mark.parametrize("helm", HELMS)
def test_both_helms_say_the_same(helm):
    with pytest.raises(FleetError) as caught:
        rendered({"auth": {"mode": "disabled"}}, helm=helm)
    assert caught.value.problems[0].rule == "auth-reason"
    assert caught.value.problems[0].mend == 'auth: {mode: disabled, reason: "..."}'


def test_the_words_of_a_rule_are_filled_in():
    problem = refused("worker-group-unknown", RULES["worker-group-unknown"].bad[0])
    assert problem.message == (
        "serve.applications.chat.models.llama-8b names the worker group gpus, which is not there; there are: gpu"
    )
    assert problem.mend == "workerGroups: {gpus: {resources: {cpu: 8, memory: 64Gi}}}"


@pytest.mark.parametrize("helm", HELMS)
def test_a_null_is_refused_wherever_it_would_drop_a_default(helm):
    """`a: null` in an overlay removes the key before anybody sees it, so every such key has to be required."""
    found = list(sections(values_schema(RayServiceValues, "ray-service")))
    assert sum(len(keys) for _, keys in found) > 100
    for path, keys in found:
        values = example("minimal")
        put(values, path, dict.fromkeys(keys))
        with pytest.raises(FleetError) as caught:
            render("ray-service", "chat", "models", values, helm=HELMS[helm])
        missing = next(line for line in str(caught.value).splitlines() if "missing propert" in line)
        assert {key for key in keys if f"'{key}'" in missing} == set(keys)


def broken(overlay):
    """The rule that is broken first, if any."""
    try:
        rendered(overlay)
    except FleetError as error:
        return error.problems[0].rule
    return ""


def refused(name, bad):
    rule = RULES[name]
    version = rule.until or rule.since or "1.7.0"
    with pytest.raises(FleetError) as caught:
        rendered(over({"kuberay": {"version": version}}, bad), release=rule.release or "chat")
    return caught.value.problems[0]


def sections(schema, path=()):
    """Every section, as a path and its keys."""
    yield path, tuple(schema["properties"])
    for name, node in schema["properties"].items():
        if "properties" in node:
            yield from sections(node, (*path, name))


def put(values, path, value):
    for part in path[:-1]:
        values = values.setdefault(part, {})
    values.update({path[-1]: value} if path else value)
