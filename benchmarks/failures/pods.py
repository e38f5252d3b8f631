"""Events: pods and processes that stop or are killed."""

import time

from failures.scene import Scene

__all__ = ["drain_pods", "kill_head", "kill_ingress", "kill_replica", "kill_worker", "restart_operator"]

DETECTION = 5.0
"""Seconds until the cluster detects the event; before that everything seems ready."""


def kill_worker(scene: Scene) -> None:
    _kill(scene, scene.pods("worker")[0])


def kill_head(scene: Scene) -> None:
    _kill(scene, scene.pods("head")[0])


def kill_replica(scene: Scene) -> None:
    _kill_process(scene, "LLMServer")


def kill_ingress(scene: Scene) -> None:
    _kill_process(scene, "OpenAiIngress")


def restart_operator(scene: Scene) -> None:
    where = "--namespace=kuberay-system"
    scene.session.kubectl("rollout", "restart", "deployment/kuberay-operator", where)
    scene.session.kubectl("rollout", "status", "deployment/kuberay-operator", where, "--timeout=300s")
    time.sleep(DETECTION)
    scene.wait_until_ready()


def drain_pods(scene: Scene) -> None:
    """Evict each worker and gateway pod, as `kubectl drain` does, after the last one is replaced."""
    for name in scene.pods("worker"):
        _evict(scene, scene.service.namespace, name)
    for pod in scene.session.list_pods(scene.gateway):
        _evict(scene, scene.gateway.namespace, pod["metadata"]["name"])


def _evict(scene: Scene, where: str, name: str) -> None:
    meta = f'{{"name": "{name}", "namespace": "{where}"}}'
    eviction = f'{{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {meta}}}'
    scene.session.kubectl(
        "create", "--raw", f"/api/v1/namespaces/{where}/pods/{name}/eviction", "-f", "-", text=eviction
    )
    time.sleep(DETECTION)
    scene.wait_until_ready()


def _kill(scene: Scene, name: str) -> None:
    """Delete a pod without a grace period: its processes get no signal."""
    where = f"--namespace={scene.service.namespace}"
    scene.session.kubectl("delete", "pod", name, where, "--grace-period=0", "--force")
    time.sleep(DETECTION)
    scene.wait_until_ready()


def _kill_process(scene: Scene, deployment: str) -> None:
    """Kill the process on one worker that has such a replica. The bracket keeps pkill from matching the script."""
    script = f"pkill -9 -f '[S]erveReplica:.*{deployment}'"
    for name in scene.pods("worker"):
        if _try_on_worker(scene, name, script):
            break
    else:
        raise AssertionError(f"no worker has a replica of {deployment}")
    time.sleep(DETECTION)
    scene.wait_until_ready()


def _try_on_worker(scene: Scene, pod: str, script: str) -> bool:
    from rayhelm.kube.kubectl import KubectlError

    try:
        scene.run_in_worker(pod, script)
    except KubectlError:
        return False
    return True
