"""What people try in a tenant's namespace: one row each, with the request and the right that it needs.

`{ns}` is the namespace, `{pod}` a pod of Ray's, `{service}` the RayService. Writes are dry runs.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["ATTEMPTS", "OF_THE_CLUSTER", "Attempt"]

VIEWER, EDITOR, DEPLOYER = "viewer", "editor", "deployer"
EVERYBODY = (VIEWER, EDITOR, DEPLOYER)
DRY = "dryRun=All"
RAY = "/apis/ray.io/v1/namespaces/{ns}"
CORE = "/api/v1/namespaces/{ns}"
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}"
NET = "/apis/networking.k8s.io/v1/namespaces/{ns}"
NOTE: Mapping[str, Any] = {"metadata": {"annotations": {"tried": "yes"}}}


def _made(api: str, kind: str, **spec: Any) -> Mapping[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "tried"}, **spec}


POD = _made(
    "v1",
    "Pod",
    spec={
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "x",
                "image": "x",
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            }
        ],
    },
)
ROLE = _made("rbac.authorization.k8s.io/v1", "Role", rules=[])
ADMIN = _made(
    "rbac.authorization.k8s.io/v1",
    "RoleBinding",
    roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
    subjects=[{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "tried"}],
)
TOKEN = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
DENY = _made("networking.k8s.io/v1", "NetworkPolicy", spec={"podSelector": {}})


class Attempt(NamedTuple):
    """One thing that a user tries."""

    method: str
    path: str
    verb: str
    resource: str
    """`<plural>`, or `<plural>/<subresource>`."""
    group: str = ""
    """API group of the resource."""
    body: Mapping[str, Any] | None = None
    by: tuple[str, ...] = ()
    """Who may, in the own namespace."""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"


def _get(resource: str, path: str = "", group: str = "", by: tuple[str, ...] = ()) -> Attempt:
    """A list where no path is named."""
    verb = "get" if path else "list"
    return Attempt("GET", path or f"{CORE}/{resource}", verb, resource, group, None, by)


ATTEMPTS = [
    # -- looking
    _get("rayservices", f"{RAY}/rayservices/{{service}}", "ray.io", EVERYBODY),
    Attempt("GET", f"{RAY}/rayclusters", "list", "rayclusters", "ray.io", None, EVERYBODY),
    _get("pods", by=EVERYBODY),
    _get("pods/log", f"{CORE}/pods/{{pod}}/log", by=EVERYBODY),
    _get("events", by=EVERYBODY),
    _get("configmaps", by=EVERYBODY),
    _get("services", by=EVERYBODY),
    _get("resourcequotas", by=EVERYBODY),
    Attempt("GET", f"{NET}/networkpolicies", "list", "networkpolicies", "networking.k8s.io", None, EVERYBODY),
    # -- the service
    Attempt(
        "PATCH", f"{RAY}/rayservices/{{service}}?{DRY}", "patch", "rayservices", "ray.io", NOTE, (EDITOR, DEPLOYER)
    ),
    Attempt(
        "DELETE", f"{RAY}/rayservices/{{service}}?{DRY}", "delete", "rayservices", "ray.io", None, (EDITOR, DEPLOYER)
    ),
    Attempt("DELETE", f"{RAY}/rayservices?{DRY}", "deletecollection", "rayservices", "ray.io"),
    Attempt("PATCH", f"{RAY}/rayservices/{{service}}/status?{DRY}", "patch", "rayservices/status", "ray.io", NOTE),
    Attempt("POST", f"{RAY}/rayjobs?{DRY}", "create", "rayjobs", "ray.io", _made("ray.io/v1", "RayJob", spec={})),
    Attempt("POST", f"{RAY}/rayclusters?{DRY}", "create", "rayclusters", "ray.io", _made("ray.io/v1", "RayCluster")),
    # -- secrets
    _get("secrets", by=(DEPLOYER,)),
    _get("secrets", f"{CORE}/secrets/of-the-team", by=(DEPLOYER,)),
    Attempt("PATCH", f"{CORE}/secrets/of-the-team?{DRY}", "patch", "secrets", "", NOTE, (DEPLOYER,)),
    # -- into pods
    Attempt("POST", f"{CORE}/pods/{{pod}}/exec?command=id&stdout=1", "create", "pods/exec"),
    _get("pods/exec", f"{CORE}/pods/{{pod}}/exec?command=id&stdout=1"),
    Attempt("POST", f"{CORE}/pods/{{pod}}/attach?stdout=1", "create", "pods/attach"),
    Attempt("POST", f"{CORE}/pods/{{pod}}/portforward?ports=8265", "create", "pods/portforward"),
    _get("pods/portforward", f"{CORE}/pods/{{pod}}/portforward?ports=8265"),
    _get("pods/proxy", f"{CORE}/pods/{{pod}}:8265/proxy/"),
    _get("services/proxy", f"{CORE}/services/{{service}}-head-svc:8265/proxy/"),
    Attempt("PATCH", f"{CORE}/pods/{{pod}}/ephemeralcontainers?{DRY}", "patch", "pods/ephemeralcontainers", "", NOTE),
    Attempt("POST", f"{CORE}/pods/{{pod}}/eviction?{DRY}", "create", "pods/eviction"),
    Attempt("PATCH", f"{CORE}/pods/{{pod}}?{DRY}", "patch", "pods", "", NOTE, (DEPLOYER,)),
    Attempt("POST", f"{CORE}/pods?{DRY}", "create", "pods", "", POD, (DEPLOYER,)),
    # -- widening one's own rights
    Attempt("POST", f"{RBAC}/rolebindings?{DRY}", "create", "rolebindings", "rbac.authorization.k8s.io", ADMIN),
    Attempt(
        "PATCH", f"{RBAC}/rolebindings/{{ns}}-editor?{DRY}", "patch", "rolebindings", "rbac.authorization.k8s.io", NOTE
    ),
    Attempt("POST", f"{RBAC}/roles?{DRY}", "create", "roles", "rbac.authorization.k8s.io", ROLE),
    Attempt("PATCH", f"{RBAC}/roles/{{ns}}-editor?{DRY}", "patch", "roles", "rbac.authorization.k8s.io", NOTE),
    Attempt("POST", f"{CORE}/serviceaccounts/default/token", "create", "serviceaccounts/token", "", TOKEN),
    Attempt("PATCH", f"{CORE}/serviceaccounts/default?{DRY}", "patch", "serviceaccounts", "", NOTE, (DEPLOYER,)),
    # -- namespace isolation
    Attempt("PATCH", f"{CORE}/resourcequotas/{{ns}}?{DRY}", "patch", "resourcequotas", "", NOTE),
    Attempt("DELETE", f"{CORE}/resourcequotas/{{ns}}?{DRY}", "delete", "resourcequotas"),
    Attempt("DELETE", f"{CORE}/limitranges/{{ns}}?{DRY}", "delete", "limitranges"),
    Attempt(
        "POST", f"{NET}/networkpolicies?{DRY}", "create", "networkpolicies", "networking.k8s.io", DENY, (DEPLOYER,)
    ),
    Attempt("PATCH", f"{CORE}?{DRY}", "patch", "namespaces", "", NOTE),
    Attempt("DELETE", f"{CORE}?{DRY}", "delete", "namespaces"),
]

OF_THE_CLUSTER = [
    "/api/v1/pods",
    "/api/v1/secrets",
    "/api/v1/events",
    "/api/v1/namespaces",
    "/api/v1/nodes",
    "/api/v1/persistentvolumes",
    "/apis/ray.io/v1/rayservices",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
]
"""Lists over all namespaces."""
