"""A Redis in a pod for state that has to survive the head of a Ray cluster."""

from collections.abc import Sequence
from secrets import token_urlsafe

from rayhelm.deploy.values.common.network import Peer
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.deploy.values.ray_service.cluster import GcsFaultTolerance, SecretKeyRef
from rayhelm.run.rehearsal.cluster_session import RESTRICTED, ClusterSession, build_namespace

__all__ = ["start_redis", "with_redis"]

NAME = "redis"
IMAGE = "rayhelm.local/ray:redis"


def start_redis(session: ClusterSession, users: Sequence[str]) -> None:
    """Start Redis, store its password in each namespace of `users`, and wait until it answers."""
    password = token_urlsafe(24)
    existing = {item["metadata"]["name"] for item in session.kubectl.get("namespaces")["items"]}
    session.kubectl.apply_objects(*(build_namespace(name, RESTRICTED) for name in {NAME, *users} - existing))
    secrets = [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": NAME, "namespace": where},
            "stringData": {"password": password},
        }
        for where in (NAME, *users)
    ]
    session.kubectl.apply_objects(*secrets, _pod(), _service())
    session.kubectl("wait", f"pod/{NAME}", f"--namespace={NAME}", "--for=condition=Ready", "--timeout=180s")


def with_redis(values: RayServiceValues) -> RayServiceValues:
    policy = values.network_policy
    where = policy.redis.model_copy(update={"peer": Peer(namespace=NAME)})
    tolerance = GcsFaultTolerance(
        enabled=True,
        redis_address=f"{NAME}.{NAME}.svc.cluster.local:6379",
        password_secret=SecretKeyRef(name=NAME, key="password"),
    )
    changed = {"gcs_fault_tolerance": tolerance, "network_policy": policy.model_copy(update={"redis": where})}
    return values.model_copy(update=changed)


def _pod() -> dict[str, object]:
    secret = {"secretKeyRef": {"name": NAME, "key": "password"}}
    container = {
        "name": NAME,
        "image": IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["bash", "-c", "exec redis-server --save '' --protected-mode no --dir /tmp --requirepass $PASSWORD"],
        "env": [{"name": "PASSWORD", "valueFrom": secret}],
        "readinessProbe": {"tcpSocket": {"port": 6379}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    user = {"runAsNonRoot": True, "runAsUser": 1000, "runAsGroup": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": NAME, "namespace": NAME, "labels": {"app": NAME}},
        "spec": {"securityContext": user, "terminationGracePeriodSeconds": 1, "containers": [container]},
    }


def _service() -> dict[str, object]:
    ports = [{"port": 6379}]
    meta = {"name": NAME, "namespace": NAME}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": meta,
        "spec": {"selector": {"app": NAME}, "ports": ports},
    }
