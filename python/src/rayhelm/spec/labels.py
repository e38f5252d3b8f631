"""Labels, taints and images, in the forms that Kubernetes admits."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from rayhelm.spec.base import Record, Refusal, short

__all__ = ["ExtendedResource", "Image", "LabelKey", "Labels", "Toleration"]

_PART = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_REPOSITORY = re.compile(r"([A-Za-z0-9][-A-Za-z0-9.]*(:[0-9]+)?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*")


def _key(text: str) -> str:
    domain, slash, name = text.rpartition("/")
    if not _PART.fullmatch(name) or (slash and (len(domain) > 253 or not _DOMAIN.fullmatch(domain))):
        raise Refusal(
            f"`{short(text)}` cannot be the key of a label or taint",
            "letters, digits, `-`, `_` and `.`, at most 63, after an optional domain: `example.com/gpu-node`",
        )
    return text


def _value(text: str) -> str:
    if text and not _PART.fullmatch(text):
        raise Refusal(
            f"`{short(text)}` cannot be the value of a label or taint",
            "letters, digits, `-`, `_` and `.`, at most 63, beginning and ending with a letter or digit",
        )
    return text


def _resource(text: str) -> str:
    domain, _, name = text.rpartition("/")
    if not domain or not _DOMAIN.fullmatch(domain) or not _PART.fullmatch(name):
        raise Refusal(
            f"`{short(text)}` is not the name of an extended resource",
            "rdmaResource: rdma/hca_shared_devices_a   # kubectl describe node, under Allocatable",
        )
    return text


def _repository(text: str) -> str:
    if _REPOSITORY.fullmatch(text):
        return text
    before, _, after = text.partition("@") if "@" in text else text.rpartition(":")
    if _REPOSITORY.fullmatch(before):
        key = "digest" if "@" in text else "tag"
        raise Refusal(f"`{short(text)}` carries a {key}", f'repository: {before}\n{key}: "{after}"')
    raise Refusal(f"`{short(text)}` is not a repository of images", "repository: registry.example/team/ray-vllm")


def _tag(text: str) -> str:
    if text == "latest":
        raise Refusal("`latest` moves: what was tested is not what runs", "write the tag of one build, or its `digest`")
    if not re.fullmatch(r"[A-Za-z0-9_][-A-Za-z0-9_.]{0,127}", text):
        raise Refusal(f"`{short(text)}` is not a tag", 'tag: "2.60.0-py312"')
    return text


LabelKey = Annotated[str, AfterValidator(_key), Field(examples=["example.com/gpu-node"])]
LabelValue = Annotated[str, AfterValidator(_value), Field(examples=["a5000"])]
Labels = dict[LabelKey, LabelValue]
ExtendedResource = Annotated[str, AfterValidator(_resource), Field(examples=["rdma/hca_shared_devices_a"])]
"""`domain/name`, as a device plugin advertises it."""


class Toleration(Record):
    """A taint that pods of this pool tolerate."""

    key: LabelKey
    """Key of the taint."""
    operator: Literal["Exists", "Equal"] = "Exists"
    """Exists tolerates the taint whatever its value; Equal only with `value`."""
    value: LabelValue | None = None
    """Value of the taint, for Equal."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Effect of the taint; any when left out."""

    @model_validator(mode="after")
    def _value_with_equal(self) -> Self:
        if self.operator == "Exists" and self.value is not None:
            raise Refusal("`value` beside `Exists`, which asks for none", f"operator: Equal\nvalue: {self.value}")
        if self.operator == "Equal" and self.value is None:
            raise Refusal("`Equal` has no `value` to be equal to", "operator: Exists   # or add `value`")
        return self


class Image(Record):
    """A container image; a digest wins over a tag."""

    repository: Annotated[str, AfterValidator(_repository)] = Field(examples=["registry.example/team/ray-vllm"])
    """Repository, with the registry's host where it is not the default one."""
    tag: Annotated[str, AfterValidator(_tag)] | None = Field(default=None, examples=["2.60.0-py312"])
    """Tag of one build."""
    digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")] | None = Field(
        default=None, examples=["sha256:" + 64 * "0"]
    )
    """Digest, as the registry shows it."""
    includes_rayhelm: bool = False
    """The Python package rayhelm is in it, as models with `scaling: engine-queue` need it on every node."""

    @model_validator(mode="after")
    def _is_pinned(self) -> Self:
        if not self.tag and not self.digest:
            raise Refusal("an image without a tag or digest is `latest`, which moves", 'tag: "2.60.0-py312"')
        return self
