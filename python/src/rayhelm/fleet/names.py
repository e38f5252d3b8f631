"""Names that become Kubernetes names. A name that is too long is refused; only names of models are shortened."""

import re
from hashlib import sha256
from typing import Annotated

from pydantic import AfterValidator, Field

from rayhelm.errors import Fix
from rayhelm.fleet.base import Refusal, short

__all__ = [
    "MAX_LABEL",
    "MAX_SERVICE_NAME",
    "MODEL_PATTERN",
    "DnsName",
    "ModelName",
    "Name",
    "SecretName",
    "derive_kubernetes_name",
    "name_part",
]

MAX_SERVICE_NAME = 47
"""Limit of KubeRay for the name of a RayService: it appends to it, and the name of a Service has 63 characters."""
MAX_LABEL = 63
"""Kubernetes' limit for one part of a DNS name and for the value of a label."""

_PATTERN = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"
_PART = r"[A-Za-z0-9][A-Za-z0-9._-]*"
MODEL_PATTERN = rf"^({_PART}/)*[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"
"""Form of a `ModelName`."""
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
            f"`{name}` cannot be a name: without quotes YAML reads it as true, false or null",
            Fix("", f"{name}-1", "an example"),
        )
    return name


Name = Annotated[
    str,
    Field(pattern=_PATTERN, examples=["my-name"]),
    AfterValidator(_check_length),
    AfterValidator(_check_yaml_word),
]
"""DNS-1035 label of at most 47 characters."""
ModelName = Annotated[
    str, Field(pattern=MODEL_PATTERN, max_length=96, examples=["llama-3.1-8b"]), AfterValidator(_check_yaml_word)
]
"""Name of a model as clients send it: letters, digits, dots, hyphens and underscores, in parts with slashes between
them. The gateway takes the same form, because the name is a URL path too."""
SecretName = Annotated[
    str, Field(pattern=_DNS, max_length=253, examples=["my-secret"]), AfterValidator(_check_yaml_word)
]
"""Name of an existing Secret or ConfigMap: a DNS-1123 subdomain."""
DnsName = Annotated[str, Field(pattern=_DNS, max_length=253, examples=["ai.example.com"])]
"""DNS-1123 subdomain, for host names and names of storage classes."""


def derive_kubernetes_name(model: str) -> str:
    """Return the Kubernetes name of a model: its own if that is one. It depends on nothing else, so another model never
    changes it."""
    lower = re.sub("[^a-z0-9]+", "-", model.lower()).strip("-")
    name = model if re.fullmatch(_PATTERN, model) else lower if lower[:1].isalpha() else f"m-{lower}"
    if len(name) <= MAX_SERVICE_NAME:
        return name
    mark = sha256(model.encode()).hexdigest()[:6]
    return f"{name[: MAX_SERVICE_NAME - len(mark) - 1].rstrip('-')}-{mark}"


def name_part(model: str, index: int, pool: str) -> str:
    """Return the name of the replicas of a model on one of its `pools`: the first pool has the name of the model, so
    that a further pool changes nothing about a service that runs."""
    return f"{model}-{pool}" if index else model
