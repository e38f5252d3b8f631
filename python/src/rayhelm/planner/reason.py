"""Why a decision was made."""

from rayhelm.facts.closed import Closed

__all__ = ["Reason"]


class Reason(Closed):
    """The reason of one decision."""

    decision: str
    """Field of the plan: `tensor_parallel_size`."""
    chosen: str
    because: str
    """A sentence."""
    numbers: dict[str, float | int | str] = {}
    """Figures of the sentence, each with its unit in the key."""
    path: str = ""
    """Key of the fleet file that changes the decision: `pools.gpu.cpusPerNode`."""
