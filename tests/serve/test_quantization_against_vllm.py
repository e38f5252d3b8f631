"""Quantized checkpoints that vLLM refuses: our data against vLLM's own classes and platforms."""

import ast
from importlib.util import find_spec
from pathlib import Path

import pytest

from rayhelm.facts._quantized import _METHODS
from rayhelm.facts.engines import QuantizationLimit, find_engine
from rayhelm.facts.versions import versions

pytestmark = pytest.mark.serve

LIMITS = {each.method: each for each in find_engine(versions().vllm)[0].quantization}
LEAST_COMPUTE = 7.5
"""Of the NVIDIA GPUs in the catalog."""
NAMES = sorted({*_METHODS, "modelopt_fp4", "modelopt_mixed", "modelopt_mxfp8"})


@pytest.mark.parametrize("name", NAMES)
def test_removed_deprecated_and_least_compute_are_those_of_vllm(name: str) -> None:
    from vllm.model_executor.layers import quantization

    limit = LIMITS.get(name, QuantizationLimit(method=name, source=""))
    assert limit.is_removed == (name not in quantization.QUANTIZATION_METHODS)
    assert limit.is_deprecated == (name in quantization.DEPRECATED_QUANTIZATION_METHODS)
    if not limit.is_removed:
        least = quantization.get_quantization_config(name).get_min_capability() / 10
        assert max(LEAST_COMPUTE, limit.least_compute) == max(LEAST_COMPUTE, least)


@pytest.mark.parametrize(("vendor", "file"), [("amd", "rocm.py"), ("intel", "xpu.py")])
def test_formats_that_a_vendor_lacks_are_those_of_the_platform(vendor: str, file: str) -> None:
    supported = _read_supported(file)
    removed = {name for name, limit in LIMITS.items() if limit.is_removed}
    missing = {name for name, limit in LIMITS.items() if vendor in limit.not_on}
    assert missing == set(NAMES) - supported - removed


def _read_supported(file: str) -> set[str]:
    """Return `supported_quantization` of a platform, whose module needs its driver to be imported."""
    package = find_spec("vllm")
    assert package
    assert package.origin
    tree = ast.parse((Path(package.origin).parent / "platforms" / file).read_text())
    lists = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "supported_quantization" and node.value
    ]
    (found,) = map(ast.literal_eval, lists)
    return set(found)
