"""A pool has GPUs of one vendor."""

import pytest

from shared.fleets import one, refused

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
