"""Faults that the check `serve-scaling` finds."""

import json

from rayhelm.live.cluster.kinds import RAY_SERVICES
from rayhelm.live.doctor.facts import Object
from shared.plant import Change, Plant


def _config(target: float | None) -> str:
    scaling: Object = {"min_replicas": 1, "max_replicas": 4}
    if target is not None:
        scaling["target_ongoing_requests"] = target
    model = {
        "model_loading_config": {"model_id": "qwen3-32b"},
        "deployment_config": {"autoscaling_config": scaling},
        "placement_group_config": {"bundles": [{"GPU": 1, "lab-a5000.worker-group": 0.001}]},
    }
    return json.dumps({"applications": [{"name": "qwen3-32b", "args": {"llm_configs": [model]}}]}, indent=2)


PLANTS = (
    Plant(
        "A model that may scale has no target",
        "1-4 replicas, target_ongoing_requests None",
        "RayService lab/qwen3-32b",
        change=(Change(RAY_SERVICES, "qwen3-32b", "lab", {"spec": {"serveConfigV2": _config(None)}}),),
        is_only_recorded=True,
    ),
    Plant(
        "A model may have more replicas than its workers have GPUs",
        "4 replicas need 4 GPUs of worker group lab-a5000, which has at most 1 workers",
        "RayService lab/qwen3-32b",
        change=(Change(RAY_SERVICES, "qwen3-32b", "lab", {"spec": {"serveConfigV2": _config(4)}}),),
        is_only_recorded=True,
    ),
)
