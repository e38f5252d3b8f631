"""A pool has GPUs of one vendor."""

import pytest

from rayhelm.facts import load_catalog
from shared.fleets import one, plan, refused

MODEL = "{source: meta-llama/Llama-3.1-8B-Instruct, context: 4096}"


@pytest.mark.parametrize("others", ["{gpu: MI300X-192GB}", "{gpu: MI300X-192GB}, {gpu: Arc-A770-16GB}"])
def test_pool_is_refused_when_its_hosts_have_gpus_of_several_vendors(others: str) -> None:
    problem = refused(f"{{hosts: [{{gpu: L4-24GB}}, {others}]}}", MODEL)
    assert (problem.path, problem.line) == ("pools.pool.hosts", 2)
    assert "the hosts have GPUs of nvidia and amd" in problem.message
    assert "hosts: [{gpu: L4-24GB}]" in problem.fix_text


def test_pool_is_accepted_when_its_hosts_have_unlike_gpus_of_one_vendor() -> None:
    hosts = (
        "{gpu: RTX-A5000-24GB, nodeSelector: {kubernetes.io/hostname: a}},"
        " {gpu: RTX-A4000-16GB, nodeSelector: {kubernetes.io/hostname: b}}"
    )
    assert one(f"{{hosts: [{hosts}]}}", MODEL).replicas


@pytest.mark.parametrize("pin", ["", ", pool: pool"])
def test_pool_of_tpus_is_refused_by_the_plan(pin: str) -> None:
    problem = refused("{gpu: TPU-v6e-32GB, nodes: 1}", MODEL.replace("}", f"{pin}}}"))
    assert problem.path == "pools.pool.gpu"
    assert problem.message == f"TPU-v6e-32GB: {load_catalog().gpu('TPU-v6e-32GB').limit}"


def test_gaudi_is_planned_once_the_fleet_file_says_its_memory() -> None:
    problem = refused("{gpu: Gaudi-3-128GB, nodes: 1}", MODEL)
    assert problem.fix.command == "rayhelm catalog gpus"
    assert "`gpus` of the fleet file can say it: {mine: {like: Gaudi-3-128GB, usableMemory: …}}" in problem.message
    gpus = "gpus: {ours: {like: Gaudi-3-128GB, usableMemory: 120GiB}}\n"
    pool = "pools: {pool: {gpu: ours, nodes: 1}}"
    found = plan(f"fleet: one\n{gpus}{pool}\nmodels: {{model: {MODEL}}}\n").models["model"]
    assert found.kv_cache_tokens
    assert any("only community builds of vLLM run on it" in text for text in found.warnings)


def test_gpu_on_which_vllm_does_not_run_is_refused_with_the_reason() -> None:
    problem = refused("{gpu: V100-SXM-32GB, nodes: 1}", MODEL)
    reason = load_catalog().gpu("V100-SXM-32GB").notes
    assert reason
    assert f"vLLM is not known to run on V100-SXM-32GB: {reason}" in problem.message
