"""The Prometheus adapter: its rules for one that is there already, or one of our own."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.values.common.base import Name, Port, Quantity, Values
from rayhelm.values.common.image import Digest
from rayhelm.versions import versions

__all__ = ["PrometheusAdapter"]

_IMAGE = versions().images["prometheus-adapter"]


class AdapterImage(Values):
    """Image of a managed adapter."""

    repository: str = _IMAGE.repository
    """Name without tag."""
    tag: str = _IMAGE.tag
    """Tag; `digest` wins over it."""
    digest: Digest = _IMAGE.digest
    """Digest; empty for the tag."""


class AdapterTls(Values):
    """The certificate by which the API server knows a managed adapter."""

    secret_name: Name | Literal[""] = ""
    """Secret with `tls.crt` and `tls.key` for `<release>-metrics.<namespace>.svc`; empty: it signs one for itself."""
    ca_bundle: Annotated[str, Field(pattern=r"^[A-Za-z0-9+/=]*$")] = ""
    """Certificate of the authority behind it, PEM in base64."""
    skip_verify_reason: str = ""
    """Why the API server may take any certificate; without a Secret it has to."""


class AdapterResources(Values):
    """Requests, and limits of the same size."""

    cpu: Quantity = "250m"
    """CPU."""
    memory: Quantity = "256Mi"
    """Memory."""


class PrometheusAdapter(Values):
    """Serves rules to Kubernetes."""

    kind: Literal["ConfigMap", "Managed", "None"] = "ConfigMap"
    """`ConfigMap`: rules for an adapter that is there, as its configuration and as values of its own chart. `Managed`:
    with an adapter of ours. `None`: no rules, where KEDA scales everything."""
    namespace: Name | Literal[""] = ""
    """Namespace of all of it; empty for the release's."""
    external_api: bool = True
    """Whether a managed adapter serves external.metrics.k8s.io. A cluster has one who does: off where KEDA is."""
    image: AdapterImage = AdapterImage()
    """Image of a managed adapter."""
    replicas: Annotated[int, Field(ge=1)] = 2
    """Pods of a managed adapter."""
    resources: AdapterResources = AdapterResources()
    """Resources of its pods."""
    port: Port = 6443
    """Port of its pods and its Service."""
    relist_seconds: Annotated[int, Field(ge=10, le=600)] = 30
    """Seconds after which it asks Prometheus anew which numbers there are."""
    tls: AdapterTls = AdapterTls()
    """Its certificate."""
