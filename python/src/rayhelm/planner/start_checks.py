"""Settings that vLLM refuses: a quantization that the checkpoint does not have, and responses above the context."""

from collections.abc import Iterator, Sequence

from rayhelm.errors import Fix, Problem
from rayhelm.facts.model import Checkpoint
from rayhelm.facts.tasks import get_task
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.models import ModelSpec
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.placement.model_spec import ResolvedModelSpec

__all__ = ["check_output_bounds", "check_quantization"]

_READERS = {
    "awq": "awq",
    "awq_marlin": "awq",
    "gptq": "gptq",
    "gptq_marlin": "gptq",
    "bitsandbytes": "bitsandbytes",
    "compressed-tensors": "compressed-tensors",
    "fp8": "fp8",
    "modelopt": "modelopt",
    "modelopt_fp4": "modelopt",
    "mxfp4": "mxfp4",
}
"""Values of `quantization` that read one method of a checkpoint only. Others, as `moe_wna16`, read several."""


def check_quantization(name: str, spec: ModelSpec, model: Checkpoint) -> Iterator[Problem]:
    """Yield a `quantization` that is another one than that of the checkpoint."""
    if model.quantization is None or model.engine == "custom" or get_task(spec.task).server == "application":
        return
    pinned, method = str(spec.engine.get("quantization")), model.quantization.method
    if _READERS.get(pinned, method) == method or method not in _READERS:
        return
    yield problem_at(
        ("models", name, "engine", "quantization"),
        f"is `{pinned}`, and the weights of {model.id} are {method}: vLLM refuses it",
        Fix.removal("", "vLLM reads the quantization from the checkpoint"),
    )


def check_output_bounds(model_specs: Sequence[ResolvedModelSpec], fleet: Fleet) -> Iterator[Problem]:
    """Yield bounds of tenants that the context is below: the model refuses what the gateway lets through."""
    contexts: dict[str, int] = {}
    for each in model_specs:
        served = fleet.served_name(fleet.part_of(each.name) or each.name)
        contexts[served] = max(each.context, contexts.get(served, 0))
    for name, tenant in fleet.tenants.items():
        for model, bound in tenant.max_output_tokens.items():
            context = contexts.get(fleet.served_by(model))
            if context and bound > context:
                message = f"is {bound}, and the context of `{model}` is {context} tokens: no response is longer"
                yield problem_at(("tenants", name, "maxOutputTokens", model), message, Fix(value=context))
