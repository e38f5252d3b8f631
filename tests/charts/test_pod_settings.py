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
            "projected": {
                "sources": [{"serviceAccountToken": {"path": "t", "audience": "vault", "expirationSeconds": 1000000}}]
            },
        },
    ],
    "extraVolumeMounts": [
        {"name": "scratch", "mountPath": "/scratch"},
        {"name": "token", "mountPath": "/etc/token", "readOnly": True},
    ],
}
FURTHER: Values = {
    "extraVolumes": [{"name": "scratch", "emptyDir": {}}],
    "extraContainers": [
        {
            "name": "notes",
            "image": "notes:1.2",
            "securityContext": {"runAsUser": 1234},
            "volumeMounts": [{"name": "scratch", "mountPath": "/x"}],
        }
    ],
    "initContainers": [{"name": "prepare", "image": "registry.example/prepare:1.2"}],
    "podTemplate": {
        "spec": {
            "dnsConfig": {"options": [{"name": "ndots", "value": "2"}]},
            "hostAliases": [{"ip": "10.0.0.9", "hostnames": ["db.example"]}],
            "schedulerName": "volcano",
            "containers": [
                {
                    "name": "notes",
                    "resources": {"requests": {"ephemeral-storage": "20Gi"}},
                    "livenessProbe": {"periodSeconds": 1000000, "exec": {"command": ["sh", "-c", '[ "$A" != null ]']}},
                }
            ],
        }
    },
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
JOB = "weights.download"
"""Settings of a Job: without `extraContainers`, which would keep it running."""
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
    if path == JOB:
        kind = "Job"
    named = DEPLOYMENTS.get(path, "")
    spec = next(item for item in objects if item["kind"] == kind and named in item["metadata"]["name"])["spec"]
    if kind != "RayService":
        return spec["template"]
    cluster = spec["rayClusterConfig"]
    return (cluster["headGroupSpec"] if path == "head" else cluster["workerGroupSpecs"][0])["template"]


def main_containers(chart: Chart, path: str, pod: Object) -> Iterator[Object]:
    spec = pod["spec"]
    if path == JOB:
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


@pytest.mark.parametrize("helm", HELMS)
@each_pod
def test_pod_has_further_containers_and_the_patch(name: str, path: str, helm: str) -> None:
    chart = chart_of(name)
    registry = {"global": {"imageRegistry": "mirror.example"}}
    further = {**FURTHER, "extraContainers": []} if path == JOB else FURTHER
    patch = dict(FURTHER["podTemplate"]["spec"])
    if path == JOB:
        prepare = FURTHER["initContainers"][0]["name"]
        patch["initContainers"] = [{**patch.pop("containers")[0], "name": prepare}]
        further = {**further, "podTemplate": {"spec": patch}}
    spec = pod_of(chart, path, over(below(path, further), registry), helm)["spec"]
    plain = pod_of(chart, path, registry, helm)["spec"]
    changed = {"containers", "initContainers", "volumes", *patch}
    assert {key: spec[key] for key in spec if key not in changed} == {
        key: plain[key] for key in plain if key not in changed
    }
    pod_fields = patch.keys() - {"containers", "initContainers"}
    assert {key: spec[key] for key in pod_fields} == {key: patch[key] for key in pod_fields}
    assert spec["containers"][: len(plain["containers"])] == plain["containers"]
    assert spec["initContainers"][:-1] == plain.get("initContainers", [])
    restricted = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
    }
    assert spec["initContainers"][-1] == {
        "name": "prepare",
        "image": "mirror.example/registry.example/prepare:1.2",
        "resources": {},  # an operator writes it back
        "securityContext": restricted,
        **patch.get("initContainers", [{}])[0],
    }
    assert spec["containers"][len(plain["containers"]) :] == [
        {
            **notes,
            **patch["containers"][0],
            "image": "mirror.example/docker.io/library/notes:1.2",
            "securityContext": {**restricted, "runAsUser": 1234},
        }
        for notes in further["extraContainers"]
    ]


@each_pod
def test_pod_has_the_image_pull_secrets(name: str, path: str) -> None:
    values = {"imagePullSecrets": SECRETS}
    overlay = below(path, values) if name == "platform" else values
    assert pod_of(chart_of(name), path, overlay)["spec"]["imagePullSecrets"] == SECRETS


ONLY_STORAGE = "only ephemeral-storage of `limits` and `requests` can be patched, not "
NULL = "null is no value of a patch"
OF_CONTAINERS: list[tuple[Values, str]] = [
    ({"resources": {"limits": None, "requests": None}}, f"{ONLY_STORAGE}limits: null, requests: null"),
    ({"resources": {"claims": [{"name": "gpu"}]}}, f'{ONLY_STORAGE}claims: [{{"name":"gpu"}}]'),
    ({"resources": {"limits": {"memory": "1Gi"}}}, f"{ONLY_STORAGE}memory"),
    ({"resources": {"limits": {"ephemeral-storage": None}}}, NULL),
    ({"resources": None}, f"{ONLY_STORAGE}null"),
    ({"livenessProbe": None}, NULL),
    ({"livenessProbe": {"exec": {"command": ['"', None]}}}, NULL),
]
PATCHES: list[tuple[Values, str]] = [
    ({"preemptionPolicy": None}, NULL),
    *(({"containers": [{"name": "x", **fields}]}, why) for fields, why in OF_CONTAINERS),
]
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
    ("podTemplate", {"spec": {"hostNetwork": True}}, "could take a security setting away"),
    ("podTemplate", {"spec": {"containers": [{"name": "other"}]}}, "the pod has only "),
    (
        "extraContainers",
        [{"name": "x", "image": "x:1", "securityContext": {"privileged": True}}],
        "Pod Security `restricted` requires it",
    ),
    (
        "extraContainers",
        [{"name": "x", "image": "x:1", "resources": {"limits": {"cpu": 1, "nvidia.com/gpu": 1}}}],
        "its `resources` has nvidia.com/gpu, and only cpu, memory, ephemeral-storage of `limits` and `requests` are ",
    ),
    (
        "initContainers",
        [{"name": "x", "image": "x:1", "resources": {"claims": [{"name": "gpu"}]}}],
        'its `resources` has claims: [{"name":"gpu"}]',
    ),
    ("initContainers", [{"name": "x", "image": "x:1", "resources": None}], "its `resources` has null"),
    *(("podTemplate", {"spec": spec}, why) for spec, why in PATCHES),
]


