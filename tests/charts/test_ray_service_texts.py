"""Strings of the values are rendered as the same strings, also when YAML or Helm read another type."""

import json
import re
from typing import get_origin

import pytest
from pydantic import TypeAdapter, ValidationError

from charts.kit import HELMS, example, only, over, parsed, rendered
from rayhelm.deploy.charts.helm import render
from rayhelm.deploy.charts.shape import keys
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.errors import FleetError

WHOLE = over(
    example("everything"),
    {"networkPolicy": {name: {"peer": {"namespace": name}} for name in ("redis", "bucket")}},
)
"""Example that renders every string map."""


def text_maps(model=RayServiceValues, values=WHOLE, path=()):
    """Return the paths of all string maps in the values, through one entry of each map of entries."""
    for key in keys(model):
        here, below = (*path, key.name), values.get(key.name) or {}
        if key.section:
            yield from text_maps(key.section, below, here)
        elif key.entry:
            name = next(iter(below))
            yield from text_maps(key.entry, below[name], (*here, name))
        elif takes_numbers_for_texts(key.field.annotation):
            yield here


def takes_numbers_for_texts(annotation):
    if get_origin(annotation) is not dict:
        return False
    try:
        return TypeAdapter(annotation).validate_python({"PROBE": 1}) == {"PROBE": "1"}
    except ValidationError:
        return False


MAPS = list(text_maps())
PROBES = {f"PROBE_{number}": path for number, path in enumerate(MAPS)}


def in_every_map(value):
    values = WHOLE
    for probe, path in PROBES.items():
        values = over(values, nested(path, {probe: value}))
    return values


def nested(path, value):
    return {path[0]: nested(path[1:], value)} if path else value


def collect(node, found=None):
    """Return what is rendered under each probe: as a key, as a variable, and in JSON inside of strings."""
    found = {probe: set() for probe in PROBES} if found is None else found
    if isinstance(node, str) and node.startswith("{"):
        node = json.loads(node)
    if isinstance(node, dict):
        if node.get("name") in PROBES:
            found[node["name"]].add(node["value"])
        for key in PROBES.keys() & node.keys():
            found[key].add(node[key])
    for item in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        collect(item, found)
    return found


def test_string_maps_are_found():
    found = {".".join(path) for path in MAPS}
    assert {"labels", "annotations", "head.env", "workerGroups.fast.nodeSelector", "scraping.labels"} < found
    assert {"networkPolicy.allowedGateways.istio.podLabels", "serve.customApplications.own.env"} < found
    assert "serve.applications.mixed.models.org/some-model.v1.env" in found


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize(("value", "text"), [(1234567, "1234567"), (0.5, "0.5"), ("1e3", "1e3"), ("no", "no")])
def test_string_map_value_is_rendered_unchanged(value, text, helm):
    found = collect(rendered(in_every_map(value), base="everything", helm=helm))
    assert {PROBES[probe]: values for probe, values in found.items()} == {path: {text} for path in MAPS}


def test_boolean_is_refused_in_a_string_map():
    """YAML reads `yes` as a boolean too, which would be rendered as `true`."""
    with pytest.raises(FleetError) as caught:
        rendered(in_every_map(True), base="everything")
    for probe, path in PROBES.items():
        pointer = "/".join(part.replace("/", "~1") for part in (*path, probe))
        assert f"at '/{pointer}': got boolean, want" in str(caught.value)


# -- names -------------------------------------------------------------------------------------------------------------

NAMES = {
    "release": ("plain-release", "no"),
    "namespace": ("plain-namespace", "123"),
    "tenant": ("plain-tenant", "on"),
    "group": ("plain-group", "y"),
    "class": ("plain-class", "off"),
    "secret": ("plain-secret", "null"),
    "key": ("plain-key", "1e3"),
    "account": ("plain-account", "yes"),
    "elsewhere": ("plain-elsewhere", "0x1f"),
    "alias": ("plain-alias", "true"),
}
"""A plain name, and one that YAML reads as another type."""


