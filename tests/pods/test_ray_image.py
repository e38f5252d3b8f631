"""The image with Ray and vLLM: a tiny model of it is served over HTTP, on a CPU, by a pod without rights."""

from typing import Any

import httpx
import pytest

from pods.kit.cluster import Cluster, pod
from rayhelm.processes import wait_until
from testbed.images.__main__ import build
from testbed.node.images import give

START = "ray start --head --num-cpus=8 --object-store-memory=200000000 --dashboard-host=0.0.0.0 --block"
ENVIRONMENT = {
    "RAY_worker_niceness": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "60",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "TORCHDYNAMO_DISABLE": "1",
    "HF_HUB_OFFLINE": "1",
}
MODEL = {
    "model_loading_config": {"model_id": "tiny", "model_source": "/models/LlamaForCausalLM"},
    "accelerator_config": {"kind": "cpu"},
    "engine_kwargs": {"max_model_len": 1024, "max_num_seqs": 8, "enforce_eager": True, "load_format": "dummy"},
    "deployment_config": {"num_replicas": 1, "ray_actor_options": {"num_cpus": 1}},
}
SERVE = {
    "proxy_location": "EveryNode",
    "http_options": {"host": "0.0.0.0", "port": 8000},
    "applications": [
        {
            "name": "chat",
            "route_prefix": "/",
            "import_path": "ray.serve.llm:build_openai_app",
            "args": {"llm_configs": [MODEL]},
        }
    ],
}


@pytest.fixture(scope="module")
def image(cluster: Cluster) -> str:
    return give(cluster.node.home, cluster.pid, build(), "cpu")


def test_tiny_model_is_served_over_http_by_a_pod_without_rights(cluster: Cluster, namespace: str, image: str) -> None:
    address = start_head(cluster, namespace, image)
    dashboard = f"http://{address}:8265/api/serve/applications/"
    httpx.put(dashboard, json=SERVE, timeout=120, trust_env=False).raise_for_status()

    def running() -> bool:
        (application,) = httpx.get(dashboard, timeout=30, trust_env=False).json()["applications"].values()
        assert application["status"] not in ("DEPLOY_FAILED", "UNHEALTHY"), application["message"]
        return bool(application["status"] == "RUNNING")

    wait_until(lambda: running() or None, what="the application", timeout=600, poll=2)
    chat = {"model": "tiny", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 8}
    answer = httpx.post(f"http://{address}:8000/v1/chat/completions", json=chat, timeout=120, trust_env=False)
    assert answer.status_code == 200, answer.text
    assert answer.json()["usage"]["completion_tokens"] == 8


def test_rays_own_commands_and_rayhelms_modules_are_there(cluster: Cluster, namespace: str, image: str) -> None:
    cluster.start(namespace, "shell", image=image, command=["sleep", "3600"])
    for command in (
        "ray --version",
        "serve --help",
        "hf version",
        "python -c 'import rayhelm.runtime.engine_queue.policy'",
    ):
        cluster.kubectl("exec", "shell", f"--namespace={namespace}", "--", "bash", "-c", command)


def start_head(cluster: Cluster, namespace: str, image: str) -> str:
    """The address of a pod with a head of Ray; ready when KubeRay's own probe of it succeeds."""
    wanted = pod(namespace, "head", image=image)
    healthy = "wget -q -O- -T 5 http://localhost:52365/api/healthz | grep success"
    probe = {"exec": {"command": ["bash", "-c", healthy]}, "timeoutSeconds": 10, "periodSeconds": 2}
    more: dict[str, Any] = {
        "command": ["bash", "-c", START],
        "env": [{"name": name, "value": value} for name, value in ENVIRONMENT.items()],
        "readinessProbe": probe,
        "volumeMounts": [{"name": "shared", "mountPath": "/dev/shm"}],
    }
    wanted["spec"]["containers"][0] |= more
    wanted["spec"]["volumes"] = [{"name": "shared", "emptyDir": {"medium": "Memory"}}]
    cluster.apply(wanted)
    cluster.kubectl("wait", "pod/head", f"--namespace={namespace}", "--for=condition=Ready", "--timeout=300s")
    return str(cluster.get(namespace, "pod", "head")["status"]["podIP"])