def refusal(name: str, path: str, settings: Values) -> Any:
    chart = chart_of(name)
    with pytest.raises(FleetError) as caught:
        chart.text(over(smallest(chart), below(path, settings)))
    return caught.value.problems[0]


@each_pod
@pytest.mark.parametrize(("key", "value", "why"), REFUSED, ids=[f"{i}-{row[0]}" for i, row in enumerate(REFUSED)])
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


def test_variable_that_gives_devices_is_refused() -> None:
    vendors = [f"{vendor}_VISIBLE_DEVICES" for vendor in ("AMD", "ASCEND", "AWS_NEURON", "HABANA", "NVIDIA")]
    problem = refusal("gateway", "", {"extraEnv": [{"name": name, "value": "all"} for name in vendors]})
    assert f"{', '.join(vendors)}: it gives the container GPUs" in problem.message


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("CUDA_VISIBLE_DEVICES", "0"),
        ("HIP_VISIBLE_DEVICES", "0"),
        ("ROCR_VISIBLE_DEVICES", "0"),
        ("NVIDIA_VISIBLE_DEVICES", "none"),
        ("NVIDIA_VISIBLE_DEVICES", "void"),
    ],
)
def test_variable_that_gives_no_devices_is_rendered(variable: str, value: str) -> None:
    env = {"name": variable, "value": value}
    gateway = chart_of("gateway")
    (container,) = main_containers(gateway, "", pod_of(gateway, "", {"extraEnv": [env]}))
    assert env in container["env"]


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize(
    ("projected", "place"),
    [
        ("foo", "projected"),
        ({"sources": "foo"}, "projected/sources"),
        ({"sources": ["foo"]}, "projected/sources/0"),
        ({"sources": [{"serviceAccountToken": "foo"}]}, "projected/sources/0/serviceAccountToken"),
        ({"sources": [{"serviceAccountToken": {"audience": 5}}]}, "projected/sources/0/serviceAccountToken/audience"),
        ({"sources": [{"podCertificate": {"signerName": 5}}]}, "projected/sources/0/podCertificate/signerName"),
    ],
)
def test_projected_volume_of_wrong_types_is_refused_at_its_place(projected: Any, place: str, helm: str) -> None:
    gateway = chart_of("gateway")
    values = over(gateway.smallest(), {"extraVolumes": [{"name": "token", "projected": projected}]})
    with pytest.raises(FleetError) as caught:
        gateway.objects(values, helm)
    assert f"at '/extraVolumes/0/{place}': got " in str(caught.value)


def test_volume_of_the_chart_is_refused() -> None:
    assert (
        "the chart has a volume"
        in refusal("gateway", "", {"extraVolumes": [{"name": "config", "emptyDir": {}}]}).message
    )


@each_pod
def test_name_of_any_container_of_the_pod_is_refused(name: str, path: str) -> None:
    spec = pod_of(chart_of(name), path, {})["spec"]
    for container in [*spec["containers"], *spec.get("initContainers", [])]:
        for key in ("initContainers", "extraContainers"):
            problem = refusal(name, path, {key: [{"name": container["name"], "image": "x:1"}]})
            why = (
                "a Job runs until"
                if path == JOB and key == "extraContainers"
                else "the pod has a container of this name"
            )
            assert why in problem.message
    twice = {"initContainers": [{"name": "x", "image": "x:1"}], "extraContainers": [{"name": "x", "image": "x:1"}]}
    assert refusal(name, path, twice).rule == "extra-container"


def test_container_beside_a_job_is_refused_with_an_init_container() -> None:
    chart = chart_of("ray-service")
    settings = {key: FURTHER[key] for key in ("extraVolumes", "extraContainers", "initContainers")}
    problem = refusal("ray-service", JOB, settings)
    assert problem.message.startswith("weights.download.extraContainers: notes: a Job runs until")
    fixed = over(below(JOB, settings), yaml.safe_load(problem.fix))
    *_, prepare, notes = pod_of(chart, JOB, fixed)["spec"]["initContainers"]
    assert [prepare["name"], notes["name"], notes["restartPolicy"]] == ["prepare", "notes", "Always"]


def test_fullest_values_have_every_setting() -> None:
    """So that the tests of schemas and of Pod Security see them."""
    for name, path in PODS:
        values = example("everything" if name == "ray-service" else f"{name}/everything")
        for part in path.replace(".gpu", ".fast").split(".") if path else []:
            values = values[part]
        settings = SETTINGS.keys() | FURTHER.keys()
        assert settings - ({"extraContainers"} if path == JOB else set()) <= values.keys()
