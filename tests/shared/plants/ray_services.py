"""Faults that the check `ray-services` finds."""

from rayhelm.live.cluster.kinds import RAY_SERVICES
from rayhelm.live.doctor.facts import Object
from shared.plant import Change, Plant


def _broken(ready: Object) -> Object:
    return {"status": {"conditions": [{"type": "Ready", "lastTransitionTime": "2026-01-01T00:00:00Z", **ready}]}}


PLANTS = (
    Plant(
        "The operator refuses the spec of a RayService",
        "the operator refuses the spec",
        "RayService lab/qwen3-32b",
        change=(
            Change(
                RAY_SERVICES,
                "qwen3-32b",
                "lab",
                _broken({"status": "False", "reason": "ValidationFailed", "message": "rayVersion is required"}),
                is_status=True,
            ),
        ),
        is_only_recorded=True,
    ),
    Plant(
        "An upgrade does not end",
        r"UpgradeInProgress for \d+ minutes; the new RayCluster is qwen3-32b-new",
        "RayService lab/qwen3-32b",
        change=(
            Change(
                RAY_SERVICES,
                "qwen3-32b",
                "lab",
                {
                    "status": {
                        "pendingServiceStatus": {"rayClusterName": "qwen3-32b-new"},
                        "conditions": [
                            {"type": "Ready", "status": "True"},
                            {
                                "type": "UpgradeInProgress",
                                "status": "True",
                                "lastTransitionTime": "2026-01-01T00:00:00Z",
                            },
                        ],
                    }
                },
                is_status=True,
            ),
        ),
        is_only_recorded=True,
    ),
    Plant(
        "A service is Ready although an application failed",
        "DEPLOY_FAILED.*|although the RayService is Ready",
        "RayService lab/qwen3-32b",
        change=(
            Change(
                RAY_SERVICES,
                "qwen3-32b",
                "lab",
                {
                    "status": {
                        "activeServiceStatus": {
                            "applicationStatuses": {
                                "qwen3-32b": {"status": "DEPLOY_FAILED", "message": "CUDA out of memory"}
                            }
                        }
                    }
                },
                is_status=True,
            ),
        ),
        is_only_recorded=True,
    ),
)
