"""network.md, and the list of flows that it is made of. tests/network holds the list against the charts."""

from typing import Any

import pytest
from pydantic import ValidationError

from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.deploy.charts.models import CHARTS
from rayhelm.deploy.network import AllowedFlow, NetworkRelease, find_allowed_flows, load_chart_flows
from rayhelm.deploy.network.flows import ChartFlows
from rayhelm.deploy.network.table import format_flows_table
from rayhelm.deploy.render.files import build_files, render_fleet
from rayhelm.deploy.render.network_page import build_network_page
from rayhelm.deploy.render.releases import Release

VALUES = charts_dir().parent / "values"
GATEWAY = {"models": {"m": {"versions": {"stable": {"routePrefix": "/", "endpoints": {}}}}}}


def release(chart: str, values: dict[str, Any], name: str = "chat", cluster: str = "main") -> Release:
    return Release(chart, name, "models", cluster, CHARTS[chart].model_validate(values), "", "", "")


def service(**network: Any) -> Release:
    upgrade = {"strategy": "NewClusterWithIncrementalUpgrade"}  # runs the autoscaler without worker groups too
    values = {"serve": {"applications": {}}, "workerGroups": {}, "networkPolicy": network, "upgrade": upgrade}
    return release("ray-service", values)


def page(*releases: Release) -> list[str]:
    return build_network_page("acme", releases).splitlines()


