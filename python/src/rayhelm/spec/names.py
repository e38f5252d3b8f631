"""Names that become Kubernetes names. They are never cut: one that is too long is refused."""

from typing import Annotated

from pydantic import AfterValidator, Field

from rayhelm.spec.base import Refusal, short

__all__ = ["MAX_LABEL", "MAX_SERVICE_NAME", "DnsName", "Name", "SecretName"]

MAX_SERVICE_NAME = 47
"""KubeRay's limit for a RayService: it appends to the name, and a Service has 63 characters."""
MAX_LABEL = 63
"""Kubernetes' limit for one part of a DNS name and for the value of a label."""

_PATTERN = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"
_DNS = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"


def _not_longer(name: str) -> str:
    if len(name) > MAX_SERVICE_NAME:
        raise Refusal(
            f"`{short(name)}` has {len(name)} characters; KubeRay allows {MAX_SERVICE_NAME}, and rayhelm never cuts a"
            " name",
            f"choose a shorter one: `{name[:MAX_SERVICE_NAME].rstrip('-')}` would do",
        )
    return name


_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def _not_a_word_of_yaml(name: str) -> str:
    if name in _WORDS:
        raise Refusal(
            f"`{name}` cannot be a name: without quotes Helm and Kubernetes read it as true, false or nothing",
            f"choose another one: `{name}-1` would do",
        )
    return name


Name = Annotated[
    str,
    Field(pattern=_PATTERN, examples=["my-name"]),
    AfterValidator(_not_longer),
    AfterValidator(_not_a_word_of_yaml),
]
"""DNS-1035 label of at most 47 characters."""
SecretName = Annotated[
    str, Field(pattern=_PATTERN, max_length=MAX_LABEL, examples=["my-secret"]), AfterValidator(_not_a_word_of_yaml)
]
"""Name of a Secret that exists already, in the form that the chart takes."""
DnsName = Annotated[str, Field(pattern=_DNS, max_length=253, examples=["ai.example.com"])]
"""DNS-1123 subdomain: host names, names of storage classes."""
