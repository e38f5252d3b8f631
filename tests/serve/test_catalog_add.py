"""`rayhelm catalog add`: vLLM's own classes build a model, and plans read the file that it writes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from rayhelm.errors import FleetError
from rayhelm.facts.engines import find_engine
from rayhelm.facts.huggingface import read_config
from rayhelm.fleet.load import load_fleet
from rayhelm.planner.memory.gpu_memory import count_rotary_table, count_stage_weights
from rayhelm.planner.planner import plan_fleet
from rayhelm.planner.shape import ReplicaShape
from rayhelm.run.local.model_record import build_record

pytestmark = pytest.mark.serve

TINY = {
    "vocab_size": 1024,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 32,
    "max_position_embeddings": 2048,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}
UNKNOWN = TINY | {"architectures": ["HunYuanDenseV1ForCausalLM"], "model_type": "hunyuan_v1_dense", "use_qk_norm": True}
"""An architecture that vLLM has and rayhelm's own reader does not."""
KNOWN = TINY | {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"}


def write(folder: Path, keys: dict[str, Any]) -> Path:
    (folder / "config.json").write_text(json.dumps(keys))
    return folder


def test_plan_uses_the_memory_that_vllm_builds_for_an_unknown_architecture(tmp_path: Path) -> None:
    with pytest.raises(FleetError):
        read_config(write(tmp_path, UNKNOWN))
    command = "from rayhelm.cli import main; main()"
    arguments = ["catalog", "add", str(tmp_path), "--tp", "1", "--tp", "2"]
    ended = subprocess.run([sys.executable, "-c", command, *arguments], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "rayhelm cannot read this architecture" in " ".join(ended.stdout.split())
    written = yaml.safe_load((tmp_path / "rayhelm-model.yaml").read_text())
    attention = 256 * (256 + 2 * 128) + 256 * 256 + 2 * 32
    parameters = 1024 * 256 + 4 * (attention + 3 * 256 * 512 + 2 * 256) + 256
    first, second = written["built"]["ranks"]
    assert first["weights"] == 2 * parameters + 2 * 16 * 4  # and two tables of 16 rotary frequencies
    assert first["weights"] / 2 < second["weights"] < 0.6 * first["weights"]
    assert [rank["kv_per_token"] for rank in (first, second)] == [2 * 4 * 32 * 2 * 4, 2 * 2 * 32 * 2 * 4]
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(
        "fleet: one\npools: {gpu: {gpu: L4-24GB, nodes: 1, gpusPerNode: 2}}\n"
        "models: {chat: {source: ./weights, architecture: ./rayhelm-model.yaml, parallelism: {tensor: 2}}}\n"
    )
    model = plan_fleet(load_fleet(fleet)).models["chat"]
    (stage,) = model.stages
    assert stage.weights_gib == round(second["weights"] / 2**30, 2)
    assert model.max_model_len == 2048
    assert model.kv_cache_tokens == pytest.approx(stage.kv_gib * 2**30 / second["kv_per_token"], rel=0.01)


def test_weights_of_a_known_architecture_equal_our_formula(tmp_path: Path) -> None:
    found = build_record(write(tmp_path, KNOWN), [2, 3], name=None, context=None, task="chat")
    own, engine = read_config(tmp_path), find_engine("0.29.0")[0]
    assert found.is_read
    assert found.record.layers == own.layers
    assert found.record.built
    (rank,) = found.record.built.ranks
    counted = count_stage_weights(own, ReplicaShape(2), engine)[0] + count_rotary_table(own)
    assert rank.weights == pytest.approx(counted, rel=0.001)
    assert "3" in found.refused[3] or "divisible" in found.refused[3]


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        (UNKNOWN | {"num_hidden_layers": 10**9}, "the limit is 1000"),
        (UNKNOWN | {"hidden_size": 10**12}, "the limit is 2147483648"),
        (UNKNOWN | {"hidden_size": -256}, "does not build this model"),
        (UNKNOWN | {"hidden_size": "wide"}, "does not build this model"),
        (UNKNOWN | {"architectures": ["MadeUpForCausalLM"], "model_type": "made_up"}, "does not build this model"),
        (
            UNKNOWN | {"architectures": ["MadeUpForCausalLM"], "auto_map": {"AutoModelForCausalLM": "evil.Model"}},
            "rayhelm does not run this code",
        ),
    ],
)
def test_config_that_vllm_cannot_build_is_refused(tmp_path: Path, keys: dict[str, Any], says: str) -> None:
    with pytest.raises(FleetError) as refused:
        build_record(write(tmp_path, keys), [1], name=None, context=None, task="chat")
    (problem,) = refused.value.problems
    assert says in problem.message
    assert problem.file == str(tmp_path / "config.json")
    assert problem.fix


def test_code_of_the_repository_is_never_loaded(tmp_path: Path) -> None:
    """vLLM has a class of this name, so the code that `auto_map` names is not needed."""
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    keys = UNKNOWN | {"auto_map": {"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"}}
    assert build_record(write(tmp_path, keys), [1], name=None, context=None, task="chat").record.built
    assert not (tmp_path / "ran").exists()
