"""What the chart platform makes of metrics: rules, an adapter, what scales, and what is scraped."""

import re
from typing import Any

import pytest
import yaml

from charts import kit
from charts.kit import kinds, only
from charts.oracles import validator_of
from charts.pod_security import violations
from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.errors import MissingError
from rayhelm.facts.metrics import load_metrics
from rayhelm.facts.scaling import load_scaling_rules
from testbed.tools.crds import crd_files

Object = dict[str, Any]

PORT_NAME = "__meta_kubernetes_pod_container_port_name"
SERVICE = {"services": {"chat": {"namespace": "search"}}}
GATEWAY = {"gateways": {"gateway": {"namespace": "gateway"}}}
MANAGED = {
    "prometheusUrl": "http://prometheus:9090",
    "adapter": {"kind": "Managed", "tls": {"skipVerifyReason": "the network is encrypted"}},
}
SCALER = {"target": {"name": "edge"}, "service": "chat", "metric": "rayhelm_queue_length", "maxReplicas": 4}


def rendered(*parts: Object, base: str = "platform/minimal") -> list[Object]:
    overlay: Object = {}
    for part in parts:
        overlay = kit.over(overlay, part)
    overlay = {"metrics": overlay, "networkPolicy": {"apiServer": {"cidrs": ["10.0.0.1/32"]}}}
    return kit.rendered(overlay, chart="platform", base=base, release="platform", namespace="rayhelm-system")


def rules(*parts: Object) -> dict[str, Object]:
    """Rules of the adapter by the name of their number."""
    config = yaml.safe_load(only(rendered(*parts), "ConfigMap", "platform-metrics")["data"]["config.yaml"])
    return {rule["name"]["as"]: rule for rule in config["rules"] + config["externalRules"]}


