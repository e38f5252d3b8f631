"""Events: pods and processes that stop or are killed."""

import time

from failures.installation import Installation

__all__ = ["drain_pods", "kill_head", "kill_ingress", "kill_replica", "kill_worker", "restart_operator"]

DETECTION = 5.0
"""Seconds until the cluster detects the event; before that everything seems ready."""


def kill_worker(installation: Installation) -> None:
    _kill(installation, installation.pods("worker")[0])


def kill_head(installation: Installation) -> None:
    _kill(installation, installation.pods("head")[0])


def kill_replica(installation: Installation) -> None:
    _kill_process(installation, "LLMServer")


def kill_ingress(installation: Installation) -> None:
    _kill_process(installation, "OpenAiIngress")


def restart_operator(installation: Installation) -> None:
    where = "--namespace=kuberay-system"
    installation.session.kubectl("rollout", "restart", "deployment/kuberay-operator", where)
    installation.session.kubectl("rollout", "status", "deployment/kuberay-operator", where, "--timeout=300s")
    time.sleep(DETECTION)
    installation.wait_until_ready()


def drain_pods(installation: Installation) -> None:
    """Evict each worker and gateway pod, as `kubectl drain` does, after the last one is replaced."""
    for name in installation.pods("worker"):
        _evict(installation, installation.service.namespace, name)
    for pod in installation.session.list_pods(installation.gateway):
        _evict(installation, installation.gateway.namespace, pod["metadata"]["name"])


def _evict(installation: Installation, where: str, name: str) -> None:
    meta = f'{{"name": "{name}", "namespace": "{where}"}}'
    eviction = f'{{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {meta}}}'
    installation.session.kubectl(
        "create", "--raw", f"/api/v1/namespaces/{where}/pods/{name}/eviction", "-f", "-", text=eviction
    )
    time.sleep(DETECTION)
    installation.wait_until_ready()


def _kill(installation: Installation, name: str) -> None:
    """Delete a pod without a grace period: its processes get no signal."""
    where = f"--namespace={installation.service.namespace}"
    installation.session.kubectl("delete", "pod", name, where, "--grace-period=0", "--force")
    time.sleep(DETECTION)
    installation.wait_until_ready()


def _kill_process(installation: Installation, deployment: str) -> None:
    """Kill the process on one worker that has such a replica. The bracket keeps pkill from matching the script."""
    script = f"pkill -9 -f '[S]erveReplica:.*{deployment}'"
    for name in installation.pods("worker"):
        if _try_on_worker(installation, name, script):
            break
    else:
        raise AssertionError(f"no worker has a replica of {deployment}")
    time.sleep(DETECTION)
    installation.wait_until_ready()


def _try_on_worker(installation: Installation, pod: str, script: str) -> bool:
    from rayhelm.live.cluster.kubectl import KubectlError

    try:
        installation.run_in_worker(pod, script)
    except KubectlError:
        return False
    return True