def rows(*releases: Release) -> dict[str, list[str]]:
    """Cells by flow."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in page(*releases) if line.startswith("| ")]
    return {row[0]: row[1:] for row in cells if row[0] != "flow"}


def of_gateway(endpoints: dict[str, Any]) -> list[AllowedFlow]:
    model = {"versions": {"stable": {"routePrefix": "/", "endpoints": endpoints}}}
    values = CHARTS["gateway"].model_validate({"models": {"m": model}}).model_dump(by_alias=True, mode="json")
    return [
        found
        for found in find_allowed_flows(NetworkRelease("gateway", "gateway", "gateway", values))
        if found.flow == "upstream"
    ]


def test_network_page_shows_ends_ports_and_condition_of_a_flow() -> None:
    found = rows(service(apiServer={"cidrs": ["10.0.0.1/32"]}))
    assert found["operator"][:3] == [
        "KubeRay operator: `kuberay-system` (`app.kubernetes.io/component=kuberay-operator`)",
        "head",
        "TCP 8265",
    ]
    assert found["inside"][:3] == ["head, workers", "head, workers", "all"]
    assert found["dns"][1:3] == ["DNS: `kube-system` (`k8s-app=kube-dns`)", "TCP 53; UDP 53"]
    assert found["autoscaler"][1:3] == ["API server: `10.0.0.1/32`", "TCP 443, 6443"]
    assert found["autoscaler"][4] == "`autoscaler.enabled: true`"


def test_network_page_shows_the_condition_of_a_flow_that_is_not_allowed() -> None:
    lines = page(service())
    assert "redis" not in rows(service())
    (line,) = (line for line in lines if line.startswith("* redis,"))
    assert line.endswith("Condition: `gcsFaultTolerance.enabled: true`.")


def test_flow_with_an_empty_end_is_left_out() -> None:
    assert "serve" not in rows(service())
    assert "serve" in rows(service(allowedGateways={"gateway": {"namespace": "gateway"}}))
    assert "serve" not in rows(service(allowedGateways={"gateway": {"namespace": ""}}))
    assert "operator" not in rows(service(operator={"namespace": ""}))


def test_network_page_shows_excluded_addresses() -> None:
    hub = {"cidrs": ["0.0.0.0/0"], "except": ["169.254.169.254/32"]}
    assert rows(service(hub=hub))["weights"][1] == "hub: `0.0.0.0/0` without `169.254.169.254/32`"


def test_network_page_warns_of_a_release_without_policies() -> None:
    off = service(enabled=False, reason="a mesh does it")
    assert "> **Not protected:** this release has no NetworkPolicies: a mesh does it." in page(off)
    assert not rows(off)
    assert not [line for line in page(off) if "Condition:" in line]


def test_endpoints_are_one_flow_per_port() -> None:
    chat, other = {"service": "chat", "namespace": "models"}, {"host": "llm.example", "cidrs": ["10.9.0.0/16"]}
    (both,) = of_gateway({"a": chat, "b": other})
    assert len(both.targets) == 2
    assert [found.ports for found in of_gateway({"a": chat, "b": other | {"port": 9000}})] == [
        ("TCP 8000",),
        ("TCP 9000",),
    ]


def test_network_page_shows_pods_and_ports_of_an_extra_policy() -> None:
    policy = {
        "podLabels": {"app": "cache"},
        "ingress": {"from": {"web": {"namespace": "web"}}},
        "egress": {"to": {"bucket": {"cidrs": ["10.3.0.0/16"]}}, "ports": [443]},
    }
    found = rows(release("tenant", {"networkPolicy": {"extraPolicies": {"cache": policy}}}))
    assert found["extra-ingress"][:3] == [
        "allowed clients: `web`",
        "selected pods: `chat` (`app=cache`)",
        "all",
    ]
    assert found["extra-egress"][1:3] == ["allowed targets: `10.3.0.0/16`", "TCP 443"]


def test_readme_of_a_chart_shows_the_values_that_name_the_ends_of_each_flow() -> None:
    rows = {line.split(" | ")[0]: line.split(" | ")[1:] for line in format_flows_table("tenant").splitlines()}
    assert rows["| extra-ingress"][:3] == [
        "allowed clients (`networkPolicy.extraPolicies.*.ingress.from`)",
        "selected pods (`networkPolicy.extraPolicies.*.podLabels`)",
        "`networkPolicy.extraPolicies.*.ingress.ports`",
    ]
    assert rows["| egress"][2] == "`networkPolicy.egress.*.ports`"
    for chart, flows in load_chart_flows().items():
        readme = (charts_dir() / chart / "README.md").read_text()
        assert all(f"\n| {flow} | " in readme for flow in flows.flows)


def test_network_page_has_a_section_per_cluster() -> None:
    lines = page(release("tenant", {}, "a", "main"), release("tenant", {}, "b", "edge"))
    assert [line for line in lines if line.startswith("## ") and "Cluster" in line] == [
        "## Cluster `main`",
        "## Cluster `edge`",
    ]
    assert not [line for line in page(release("tenant", {})) if "Cluster" in line]


def test_network_page_has_no_rows_for_a_release_without_pods() -> None:
    assert not rows(release("platform", {}))


def test_network_page_shows_pods_of_chart_platform_in_their_namespaces() -> None:
    values = {"doctor": {"enabled": True}, "networkPolicy": {"apiServer": {"cidrs": ["10.0.0.1/32"]}}}
    found = rows(release("platform", values))
    assert found["doctor-metrics"][:3] == ["Prometheus: `monitoring`", "doctor", "TCP 9111"]
    assert found["doctor-api"][1:3] == ["API server: `10.0.0.1/32`", "TCP 443, 6443"]


@pytest.mark.parametrize("fleet", sorted(path.parent.name for path in VALUES.glob("*/fleet.yaml")))
def test_network_page_has_a_section_per_release(fleet: str) -> None:
    rendered = render_fleet(VALUES / fleet / "fleet.yaml")
    text = build_files(rendered)["network.md"]
    for release in rendered.releases:
        assert f"# {release.chart} `{release.name}`" in text


def test_flow_is_refused_when_an_end_has_no_name() -> None:
    flow = {"from": ["head"], "to": ["networkPolicy.redis"], "ports": [6379], "why": "state"}
    with pytest.raises(ValidationError, match=r"flow redis: networkPolicy[.]redis is neither in"):
        ChartFlows.model_validate({"policies": {}, "pods": {"head": "head"}, "others": {}, "flows": {"redis": flow}})


def test_flow_is_refused_when_a_value_does_not_exist() -> None:
    values = CHARTS["gateway"].model_validate(GATEWAY).model_dump(by_alias=True, mode="json")
    del values["networkPolicy"]["prometheus"]
    with pytest.raises(KeyError, match="prometheus"):
        find_allowed_flows(NetworkRelease("gateway", "gateway", "gateway", values))
