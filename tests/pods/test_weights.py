"""Weights: the Job fills a volume from a mirror of the hub, and servers that reach no hub read them there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pods.kit import hub
from pods.kit.cluster import PATIENCE, Cluster, pod
from pods.kit.service import Service, given, serving, values
from rayhelm.errors import RayhelmError
from rayhelm.processes import wait_until

NAME, SOURCE = "weighs", "tiny/llama"
FIRST, SECOND = "1" * 40, "2" * 40
"""Revisions."""
HUB, MIRROR, PORT = "live-hub", "mirror", 8080
FILES = {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
VOLUME = "rayhelm-weights"


def of_revision(revision: str) -> dict[str, Any]:
    model = {"source": SOURCE, "revision": revision, "engine": {"loadFormat": "auto"}}
    return {"serve": {"applications": {"tiny": {"models": {"tiny": model}}}}}


OVERLAY = {
    **of_revision(FIRST),
    "weights": {
        "enabled": True,
        "claim": {"size": "1Gi"},
        "download": {
            "endpoint": f"http://{MIRROR}.{HUB}.svc.cluster.local",
            "resources": {"limits": {"cpu": "200m", "memory": "512Mi"}},
        },
    },
    "networkPolicy": {
        "hub": {"peer": {"namespace": HUB, "podLabels": {"app": MIRROR}}, "cidrs": [], "ports": [PORT]},
    },
}

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def mirror(cluster: Cluster) -> Iterator[str]:
    """Address of its pod."""
    with cluster.namespace(HUB):
        wanted = pod(HUB, MIRROR, image=given(cluster), app=MIRROR)
        (container,) = wanted["spec"]["containers"]
        container |= {
            "command": ["python", "-u", "/program/hub.py", "LlamaForCausalLM", "/tmp/repository", str(PORT)],
            "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
            "volumeMounts": [{"name": "program", "mountPath": "/program"}],
        }
        wanted["spec"]["volumes"] = [{"name": "program", "configMap": {"name": MIRROR}}]
        meta = {"name": MIRROR, "namespace": HUB}
        program = {"hub.py": Path(hub.__file__).read_text()}
        service = {"selector": {"app": MIRROR}, "ports": [{"port": 80, "targetPort": PORT}]}
        cluster.apply(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": program},
            {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": service},
            wanted,
        )
        cluster.kubectl("wait", f"pod/{MIRROR}", f"--namespace={HUB}", "--for=condition=Ready", "--timeout=300s")
        yield str(cluster.get(HUB, "pod", MIRROR)["status"]["podIP"])


@pytest.fixture(scope="module")
def volume(cluster: Cluster) -> Iterator[Path]:
    """A folder of the node for any claim; all users may write, because pods have no name there."""
    folder = cluster.node.home.lib / VOLUME
    folder.mkdir()
    folder.chmod(0o777)
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteMany"],
        "hostPath": {"path": f"/var/lib/{VOLUME}", "type": "Directory"},
    }
    cluster.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": VOLUME}, "spec": spec})
    try:
        yield folder
    finally:
        cluster.kubectl("delete", "persistentvolume", VOLUME, "--wait=false")
        for path in sorted(folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        folder.rmdir()


@pytest.fixture(scope="module")
def service(cluster: Cluster, mirror: str, volume: Path) -> Iterator[Service]:
    with serving(cluster, NAME, values(cluster, OVERLAY)) as found:
        found.session.wait_until_ready(found.release)
        yield found


def test_job_puts_each_file_where_its_source_and_revision_say(service: Service, volume: Path) -> None:
    (job,) = service.cluster.get(service.release.namespace, "jobs")["items"]
    assert job["status"]["succeeded"] == 1
    assert files(volume, FIRST) == FILES
    there = service.runs(worker(service), f"cd /models/{SOURCE}/{FIRST} && sha256sum model.safetensors", "ray-worker")
    asked = service.session.kubectl(
        "exec", MIRROR, f"--namespace={HUB}", "--", "sha256sum", "/tmp/repository/model.safetensors"
    )
    assert there.split()[0] == asked.split()[0]


def test_servers_are_offline_cannot_change_what_they_read_and_answer(service: Service) -> None:
    tried = service.runs(worker(service), "echo $HF_HUB_OFFLINE; touch /models/mine 2>&1 || true", "ray-worker")
    assert tried.startswith("1\n")
    assert "Read-only file system" in tried
    assert answers(service)


def test_job_reaches_the_mirror_and_servers_do_not(service: Service, cluster: Cluster, mirror: str) -> None:
    namespace = service.release.namespace
    labels = {"rayhelm.dev/service": NAME, "rayhelm.dev/role": "download"}
    cluster.start(namespace, "as-the-job", image=given(cluster), command=["sleep", "3600"], **labels)
    wait_until(lambda: reaches(service, "as-the-job", mirror) or None, what="a way to the mirror", timeout=PATIENCE)
    for pod_ in (*service.pods("worker"), *service.pods("head")):
        assert not reaches(service, pod_["metadata"]["name"], mirror)
    cluster.kubectl("delete", "pod", "as-the-job", f"--namespace={namespace}")


def test_upgrade_without_new_weights_does_not_use_the_mirror(service: Service) -> None:
    before = asked(service)
    assert before
    change = {"serve": {"applications": {"tiny": {"models": {"tiny": {"maxQueuedRequests": 100}}}}}}
    service.upgrade(change)
    service.session.wait_until_reconciled(service.release)
    assert asked(service) == before


def test_new_revision_is_downloaded_before_servers_get_it(service: Service, volume: Path) -> None:
    changed = service.upgrade(of_revision(SECOND))
    assert files(volume, SECOND) == FILES, "helm returns only then"
    changed.session.wait_until_reconciled(changed.release)
    assert answers(changed)
    assert [line for line in asked(service) if SECOND in line]


def test_later_worker_needs_no_mirror(service: Service, cluster: Cluster) -> None:
    before = worker(service)
    cluster.kubectl("delete", "pod", MIRROR, f"--namespace={HUB}")
    cluster.kubectl("delete", "pod", before, f"--namespace={service.release.namespace}")
    wait_until(lambda: answers(service) or None, what="another worker's answer", timeout=600, poll=5)
    assert worker(service) != before


def worker(service: Service) -> str:
    (found,) = service.pods("worker")
    return str(found["metadata"]["name"])


def reaches(service: Service, name: str, address: str) -> bool:
    """Whether a pod gets a TCP connection to the mirror."""
    connect = f"timeout 5 bash -c '</dev/tcp/{address}/{PORT}' 2>/dev/null && echo open || echo closed"
    return service.runs(name, connect).strip() == "open"


def files(volume: Path, revision: str) -> set[str]:
    return {path.name for path in (volume / SOURCE / revision).iterdir() if path.is_file()}


def asked(service: Service) -> list[str]:
    """What was asked of the mirror, line by line."""
    return [
        line for line in service.session.kubectl("logs", MIRROR, f"--namespace={HUB}").splitlines() if SOURCE in line
    ]


def answers(service: Service) -> bool:
    """Whether each model answers whom its policies let in."""
    try:
        service.session.run_helm("test", NAME, f"--namespace={service.release.namespace}", "--timeout=2m")
    except RayhelmError:
        return False
    return True
