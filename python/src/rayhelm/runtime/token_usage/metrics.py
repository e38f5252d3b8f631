"""Counters of tokens by tenant, as Ray exports them: `ray_rayhelm_prompt_tokens_total` and `..._generation_...`."""

from collections.abc import Mapping

from ray import serve
from ray.util.metrics import Counter

from rayhelm.runtime.token_usage.ledger import Tokens

__all__ = ["TokenCounters"]

LABELS = ("model_name", "tenant", "ReplicaId")
"""`model_name` and `ReplicaId` are those of the engine's own metrics, so that both can be joined."""


class TokenCounters:
    """Sink of a ledger. `model_name` is the label of the engine's metrics."""

    def __init__(self, model_name: str) -> None:
        replica = serve.get_replica_context().replica_id.unique_id
        self._labels = {"model_name": model_name, "ReplicaId": replica}
        self._prompt = Counter(
            "rayhelm_prompt_tokens",
            description="Prompt tokens by the tenant that sent the request, with those from the prefix cache.",
            tag_keys=LABELS,
        )
        self._generation = Counter(
            "rayhelm_generation_tokens",
            description="Generated tokens by the tenant that sent the request.",
            tag_keys=LABELS,
        )

    def __call__(self, counted: Mapping[str, Tokens]) -> None:
        for tenant, tokens in counted.items():
            labels = {**self._labels, "tenant": tenant}
            # Ray refuses an increment of 0.
            if tokens.prompt:
                self._prompt.inc(tokens.prompt, labels)
            if tokens.generation:
                self._generation.inc(tokens.generation, labels)
