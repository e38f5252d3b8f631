"""The image with Ray and vLLM: a tiny model of it speaks, on a CPU, in a pod without rights."""

import pytest

from live.kit.cluster import Cluster
from testbed.images.__main__ import build
from testbed.node.images import give

SPEAK = """
from vllm import LLM, SamplingParams
engine = LLM("/models/LlamaForCausalLM", load_format="dummy", enforce_eager=True, max_model_len=256)
(answer,) = engine.generate(["one two three"], SamplingParams(max_tokens=5, ignore_eos=True))
print("tokens:", len(answer.outputs[0].token_ids))
"""
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "TORCHDYNAMO_DISABLE": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
}


@pytest.fixture(scope="module")
def image(cluster: Cluster) -> str:
    return give(cluster.node.home, cluster.pid, build(), "cpu")


def test_a_tiny_model_speaks_in_a_pod_without_rights(cluster: Cluster, namespace: str, image: str) -> None:
    cluster.start(namespace, "engine", image=image, command=["sleep", "3600"])
    settings = [f"{name}={value}" for name, value in ENVIRONMENT.items()]
    said = cluster.kubectl("exec", "engine", f"--namespace={namespace}", "--", "env", *settings, "python", "-c", SPEAK)
    assert said.splitlines()[-1] == "tokens: 5"


def test_rays_own_commands_are_there_and_rayhelms_modules_are_too(cluster: Cluster, namespace: str, image: str) -> None:
    cluster.start(namespace, "shell", image=image, command=["sleep", "3600"])
    for command in ("ray --version", "serve --help", "python -c 'import rayhelm.serving.engine_queue.policy'"):
        cluster.kubectl("exec", "shell", f"--namespace={namespace}", "--", "bash", "-c", command)
