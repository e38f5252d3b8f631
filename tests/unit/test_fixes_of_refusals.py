"""Fixes of refused fleets that a person pastes: each one has to be accepted, or at least to mean what was meant."""

import pytest

from unit.fleets import refused

WHOLE = "gpuFraction"


@pytest.mark.parametrize(
    ("gpu", "source", "helps"),
    [
        ("Strix-Halo-128GB", "meta-llama/Llama-3.3-70B-Instruct", False),
        ("L4-24GB", "meta-llama/Llama-3.1-8B-Instruct", True),
    ],
)
def test_whole_gpu_is_proposed_only_for_a_model_that_fits_it(gpu: str, source: str, helps: bool) -> None:
    problem = refused(f"{{gpu: {gpu}, nodes: 1}}", f"{{source: {source}, context: 4096, gpuFraction: 0.5}}")
    paths = [fix.path for fix in (problem.fix, *problem.alternatives)]
    assert any(path.endswith(WHOLE) for path in paths) is helps
