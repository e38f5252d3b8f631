"""Objects that run the doctor inside the cluster: its account, the fleet file, a Deployment and its scraping."""

from pathlib import Path
from typing import Any

from rayhelm.doctor.access import ACCOUNT, build_objects
from rayhelm.errors import UsageError
from rayhelm.render.files import Rendered
from rayhelm.spec.measurements import KEY

__all__ = ["PORT", "build_deployment"]

PORT = 9111
_LABELS = {"app.kubernetes.io/name": ACCOUNT, "app.kubernetes.io/part-of": "rayhelm"}

_SCRAPED = {"prometheus.io/scrape": "true", "prometheus.io/port": str(PORT)}
"""For a Prometheus that finds pods by annotations; the operator's does not look at them."""


def build_deployment(rendered: Rendered, region: str, image: str, namespace: str = "rayhelm-system") -> str:
    """Return the objects as YAML. The pod meets Pod Security `restricted`."""
    import yaml

    metadata = {"name": ACCOUNT, "namespace": namespace, "labels": _LABELS}
    objects: list[dict[str, Any]] = [
        *build_objects(rendered, region, namespace),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": _read_files(rendered)},
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {
                "replicas": 1,
                # Two processes would report every finding twice.
                "strategy": {"type": "Recreate"},
                "selector": {"matchLabels": {"app.kubernetes.io/name": ACCOUNT}},
                "template": {
                    "metadata": {"labels": _LABELS, "annotations": _SCRAPED},
                    "spec": _build_pod(rendered, region, image),
                },
            },
        },
    ]
    settings = rendered.loaded.fleet.clusters[region].prometheus
    if settings and settings.scraping == "PodMonitor":
        objects.append(
            {
                "apiVersion": "monitoring.coreos.com/v1",
                "kind": "PodMonitor",
                "metadata": {**metadata, "labels": {**_LABELS, **settings.scrape_labels}},
                "spec": {
                    "selector": {"matchLabels": {"app.kubernetes.io/name": ACCOUNT}},
                    "podMetricsEndpoints": [{"port": "metrics"}],
                },
            }
        )
    dumped: str = yaml.safe_dump_all(objects, sort_keys=False, width=120)
    return dumped.strip()


def _read_files(rendered: Rendered) -> dict[str, str]:
    """Return the fleet file, and the measurements that it names."""
    file = Path(rendered.loaded.document.file)
    found = {"fleet.yaml": file.read_text(encoding="utf-8")}
    if name := rendered.loaded.fleet.measurements:
        found[KEY] = (file.parent / name).read_text(encoding="utf-8")
    return found


def _place_measurements(rendered: Rendered) -> dict[str, Any]:
    """Return where the files are in the volume: the measurements at the path that the fleet file names."""
    name = rendered.loaded.fleet.measurements
    if not name:
        return {}
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise UsageError(
            f"measurements: {name} is not below the folder of the fleet file; the pod cannot have it there"
        )
    return {"items": [{"key": "fleet.yaml", "path": "fleet.yaml"}, {"key": KEY, "path": name}]}


def _build_pod(rendered: Rendered, region: str, image: str) -> dict[str, Any]:
    settings = rendered.loaded.fleet.clusters[region].prometheus
    command = ["rayhelm", "doctor", "/etc/rayhelm/fleet.yaml", f"--cluster={region}", f"--serve={PORT}"]
    if settings and settings.url:
        command.append(f"--prometheus={settings.url}")
    return {
        "serviceAccountName": ACCOUNT,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "doctor",
                "image": image,
                "command": command,
                "env": [{"name": "HOME", "value": "/tmp"}],
                "ports": [{"name": "metrics", "containerPort": PORT}],
                "readinessProbe": {"httpGet": {"path": "/metrics", "port": "metrics"}},
                "resources": {"requests": {"cpu": "50m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volumeMounts": [
                    {"name": "fleet", "mountPath": "/etc/rayhelm", "readOnly": True},
                    {"name": "tmp", "mountPath": "/tmp"},
                ],
            }
        ],
        "volumes": [
            {"name": "fleet", "configMap": {"name": ACCOUNT, **_place_measurements(rendered)}},
            {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
        ],
    }
