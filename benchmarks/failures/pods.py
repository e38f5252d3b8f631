"""Pods and processes that end, politely or not."""

import time

from failures.scene import Scene

__all__ = ["head_killed", "ingress_killed", "operator_restarted", "pods_drained", "replica_killed", "worker_killed"]

NOTICED = 5.0
"""Seconds until the cluster has noticed: before that it seems whole."""


def worker_killed(scene: Scene) -> None:
    _kill(scene, scene.pods("worker")[0])


def head_killed(scene: Scene) -> None:
    _kill(scene, scene.pods("head")[0])


def replica_killed(scene: Scene) -> None:
    _kill_process(scene, "LLMServer")


def ingress_killed(scene: Scene) -> None:
    _kill_process(scene, "OpenAiIngress")


def operator_restarted(scene: Scene) -> None:
    where = "--namespace=kuberay-system"
    scene.session.kubectl("rollout", "restart", "deployment/kuberay-operator", where)
    scene.session.kubectl("rollout", "status", "deployment/kuberay-operator", where, "--timeout=300s")
    time.sleep(NOTICED)
    scene.whole()


def pods_drained(scene: Scene) -> None:
    """Each worker and each gateway is evicted, as `kubectl drain` does, the next one when the last is replaced."""
    for name in scene.pods("worker"):
        _evict(scene, scene.service.namespace, name)
    for pod in scene.session.list_pods(scene.door):
        _evict(scene, scene.door.namespace, pod["metadata"]["name"])


def _evict(scene: Scene, where: str, name: str) -> None:
    meta = f'{{"name": "{name}", "namespace": "{where}"}}'
    eviction = f'{{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {meta}}}'
    scene.session.kubectl(
        "create", "--raw", f"/api/v1/namespaces/{where}/pods/{name}/eviction", "-f", "-", text=eviction
    )
    time.sleep(NOTICED)
    scene.whole()


def _kill(scene: Scene, name: str) -> None:
    """Without a grace: nothing in the pod learns of it."""
    where = f"--namespace={scene.service.namespace}"
    scene.session.kubectl("delete", "pod", name, where, "--grace-period=0", "--force")
    time.sleep(NOTICED)
    scene.whole()


def _kill_process(scene: Scene, deployment: str) -> None:
    """Of one worker that has such a replica; the bracket keeps the script from finding itself."""
    script = f"pkill -9 -f '[S]erveReplica:.*{deployment}'"
    for name in scene.pods("worker"):
        if _tried(scene, name, script):
            break
    else:
        raise AssertionError(f"no worker has a replica of {deployment}")
    time.sleep(NOTICED)
    scene.whole()


def _tried(scene: Scene, pod: str, script: str) -> bool:
    from rayhelm.kube.kubectl import KubectlError

    try:
        scene.inside(pod, script)
    except KubectlError:
        return False
    return True
