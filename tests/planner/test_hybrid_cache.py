"""Engine arguments that turn vLLM's hybrid cache manager off: sliding windows then cache all tokens."""

import json
from pathlib import Path
from typing import Any

import pytest

from rayhelm.errors import FleetError
from rayhelm.facts import load_catalog
from rayhelm.planner.memory.hybrid_cache import find_hybrid_cache_limit
from shared.apply_fix import check_fixes
from shared.fits import fit
from shared.fleets import plan

GEMMA, H100 = load_catalog().model("google/gemma-3-27b-it"), [load_catalog().gpu("H100-SXM-80GB")]
NIXL = {"kv_connector": "NixlConnector"}
LMCACHE = {"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}


def connect(name: str, **extra: Any) -> dict[str, Any]:
    return {"kv_transfer_config": {"kv_connector": name, "kv_connector_extra_config": extra}}


@pytest.mark.parametrize(
    ("engine", "limit"),
    [
        ({}, ""),
        (connect("LMCacheConnectorV1"), "kv_connector: LMCacheConnectorV1"),
        (connect("FlexKVConnectorV1"), "kv_connector: FlexKVConnectorV1"),
        (connect("NixlConnector"), ""),
        (connect("OffloadingConnector"), ""),
        (connect("LMCacheMPConnector"), ""),
        (connect("MultiConnector", connectors=[NIXL, LMCACHE]), "kv_connector: LMCacheConnectorV1"),
        (connect("MultiConnector", connectors=[NIXL]), ""),
        ({"disable_hybrid_kv_cache_manager": True}, "disable_hybrid_kv_cache_manager: true"),
    ],
)  # fmt: skip
def test_arguments_that_turn_the_hybrid_cache_off_are_known(engine: dict[str, Any], limit: str) -> None:
    assert find_hybrid_cache_limit(engine) == limit


@pytest.mark.parametrize(("context", "gib"), [(32768, 15.5), (65536, 31.0)])
def test_sliding_windows_cache_all_tokens_without_it(context: int, gib: float) -> None:
    found = fit(GEMMA, H100, max_model_len=context, **connect("LMCacheConnectorV1"))
    assert found.kv_available_gib_per_gpu is not None
    assert found.max_concurrency is not None
    assert found.kv_available_gib_per_gpu / found.max_concurrency == pytest.approx(gib, rel=0.01)
    usual = fit(GEMMA, H100, max_model_len=context)
    assert usual.max_concurrency is not None
    assert usual.max_concurrency > 1.4 * found.max_concurrency


def test_model_with_recurrent_layers_is_refused_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    configs = Path(__file__).parents[1] / "facts/architecture_configs"
    keys = json.loads((configs / "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16.json").read_text())
    (tmp_path / "nano.json").write_text(json.dumps(keys))
    text = f"""
        fleet: test
        pools: {{gpu: {{gpu: H100-SXM-80GB, nodes: 2}}}}
        models:
          chat:
            source: an/example
            architecture: ./nano.json
            unpinnedReason: an example
            context: 8192
            engine: {{kv_transfer_config: {json.dumps(LMCACHE)}}}
    """
    with pytest.raises(FleetError, match="turns vLLM's hybrid cache manager off") as error:
        plan(text)
    check_fixes(text, error.value.problems, plan)
