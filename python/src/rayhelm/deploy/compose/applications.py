"""Serve applications of a plan: one for each model, each with its own route."""

from math import ceil
from typing import Any

from rayhelm.deploy.compose.scaling import build_delays, build_policy
from rayhelm.deploy.values.ray_service.adapters import Lora, LoraAdapter
from rayhelm.deploy.values.ray_service.engine import Engine
from rayhelm.deploy.values.ray_service.serve import (
    CustomApplication,
    CustomDeployment,
    IngressDeployment,
    ModelAutoscaling,
    Prefill,
    Router,
    ServeApplication,
    ServedModel,
)
from rayhelm.deploy.values.ray_service.weights import WeightsVolume
from rayhelm.facts.model import Checkpoint
from rayhelm.facts.tasks import get_task
from rayhelm.fleet.models import OwnApplication
from rayhelm.fleet.sources import CLAIM, IMAGE, is_downloaded
from rayhelm.planner.access.ingress import count_ingress_replicas
from rayhelm.planner.plan import ModelPlan, PrefillDecodePlan, RolePlan

__all__ = ["build_application", "build_custom_application"]

MOUNT = WeightsVolume().mount_path
IMAGES = "/model-images"
"""Folder in which the chart mounts images with weights."""

_SPELLINGS = {"half": "float16", "float": "float32"}
"""Other names of vLLM for data types."""


def build_application(plan: ModelPlan, groups: list[str], ingress_group: str) -> ServeApplication:
    """Build an application of Ray Serve LLM with one model. `ingress_group`: worker group of its ingress; empty for
    any."""
    fewest, most = count_ingress_replicas(plan)
    return ServeApplication(
        models={plan.served_as: _build_model(plan, groups)},
        ingress=IngressDeployment(min_replicas=fewest, max_replicas=most, worker_group=ingress_group),
    )


def build_custom_application(
    plan: ModelPlan, architecture: Checkpoint, own: OwnApplication | None, groups: list[str]
) -> CustomApplication:
    """Build a custom application, the user's or rayhelm's. It reads its models from the volume."""
    needed = {"source": plan.source, **{other.role: other.source for other in architecture.companions}}
    revisions = {plan.source: plan.revision or ""}
    downloaded = {name: revisions.get(name, "") for name in needed.values() if is_downloaded(name, revisions.get(name))}
    paths = {role: _find_path(source, downloaded.get(source), plan.application) for role, source in needed.items()}
    served_by = own or get_task(plan.task).application
    assert served_by
    return CustomApplication(
        import_path=served_by.import_path,
        args={"model": plan.served_as, **paths, **(own.args if own else {})},
        hub_models=downloaded,
        deployments={
            served_by.deployment: CustomDeployment(
                min_replicas=plan.min_replicas,
                max_replicas=plan.max_replicas,
                target_ongoing_requests=plan.target_ongoing_requests,
                **build_delays(plan),
                max_ongoing_requests=plan.max_ongoing_requests,
                gpus=plan.gpu_fraction,
                worker_group=groups[0],
            )
        },
    )


def _find_path(source: str, revision: str | None, application: str) -> str:
    """Return the path to which the download Job writes a model; another source stays as it is."""
    if revision is None:
        return _find_source(source, application)
    return f"{MOUNT}/{source.replace('://', '/')}/{revision or 'main'}"


def _find_source(source: str, application: str) -> str:
    """Return the source for the chart: the path of a model on an existing claim or in an image, else the source
    itself."""
    if image := IMAGE.fullmatch(source):
        return f"{IMAGES}/{application}{image['folder'] or ''}"
    match = CLAIM.fullmatch(source)
    return f"{MOUNT}/{match['path']}" if match else source


def _build_model(plan: ModelPlan, groups: list[str]) -> ServedModel:
    assert get_task(plan.task).server == "vllm"
    ranks, roles = plan.data_parallel_size, plan.prefill_decode
    # Ray packs the ranks of a group itself, and takes no strategy of a replica for them.
    one_node = plan.nodes_per_replica == 1 and plan.gpus_per_replica > 1 and ranks == 1
    partition = ",".join(map(str, plan.layer_partition))
    return ServedModel(
        source=_find_source(plan.source, plan.application),
        revision=plan.revision or "",
        task=plan.task,
        engine=_build_engine(plan),
        lora=_build_lora(plan),
        aliases=list(plan.aliases),
        worker_groups=groups,
        gpu_fraction=plan.gpu_fraction,
        placement_strategy="STRICT_PACK" if one_node else "PACK",
        autoscaling=_build_role_scaling(plan, roles.decode)
        if roles
        else ModelAutoscaling(
            min_replicas=plan.min_replicas,
            max_replicas=plan.max_replicas,
            target_ongoing_requests=ceil(plan.target_ongoing_requests / ranks),
            **build_delays(plan),
            policy=build_policy(plan),
        ),
        max_ongoing_requests=roles.decode.max_ongoing_requests if roles else ceil(plan.max_ongoing_requests / ranks),
        prefill=_build_prefill(plan, roles) if roles else None,
        router=Router(kind="PrefixAffinity" if plan.routing == "prefix-affinity" else "PowerOfTwo"),
        env={"VLLM_PP_LAYER_PARTITION": partition} if partition else {},
    )


def _build_prefill(plan: ModelPlan, roles: PrefillDecodePlan) -> Prefill:
    return Prefill.model_validate(
        {
            "autoscaling": _build_role_scaling(plan, roles.prefill),
            "max_ongoing_requests": roles.prefill.max_ongoing_requests,
            "connector": roles.connector,
        }
    )


def _build_role_scaling(plan: ModelPlan, role: RolePlan) -> ModelAutoscaling:
    delays = build_delays(plan) if role.min_replicas < role.max_replicas else {}
    if delays:
        delays["initial_replicas"] = role.replicas
    return ModelAutoscaling(
        min_replicas=role.min_replicas,
        max_replicas=role.max_replicas,
        target_ongoing_requests=role.target_ongoing_requests,
        **delays,
    )


def _build_lora(plan: ModelPlan) -> Lora:
    if not plan.adapters:
        return Lora()
    adapters = {
        name: LoraAdapter(
            source=adapter.source,
            revision=adapter.revision or "",
            base_model="" if adapter.base_model == plan.source else adapter.base_model,
        )
        for name, adapter in plan.adapters.items()
    }
    return Lora.model_validate({"slots": plan.adapter_slots, "max_rank": plan.adapter_rank, "adapters": adapters})


def _build_engine(plan: ModelPlan) -> Engine:
    arguments: dict[str, Any] = {
        "tensor_parallel_size": plan.tensor_parallel_size,
        "pipeline_parallel_size": plan.pipeline_parallel_size,
        "max_model_len": plan.max_model_len,
        "max_num_seqs": plan.max_num_seqs,
        "max_num_batched_tokens": plan.max_num_batched_tokens,
        "gpu_memory_utilization": plan.gpu_memory_utilization,
    }
    if plan.expert_parallel:
        arguments["enable_expert_parallel"] = True
    if plan.data_parallel_size > 1:
        arguments["data_parallel_size"] = plan.data_parallel_size
    extra: dict[str, Any] = {}
    for key, value in plan.engine.items():
        known = key in Engine.model_fields and key != "extra"
        (arguments if known else extra)[key] = _SPELLINGS.get(value, value) if key == "dtype" else value
    return Engine(**arguments, extra=extra)