def pod(deployment: Object) -> Object:
    template = deployment["spec"]["template"]
    about = {"name": "x", **template["metadata"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": template["spec"]}


def made(*parts: Object) -> set[str]:
    """Kinds that these values add to those that are always there."""
    return kinds(rendered(*parts)) - kinds(rendered())


# -- rules -----------------------------------------------------------------------------------------------------------


def test_no_rules_are_rendered_when_nothing_is_scraped() -> None:
    assert not {"ConfigMap", "Deployment", "APIService", "HorizontalPodAutoscaler"} & kinds(rendered())


def test_rules_cover_what_is_scraped() -> None:
    of_services = {name for name in load_scaling_rules().rules if name.startswith("rayhelm_")}
    assert set(rules(SERVICE)) == of_services
    assert set(rules(GATEWAY)) == {"haproxy_requests_in_flight"}
    assert set(rules(SERVICE, GATEWAY)) == set(load_scaling_rules().rules)


def test_gateway_hpa_reads_an_existing_metric() -> None:
    hpa = only(
        kit.rendered({"autoscaling": {"targetRequestsInFlight": 50}}, chart="gateway", base="gateway/minimal"),
        "HorizontalPodAutoscaler",
    )
    named = [metric["pods"]["metric"]["name"] for metric in hpa["spec"]["metrics"] if metric["type"] == "Pods"]
    assert named == [name for name, rule in load_scaling_rules().rules.items() if name in rules(GATEWAY)] != []


def test_keda_queries_the_same_requests_in_flight_of_the_gateway() -> None:
    scaler = only(kit.rendered(chart="gateway", base="gateway/keda", release="gateway"), "ScaledObject")
    (trigger,) = scaler["spec"]["triggers"]
    ours = rules(GATEWAY)["haproxy_requests_in_flight"]["metricsQuery"]
    of_pods = re.sub(r"^sum by \(<<.GroupBy>>\) ", "sum", ours)
    theirs = re.sub(
        r'namespace="[^"]*",rayhelm_dev_gateway="[^"]*"', "<<.LabelMatchers>>", trigger["metadata"]["query"]
    )
    assert theirs == of_pods


def test_metric_is_discovered_by_a_series_that_stays_when_idle() -> None:
    for rule in rules(SERVICE, GATEWAY).values():
        assert load_metrics()[rule["seriesQuery"].partition("{")[0]].availability == "always"


def test_only_a_series_that_vanishes_has_a_default_of_zero() -> None:
    own = {
        "vanishes": {"series": ["ray_vllm_num_requests_running"], "aggregate": "Sum"},
        "stays": {"series": ["ray_serve_autoscaling_total_requests"], "aggregate": "Sum"},
    }
    found = rules(SERVICE, {"rules": own})
    assert " or 0 * " in found["vanishes"]["metricsQuery"]
    assert " or " not in found["stays"]["metricsQuery"]


def test_every_term_of_a_sum_has_a_default() -> None:
    assert rules(SERVICE)["rayhelm_queue_length"]["metricsQuery"].count(" or 0 * ") == 2


def test_window_and_quantile_come_from_the_values() -> None:
    query = rules(SERVICE, {"windowSeconds": 300, "ttftQuantile": 0.5})["rayhelm_ttft_seconds"]["metricsQuery"]
    assert "histogram_quantile(0.5," in query
    assert "[300s]" in query
    assert "offset 300s" in query


def test_custom_rule_can_replace_a_default_rule() -> None:
    own = {"rules": {"rayhelm_queue_length": {"series": ["ray_vllm_num_requests_waiting"], "aggregate": "Max"}}}
    assert rules(SERVICE, own)["rayhelm_queue_length"]["metricsQuery"].startswith("max by ")


def test_pods_are_selected_by_namespace_and_name_and_services_by_namespace() -> None:
    found = rules(SERVICE, GATEWAY)
    overrides = {name: set(rule["resources"]["overrides"]) for name, rule in found.items()}
    assert overrides.pop("haproxy_requests_in_flight") == {"namespace", "pod"}
    assert set(map(tuple, overrides.values())) == {("namespace",)}


def test_readme_lists_every_metric_that_is_always_there() -> None:
    readme = (charts_dir() / "platform/README.md").read_text()
    listed = re.findall(r"^\| `(\w+)` \| a ", readme, re.MULTILINE)
    assert set(listed) == set(load_scaling_rules().rules)


# -- adapter ---------------------------------------------------------------------------------------------------------


def test_existing_adapter_gets_only_rules() -> None:
    assert made(GATEWAY) == {"ConfigMap"}
    moved = only(rendered(GATEWAY, {"adapter": {"namespace": "monitoring"}}), "ConfigMap")
    assert moved["metadata"]["namespace"] == "monitoring"


def test_existing_adapter_gets_the_same_rules_as_values() -> None:
    """It registers an API only where its own values have rules for it."""
    data = only(rendered(GATEWAY, SERVICE), "ConfigMap", "platform-metrics")["data"]
    config, values = yaml.safe_load(data["config.yaml"]), yaml.safe_load(data["values.yaml"])
    assert values == {
        "rules": {"default": False, "custom": config["rules"], "external": config["externalRules"]},
    }
    managed = only(rendered(GATEWAY, SERVICE, MANAGED), "ConfigMap", "platform-metrics")
    assert set(managed["data"]) == {"config.yaml"}


def test_no_rules_are_rendered_without_an_adapter() -> None:
    assert made(GATEWAY, {"adapter": {"kind": "None"}}) == set()


def test_managed_adapter_passes_restricted() -> None:
    found = pod(only(rendered(GATEWAY, MANAGED), "Deployment"))
    assert violations(found) == []
    (container,) = found["spec"]["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"]


def test_managed_adapter_restarts_when_its_rules_change() -> None:
    def checksum(*parts: Object) -> str:
        found = only(rendered(GATEWAY, MANAGED, *parts), "Deployment")
        return str(found["spec"]["template"]["metadata"]["annotations"]["checksum/config"])

    assert checksum() != checksum(SERVICE)
    assert checksum() == checksum({"adapter": {"replicas": 5}})


def test_managed_adapter_can_read_only_pods() -> None:
    role = only(rendered(GATEWAY, MANAGED), "ClusterRole")
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["pods", "namespaces"], "verbs": ["get", "list", "watch"]}
    ]


@pytest.mark.parametrize(
    ("parts", "groups"),
    [
        ((GATEWAY,), {"custom.metrics.k8s.io"}),
        ((SERVICE,), {"external.metrics.k8s.io"}),
        ((GATEWAY, SERVICE), {"custom.metrics.k8s.io", "external.metrics.k8s.io"}),
        ((GATEWAY, SERVICE, {"adapter": {"externalApi": False}}), {"custom.metrics.k8s.io"}),
    ],
)
def test_managed_adapter_serves_the_apis_of_its_rules(parts: Any, groups: set[str]) -> None:
    found = [item for item in rendered(MANAGED, *parts) if item["kind"] == "APIService"]
    assert {item["spec"]["group"] for item in found} == groups


def test_adapter_is_verified_when_it_has_a_ca_bundle() -> None:
    found = only(rendered(GATEWAY, MANAGED), "APIService")
    assert found["spec"]["insecureSkipTLSVerify"] is True
    tls = {"adapter": {"tls": {"secretName": "metrics-tls", "caBundle": "QUJD", "skipVerifyReason": ""}}}
    found = only(rendered(GATEWAY, MANAGED, tls), "APIService")
    assert found["spec"]["caBundle"] == "QUJD"
    assert "insecureSkipTLSVerify" not in found["spec"]
    (container,) = only(rendered(GATEWAY, MANAGED, tls), "Deployment")["spec"]["template"]["spec"]["containers"]
    assert "--tls-cert-file=/var/run/serving-cert/tls.crt" in container["args"]
    assert not [argument for argument in container["args"] if "--cert-dir" in argument]


