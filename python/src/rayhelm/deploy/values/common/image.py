"""Container images."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.fleet.repository import MAX_REPOSITORY, REPOSITORY

__all__ = ["Digest", "ImageName", "PullPolicy", "Repository", "Tag"]

_TAG = "[A-Za-z0-9_][-A-Za-z0-9_.]{0,127}"

Repository = Annotated[str, Field(pattern=f"^({REPOSITORY})?$", max_length=MAX_REPOSITORY)]
"""Repository of an image, or empty."""

Tag = Annotated[str, Field(pattern=f"^({_TAG})?$")]
"""Tag of an image, or empty."""

ImageName = Annotated[str, Field(pattern=f"^({REPOSITORY}(:{_TAG})?(@sha256:[0-9a-f]{{64}})?)?$")]
"""Repository with a tag, a digest or both, or empty."""

Digest = Annotated[str, Field(pattern=r"^(sha256:[0-9a-f]{64})?$")]
"""Digest of an image, or empty."""

PullPolicy = Literal["IfNotPresent", "Always", "Never"]
"""When the kubelet pulls an image."""
