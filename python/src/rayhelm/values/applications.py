"""Serve applications out of the plan: one for each model, on a route of its own."""

from typing import Any

from rayhelm.planner.plan import ModelPlan
from rayhelm.values.ray_service.engine import Engine
from rayhelm.values.ray_service.serve import (
    Application,
    Autoscaling,
    CustomApplication,
    CustomDeployment,
    Model,
    Router,
)

__all__ = ["application", "custom_application"]

SPEECH = "rayhelm.serving.speech:build_app"
"""Text to speech is not a task of vLLM's server; this application is ours, and has to be in the image."""

_SPELLINGS = {"half": "float16", "float": "float32"}
"""vLLM's other words for dtypes."""


def application(plan: ModelPlan, groups: list[str]) -> Application:
    """An application of Ray Serve LLM with one model."""
    return Application(models={plan.model: _model(plan, groups)})


def custom_application(plan: ModelPlan, groups: list[str]) -> CustomApplication:
    """An application of our own."""
    return CustomApplication(
        import_path=SPEECH,
        args={"model": plan.model, "source": plan.source, "revision": plan.revision or ""},
        deployments={
            "Speech": CustomDeployment(
                min_replicas=plan.min_replicas,
                max_replicas=plan.max_replicas,
                target_ongoing_requests=plan.target_ongoing_requests,
                max_ongoing_requests=plan.max_ongoing_requests,
                gpus=plan.gpu_fraction,
                worker_group=groups[0],
            )
        },
    )


def _model(plan: ModelPlan, groups: list[str]) -> Model:
    assert plan.task not in ("speak", "custom")
    one_node = plan.nodes_per_replica == 1 and plan.tensor_parallel_size * plan.pipeline_parallel_size > 1
    partition = ",".join(map(str, plan.layer_partition))
    return Model(
        source=plan.source,
        revision=plan.revision or "",
        task=plan.task,
        engine=_engine(plan),
        worker_groups=groups,
        gpu_fraction=plan.gpu_fraction,
        placement_strategy="STRICT_PACK" if one_node else "PACK",
        autoscaling=Autoscaling(
            min_replicas=plan.min_replicas,
            max_replicas=plan.max_replicas,
            target_ongoing_requests=plan.target_ongoing_requests,
        ),
        max_ongoing_requests=plan.max_ongoing_requests,
        router=Router(kind="PrefixAffinity" if plan.routing == "prefix-affinity" else "PowerOfTwo"),
        env={"VLLM_PP_LAYER_PARTITION": partition} if partition else {},
    )


def _engine(plan: ModelPlan) -> Engine:
    arguments: dict[str, Any] = {
        "tensor_parallel_size": plan.tensor_parallel_size,
        "pipeline_parallel_size": plan.pipeline_parallel_size,
        "max_model_len": plan.max_model_len,
        "max_num_seqs": plan.max_num_seqs,
        "max_num_batched_tokens": plan.max_num_batched_tokens,
        "gpu_memory_utilization": plan.gpu_memory_utilization,
    }
    extra: dict[str, Any] = {}
    for key, value in plan.engine.items():
        known = key in Engine.model_fields and key != "extra"
        (arguments if known else extra)[key] = _SPELLINGS.get(value, value) if key == "dtype" else value  # type: ignore[arg-type]
    return Engine(**arguments, extra=extra)
