"""State of one recurrent layer on one GPU, in bytes. The shapes are those of vLLM's MambaStateShapeCalculator."""

from rayhelm.facts.model import Recurrence

__all__ = ["count_state_bytes"]

_CONVOLUTION_BYTES = 2
"""Of an element of the state of a convolution: the dtype of the model."""


def count_state_bytes(part: Recurrence, tp: int) -> int:
    convolution, recurrent = _count_elements(part, tp)
    return convolution * _CONVOLUTION_BYTES + recurrent * part.state_bits // 8


def _count_elements(part: Recurrence, tp: int) -> tuple[int, int]:
    """Return the elements of the convolution's state and of the recurrent state on one rank."""
    inner, tokens = part.heads * part.head_dim, part.kernel - 1
    if part.kind == "convolution":
        return inner // tp * tokens, 0
    if part.kind == "mamba":
        return inner // tp * tokens, inner // tp * part.state
    if part.kind == "mamba2":
        # Groups that TP does not divide are repeated, so that each rank has those of its heads.
        groups = part.groups if part.groups % tp == 0 else tp
        return (inner + 2 * groups * part.state) // tp * tokens, part.heads // tp * part.head_dim * part.state
    mixed = 2 * part.groups * part.state + inner
    return mixed // tp * tokens, part.heads // tp * part.head_dim * part.state
