"""Written values: they contain what differs from the chart's defaults, and Helm reads the same values."""

from pathlib import Path
from typing import Any

import pytest

from charts.kit import example, only
from rayhelm.deploy.charts.helm import template
from rayhelm.deploy.values.common.network import Dns, Peer
from rayhelm.deploy.values.emit import dump_yaml, select_changed
from rayhelm.deploy.values.gateway import GatewayValues
from rayhelm.deploy.values.gateway.network import AllowedClient, NetworkPolicy
from rayhelm.deploy.values.ray_service.cluster import GcsFaultTolerance, SecretKeyRef


def gateway(policy: NetworkPolicy) -> dict[str, Any]:
    values = GatewayValues.model_validate(example("gateway/minimal"))
    return select_changed(values.model_copy(update={"network_policy": policy}))


def test_default_values_are_not_written() -> None:
    assert "networkPolicy" not in gateway(NetworkPolicy())
    assert select_changed(NetworkPolicy(allowed_clients={"apps": AllowedClient(namespace="apps")})) == {
        "allowedClients": {"apps": {"namespace": "apps"}}
    }


def test_empty_peer_is_written_when_the_default_has_one() -> None:
    """A default peer is empty, but the chart's Prometheus peer is not: a null removes its namespace."""
    values = gateway(NetworkPolicy(prometheus=Peer()))
    assert values["networkPolicy"] == {"prometheus": {"namespace": None}}
    (rule,) = only(template("gateway", "gateway", "gateway", values), "NetworkPolicy")["spec"]["ingress"] or [None]
    assert rule is None


def test_default_label_is_removed_when_values_lack_it() -> None:
    values = gateway(NetworkPolicy(dns=Dns(peer=Peer(namespace="dns"))))
    assert values["networkPolicy"] == {"dns": {"peer": {"namespace": "dns", "podLabels": {"k8s-app": None}}}}
    policy = only(template("gateway", "gateway", "gateway", values), "NetworkPolicy")["spec"]
    assert policy["egress"][0]["to"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "dns"}}}]


def test_value_equal_to_another_default_is_written() -> None:
    written = select_changed(
        GcsFaultTolerance(enabled=True, password_secret=SecretKeyRef(name="redis", key="password"))
    )
    assert written["passwordSecret"] == {"name": "redis", "key": "password"}


@pytest.mark.parametrize("text", ["y", "N", "no", "1e3", ".5E-7", "0o17", "0x1f", "1_000", "1:30", "2026-01-01", "~"])
def test_strings_stay_strings_for_helm(text: str, tmp_path: Path) -> None:
    """Helm's parser reads more words as numbers and booleans than Python's."""
    values = GatewayValues.model_validate(example("gateway/minimal")).model_copy(
        update={"labels": {"example.com/a": text}}
    )
    file = tmp_path / "values.yaml"
    file.write_text(dump_yaml(values, "Written by a test."))
    labels = only(template("gateway", "gateway", "gateway", [file]), "Deployment")["metadata"]["labels"]
    assert labels["example.com/a"] == text
