"""LoRA adapters of a model: engine arguments, ingress, download and its check."""

import json

import pytest

from charts.kit import chat, llm_config, only, over, rendered, serve_config
from rayhelm.check.lint.serve_config import check_serve_config

PIN = "0123456789abcdef0123456789abcdef01234567"
LORA = {
    "slots": 1,
    "maxRank": 32,
    "adapters": {
        "legal": {"source": "acme/legal-lora", "revision": PIN},
        "acme/sales": {"source": "acme/sales-lora", "revision": PIN, "baseModel": "Qwen/Qwen3-8B-Base"},
        "local": {"source": "/models/own/adapter"},
    },
}
OURS = {"image": {"includesRayhelm": True}}
ADAPTED = over(chat(lora=LORA), OURS)


def arguments(overlay=None):
    return next(app["args"] for app in serve_config(overlay)["applications"] if app["name"] == "chat")


def test_model_without_adapters_has_no_lora_arguments_and_rays_own_ingress():
    assert not [key for key in llm_config()["engine_kwargs"] if "lora" in key]
    assert "ingress_cls_config" not in arguments()


def test_adapters_become_lora_modules_on_the_volume():
    kwargs = llm_config(ADAPTED)["engine_kwargs"]
    assert {module["name"]: module["path"] for module in kwargs["lora_modules"]} == {
        "legal": f"/models/acme/legal-lora/{PIN}",
        "acme/sales": f"/models/acme/sales-lora/{PIN}",
        "local": "/models/own/adapter",
    }
    found = [kwargs[key] for key in ("enable_lora", "max_loras", "max_lora_rank", "max_cpu_loras")]
    assert found == [True, 1, 32, 3]


def test_ingress_gets_the_base_model_of_each_adapter():
    config = arguments(ADAPTED)["ingress_cls_config"]
    assert config["ingress_cls"] == "rayhelm.runtime.adapter_ingress:AdapterIngress"
    assert config["ingress_extra_kwargs"] == {"adapters": dict.fromkeys(LORA["adapters"], "llama-8b")}


def test_ingress_gets_the_model_behind_each_alias():
    overlay = {
        "image": {"includesRayhelm": True},
        "serve": {"applications": {"chat": {"models": {"llama-8b": {"aliases": ["gpt-4o-mini", "Org/Llama.v1"]}}}}},
    }
    config = arguments(overlay)["ingress_cls_config"]
    assert config["ingress_cls"] == "rayhelm.runtime.adapter_ingress:AdapterIngress"
    aliases = {"gpt-4o-mini": "llama-8b", "Org/Llama.v1": "llama-8b"}
    assert config["ingress_extra_kwargs"] == {"adapters": {}, "aliases": aliases}
    both = arguments(over(ADAPTED, overlay))["ingress_cls_config"]["ingress_extra_kwargs"]
    assert (set(both["adapters"]), both["aliases"]) == (set(LORA["adapters"]), aliases)


def download_steps(overlay):
    return only(rendered(overlay), "Job")["spec"]["template"]["spec"]["initContainers"]


def test_download_is_pinned_and_checked_after_all_adapters_are_there():
    steps = download_steps(over(ADAPTED, {"weights": {"download": {"image": "registry.example/hub-cli:1.0"}}}))
    commands = {step["command"][2]: step["command"] for step in steps if step["command"][0] == "hf"}
    for source in ("acme/legal-lora", "acme/sales-lora"):
        assert commands[source][3:7] == ["--local-dir", f"/models/{source}/{PIN}", "--revision", PIN]
    check = steps[-1]
    assert check["name"] == "check-adapters"
    assert "hub-cli" not in check["image"], "the check needs rayhelm, which the serving image contains"
    wanted = json.loads(check["command"][-1])
    assert {name: row["baseModel"] for name, row in wanted.items()} == {
        "legal": "meta-llama/Llama-3.1-8B-Instruct",
        "acme/sales": "Qwen/Qwen3-8B-Base",
    }
    assert all(row["rank"] == 32 for row in wanted.values())


def test_download_without_adapters_has_no_check():
    assert "check-adapters" not in [step["name"] for step in download_steps({})]


@pytest.mark.serve
def test_ray_and_vllm_accept_adapters():
    assert check_serve_config(json.dumps(serve_config(ADAPTED))) == []
