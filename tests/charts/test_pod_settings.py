"""Settings in Kubernetes' shape reach each pod that a chart makes, or are refused with the reason."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from charts.each_chart import Chart, Values, chart_of
from charts.kit import HELMS, Object, example, over
from rayhelm.deploy.charts.rules import POD_PATHS
from rayhelm.errors import FleetError

SETTINGS: Values = {
    "podLabels": {"team": "research", "cost": 42},
    "podAnnotations": {"example.com/note": "1e3"},
    "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "topologySpreadConstraints": [
        {"topologyKey": "example.com/rack", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"},
        {
            "topologyKey": "example.com/row",
            "maxSkew": 2,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"team": "research"}},
            "matchLabelKeys": ["team"],
        },
    ],
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "team", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1000000}],
    "extraEnv": [
        {"name": "COUNT", "value": 1000000},
        {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "proxy", "key": "password", "optional": True}}},
    ],
    "extraEnvFrom": [{"prefix": "S_", "secretRef": {"name": "proxy"}}, {"configMapRef": {"name": "proxy"}}],
    "extraVolumes": [
        {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}},
        {
            "name": "token",
            "projected": {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 1000000}}]},
        },
    ],
    "extraVolumeMounts": [
        {"name": "scratch", "mountPath": "/scratch"},
        {"name": "token", "mountPath": "/etc/token", "readOnly": True},
    ],
}
MANAGED = {
    "metrics": {
        "services": {"chat": {"namespace": "models"}},
        "prometheusUrl": "http://prometheus:9090",
        "adapter": {"kind": "Managed", "tls": {"skipVerifyReason": "test"}},
    },
    "networkPolicy": {"apiServer": {"cidrs": ["10.0.0.1/32"]}},
    "doctor": {"enabled": True, "image": {"repository": "registry.example/rayhelm", "tag": "1"}},
}
DEPLOYMENTS = {"metrics.adapter": "platform-metrics", "doctor": "platform-doctor"}
"""Deployment of the settings at a path, in a chart with several."""
SECRETS = [{"name": "registry"}]
PODS = [(chart, path) for chart, paths in POD_PATHS.items() for path in paths]
each_pod = pytest.mark.parametrize(("name", "path"), PODS, ids=[f"{chart}-{path}" for chart, path in PODS])


def below(path: str, values: Values) -> Values:
    for part in reversed(path.split(".") if path else []):
        values = {part: values}
    return values


def smallest(chart: Chart) -> Values:
    return over(chart.smallest(), MANAGED) if chart.name == "platform" else chart.smallest()


def pod_of(chart: Chart, path: str, overlay: Values, helm: str = "4") -> Object:
    """The pod template of the settings at a path."""
    objects = chart.objects(over(smallest(chart), overlay), helm)
    kind = {"ray-service": "RayService", "gateway": "Deployment", "platform": "Deployment"}[chart.name]
    if path == "weights.download":
        kind = "Job"
    named = DEPLOYMENTS.get(path, "")
    spec = next(item for item in objects if item["kind"] == kind and named in item["metadata"]["name"])["spec"]
    if kind != "RayService":
        return spec["template"]
    cluster = spec["rayClusterConfig"]
    return (cluster["headGroupSpec"] if path == "head" else cluster["workerGroupSpecs"][0])["template"]


def main_containers(chart: Chart, path: str, pod: Object) -> Iterator[Object]:
    spec = pod["spec"]
    if path == "weights.download":
        return iter(spec["initContainers"])
    return iter(spec["containers"][:1])


@pytest.mark.parametrize("helm", HELMS)
@each_pod
def test_pod_has_the_settings(name: str, path: str, helm: str) -> None:
    chart = chart_of(name)
    pod = pod_of(chart, path, below(path, SETTINGS), helm)
    plain = pod_of(chart, path, {}, helm)
    assert pod["metadata"]["labels"] == {**plain["metadata"]["labels"], "team": "research", "cost": "42"}
    annotations = plain["metadata"].get("annotations", {})
    assert pod["metadata"]["annotations"] == {**annotations, "example.com/note": "1e3"}
    spec = pod["spec"]
    assert spec["affinity"] == SETTINGS["affinity"]
    assert spec["nodeSelector"].items() >= SETTINGS["nodeSelector"].items()
    assert SETTINGS["tolerations"][0] in spec["tolerations"]
    rack, row = spec["topologySpreadConstraints"][-2:]
    assert rack["labelSelector"]["matchLabels"].items() <= plain["metadata"]["labels"].items()
    assert {**rack, "labelSelector": None} == {**SETTINGS["topologySpreadConstraints"][0], "labelSelector": None}
    assert row == SETTINGS["topologySpreadConstraints"][1]
    assert [volume for volume in spec["volumes"] if volume in SETTINGS["extraVolumes"]] == SETTINGS["extraVolumes"]
    containers = list(main_containers(chart, path, pod))
    assert containers
    for container in containers:
        count, *others = SETTINGS["extraEnv"]
        assert container["env"][-3:] == [{**count, "value": "1000000"}, *others]
        assert container["envFrom"] == SETTINGS["extraEnvFrom"]
        assert [mount for mount in container["volumeMounts"] if mount in SETTINGS["extraVolumeMounts"]] == SETTINGS[
            "extraVolumeMounts"
        ]


@each_pod
def test_pod_has_the_image_pull_secrets(name: str, path: str) -> None:
    values = {"imagePullSecrets": SECRETS}
    overlay = below(path, values) if name == "platform" else values
    assert pod_of(chart_of(name), path, overlay)["spec"]["imagePullSecrets"] == SECRETS


REFUSED = [
    (
        "extraVolumes",
        [{"name": "data", "hostPath": {"path": "/data"}}],
        "Pod Security `restricted` refuses the type hostPath",
    ),
    ("podLabels", {"rayhelm.dev/role": "x"}, "owns this label"),
    ("podAnnotations", {"ray.io/x": "y"}, "owns this annotation"),
    ("extraVolumeMounts", [{"name": "data", "mountPath": "/data"}], "extraVolumes has no volume data"),
    ("extraEnv", [{"name": "A", "value": "x"}, {"name": "A", "value": "y"}], "an earlier entry has the same name"),
]


def refusal(name: str, path: str, settings: Values) -> Any:
    chart = chart_of(name)
    with pytest.raises(FleetError) as caught:
        chart.text(over(smallest(chart), below(path, settings)))
    return caught.value.problems[0]


@each_pod
@pytest.mark.parametrize(("key", "value", "why"), REFUSED, ids=[row[0] for row in REFUSED])
def test_refusal_names_the_key_and_the_reason(name: str, path: str, key: str, value: Any, why: str) -> None:
    problem = refusal(name, path, {key: value})
    assert problem.message.startswith(f"{path}.{key}: ".removeprefix("."))
    assert why in problem.message
    chart = chart_of(name)
    chart.text(over(smallest(chart), yaml.safe_load(problem.fix)))


@pytest.mark.parametrize(
    ("name", "path", "mount"),
    [
        ("ray-service", "head", "/tmp/x"),
        ("ray-service", "head", "/dev/shm"),
        ("ray-service", "workerGroups.gpu", "/models/mine"),
        ("ray-service", "weights.download", "/models"),
        ("gateway", "", "/etc"),
        ("platform", "metrics.adapter", "/etc/adapter/more"),
        ("platform", "doctor", "/etc/rayhelm/more"),
    ],
)
def test_mount_over_a_path_of_the_chart_is_refused(name: str, path: str, mount: str) -> None:
    volume = {"name": "data", "emptyDir": {}}
    settings = {"extraVolumes": [volume], "extraVolumeMounts": [{"name": "data", "mountPath": mount}]}
    assert "which the pod uses" in refusal(name, path, settings).message


@pytest.mark.parametrize(
    ("path", "variable"),
    [
        ("head", "HOME"),
        ("head", "RAY_AUTH_TOKEN"),
        ("workerGroups.gpu", "NCCL_SOCKET_IFNAME"),
        ("weights.download", "HF_TOKEN"),
    ],
)
def test_variable_of_the_chart_is_refused(path: str, variable: str) -> None:
    problem = refusal("ray-service", path, {"extraEnv": [{"name": variable, "value": "x"}]})
    assert problem.rule == "extra-env"
    assert variable in problem.message


def test_volume_of_the_chart_is_refused() -> None:
    assert (
        "the chart has a volume"
        in refusal("gateway", "", {"extraVolumes": [{"name": "config", "emptyDir": {}}]}).message
    )


def test_fullest_values_have_every_setting() -> None:
    """So that the tests of schemas and of Pod Security see them."""
    for name, path in PODS:
        values = example("everything" if name == "ray-service" else f"{name}/everything")
        for part in path.replace(".gpu", ".fast").split(".") if path else []:
            values = values[part]
        assert SETTINGS.keys() <= values.keys()
