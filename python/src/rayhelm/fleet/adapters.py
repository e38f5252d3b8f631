"""LoRA adapters of a model: small weights beside those of the base model, each served under a name of its own."""

import re
from typing import Annotated, Self

from pydantic import Field, model_validator

from rayhelm.errors import Fix
from rayhelm.fleet.base import Record, Refusal, short

__all__ = ["MOST_SLOTS", "RANKS", "Adapter", "find_slot_rank"]

RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Ranks of the slots that vLLM allows (`max_lora_rank`, vllm/config/lora.py)."""
MOST_SLOTS = 8
"""Slots without a pin. Further adapters wait in the memory of the node, and requests for them for a free slot."""


class Adapter(Record):
    """One LoRA adapter. Its key is the name that clients send as `model`."""

    source: str = Field(min_length=1, examples=["acme/llama-legal-lora"])
    """Hub id, or an absolute path in the container."""
    revision: (
        Annotated[str, Field(pattern=r"^[0-9a-f]{40}$", examples=["0123456789abcdef0123456789abcdef01234567"])] | None
    ) = None
    """Commit of the hub repository, 40 hexadecimal digits. Required for a hub id."""
    rank: int = Field(default=16, ge=1, le=RANKS[-1], examples=[32])
    """Rank: `r` in its `adapter_config.json`, or the highest of its `rank_pattern`."""
    base_model: str | None = Field(default=None, min_length=1, examples=["meta-llama/Llama-3.1-8B-Instruct"])
    """`base_model_name_or_path` in its `adapter_config.json`; default: `source` of the model. Set it if the adapter was
    trained on an unquantized copy. The download Job refuses an adapter of another model."""

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        is_hub_id = re.fullmatch(r"[A-Za-z0-9][\w.-]*/[\w.-]+", self.source) is not None
        if not is_hub_id and not re.fullmatch(r"(/[A-Za-z0-9_][\w.-]*)+", self.source):
            raise Refusal(
                f"`{short(self.source)}` is no hub id and no absolute path; vLLM reads adapters from a folder",
                Fix("source", "acme/llama-legal-lora", "an example: a hub id, or the folder of your copy"),
            )
        if is_hub_id and not self.revision:
            raise Refusal(
                f"adapter `{self.source}` has no `revision`, so its weights could change without notice",
                Fix("revision", "0" * 40, "the 40 hexadecimal digits of a commit"),
            )
        if self.revision and not is_hub_id:
            raise Refusal("a path has no `revision`", Fix.removal("revision"))
        return self


def find_slot_rank(rank: int) -> int:
    """Return the smallest rank of vLLM's slots that holds an adapter of this rank."""
    return next(allowed for allowed in RANKS if allowed >= rank)
