"""What may replace a model that neither the catalog nor the hub has."""

import pytest

from shared.fleets import refused


@pytest.mark.parametrize(
    ("source", "base"),
    [
        ("mistralai/Mixtral-8x22B-Instruct-v0.1", "mistralai/Mixtral-8x22B-v0.1"),
        ("google/gemma-4-26B-A4B-it", "google/gemma-4-26B-A4B"),
    ],
)
def test_base_model_gives_its_shape_and_replaces_no_instruct_model(
    monkeypatch: pytest.MonkeyPatch, source: str, base: str
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    problem = refused("{gpu: H200-SXM-141GB, nodes: 2, gpusPerNode: 4}", f"{{source: {source}, context: 4096}}")
    fixes = [str(fix) for fix in (problem.fix, *problem.alternatives)]
    assert f"architecture: {base}" in fixes[0]
    assert not [fix for fix in fixes if f"source: {base}" in fix]


def test_mistyped_instruct_model_is_replaced_by_an_instruct_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    problem = refused("{gpu: H100-SXM-80GB, nodes: 1}", "{source: Qwen/Qwen2.5-7B-Instrct, context: 4096}")
    assert "Qwen/Qwen2.5-7B-Instruct" in str(problem.fix)
