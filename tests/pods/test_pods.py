"""Real pods: they start under Pod Security `restricted`, find each other by name, and do not get out."""

import json

import httpx
import pytest

from pods.kit.cluster import PATIENCE, Cluster
from rayhelm.live.cluster.kubectl import KubectlError


def test_pod_runs_without_rights_under_a_seccomp_filter(cluster: Cluster, namespace: str) -> None:
    address = cluster.serve(namespace, "server")
    status = httpx.get(f"http://{address}:8080/shell", params={"cmd": "true"}, timeout=10, trust_env=False)
    assert status.status_code == 200
    seen = cluster.get(namespace, "pod", "server")["status"]["containerStatuses"][0]
    assert seen["ready"]
    assert seen["user"]["linux"]["uid"] == 1000


def test_pod_that_violates_restricted_is_refused(cluster: Cluster, namespace: str) -> None:
    wants = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "greedy", "namespace": namespace},
        "spec": {"hostNetwork": True, "containers": [{"name": "it", "image": "rayhelm.local/agnhost:node"}]},
    }
    with pytest.raises(KubectlError, match="violates PodSecurity"):
        cluster.apply(wants)


def test_pods_find_services_by_name_and_this_computer_finds_them_by_address(cluster: Cluster, namespace: str) -> None:
    cluster.serve(namespace, "server")
    cluster.start(namespace, "client", "pause")
    cluster.until(namespace, "client", f"server.{namespace}.svc.cluster.local:80", open=True)
    cluster.until(namespace, "client", "kubernetes.default.svc:443", open=True)
    address = cluster.get(namespace, "service", "server")["spec"]["clusterIP"]
    assert httpx.get(f"http://{address}/hostname", timeout=10, trust_env=False).text == "server"


def test_pod_reaches_no_address_and_no_name_outside(cluster: Cluster, namespace: str) -> None:
    cluster.start(namespace, "client", "pause")
    for target in ("192.0.2.1:80", "example.com:80"):
        with pytest.raises(KubectlError) as refused:
            cluster.kubectl("exec", "client", f"--namespace={namespace}", "--", "/agnhost", "connect", target)
        assert "DNS" in refused.value.said if target.startswith("example") else "no route to host" in refused.value.said


def test_memory_that_a_pod_may_not_have_ends_it(cluster: Cluster, namespace: str) -> None:
    greedy = {
        "name": "it",
        "image": "rayhelm.local/agnhost:node",
        "imagePullPolicy": "Never",
        "args": ["stress", "--mem-total=256Mi", "--mem-alloc-size=64Mi", "--mem-alloc-sleep=10ms"],
        "resources": {"limits": {"memory": "96Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    security = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
    spec = {"restartPolicy": "Never", "securityContext": security, "containers": [greedy]}
    meta = {"name": "greedy", "namespace": namespace}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
    failed = "--for=jsonpath={.status.phase}=Failed"
    cluster.kubectl("wait", "pod/greedy", f"--namespace={namespace}", failed, f"--timeout={PATIENCE:.0f}s")
    (state,) = cluster.get(namespace, "pod", "greedy")["status"]["containerStatuses"]
    assert state["state"]["terminated"]["reason"] == "OOMKilled", json.dumps(state)
