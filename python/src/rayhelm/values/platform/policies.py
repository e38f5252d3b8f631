"""Admission policies: what the API server refuses, whoever asks, and what is let through for which reason."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.values.common.base import Values
from rayhelm.values.common.labels import Namespace

__all__ = ["ImageSource", "ModelRevision", "Policies", "Policy", "RemoteCode"]

Reason = Annotated[str, Field(min_length=8)]
"""Why something is let through, for whoever reads it in a year."""

Excluded = dict[Namespace, Reason]

Registry = Annotated[
    str, Field(pattern=r"^[a-z0-9]+([.-][a-z0-9]+)*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*/?$", max_length=255)
]
ModelName = Annotated[
    str, Field(pattern=r"^/?[A-Za-z0-9][A-Za-z0-9._+-]*(/[A-Za-z0-9][A-Za-z0-9._+-]*)*$", max_length=255)
]


class Policy(Values):
    """One policy."""

    action: Literal["Deny", "Warn", "Audit", "off"] = "Deny"
    """`Deny` refuses; `Warn` tells whoever asks; `Audit` only notes it in the audit log: for a cluster where some
    objects break it already."""
    reason: str = ""
    """Why it is not `Deny`; required then."""
    excluded_namespaces: Excluded = {}
    """Namespaces that this one does not look into, each with its reason."""


class ImageSource(Policy):
    """Where images come from."""

    registries: dict[Registry, Reason] = {"rayproject/": "Ray's own images"}
    """Repositories whose tags are trusted, each with its reason; one that ends in `/` holds all below it. A digest is
    taken from anywhere, `latest` from nowhere."""


class RemoteCode(Policy):
    """Whose code may run."""

    trusted: dict[ModelName, Reason] = {}
    """Models whose code may run (`trust_remote_code`), by hub id or path, each with its reason: who read it, at which
    commit."""


class ModelRevision(Policy):
    """Which models may float."""

    unpinned: dict[ModelName, Reason] = {}
    """Models that may be loaded without a commit, by hub id, each with its reason."""


class Policies(Values):
    """ValidatingAdmissionPolicies, as they stand in the folder `policies`, each with its cases. They look at objects
    that are made or whose spec is changed, and at labels of namespaces; never at deletions, at status, or into
    `kube-system`."""

    excluded_namespaces: Excluded = {"gpu-operator": "its own pods hold cards, and belong to no tenant"}
    """Namespaces that no policy looks into, each with its reason."""
    token_auth: Policy = Policy()
    """Ray asks for its token: `authOptions.mode` says so."""
    serve_config_form: Policy = Policy()
    """serveConfigV2 is in the one form that the policies after it can read."""
    model_revision: ModelRevision = ModelRevision()
    """Models of a hub are named by their commit."""
    remote_code: RemoteCode = RemoteCode()
    """Code out of a model's repository runs only where somebody allowed it."""
    request_timeout: Policy = Policy()
    """Serve ends requests that nobody else does."""
    image_source: ImageSource = ImageSource()
    """Images are named by a digest, or by a tag of a known registry."""
    host_namespaces: Policy = Policy()
    """Pods of Ray and pods with cards share nothing of their node's network and processes."""
    service_exposure: Policy = Policy()
    """No LoadBalancer, NodePort or external address leads to Ray's ports."""
    dashboard_exposure: Policy = Policy()
    """No Ingress and no route leads to Ray's dashboard."""
    gpu_owner: Policy = Policy()
    """Pods with cards say whose they are, and how they rank."""
    upgrade_strategy: Policy = Policy()
    """A RayService says how it is upgraded, and its namespace has the cards for it."""
    tenant_namespace: Policy = Policy()
    """A tenant's namespace keeps the labels that say whose it is, and what Pod Security goes by."""
