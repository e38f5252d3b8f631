"""Values as they are written: what differs from what the chart has, and Helm makes the same values of it."""

from pathlib import Path
from typing import Any

import pytest

from charts.kit import example, only
from rayhelm.charts.helm import template
from rayhelm.values.common.network import Dns, Peer
from rayhelm.values.emit import dump_yaml, select_changed
from rayhelm.values.gateway import GatewayValues
from rayhelm.values.gateway.network import AllowedClient, NetworkPolicy
from rayhelm.values.ray_service.cluster import GcsFaultTolerance, SecretKeyRef


def gateway(policy: NetworkPolicy) -> dict[str, Any]:
    values = GatewayValues.model_validate(example("gateway/minimal"))
    return select_changed(values.model_copy(update={"network_policy": policy}))


def test_what_is_as_the_chart_has_it_is_not_written() -> None:
    assert "networkPolicy" not in gateway(NetworkPolicy())
    assert select_changed(NetworkPolicy(allowed_clients={"apps": AllowedClient(namespace="apps")})) == {
        "allowedClients": {"apps": {"namespace": "apps"}}
    }


def test_nobody_is_written_where_the_chart_has_somebody() -> None:
    """A peer is nobody by its type, and Prometheus somebody by the chart's values: left out, it would stay somebody."""
    values = gateway(NetworkPolicy(prometheus=Peer()))
    assert values["networkPolicy"] == {"prometheus": {"namespace": ""}}
    (rule,) = only(template("gateway", "gateway", "gateway", values), "NetworkPolicy")["spec"]["ingress"] or [None]
    assert rule is None


def test_a_label_that_the_chart_has_and_the_values_have_not_is_taken_out() -> None:
    values = gateway(NetworkPolicy(dns=Dns(peer=Peer(namespace="dns"))))
    assert values["networkPolicy"] == {"dns": {"peer": {"namespace": "dns", "podLabels": {"k8s-app": None}}}}
    policy = only(template("gateway", "gateway", "gateway", values), "NetworkPolicy")["spec"]
    assert policy["egress"][0]["to"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "dns"}}}]


def test_a_key_is_written_that_only_the_chart_s_own_default_is_like() -> None:
    written = select_changed(
        GcsFaultTolerance(enabled=True, password_secret=SecretKeyRef(name="redis", key="password"))
    )
    assert written["passwordSecret"] == {"name": "redis", "key": "password"}


@pytest.mark.parametrize("text", ["y", "N", "no", "1e3", ".5E-7", "0o17", "0x1f", "1_000", "1:30", "2026-01-01", "~"])
def test_text_is_text_to_helm(text: str, tmp_path: Path) -> None:
    """Helm's parser takes more words for numbers and answers than Python's."""
    values = GatewayValues.model_validate(example("gateway/minimal")).model_copy(
        update={"labels": {"example.com/a": text}}
    )
    file = tmp_path / "values.yaml"
    file.write_text(dump_yaml(values, "Written by a test."))
    labels = only(template("gateway", "gateway", "gateway", [file]), "Deployment")["metadata"]["labels"]
    assert labels["example.com/a"] == text
