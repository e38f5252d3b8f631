"""`rayhelm up --small-model` downloads a model that the test makes from a mirror of the hub, and serves its weights."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest

from pods.kit.hub import Handler
from rayhelm import processes
from rayhelm.run.standin.checkpoint import write_checkpoint

pytestmark = [pytest.mark.serve, pytest.mark.timeout(1800)]

FLEET = Path(__file__).parents[2] / "values/single-gpu"
RAYHELM = [sys.executable, "-c", "from rayhelm.cli.app import main; main()"]
MODEL = f"tiny/instruct@{'1' * 40}"


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[str]:
    """URL of a mirror with a Llama that answers `!` and nothing else."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    source = write_checkpoint("LlamaForCausalLM", tmp_path / "made")
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(source))
    tokenizer = AutoTokenizer.from_pretrained(source)
    (answer,) = tokenizer.encode("!", add_special_tokens=False)
    with torch.no_grad():
        # No layer adds anything to the embeddings, which are all alike.
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        model.model.embed_tokens.weight.fill_(1)
        model.lm_head.weight.zero_()
        model.lm_head.weight[answer].fill_(1)
    model.save_pretrained(source)
    handler = type("OfThisTest", (Handler,), {"folder": source})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_weights_of_the_mirror_answer_through_the_gateway(mirror: str, tmp_path: Path) -> None:
    state, port = f"--state={tmp_path / 'state'}", str(processes.find_free_port(set()))
    environment = os.environ | {
        "CUDA_VISIBLE_DEVICES": "",
        "HF_ENDPOINT": mirror,
        "HF_HOME": str(tmp_path / "hub"),
        "HF_HUB_OFFLINE": "0",
    }
    command = [*RAYHELM, "up", str(FLEET), "--small-model", MODEL, "--share-imports", "--port", port, state]
    try:
        up = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=1500)
        assert up.returncode == 0, up.stderr
        assert "llama-8b: tiny/instruct@111111111111 replaces it" in up.stderr
        assert "random weights" not in up.stderr
        (key,) = re.findall(r"^key: (\S+)$", up.stdout, re.MULTILINE)
        body = {"model": "llama-8b", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 5}
        answer = httpx.post(
            f"http://127.0.0.1:{port}/v1/chat/completions",
            headers={"Authorization": f"Bearer {key}"},
            json=body,
            timeout=120,
            trust_env=False,
        )
        assert answer.status_code == 200, answer.text
        assert answer.json()["choices"][0]["message"]["content"] == "!!!!!"
    finally:
        subprocess.run([*RAYHELM, "down", state], capture_output=True, check=True)