# -- autoscalers -----------------------------------------------------------------------------------------------------


def test_autoscaler_is_in_the_namespace_of_its_service() -> None:
    found = only(rendered(SERVICE, {"autoscalers": {"edge": {**SCALER, "averageValue": 8}}}), "HorizontalPodAutoscaler")
    assert found["metadata"]["namespace"] == "search"
    (metric,) = found["spec"]["metrics"]
    assert metric["external"] == {
        "metric": {"name": "rayhelm_queue_length", "selector": {"matchLabels": {"rayhelm_dev_service": "chat"}}},
        "target": {"type": "AverageValue", "averageValue": "8"},
    }


def test_keda_and_the_adapter_use_the_same_query() -> None:
    keda = {"kind": "KEDA", "averageValue": 8}
    parts = (SERVICE, {"prometheusUrl": "http://prometheus:9090", "autoscalers": {"edge": {**SCALER, **keda}}})
    (trigger,) = only(rendered(*parts), "ScaledObject")["spec"]["triggers"]
    ours = rules(SERVICE)["rayhelm_queue_length"]["metricsQuery"]
    wanted = ours.replace("<<.LabelMatchers>>", 'namespace="search",rayhelm_dev_service="chat"')
    assert trigger["metadata"]["query"] == wanted
    assert trigger["metricType"] == "AverageValue"
    assert trigger["metadata"]["ignoreNullValues"] == "false", "it would take a Prometheus that is lost for no load"


def test_scaled_object_matches_the_crd_of_keda() -> None:
    try:
        (file,) = [path for path in crd_files("keda") if path.name == "keda.sh_scaledobjects.yaml"]
    except MissingError as error:
        pytest.skip(f"{error.what}: `make tools` fetches them")
    found = only(rendered(base="platform/everything"), "ScaledObject")
    validator = validator_of(file, "v1alpha1")
    assert [error.message for error in validator.iter_errors(found)] == []
    found["spec"]["surprise"] = 1
    assert [*validator.iter_errors(found)]


# -- scraping --------------------------------------------------------------------------------------------------------


def scrapes(*parts: Object) -> dict[str, Object]:
    config = only(
        rendered({"scraping": {"kind": "ConfigMap", "kuberayNamespace": ""}}, *parts), "ConfigMap", "platform-scrape"
    )["data"]["rayhelm.yaml"]
    return {job["job_name"]: job for job in yaml.safe_load(config)["scrape_configs"]}


def test_only_named_releases_are_scraped() -> None:
    assert set(scrapes(SERVICE)) == {"rayhelm-services"}
    assert set(scrapes(SERVICE, GATEWAY)) == {"rayhelm-services", "rayhelm-gateways", "rayhelm-gateway-tenants"}
    (discovery,) = scrapes(SERVICE)["rayhelm-services"]["kubernetes_sd_configs"]
    assert discovery == {"role": "pod", "namespaces": {"names": ["search"]}}


def test_scraped_series_have_the_labels_that_rules_and_pod_monitors_name() -> None:
    """The Prometheus operator puts an underscore where a label's name has what Prometheus does not take."""
    for chart, base, job in (
        ("gateway", "gateway/everything", "rayhelm-gateways"),
        ("ray-service", "everything", "rayhelm-services"),
    ):
        monitor = only(kit.rendered(chart=chart, base=base), "PodMonitor")
        labels = {re.sub(r"[^a-zA-Z0-9_]", "_", label) for label in monitor["spec"]["podTargetLabels"]}
        ours = scrapes(SERVICE, GATEWAY)[job]["relabel_configs"]
        (mapped,) = [rule["regex"] for rule in ours if rule.get("action") == "labelmap"]
        assert all(re.fullmatch(mapped, f"__meta_kubernetes_pod_label_{label}") for label in labels)
        kept = [
            rule["regex"] for rule in ours if (rule.get("action"), rule.get("source_labels")) == ("keep", [PORT_NAME])
        ]
        ports = dict.fromkeys(end["port"] for end in monitor["spec"]["podMetricsEndpoints"])
        assert kept == ["|".join(ports)]
        of_rules = {label for scope in load_scaling_rules().scopes.values() for label in scope.by}
        assert {f"rayhelm_dev_{job.removeprefix('rayhelm-').removesuffix('s')}"} & of_rules <= labels
