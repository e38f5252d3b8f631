"""Generate random edits of a RayService from a seed.

Each edit has one to three changes, and many are made in a state that an earlier edit left: upgrade strategy None, a
pending upgrade, a second worker group, replicas that Ray's autoscaler set. `make verify-diff` makes them with the real
operator.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from cluster.edits.observation import EditCase, EditStep

__all__ = ["generate_edits"]

Operations = list[dict[str, Any]]
Mutation = Callable[[Random], Operations]

CLUSTER = "/spec/rayClusterConfig"
HEAD, GROUP = f"{CLUSTER}/headGroupSpec", f"{CLUSTER}/workerGroupSpecs/0"
CONFIG = "applications: [{{name: chat, import_path: edited:app{}, route_prefix: /chat}}]"


def _set(path: str, *values: Any) -> Mutation:
    """Write one of the values."""
    return lambda random: [{"op": "add", "path": path, "value": random.choice(values)}]


def _in_pods(path: str, *values: Any) -> Mutation:
    """Write one of the values for the head or for the workers."""
    return lambda random: [
        {"op": "add", "path": f"{random.choice((HEAD, GROUP))}{path}", "value": random.choice(values)}
    ]


def _append_group(random: Random) -> Operations:
    name = random.choice(("another", "more", "zone-b"))
    end = f"{CLUSTER}/workerGroupSpecs/-"
    copied: Operations = [{"op": "copy", "from": GROUP, "path": end}]
    return [*copied, {"op": "replace", "path": f"{CLUSTER}/workerGroupSpecs/1/groupName", "value": name}]


def _insert_group(random: Random) -> Operations:
    return [
        {"op": "copy", "from": GROUP, "path": f"{CLUSTER}/workerGroupSpecs/0"},
        {"op": "replace", "path": f"{GROUP}/groupName", "value": random.choice(("a-first", "first"))},
    ]


def _move_env(random: Random) -> Operations:
    old, new = random.sample(range(8), 2)
    path = f"{random.choice((HEAD, GROUP))}/template/spec/containers/0/env"
    return [{"op": "move", "from": f"{path}/{old}", "path": f"{path}/{new}"}]


def _edit_config(random: Random) -> Operations:
    texts = [
        CONFIG.format(""),
        CONFIG.format(random.randrange(9)),
        "applications: [chat",
        CONFIG.format("") + "  # same",
    ]
    return [{"op": "replace", "path": "/spec/serveConfigV2", "value": random.choice(texts)}]


SPEC, CONTAINER = "/template/spec", "/template/spec/containers/0"
MUTATIONS: tuple[Mutation, ...] = (
    _edit_config,
    _edit_config,
    _append_group,
    _append_group,
    _insert_group,
    _move_env,
    _set(f"{GROUP}/minReplicas", 0, 2),
    _set(f"{GROUP}/maxReplicas", 3, 9),
    _set(f"{GROUP}/replicas", 1, 2),
    _set(f"{GROUP}/numOfHosts", 1),
    _set(f"{GROUP}/scaleStrategy", {}, {"workersToDelete": ["no-such-pod"]}),
    _set(f"{GROUP}/idleTimeoutSeconds", 60, 600),
    _set(f"{GROUP}/rayStartParams/object-store-memory", "1073741824"),
    _set(f"{GROUP}/resources", {}, {"GPU": "1"}),
    _set(f"{GROUP}/labels", {}, {"zone": "b"}),
    _set(f"{GROUP}/template/metadata/labels/example.com~1edited", "yes", "no"),
    _set(f"{GROUP}{SPEC}/nodeSelector/nvidia.com~1gpu.present", "true"),
    _set(f"{GROUP}{CONTAINER}/resources/limits/memory", "16Gi", "16384Mi", "17179869184"),
    _set(f"{GROUP}{CONTAINER}/resources/requests/cpu", "4000m", 4, "3500m"),
    _in_pods(f"{SPEC}/tolerations", [], [{"key": "example.com/edited", "operator": "Exists"}]),
    _in_pods("/template/metadata/annotations/example.com~1edited", "", "yes"),
    _in_pods(f"{SPEC}/terminationGracePeriodSeconds", 0, 90),
    _in_pods(f"{SPEC}/priorityClassName", ""),
    _in_pods(f"{SPEC}/hostNetwork", False),
    _in_pods(f"{SPEC}/schedulerName", "", "default-scheduler"),
    _in_pods(f"{SPEC}/imagePullSecrets", [], [{"name": "registry"}]),
    _in_pods(f"{SPEC}/affinity", {}),
    _in_pods(f"{SPEC}/enableServiceLinks", True, False),
    _in_pods(
        f"{CONTAINER}/env/-", {"name": "EDITED"}, {"name": "EDITED", "value": ""}, {"name": "EDITED", "value": "1"}
    ),
    _in_pods(f"{CONTAINER}/env/0/value", "/cache/cuda", "/cache/cuda2"),
    _in_pods(f"{CONTAINER}/image", "rayproject/ray-llm:2.60.1-py312-cu130"),
    _in_pods(f"{CONTAINER}/workingDir", "", "/cache"),
    _in_pods(f"{CONTAINER}/stdin", False),
    _in_pods(f"{CONTAINER}/args", []),
    _in_pods(f"{CONTAINER}/lifecycle", {}),
    _in_pods(f"{CONTAINER}/ports/0/protocol", "TCP"),
    _in_pods(f"{CONTAINER}/volumeMounts/0/readOnly", False),
    _set(f"{HEAD}/rayStartParams/dashboard-host", "0.0.0.0", "127.0.0.1"),
    _set(f"{HEAD}/labels", {}),
    _set(f"{HEAD}/serviceType", "", "ClusterIP"),
    _set(f"{HEAD}/enableIngress", False),
    _set(f"{CLUSTER}/rayVersion", "2.60.0", "2.60.1"),
    _set(f"{CLUSTER}/headServiceAnnotations", {}, {"example.com/edited": "yes"}),
    _set(f"{CLUSTER}/suspend", False),
    _set(f"{CLUSTER}/authOptions", {}, {"mode": "token"}, {"mode": "disabled"}),
    _set(f"{CLUSTER}/enableInTreeAutoscaling", True, False),
    _set(f"{CLUSTER}/autoscalerOptions/idleTimeoutSeconds", 300, 60, -1),
    _set(f"{CLUSTER}/autoscalerOptions/upscalingMode", "Default", "Conservative"),
    _set(f"{CLUSTER}/autoscalerOptions/imagePullPolicy", "IfNotPresent", "Always"),
    _set("/spec/rayClusterDeletionDelaySeconds", 1, 3),
    _set("/spec/excludeHeadPodFromServeSvc", False),
    _set("/spec/upgradeStrategy/type", "None", "NewCluster"),
    _set("/metadata/labels/example.com~1edited", "yes"),
    _set("/metadata/annotations/example.com~1edited", "yes"),
)
_VERSION = {"spec": {"rayClusterConfig": {"rayVersion": "2.60.2"}}}
_NONE = {"spec": {"upgradeStrategy": {"type": "None"}}}
_STUCK = {"spec": {"rayClusterDeletionDelaySeconds": 600, **_VERSION["spec"]}}
BEFORE: tuple[tuple[EditStep, ...], ...] = (
    *[()] * 11,
    *[(EditStep(patch=_NONE),)] * 3,
    (EditStep(patch=_NONE), EditStep(patch=_VERSION)),
    (EditStep(scale={"gpu": 2}),),
    (EditStep(patch=[{"op": "replace", "path": f"{GROUP}/maxReplicas", "value": 4}]),),
    (EditStep(ray="fails"), EditStep(patch=_STUCK)),
)
"""States before the edit; frequent ones several times."""


def generate_edits(seed: int, count: int) -> tuple[EditCase, ...]:
    """Return the first `count` edits of a seed; a larger count has the same ones first."""
    return tuple(_generate(Random(f"{seed}-{number}"), number) for number in range(1, count + 1))


def _generate(random: Random, number: int) -> EditCase:
    chosen = random.sample(MUTATIONS, random.choice((1, 1, 2, 2, 3)))
    # Paths of a group stay valid only before another group is inserted.
    ordered = sorted(dict.fromkeys(chosen), key=lambda mutation: mutation is _insert_group)
    operations = [operation for mutation in ordered for operation in mutation(random)]
    before = random.choice(BEFORE)
    heals = [EditStep(ray="heals")] if any(step.ray for step in before) else []
    return EditCase(
        id=f"random-{number}",
        edit=_describe(operations),
        before=before,
        operator="restarts" if not heals and random.random() < 0.08 else "runs",
        steps=(EditStep(patch=operations), *heals),
    )


def _describe(operations: Sequence[dict[str, Any]]) -> str:
    return "; ".join(f"{each['op']} {each['path'].removeprefix('/spec/')}" for each in operations)
