"""Names that become Kubernetes names. A name that is too long is refused, never shortened."""

from typing import Annotated

from pydantic import AfterValidator, Field

from rayhelm.errors import Fix
from rayhelm.spec.base import Refusal, short

__all__ = ["MAX_LABEL", "MAX_SERVICE_NAME", "DnsName", "Name", "SecretName"]

MAX_SERVICE_NAME = 47
"""Limit of KubeRay for the name of a RayService: it appends to it, and the name of a Service has 63 characters."""
MAX_LABEL = 63
"""Kubernetes' limit for one part of a DNS name and for the value of a label."""

_PATTERN = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"
_DNS = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"


def _check_length(name: str) -> str:
    if len(name) > MAX_SERVICE_NAME:
        raise Refusal(
            f"the name `{short(name)}` has {len(name)} characters; KubeRay allows {MAX_SERVICE_NAME}",
            Fix("", name[:MAX_SERVICE_NAME].rstrip("-")),
        )
    return name


_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def _check_yaml_word(name: str) -> str:
    if name in _WORDS:
        raise Refusal(
            f"`{name}` cannot be a name: without quotes YAML reads it as true, false or null", Fix("", f"{name}-1")
        )
    return name


Name = Annotated[
    str,
    Field(pattern=_PATTERN, examples=["my-name"]),
    AfterValidator(_check_length),
    AfterValidator(_check_yaml_word),
]
"""DNS-1035 label of at most 47 characters."""
SecretName = Annotated[
    str, Field(pattern=_PATTERN, max_length=MAX_LABEL, examples=["my-secret"]), AfterValidator(_check_yaml_word)
]
"""Name of an existing Secret."""
DnsName = Annotated[str, Field(pattern=_DNS, max_length=253, examples=["ai.example.com"])]
"""DNS-1123 subdomain, for host names and names of storage classes."""
