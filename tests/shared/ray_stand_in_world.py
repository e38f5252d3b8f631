"""A namespace of RayClusters and pods as the API server would show them, and a way to ask the stand-in about it."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rayhelm import processes
from testbed.ray_stand_in.app import App
from testbed.ray_stand_in.exchange import Answer, NoAnswer, Request
from testbed.ray_stand_in.objects import Cluster, Pod, Unreachable, cluster_of, pod_of

APPLICATIONS = "/api/serve/applications/"
CHAT = {"name": "chat", "route_prefix": "/", "import_path": "chat:app", "deployments": [{"name": "Model"}]}
CONFIG: dict[str, Any] = {"applications": [CHAT]}


def raycluster(name: str = "web-abcde", uid: str = "uid-web", service: str = "web", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "namespace": "models",
            "name": name,
            "uid": uid,
            "labels": {"ray.io/originated-from-cr-name": service, "ray.io/originated-from-crd": "RayService"},
        },
        "spec": {
            "headGroupSpec": {"rayStartParams": {}},
            "workerGroupSpecs": [{"groupName": "gpu", "minReplicas": 2, "replicas": 2, "numOfHosts": 1}],
            **spec,
        },
    }


def pod(uid: str, kind: str, *, ip: str, owner: str = "uid-web", **changes: Any) -> dict[str, Any]:
    start = "ray start --head  --dashboard-host=0.0.0.0  --num-cpus=2 " if kind == "head" else "ray start"
    return {
        "metadata": {
            "namespace": "models",
            "name": f"pod-{uid}",
            "uid": uid,
            "labels": {"ray.io/node-type": kind, "ray.io/group": changes.get("group", "gpu")},
            "ownerReferences": [{"uid": owner, "controller": True}],
        },
        "spec": {
            "containers": [
                {
                    "name": "ray",
                    "env": [
                        {"name": "KUBERAY_GEN_RAY_START_CMD", "value": changes.get("start", start)},
                        *changes.get("env", ()),
                    ],
                }
            ]
        },
        "status": {
            "phase": changes.get("phase", "Running"),
            "podIP": ip,
            "conditions": [{"type": "Ready", "status": changes.get("ready", "True")}],
            "containerStatuses": [{"name": "ray", "restartCount": changes.get("restarts", 0)}],
        },
    }


def head(uid: str = "head-1", ip: str = "10.0.0.1", **changes: Any) -> dict[str, Any]:
    return pod(uid, "head", ip=ip, **changes)


def workers(count: int, **changes: Any) -> list[dict[str, Any]]:
    return [pod(f"worker-{number}", "worker", ip=f"10.0.1.{number}", **changes) for number in range(count)]


class World:
    """What the API server shows, to be changed by tests at will; Ready is the cluster `web-abcde` at first."""

    def __init__(self, state: Path | None = None, **options: Any) -> None:
        self.rayclusters: list[dict[str, Any]] = [raycluster()]
        self.ray_pods: list[dict[str, Any]] = [head(), *workers(2)]
        self.secrets: dict[str, str] | None = {}
        """None: the API server does not answer."""
        self.app = App(self, state=state, **options)

    def clusters(self) -> Sequence[Cluster]:
        return tuple(map(cluster_of, self.rayclusters))

    def pods(self) -> Sequence[Pod]:
        return tuple(map(pod_of, self.ray_pods))

    def secret(self, namespace: str, name: str, key: str) -> str | None:
        if self.secrets is None:
            raise Unreachable("connection refused")
        return self.secrets.get(f"{namespace}/{name}/{key}")

    # -- what the operator asks --

    def ask(self, method: str, url: str, body: bytes = b"", **headers: str) -> Answer:
        answer = self.app(
            Request(method, url, {name.replace("_", "-"): value for name, value in headers.items()}, body)
        )
        assert not isinstance(answer, NoAnswer)
        return answer

    def get(self, cluster: str = "web-abcde", **headers: str) -> Answer:
        return self.ask("GET", f"{dashboard(cluster)}?api_type=declarative", **headers)

    def put(self, config: Any = CONFIG, cluster: str = "web-abcde", **headers: str) -> Answer:
        return self.ask("PUT", dashboard(cluster), json.dumps(config).encode(), **headers)

    def health(self, address: str = "10.0.0.1:8000") -> Answer:
        return self.ask("GET", f"http://{address}/-/healthz")

    def status(self, application: str = "chat", cluster: str = "web-abcde") -> str | None:
        found = said(self.get(cluster))["applications"].get(application)
        return found and str(found["status"])

    # -- what tests tell it --

    def tell(self, name: str = "web", **failure: Any) -> Answer:
        return self.ask("PUT", f"/-/stand-in/models/{name}", json.dumps(failure).encode())

    def heal(self, name: str = "web") -> Answer:
        return self.ask("DELETE", f"/-/stand-in/models/{name}")

    def puts(self, name: str = "web") -> list[dict[str, Any]]:
        reported: list[dict[str, Any]] = said(self.ask("GET", f"/-/stand-in/models/{name}"))["puts"]
        return reported


def dashboard(cluster: str = "web-abcde", port: int = 8265) -> str:
    return f"http://{cluster}-head-svc.models.svc.cluster.local:{port}{APPLICATIONS}"


def said(answer: Answer) -> dict[str, Any]:
    assert answer.status == 200, answer
    content: dict[str, Any] = json.loads(answer.body)
    return content


def wait_for(so: Callable[[], bool]) -> None:
    processes.wait_until(lambda: so() or None, what="what the test waits for", timeout=300, poll=0.01)


def kubeconfig(folder: Path, server: str) -> Path:
    path = folder / "kubeconfig"
    path.write_text(
        f"clusters: [{{name: a, cluster: {{server: '{server}'}}}}]\n"
        "users: [{name: a, user: {token: t}}]\n"
        "contexts: [{name: a, context: {cluster: a, user: a}}]\n"
        "current-context: a\n"
    )
    return path
