"""Image that runs Ray and vLLM."""

from rayhelm.deploy.values.common.base import Values
from rayhelm.deploy.values.common.image import Digest, PullPolicy, Repository, Tag
from rayhelm.facts.versions import versions

__all__ = ["ImageOverride", "RayImage"]


class ImageOverride(Values):
    """Image of one worker group: AMD and Intel GPUs need their own builds.

    All images of one Ray cluster need the same Ray and the same Python minor version.
    """

    repository: Repository = ""
    """Repository; the one of `image` when empty."""
    tag: Tag = ""
    """Tag; the one of `image` when empty and neither repository nor digest is set here."""
    digest: Digest = ""
    """Digest, `sha256:...`. It takes precedence over the tag."""
    includes_rayhelm: bool = False
    """As in `image`. It counts when this group has its own image."""


class RayImage(Values):
    """The image of the head and, unless a group names its own, of the workers."""

    repository: Repository = versions().images["ray"].repository
    """Repository. Include the host of the registry unless it is Docker Hub."""
    tag: Tag = versions().images["ray"].tag
    """Tag; `latest` is refused. The default was not checked against a registry: check that it exists, and set the
    digest."""
    digest: Digest = versions().images["ray"].digest
    """Digest, `sha256:...`. It takes precedence over the tag, so that the tested image is the one that runs."""
    includes_rayhelm: bool = False
    """The image has the Python package rayhelm, in the version of the chart or a later one; its wheel without
    requirements is enough. Then a stream that loses its replica ends with an error message, the replicas count tokens
    by tenant, Serve can send traces (`tracing`), and it can import the policy `EngineQueue` on every node. The stock
    image lacks it."""
    pull_policy: PullPolicy = "IfNotPresent"
    """When the kubelet pulls the image."""
