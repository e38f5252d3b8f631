"""Faults that the check `deployments` finds."""

from typing import Any

from rayhelm.live.doctor.facts import Object
from shared.plant import Plant


def _deployment(name: str, **more: Any) -> Object:
    container = {"name": "one", "image": "registry.example/one:1", **more}
    spec = {"containers": [container], "nodeSelector": {"planted": "nowhere"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "gateway"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    }


_RESTRICTED = {
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
}


def _pod(name: str, status: Object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "gateway", "labels": {"app": "planted"}},
        "spec": {
            "nodeSelector": {"planted": "nowhere"},
            "containers": [{"name": "one", "image": "registry.example/one:1"}],
        },
        "status": status,
    }


def _waiting(reason: str) -> Object:
    return {"containerStatuses": [{"name": "one", "state": {"waiting": {"reason": reason, "message": "why"}}}]}


PLANTS = (
    Plant(
        "A Deployment's pod fits no node",
        "Unschedulable.*no node has what the pod asks for",
        "Deployment gateway/planted",
        create=(_deployment("planted", **_RESTRICTED),),
        eventually=True,
        is_only_real=True,
    ),
    Plant(
        "Pod Security refuses the pods of a Deployment",
        "violates PodSecurity.*the API server refuses its pods",
        "Deployment gateway/planted-refused",
        create=(_deployment("planted-refused"),),
        eventually=True,
        is_only_real=True,
    ),
    *(
        Plant(
            f"A pod waits with {reason}",
            found,
            "Deployment gateway/planted",
            create=(_deployment("planted"), _pod("planted-one", _waiting(reason))),
            is_only_recorded=True,
        )
        for reason, found in (
            ("ImagePullBackOff", "cannot pull the image"),
            ("CreateContainerConfigError", "a Secret, a ConfigMap or a key"),
            ("CrashLoopBackOff", "starts and ends again"),
        )
    ),
)