def named(which):
    name = {what: pair[which] for what, pair in NAMES.items()}
    secret = {"name": name["secret"], "key": name["key"]}
    values = {
        "nameOverride": "",
        "tenant": name["tenant"],
        "imagePullSecrets": [{"name": name["secret"]}],
        "auth": {"secretName": name["secret"]},
        "kuberay": {"version": "1.7.0"},
        "upgrade": {"strategy": "NewCluster"},
        "serve": {
            "applications": {
                "mixed": {
                    "models": {"org/some-model.v1": {"workerGroups": [name["group"]]}},
                    "ingress": {"workerGroup": name["group"]},
                }
            }
        },
        "head": {"priorityClassName": name["class"]},
        "workerGroups": {
            "fast": None,
            name["group"]: {
                **WHOLE["workerGroups"]["fast"],
                "priorityClassName": name["class"],
                "runtimeClassName": name["class"],
            },
        },
        "gcsFaultTolerance": {"passwordSecret": secret},
        "weights": {"claim": {"storageClass": name["class"]}, "download": {"tokenSecret": secret, "enabled": False}},
        "networkPolicy": {"allowedGateways": {"istio": {"namespace": name["elsewhere"]}}},
        "aliases": {"here": None, "llm-predictor": None, name["alias"]: {"namespace": name["elsewhere"]}},
        "serviceAccount": {"name": name["account"]},
    }
    return render("ray-service", name["release"], name["namespace"], over(WHOLE, values))


def test_names_that_yaml_reads_as_other_types_stay_names():
    plain, other = (json.dumps(parsed(named(which)), sort_keys=True) for which in (0, 1))
    for before, after in NAMES.values():
        assert before in plain
        plain = plain.replace(before, after)
    assert json.loads(plain) == json.loads(other)


# -- numbers -----------------------------------------------------------------------------------------------------------

LARGE = {
    "serve": {
        "requestTimeoutSeconds": 1234567,
        "keepAliveTimeoutSeconds": 1234567,
        "applications": {"mixed": {"models": {"org/some-model.v1": {"engine": {"maxModelLen": 1234567}}}}},
    },
    "head": {
        "terminationGracePeriodSeconds": 1234567,
        "resources": {"limits": {"memory": 12345670001}},
        "tolerations": [
            {"key": "node", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1234567},
            {"key": "pool", "value": 1234567},
        ],
    },
    "workerGroups": {
        "fast": {
            "idleTimeoutSeconds": 1234567,
            "priority": 1234567,
            "rayResources": {"nvme": 1234567},
            "supplementalGroups": [1234567],
            "tolerations": [{"key": "pool", "value": 1234567}],
        }
    },
    "upgrade": {"deletionDelaySeconds": 1234567, "incremental": {"intervalSeconds": 1234567}},
    "autoscaler": {"idleTimeoutSeconds": 1234567},
    "weights": {"claim": {"size": 1234567000001}, "download": {"backoffLimit": 1234567}},
    "test": {"timeoutSeconds": 1234567},
}


@pytest.mark.parametrize("helm", HELMS)
def test_large_numbers_are_rendered_without_exponent(helm):
    text = render("ray-service", "chat", "models", over(WHOLE, LARGE), helm=HELMS[helm])
    # Names may end in a hash such as ee73e94.
    assert not re.findall(r".*(?<![\w-])[0-9.]+e[+-]?[0-9]+\b.*", text)
    assert {"1234567", "12345670001", "1234567000001"} <= set(re.findall(r"\b[0-9]+\b", text))


@pytest.mark.parametrize("helm", HELMS)
def test_toleration_keeps_the_types_of_its_fields(helm):
    cluster = only(rendered(LARGE, base="everything", helm=helm), "RayService")["spec"]["rayClusterConfig"]
    first, second = cluster["headGroupSpec"]["template"]["spec"]["tolerations"]
    assert first["tolerationSeconds"] == 1234567
    assert second == {"key": "pool", "value": "1234567"}
    assert second in cluster["workerGroupSpecs"][0]["template"]["spec"]["tolerations"]


def test_label_number_above_2_53_is_refused():
    with pytest.raises(FleetError, match="at '/labels/account': maximum"):
        rendered({"labels": {"account": 12345678901234567890}})
