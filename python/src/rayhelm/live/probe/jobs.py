"""Jobs that measure: one for each node, and one for each pair of nodes."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rayhelm.facts.gpu import GpuKind
from rayhelm.fleet.pools import Pool
from rayhelm.live.probe.objects import NAMESPACE, WORKER

__all__ = ["PoolTarget", "build_node_job", "build_pair_job"]

Object = dict[str, Any]
PORT = 29_500
"""Where the two pods of a pair meet; their data uses other ports."""
TENANT = "rayhelm-probe"
RESULT = "/dev/termination-log"
"""Kubernetes takes the result from here into the status of the pod, so nothing has to read logs."""
_START = (
    "import os, sys; path = '/tmp/measure_hardware.py'; open(path, 'w').write(os.environ['PROGRAM']);"
    " os.execv(sys.executable, [sys.executable, path, *sys.argv[1:]])"
)
"""Processes for the links between GPUs are started from a file, so the program has to be one."""
_REQUESTS, _LIMITS = {"cpu": "500m", "memory": "2Gi"}, {"cpu": "2", "memory": "8Gi"}
_SPOT_TAINTS = {
    "karpenter": "karpenter.sh/capacity-type",
    "eks": "eks.amazonaws.com/capacityType",
    "gke": "cloud.google.com/gke-spot",
    "aks": "kubernetes.azure.com/scalesetpriority",
}


@dataclass(frozen=True)
class PoolTarget:
    """A pool that is measured."""

    name: str
    pool: Pool
    gpu: GpuKind
    """Kind of the GPUs; the first one in a pool with different hosts."""
    gpu_name: str
    """Kinds of all GPUs, joined with `+`."""
    image: str
    on_cpu: bool
    """CPUs are measured, over TCP; no GPU is requested."""
    namespace: str = NAMESPACE
    priority_class: str = "rayhelm-batch"
    """PriorityClass of pods with GPUs; empty for none."""
    assigned_user: bool = False
    """The cluster assigns the user of the pods, as OpenShift does."""
    run: str = "probe"
    """Suffix for the names of Jobs; different in each run."""


def build_node_job(target: PoolTarget, node: str, gpus: int, deadline_s: int) -> Object:
    """Return the Job that measures one node with all its GPUs."""
    terms = [_match(node)]
    return _build_job(target, "node", (node,), deadline_s, _build_pod(target, ["node"], terms, gpus, []))


def build_pair_job(target: PoolTarget, nodes: tuple[str, str], deadline_s: int) -> Object:
    """Return the Job that measures the network between two nodes: two pods with one GPU each."""
    name = _name(target, "pair", nodes)
    master = f"{name}-0.{WORKER}.{target.namespace}.svc"
    environment = [
        {"name": "MASTER_ADDR", "value": master},
        {"name": "MASTER_PORT", "value": str(PORT)},
        {"name": "JOIN_TIMEOUT_S", "value": str(deadline_s)},
    ]
    has_rdma = bool(target.pool.rdma_resource) and not target.on_cpu
    if not has_rdma and not target.on_cpu:
        environment.append({"name": "NCCL_IB_DISABLE", "value": "1"})  # as chart ray-service writes it for such workers
    pod = _build_pod(target, ["pair"], [_match(node) for node in dict.fromkeys(nodes)], 1, environment)
    pod["spec"]["subdomain"] = WORKER
    if nodes[0] != nodes[1]:
        apart = {
            "labelSelector": {"matchLabels": {"rayhelm.dev/probe-job": name}},
            "topologyKey": "kubernetes.io/hostname",
        }
        pod["spec"]["affinity"]["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
    if has_rdma:
        for part in ("requests", "limits"):
            pod["spec"]["containers"][0]["resources"][part][target.pool.rdma_resource] = "1"
    return _build_job(target, "pair", nodes, deadline_s, pod)


def _build_job(target: PoolTarget, what: str, nodes: Sequence[str], deadline_s: int, pod: Object) -> Object:
    name = _name(target, what, nodes)
    labels = {
        "app.kubernetes.io/name": WORKER,
        "app.kubernetes.io/part-of": "rayhelm",
        "rayhelm.dev/probe-pool": target.name,
        "rayhelm.dev/probe-job": name,
        # The policy gpu-owner requires a tenant of each pod with GPUs, by which costs are counted.
        "rayhelm.dev/tenant": TENANT,
    }
    pod["metadata"] = {"labels": dict(labels)}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": target.namespace, "labels": labels},
        "spec": {
            "completions": len(nodes),
            "parallelism": len(nodes),
            "completionMode": "Indexed",
            "backoffLimit": 0,
            # The probe deletes its Jobs; these are for one that was killed.
            "activeDeadlineSeconds": deadline_s * 2,
            "ttlSecondsAfterFinished": 600,
            "template": pod,
        },
    }


def _name(target: PoolTarget, what: str, nodes: Sequence[str]) -> str:
    """A name of at most 60 characters: the host names of its pods have two more."""
    digest = hashlib.sha256(" ".join((target.name, *nodes)).encode()).hexdigest()[:8]
    return f"probe-{what}-{target.name[:30].rstrip('-')}-{digest}-{target.run}"


def _match(node: str) -> Object:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}


def _build_pod(
    target: PoolTarget, arguments: list[str], terms: list[Object], gpus: int, environment: list[Object]
) -> Object:
    devices = {} if target.on_cpu else {target.gpu.resource: str(gpus)}
    limits = {**_LIMITS, **devices}
    if gpus > 1 and not target.on_cpu:
        # One process for each GPU, with a CUDA context and a thread of NCCL.
        limits |= {"cpu": str(2 * gpus), "memory": f"{8 + 4 * gpus}Gi"}
    container = {
        "name": "measure",
        "image": target.image,
        "command": ["python3", "-c", _START, *arguments],
        "env": [
            {"name": "PROGRAM", "value": _read_program()},
            {"name": "RESULT_FILE", "value": RESULT},
            {"name": "HOME", "value": "/tmp"},
            {"name": "OMP_NUM_THREADS", "value": _LIMITS["cpu"]},
            *environment,
        ],
        "terminationMessagePath": RESULT,
        "resources": {"requests": {**_REQUESTS, **devices}, "limits": limits},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, {"name": "shm", "mountPath": "/dev/shm"}],
    }
    spec: Object = {
        "restartPolicy": "Never",
        "serviceAccountName": WORKER,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 5,
        "securityContext": {
            "runAsNonRoot": True,
            **({} if target.assigned_user else {"runAsUser": 1000, "runAsGroup": 1000}),
            "seccompProfile": {"type": "RuntimeDefault"},
            **({"supplementalGroups": list(target.pool.device_groups)} if target.pool.device_groups else {}),
        },
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}},
        "tolerations": _list_tolerations(target),
        "containers": [container],
        "volumes": [
            {"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}},
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
        ],
    }
    if target.priority_class and not target.on_cpu:
        spec["priorityClassName"] = target.priority_class
    if target.pool.runtime_class and not target.on_cpu:
        spec["runtimeClassName"] = target.pool.runtime_class
    return {"spec": spec}


def _list_tolerations(target: PoolTarget) -> list[Object]:
    """Those of worker pods: for the GPU vendor, for spot nodes, and of the pool."""
    found: list[Object] = [{"key": target.gpu.resource, "operator": "Exists", "effect": "NoSchedule"}]
    if target.pool.spot:
        found.append({"key": _SPOT_TAINTS[target.pool.spot], "operator": "Exists", "effect": "NoSchedule"})
    return found + [item.model_dump(by_alias=True, exclude_none=True) for item in target.pool.tolerations]


def _read_program() -> str:
    from rayhelm import runtime

    return (Path(runtime.__file__).parent / "measure_hardware.py").read_text(encoding="utf-8")
