"""Annotations with which the controller of an Ingress passes long responses and large bodies.

The defaults that they replace, by the documentation of each controller:
ingress-nginx: `proxy-read-timeout` 60 s without data, `proxy-body-size` 1 MiB, its `nginx.conf`.
AWS Load Balancer Controller: idle timeout of an Application Load Balancer, 60 s.
Application Gateway Ingress Controller: `request-timeout` 30 s.
"""

from collections.abc import Mapping

__all__ = ["build_nginx_ingress", "describe_defaults", "find_missing_annotations"]

_SECONDS = 1300
"""Above `timeouts.serverSeconds` of the gateway, so that clients get its own error."""
_NGINX = "nginx.ingress.kubernetes.io"
_ALB = "alb.ingress.kubernetes.io/load-balancer-attributes"
_NEEDED: Mapping[str, Mapping[str, str]] = {
    "nginx": {f"{_NGINX}/proxy-read-timeout": str(_SECONDS), f"{_NGINX}/proxy-body-size": "0"},
    "alb": {_ALB: f"idle_timeout.timeout_seconds={_SECONDS}"},
    "azure-application-gateway": {"appgw.ingress.kubernetes.io/request-timeout": str(_SECONDS)},
}
_DEFAULTS = {
    "nginx": "ingress-nginx ends a response after 60 s without data and refuses bodies above 1 MiB",
    "alb": "an Application Load Balancer ends a response after 60 s without data",
    "azure-application-gateway": "Application Gateway ends a response after 30 s",
}


def find_missing_annotations(class_name: str | None, annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations that an Ingress of this class lacks; none for an unknown class."""
    needed = _NEEDED.get(class_name or "", {})
    return {key: value for key, value in needed.items() if key not in annotations}


def build_nginx_ingress() -> dict[str, object]:
    """Build the example of an Ingress, with what long responses need."""
    return {"className": "nginx", "tlsSecret": "ai-tls", "annotations": find_missing_annotations("nginx", {})}


def describe_defaults(class_name: str | None) -> str:
    """Describe what the controller does without them."""
    return _DEFAULTS[class_name or ""]
