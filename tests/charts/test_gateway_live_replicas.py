"""`replicas` of a gateway with an autoscaler, by what Helm finds in the cluster. A small server has live objects."""

import http.server
import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from charts.kit import HELMS, Object, parsed
from rayhelm.deploy.charts.helm import charts_dir

VALUES = Path(__file__).parent / "values/gateway/minimal.yaml"
RELEASE = {"name": "gateway", "namespace": "models"}
APPS, SCALING = "/apis/apps/v1", "/apis/autoscaling/v2"
DEPLOYMENT = f"{APPS}/namespaces/models/deployments/gateway"
SCALERS = {"HPA": f"{SCALING}/namespaces/models/horizontalpodautoscalers/gateway"}
SCALERS["KEDA"] = SCALERS["HPA"].replace("/gateway", "/keda-hpa-gateway")
KINDS = {
    "v1": ["ConfigMap", "Service", "ServiceAccount"],
    "apps/v1": ["Deployment"],
    "autoscaling/v2": ["HorizontalPodAutoscaler"],
    "networking.k8s.io/v1": ["NetworkPolicy"],
    "policy/v1": ["PodDisruptionBudget"],
}
"""By API version, what the chart renders: Helm 4 asks for all of them."""


def discovery() -> dict[str, Object]:
    found: dict[str, Object] = {
        "/version": {"major": "1", "minor": "36", "gitVersion": "v1.36.0"},
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
    }
    groups = []
    for version, kinds in KINDS.items():
        group, _, name = version.rpartition("/")
        resources = [{"name": f"{kind.lower()}s", "kind": kind, "namespaced": True, "verbs": ["get"]} for kind in kinds]
        listed = {"kind": "APIResourceList", "groupVersion": version, "resources": resources}
        found[f"/apis/{version}" if group else "/api/v1"] = listed
        if group:
            groups.append({"name": group, "versions": [{"groupVersion": version, "version": name}]})
    return {**found, "/apis": {"kind": "APIGroupList", "groups": groups}}


@contextmanager
def cluster(folder: Path, live: dict[str, Object]) -> Iterator[Path]:
    """Serve the objects by path. Yields the kubeconfig."""
    served = {**discovery(), **live}
    missing = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = served.get(self.path.partition("?")[0])
            body = json.dumps(found or missing).encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        named: dict[str, Any] = {
            "clusters": [{"name": "c", "cluster": {"server": address}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "current-context": "c", **named}))
        yield kubeconfig
        server.shutdown()


def released() -> Object:
    """Metadata of an object of the release."""
    annotations = {f"meta.helm.sh/release-{key}": value for key, value in RELEASE.items()}
    return {**RELEASE, "labels": {"app.kubernetes.io/managed-by": "Helm"}, "annotations": annotations}


def deployment(owner: tuple[str, str, str] = ("helm", "Update", ""), replicas: int = 4, kept: bool = False) -> Object:
    """A live one whose `replicas` an owner wrote: manager, operation, subresource."""
    manager, operation, subresource = owner
    owned = {"f:spec": {"f:replicas": {}}}
    fields = [{"manager": manager, "operation": operation, "subresource": subresource, "fieldsV1": owned}]
    if subresource:
        fields.append({"manager": "helm", "operation": "Apply", "fieldsV1": {"f:spec": {"f:template": {}}}})
    metadata = {**released(), "managedFields": fields}
    if kept:
        metadata["annotations"]["rayhelm.dev/replicas"] = "live"
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"replicas": replicas}}


def autoscaler(kind: str) -> dict[str, Object]:
    return {SCALERS[kind]: {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": released()}}


SCALED = ("kube-controller-manager", "Update", "scale")
APPLIED = ("helm", "Apply", "")


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize(
    ("live", "replicas"),
    [
        ({}, None),
        ({DEPLOYMENT: deployment()}, 4),
        ({DEPLOYMENT: deployment(replicas=0)}, 1),
        ({DEPLOYMENT: deployment(), **autoscaler("HPA")}, None),
        ({DEPLOYMENT: deployment(), **autoscaler("KEDA")}, None),
        ({DEPLOYMENT: deployment(kept=True, replicas=5), **autoscaler("HPA")}, 5),
        ({DEPLOYMENT: deployment(APPLIED), **autoscaler("HPA")}, 4),
        ({DEPLOYMENT: deployment(SCALED, kept=True), **autoscaler("HPA")}, None),
    ],
    ids=["install", "fixed", "none", "hpa", "keda", "kept", "applied", "scaled-after-apply"],
)
def test_replicas_stay_in_the_manifest_while_helm_would_remove_them(
    tmp_path: Path, helm: str, live: dict[str, Object], replicas: int | None
) -> None:
    with cluster(tmp_path, live) as kubeconfig:
        chart = [str(charts_dir() / "gateway"), f"--values={VALUES}", "--show-only=templates/pod/deployment.yaml"]
        where = ["--namespace=models", f"--kubeconfig={kubeconfig}", "--dry-run=server", "--disable-openapi-validation"]
        command = [str(HELMS[helm]), "template", "gateway", *chart, *where]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (found,) = parsed(done.stdout)
    assert found["spec"].get("replicas") == replicas
    kept = "rayhelm.dev/replicas" in found["metadata"].get("annotations", {})
    assert kept is (replicas is not None)
