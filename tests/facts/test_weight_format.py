"""The format of quantized weights, by which the speed model chooses rates."""

from typing import Any

import pytest

from rayhelm.facts.model import Quantization
from rayhelm.planner.speed.replica import find_format


@pytest.mark.parametrize(
    ("quantization", "expected"),
    [
        (None, "bf16"),
        ({"method": "fp8", "bits": 8}, "fp8"),
        ({"method": "awq", "bits": 4, "group_size": 128, "zero_bits": 4}, "int4"),
        ({"method": "compressed-tensors", "bits": 4, "group_size": 128}, "int4"),
        ({"method": "bitsandbytes", "bits": 4, "group_size": 64, "scale_bits": 8}, "int4"),
        ({"method": "mxfp4", "bits": 4, "group_size": 32, "scale_bits": 8, "only_experts": True}, "fp4"),
        ({"method": "modelopt", "bits": 4, "group_size": 16, "scale_bits": 8}, "fp4"),
        ({"method": "modelopt_mixed", "bits": 4, "group_size": 16, "scale_bits": 8, "only_experts": True}, "fp4"),
        ({"method": "modelopt_mixed", "bits": 8, "scale_bits": 32}, "fp8"),
        ({"method": "compressed-tensors", "bits": 4, "group_size": 16, "scale_bits": 8}, "fp4"),
    ],
)
def test_weights_of_four_bits_are_floating_point_where_the_checkpoint_says_so(
    quantization: dict[str, Any] | None, expected: str
) -> None:
    assert find_format(Quantization(**quantization) if quantization else None) == expected
