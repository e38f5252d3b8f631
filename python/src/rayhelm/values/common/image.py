"""Container images."""

from typing import Annotated, Literal

from pydantic import Field

__all__ = ["Digest", "PullPolicy"]

Digest = Annotated[str, Field(pattern=r"^(sha256:[0-9a-f]{64})?$")]
"""Digest of an image, or empty."""

PullPolicy = Literal["IfNotPresent", "Always", "Never"]
"""When the kubelet pulls an image."""
