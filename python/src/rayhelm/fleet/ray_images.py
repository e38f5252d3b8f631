"""Images with Ray and vLLM, and the versions that their names say."""

import re
from typing import Annotated

from pydantic import Field

from rayhelm.fleet.labels import FleetImage

__all__ = ["FleetRayImage"]

_RAY_TAG = re.compile(r"(2\.\d+\.\d+)(?:[-._]|$)")
_RAY_NAME = re.compile(r"(?:^|[-_.])ray(?:$|[-_.])")
_PYTHON_TAG = re.compile(r"-py3\d")
_VLLM_TAG = re.compile(r"v?(\d+\.\d+\.\d+)(?:[-._]|$)")
_VLLM_PART = re.compile(r"vllm-?v?(\d+\.\d+\.\d+)")


class FleetRayImage(FleetImage):
    """An image that runs Ray and vLLM; a digest wins over a tag."""

    ray: Annotated[str, Field(pattern=r"^2\.\d+\.\d+$")] | None = Field(default=None, examples=["2.60.0"])
    """Version of Ray in the image, where it is not the one that rayhelm plans for or the tag says another. Heads and
    workers of a cluster have the same. rayhelm is not tested with another than its own."""
    vllm: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")] | None = Field(default=None, examples=["0.29.0"])
    """The same for vLLM. The plan counts with memory and speed of its own version."""

    @property
    def ray_of_tag(self) -> str:
        """Version of Ray that the tag says; empty if it says none."""
        found, name = _RAY_TAG.match(self.tag or ""), self.repository.rpartition("/")[2]
        says_ray = _RAY_NAME.search(name) or _PYTHON_TAG.search(self.tag or "")
        return found[1] if found and says_ray else ""

    @property
    def vllm_of_tag(self) -> str:
        """Version of vLLM that the tag says; empty if it says none."""
        tag, name = self.tag or "", self.repository.rpartition("/")[2]
        found = _VLLM_PART.search(tag) or (_VLLM_TAG.match(tag) if name.startswith("vllm") else None)
        return found[1] if found else ""
