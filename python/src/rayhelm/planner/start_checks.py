"""Settings with which vLLM does not start, or refuses what the gateway lets through."""

from collections.abc import Iterable, Iterator

from rayhelm.errors import Fix, Problem
from rayhelm.facts.model import Checkpoint
from rayhelm.facts.tasks import get_task
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.models import ModelSpec
from rayhelm.fleet.problems import problem_at
from rayhelm.fleet.sources import is_hub_id
from rayhelm.planner.memory.hybrid_cache import find_hybrid_cache_limit
from rayhelm.planner.placement.model_spec import ResolvedModelSpec

__all__ = [
    "check_batch_of_encoder",
    "check_draft_model",
    "check_hybrid_cache",
    "check_output_bounds",
    "check_quantization",
]

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


def check_hybrid_cache(name: str, spec: ModelSpec, model: Checkpoint) -> Iterator[Problem]:
    """Yield an argument that turns the hybrid cache manager off for a model with attention and recurrent state, and one
    that keeps it on for a connector that does not work with it."""
    limit, switch = find_hybrid_cache_limit(spec.engine), "disable_hybrid_kv_cache_manager"
    if spec.engine.get(switch) is False and (
        connector := find_hybrid_cache_limit({key: value for key, value in spec.engine.items() if key != switch})
    ):
        message = f"is false, and `{connector}` does not work with the hybrid cache manager: vLLM refuses it"
        yield problem_at(("models", name, "engine", switch), message, Fix.removal("", "vLLM then decides"))
        return
    if not limit or not model.recurrence or not model.attention_layers:
        return
    key = "kv_transfer_config" if limit.startswith("kv_connector") else switch
    yield problem_at(
        ("models", name, "engine", key),
        f"`{limit}` turns vLLM's hybrid cache manager off, and vLLM does not start {model.id} without it: the model has"
        " layers of attention and layers with a recurrent state",
        Fix.removal("", "or `OffloadingConnector`, which keeps it on" if key == "kv_transfer_config" else ""),
    )


def check_batch_of_encoder(model_spec: ResolvedModelSpec) -> Iterator[Problem]:
    """Yield a batch that is below the context of a model without chunked prefill: vLLM refuses it."""
    model, spec, least = model_spec.model, model_spec.declared, model_spec.context
    batch = spec.engine.get("max_num_batched_tokens")
    is_in_vllm = model.engine == "vllm" and get_task(spec.task).server != "application"
    if model.causal or not is_in_vllm or not isinstance(batch, int) or batch >= least:
        return
    yield problem_at(
        ("models", model_spec.name, "engine", "max_num_batched_tokens"),
        f"is {batch}, and inputs of {model.id} have up to {least} tokens: an encoder computes each input in one batch",
        Fix(value=least),
        alternatives=[Fix(f"/models.{model_spec.name}.context", batch, "shorter inputs")] if batch > 0 else [],
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


def check_output_bounds(model_specs: Iterable[ResolvedModelSpec], fleet: Fleet) -> Iterator[Problem]:
    """Yield bounds of tenants that the context is below: the model refuses what the gateway lets through."""
    contexts: dict[str, int] = {}
    for each in model_specs:
        served = fleet.served_name(each.name)
        contexts[served] = max(each.context, contexts.get(served, 0))
    for name, tenant in fleet.tenants.items():
        for model, bound in tenant.max_output_tokens.items():
            context = contexts.get(fleet.served_by(model))
            if context and bound > context:
                message = f"is {bound}, and the context of `{model}` is {context} tokens: no response is longer"
                yield problem_at(("tenants", name, "maxOutputTokens", model), message, Fix(value=context))
