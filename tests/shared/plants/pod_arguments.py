"""Faults that the check `pod-arguments` finds."""

from rayhelm.live.cluster.kinds import PODS
from shared.plant import Change, Plant

PLANTS = (
    Plant(
        "A pod runs another image than the plan",
        r"image: rayproject/ray-llm:2\.59\.0 instead of rayproject/ray-llm",
        "Pod lab/*-lab-a5000-worker-*",
        change=(
            Change(
                PODS,
                "*-lab-a5000-worker-*",
                "lab",
                {"spec": {"containers": [{"name": "ray-worker", "image": "rayproject/ray-llm:2.59.0"}]}},
                is_strategic=True,
            ),
        ),
    ),
    Plant(
        "A pod was started without its GPU",
        "ray start --num-gpus: 0 instead of 1",
        "Pod lab/*-lab-a4000-worker-*",
        is_only_recorded=True,
        change=(
            Change(
                PODS,
                "*-lab-a4000-worker-*",
                "lab",
                {"spec": {"containers": [{"name": "ray-worker", "args": ["ray start --num-gpus=0 "]}]}},
                is_strategic=True,
            ),
        ),
    ),
)
