"""Refusals of the chart ray-service, in addition to the tests that all charts share."""

import pytest
import yaml

from charts.each_chart import chart_of
from charts.kit import HELMS, INGRESS_ON_CPUS, chat, over

CHART = chart_of("ray-service")
XPU = {"repository": "registry.example/ray-vllm", "tag": "2.60.0-xpu"}
UNNAMED = {"repository": "registry.example/ray-vllm", "tag": "2.60.0"}
SPLIT = {"tensorParallelSize": 2, "pipelineParallelSize": 2}


@pytest.mark.parametrize("name", [name for name, rule in CHART.rules.items() if rule.since or rule.until])
def test_rule_of_one_kuberay_version_does_not_apply_to_the_other(name):
    rule = CHART.rules[name]
    other = "1.6.2" if rule.since else "1.7.0"
    for bad in rule.bad:
        assert CHART.broken(over(bad, {"kuberay": {"version": other}})) != name


@pytest.mark.parametrize(
    "good",
    [
        {"workerGroups": {"gpu": {"gpu": {"count": 4}}}, **chat(engine={"tensorParallelSize": 2})},
        {"workerGroups": {"gpu": {"gpu": {"count": 4}}}, **chat(engine=SPLIT, placementStrategy="STRICT_PACK")},
        {"workerGroups": {"gpu": {"gpu": {"count": 2}, "maxReplicas": 4}}, **chat(engine=SPLIT)},
        chat(gpuFraction=0.5, engine={"gpuMemoryUtilization": 0.46}, autoscaling={"minReplicas": 4, "maxReplicas": 4}),
        chat(engine={"dataParallelSize": 1}),
        over(
            INGRESS_ON_CPUS,
            chat(autoscaling={"minReplicas": 0, "initialReplicas": 2, "downscaleToZeroDelaySeconds": 1800}),
        ),
        # Nothing is removed: the group has a fixed number of workers.
        {"workerGroups": {"gpu": {"minReplicas": 2}}, **chat(autoscaling={"minReplicas": 0})},
        over(
            INGRESS_ON_CPUS,
            {
                **chat(autoscaling={"minReplicas": 0, "initialReplicas": 0}),
                "test": {"enabled": False},
                "upgrade": {
                    "strategy": "NewClusterWithIncrementalUpgrade",
                    "incremental": {"gatewayClassName": "istio"},
                },
            },
        ),
        # The worker of the ingress accepts the requests of the other application.
        over(
            INGRESS_ON_CPUS,
            {
                "serve": {
                    "customApplications": {
                        "x": {
                            "importPath": "a.b:c",
                            "deployments": {"d": {"gpus": 1, "minReplicas": 0, "workerGroup": "gpu"}},
                        }
                    }
                },
                "workerGroups": {"gpu": {"maxReplicas": 3}},
            },
        ),
        chat(autoscaling={"targetOngoingRequests": 128}, maxOngoingRequests=128),
        chat(gpuFraction=0.5, engine={"gpuMemoryUtilization": 0.46}, autoscaling={"minReplicas": 1, "maxReplicas": 1}),
        {"workerGroups": {"gpu": {"minReplicas": 2, "spread": {"topology.kubernetes.io/zone": {"maxSkew": 2}}}}},
        {"workerGroups": {"gpu": {"numOfHosts": 2, "minReplicas": 1, "spread": {"kubernetes.io/hostname": {}}}}},
        {"workerGroups": {"spare": {"gpu": {"count": 0}, "resources": {"limits": {"cpu": 8, "memory": "48Gi"}}}}},
        {"networkPolicy": {"dns": {"peer": {"namespace": ""}, "cidrs": ["169.254.20.10/32"]}}},
        {"weights": {"mountPath": "/tmp-models/weights"}},
        {"head": {"nodeSelector": {"example.com/" + 63 * "a": 63 * "b", "empty": "", "Pool_1.a": 4}}},
        {"head": {"tolerations": [{"operator": "Exists"}, {"key": "example.com/Pool"}, {"key": "a", "value": ""}]}},
        {"head": {"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}]}},
        {"annotations": {"Example.com/team": "any text: at all"}},
        {"workerGroups": {"gpu": {"gpu": {"resource": "nvidia.com/mig-1g.5gb", "product": "NVIDIA-H100-80GB-HBM3"}}}},
        {"workerGroups": {"gpu": {"gpu": {"vendor": "intel", "product": "Max_1550"}, "image": XPU}}},
        {"workerGroups": {"gpu": {"gpu": {"vendor": "amd", "product": ""}, "image": UNNAMED}}},
        {
            "workerGroups": {
                "spare": {"gpu": {"count": 0}, "resources": {"limits": {"cpu": 8, "memory": "48Gi"}}, "image": XPU}
            }
        },
        {"imagePullSecrets": [{"name": "registry.example"}, {"name": "1st"}]},
        {"networkPolicy": {"allowedGateways": {"gateway": {"namespace": "1st"}}}},
    ],
)
def test_good_values_are_accepted(good):
    assert CHART.broken(good) == ""


@pytest.mark.parametrize(
    ("kubernetes", "is_accepted"),
    [("1.34.9+k3s1", False), ("1.34.4-eks-1234567", False), ("1.35.0-gke.100", True), ("1.36.0", True)],
)
def test_images_with_weights_need_the_version_with_image_volumes(kubernetes, is_accepted):
    (bad,) = CHART.rules["model-image-kubernetes"].bad
    options = ("--kube-version", kubernetes)
    assert CHART.broken(bad, options) == ("" if is_accepted else "model-image-kubernetes")


@pytest.mark.parametrize("helm", HELMS)
def test_both_helms_give_the_same_message(helm):
    problem = CHART.refused("auth-reason", {"auth": {"mode": "disabled"}}, helm)
    assert problem.rule == "auth-reason"
    assert problem.fix == 'auth: {mode: disabled, reason: "NetworkPolicies of the cluster isolate the dashboard"}'


def test_message_names_key_and_value_and_fix_is_nested():
    problem = CHART.refused("worker-group-unknown", CHART.rules["worker-group-unknown"].bad[0])
    path = "serve.applications.chat.models.llama-8b"
    assert problem.message == f"{path}: there is no worker group gpus; the groups are: gpu"
    assert problem.fix == "workerGroups: {gpus: {resources: {limits: {cpu: 8, memory: 64Gi}}}}"


def test_fix_quotes_names_that_yaml_would_read_as_numbers():
    model = {**CHART.smallest()["serve"]["applications"]["chat"]["models"]["llama-8b"], "maxOngoingRequests": 1}
    overlay = {"serve": {"applications": {"chat": {"models": {"1e3": model, "llama-8b": None}}}}}
    problem = CHART.refused("ongoing-bounds", overlay)
    assert list(yaml.safe_load(problem.fix)["serve"]["applications"]["chat"]["models"]) == ["1e3"]
