"""Checks of downloaded adapters, before a server reads them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rayhelm.runtime.check_adapters import find_problems

BASE = "Qwen/Qwen3-8B"
GOOD = {"peft_type": "LORA", "r": 16, "bias": "none", "base_model_name_or_path": BASE, "modules_to_save": None}


def write(folder: Path, config: Any, weights: str = "adapter_model.safetensors") -> dict[str, Any]:
    (folder / "adapter_config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    (folder / weights).touch()
    return {"path": str(folder), "baseModel": BASE, "rank": 16}


def test_adapter_of_its_model_is_accepted(tmp_path: Path) -> None:
    assert not [*find_problems("legal", write(tmp_path, GOOD))]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"base_model_name_or_path": "meta-llama/Llama-3.1-8B"}, "set `baseModel: meta-llama/Llama-3.1-8B`"),
        ({"base_model_name_or_path": None}, "it was trained on None"),
        ({"r": 32}, "its rank is 32, and the slots have 16"),
        ({"rank_pattern": {"q_proj": 64}}, "its rank is 64"),
        ({"r": "16"}, "its rank is 16"),
        ({"r": True}, "its rank is True"),
        ({"peft_type": "IA3"}, "vLLM serves LORA only"),
        ({"use_dora": True}, "use_dora is set"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save is set"),
        ({"bias": "all"}, "bias is set"),
    ],
)
def test_adapter_that_vllm_cannot_serve_is_refused(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    (problem,) = find_problems("legal", write(tmp_path, GOOD | change))
    assert problem.startswith("legal: ")
    assert says in problem


@pytest.mark.parametrize("config", ["{", "[]", "\x00"])
def test_unreadable_config_is_refused(tmp_path: Path, config: str) -> None:
    assert len([*find_problems("legal", write(tmp_path, config))]) == 1


def test_adapter_without_weights_is_refused(tmp_path: Path) -> None:
    (problem,) = find_problems("legal", write(tmp_path, GOOD, weights="README.md"))
    assert "none of adapter_model.safetensors" in problem


def test_command_reports_all_problems(tmp_path: Path) -> None:
    adapter = write(tmp_path, GOOD | {"r": 32})
    argument = json.dumps({"legal": adapter, "sales": {**adapter, "path": "/nowhere"}})
    command = [sys.executable, "-I", "-B", "-m", "rayhelm.runtime.check_adapters"]
    done = subprocess.run([*command, argument], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["legal", "sales"]
    write(tmp_path, GOOD)
    assert subprocess.run([*command, json.dumps({"legal": adapter})], check=False).returncode == 0
