"""Settings with which vLLM does not start, or refuses what the gateway lets through."""

from collections.abc import Iterator, Sequence

from rayhelm.errors import Fix, Problem
from rayhelm.facts.model import Checkpoint
from rayhelm.facts.tasks import get_task
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.models import ModelSpec
from rayhelm.fleet.problems import problem_at
from rayhelm.fleet.sources import is_hub_id
from rayhelm.planner.placement.model_spec import ResolvedModelSpec

__all__ = ["check_draft_model", "check_output_bounds", "check_quantization"]

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


def check_draft_model(name: str, fleet: Fleet) -> Iterator[Problem]:
    """Yield a draft model of the hub that nothing downloads: the pods of a service have no access to the hub."""
    config, service = fleet.models[name].engine.get("speculative_config"), fleet.service_of(name)
    if not isinstance(config, dict) or not is_hub_id(draft := str(config.get("model"))):
        return
    declared = fleet.services.get(service)
    weights = declared.values.get("weights") if declared else None
    if isinstance(weights, dict) and weights.get("offline") is False:
        return
    if draft in {fleet.models[other].source for other in fleet.models_of(service)}:
        return
    tokens = config.get("num_speculative_tokens") or 4
    lookup = {"method": "ngram", "num_speculative_tokens": tokens, "prompt_lookup_max": 4}
    online = {"offline": False, "onlineReason": f"workers read the draft model {draft} from the hub"}
    yield problem_at(
        ("models", name, "engine", "speculative_config"),
        f"`model` is {draft}, and the Job downloads `source` only: the pods have no access to the hub",
        Fix(value=lookup, why="drafts from the prompt, without a model; or `model`: a folder in the container"),
        alternatives=[Fix(f"/services.{service}.values.weights", online, "if the cluster may reach the hub")],
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
