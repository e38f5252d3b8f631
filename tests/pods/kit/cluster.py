"""Pods on a node, and what they reach."""

import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rayhelm.live.cluster.kubectl import Kubectl, KubectlError
from rayhelm.processes import wait_until
from testbed.images import Layout
from testbed.node.images import give
from testbed.node.running import Node
from testbed.node.settings import SANDBOX
from testbed.tools import program

__all__ = ["PATIENCE", "Cluster", "pod"]

PATIENCE = 300.0
"""Seconds; a pod takes one where nothing else runs."""


class Cluster:
    """The API server, as an administrator."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.kubectl = Kubectl(program("kubectl"), node.home.kubeconfig)

    @contextmanager
    def namespace(self, name: str = "") -> Iterator[str]:
        name = name or f"live-{uuid.uuid4().hex[:8]}"
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        self.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}},
        )
        try:
            yield name
        finally:
            self.kubectl("delete", "namespace", name, "--wait=false")

    def apply(self, *objects: dict[str, Any]) -> None:
        self.kubectl.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    def get(self, namespace: str, *what: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.kubectl("get", *what, f"--namespace={namespace}", "--output=json"))
        return found

    @property
    def pid(self) -> int:
        """Of the first process inside the node."""
        return int((self.node.home.folder / "pid").read_text())

    @property
    def kubeconfig(self) -> Path:
        return self.node.home.kubeconfig

    def give(self, layout: Layout, tag: str) -> str:
        """Import an image into the node, and return its reference."""
        return give(self.node.home, self.pid, layout, tag)

    def start(
        self,
        namespace: str,
        name: str,
        *arguments: str,
        image: str = SANDBOX,
        command: Sequence[str] = (),
        **labels: str,
    ) -> None:
        """A pod that Pod Security `restricted` allows; returns when it is ready."""
        wanted = pod(namespace, name, *arguments, image=image, **labels)
        if command:
            wanted["spec"]["containers"][0]["command"] = list(command)
        self.apply(wanted)
        self.kubectl(
            "wait", f"pod/{name}", f"--namespace={namespace}", "--for=condition=Ready", f"--timeout={PATIENCE:.0f}s"
        )

    def serve(self, namespace: str, name: str, **labels: str) -> str:
        """A pod that answers on port 8080, with a Service on port 80; returns the pod's address."""
        self.start(namespace, name, "netexec", app=name, **labels)
        self.apply(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": name, "namespace": namespace},
                "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]},
            }
        )
        return str(self.get(namespace, "pod", name)["status"]["podIP"])

    def connects(self, namespace: str, pod: str, target: str) -> bool:
        """Whether a pod gets a TCP connection."""
        try:
            self.kubectl("exec", pod, f"--namespace={namespace}", "--", "/agnhost", "connect", target, "--timeout=2s")
        except KubectlError as error:
            if any(word in error.said for word in ("REFUSED", "TIMEOUT", "DNS", "OTHER")):
                return False
            raise
        return True

    def until(self, namespace: str, pod: str, target: str, *, open: bool) -> None:
        """Waits until a pod reaches something, or no longer does."""
        wait_until(
            lambda: self.connects(namespace, pod, target) is open or None,
            what=f"{pod} {'reaches' if open else 'no longer reaches'} {target}",
            timeout=PATIENCE,
        )


def pod(namespace: str, name: str, *arguments: str, image: str, **labels: str) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": "it",
        "image": image,
        "imagePullPolicy": "Never",
        "args": list(arguments),
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    if arguments == ("netexec",):
        container["readinessProbe"] = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 1}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 1000,
                "runAsGroup": 1000,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
        },
    }
