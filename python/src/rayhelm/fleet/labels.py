"""Labels, taints and images, in the forms that Kubernetes admits."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from rayhelm.errors import Fix
from rayhelm.fleet.base import Record, Refusal, short
from rayhelm.fleet.repository import MAX_REPOSITORY, REPOSITORY

__all__ = ["FleetImage", "GpuResource", "LabelKey", "Labels", "PoolToleration", "RdmaResource"]

_PART = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def _key(text: str) -> str:
    domain, slash, name = text.rpartition("/")
    if not _PART.fullmatch(name) or (slash and (len(domain) > 253 or not _DOMAIN.fullmatch(domain))):
        raise Refusal(
            f"`{short(text)}` cannot be the key of a label or taint; write letters, digits, `-`, `_` and `.`, at most"
            " 63, after an optional domain",
            Fix("", _as_key(domain, name)),
        )
    return text


def _as_key(domain: str, name: str) -> str:
    name = _as_part(name) or "gpu-node"
    return f"{domain}/{name}" if len(domain) <= 253 and _DOMAIN.fullmatch(domain) else name


def _as_part(text: str) -> str:
    return re.sub("[^-A-Za-z0-9_.]+", "-", text).lstrip("-_.")[:63].rstrip("-_.")


def _value(text: str) -> str:
    if text and not _PART.fullmatch(text):
        raise Refusal(
            f"`{short(text)}` cannot be the value of a label or taint; write letters, digits, `-`, `_` and `.`, at most"
            " 63, with a letter or digit first and last",
            Fix("", _as_part(text)),
        )
    return text


def _resource(text: str, example: str) -> str:
    domain, _, name = text.rpartition("/")
    if not domain or not _DOMAIN.fullmatch(domain) or not _PART.fullmatch(name):
        raise Refusal(
            f"`{short(text)}` is not the name of an extended resource",
            Fix("", example, "kubectl describe node lists them under Allocatable"),
        )
    return text


def _rdma_resource(text: str) -> str:
    return _resource(text, _RDMA)


def _gpu_resource(text: str) -> str:
    return _resource(text, _GPU)


_RDMA, _GPU = "rdma/hca_shared_devices_a", "nvidia.com/gpu"
_EXAMPLE = Fix("", "registry.example/team/ray-vllm")


def _repository(text: str) -> str:
    if len(text) > MAX_REPOSITORY:
        raise Refusal(
            f"`{short(text)}` has {len(text)} characters; an image repository has at most {MAX_REPOSITORY}", _EXAMPLE
        )
    if re.fullmatch(REPOSITORY, text):
        return text
    before, _, after = text.partition("@") if "@" in text else text.rpartition(":")
    if re.fullmatch(REPOSITORY, before):
        key = "digest" if "@" in text else "tag"
        raise Refusal(f"`{short(text)}` has a {key}, which has its own key", Fix("", before, f'and {key}: "{after}"'))
    raise Refusal(f"`{short(text)}` is not an image repository", _EXAMPLE)


def _tag(text: str) -> str:
    if text == "latest":
        message = "the content of tag `latest` changes; write the tag of one build, or its `digest`"
        raise Refusal(message, Fix("", "2.60.0-py312", "an example: a tag that the registry does not overwrite"))
    if not re.fullmatch(r"[A-Za-z0-9_][-A-Za-z0-9_.]{0,127}", text):
        raise Refusal(f"`{short(text)}` is not an image tag", Fix("", "2.60.0-py312", "an example"))
    return text


LabelKey = Annotated[str, AfterValidator(_key), Field(examples=["example.com/gpu-node"])]
LabelValue = Annotated[str, AfterValidator(_value), Field(examples=["a5000"])]
Labels = dict[LabelKey, LabelValue]
RdmaResource = Annotated[str, AfterValidator(_rdma_resource), Field(examples=[_RDMA])]
"""`domain/name`, as an RDMA device plugin advertises it."""
GpuResource = Annotated[str, AfterValidator(_gpu_resource), Field(examples=[_GPU])]
"""`domain/name`, as the device plugin of a GPU advertises it."""


class PoolToleration(Record):
    """A taint that the pods of the pool tolerate."""

    key: LabelKey
    """Key of the taint."""
    operator: Literal["Exists", "Equal"] = "Exists"
    """`Exists` tolerates every value of the taint, `Equal` only `value`."""
    value: LabelValue | None = None
    """Value of the taint, for `Equal`."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Effect of the taint; default: every effect."""

    @model_validator(mode="after")
    def _check_value(self) -> Self:
        if self.operator == "Exists" and self.value is not None:
            raise Refusal("operator `Exists` takes no `value`", Fix("operator", "Equal"))
        if self.operator == "Equal" and self.value is None:
            raise Refusal("operator `Equal` needs `value`", Fix("operator", "Exists", "or add `value`"))
        return self


class FleetImage(Record):
    """A container image; a digest wins over a tag."""

    repository: Annotated[str, AfterValidator(_repository)] = Field(examples=["registry.example/team/ray-vllm"])
    """Repository, with the host of the registry unless it is the default one."""
    tag: Annotated[str, AfterValidator(_tag)] | None = Field(default=None, examples=["2.60.0-py312"])
    """Tag of one build."""
    digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")] | None = Field(
        default=None, examples=["sha256:" + 64 * "0"]
    )
    """Digest, as the registry shows it."""
    includes_rayhelm: bool = False
    """The image has the Python package rayhelm. Then replicas count tokens by tenant. `tracing`
    and models with `scaling: engine-queue` need it on every node."""

    @model_validator(mode="after")
    def _check_pinned(self) -> Self:
        if not self.tag and not self.digest:
            raise Refusal(
                "the image has neither `tag` nor `digest`, so it is `latest`, whose content changes",
                Fix("tag", "2.60.0-py312"),
            )
        return self
