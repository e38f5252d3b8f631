"""The Prometheus adapter: rules for an existing adapter, or a managed adapter."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Name, Port, Quantity, Values
from rayhelm.deploy.values.common.image import Digest, Repository, Tag
from rayhelm.deploy.values.common.labels import Labels, Toleration
from rayhelm.deploy.values.common.pods import ImagePullSecret, PodSettings
from rayhelm.deploy.values.common.security import PodSecurityContext
from rayhelm.facts.versions import versions

__all__ = ["PrometheusAdapter"]

_IMAGE = versions().images["prometheus-adapter"]


class AdapterImage(Values):
    """Image of a managed adapter."""

    repository: Repository = _IMAGE.repository
    """Name without tag."""
    tag: Tag = _IMAGE.tag
    """Tag; `digest` overrides it."""
    digest: Digest = _IMAGE.digest
    """Digest; empty for the tag."""


class AdapterTls(Values):
    """Certificate by which the API server verifies a managed adapter."""

    secret_name: Name | Literal[""] = ""
    """Secret with `tls.crt` and `tls.key` for `<release>-metrics.<namespace>.svc`. Empty: the adapter signs its own."""
    ca_bundle: Annotated[str, Field(pattern=r"^[A-Za-z0-9+/=]*$")] = ""
    """CA certificate, PEM in base64."""
    skip_verify_reason: str = ""
    """Why the API server does not verify the certificate; required without a CA."""


class AdapterLimits(Values):
    """Limits of the container."""

    cpu: Quantity = "250m"
    """CPU cores."""
    memory: Quantity = "256Mi"
    """Memory."""


class AdapterRequests(Values):
    """Requests of the container."""

    cpu: Quantity | Literal[""] = ""
    """CPU cores; empty: as much as the limit."""
    memory: Quantity | Literal[""] = ""
    """Memory; empty: as much as the limit."""


class AdapterResources(Values):
    """Resources of the container."""

    limits: AdapterLimits = AdapterLimits()
    """Limits."""
    requests: AdapterRequests = AdapterRequests()
    """Requests."""


class AdapterServiceAccount(Values):
    """The ServiceAccount of a managed adapter."""

    create: bool = True
    """`false`: the ServiceAccount `name` exists already."""
    name: Name | Literal[""] = ""
    """Name; empty: the name of the adapter's other objects."""
    annotations: Labels = {}
    """Annotations."""


class PrometheusAdapter(PodSettings):
    """Serves metrics to Kubernetes."""

    kind: Literal["ConfigMap", "Managed", "None"] = "ConfigMap"
    """`ConfigMap`: rules for an existing adapter, as its configuration and as values of its own chart. `Managed`: this
    chart also runs an adapter. `None`: no rules, if KEDA scales everything."""
    namespace: Name | Literal[""] = ""
    """Namespace of the adapter's objects; empty for the namespace of the release."""
    external_api: bool = True
    """A managed adapter serves external.metrics.k8s.io. A cluster has one server of it: set false if KEDA is
    installed."""
    image: AdapterImage = AdapterImage()
    """Image of a managed adapter."""
    replicas: Annotated[int, Field(ge=1)] = 2
    """Pods of a managed adapter."""
    resources: AdapterResources = AdapterResources()
    """Resources of its pods."""
    service_account: AdapterServiceAccount = AdapterServiceAccount()
    """The ServiceAccount of its pods."""
    image_pull_secrets: list[ImagePullSecret] = []
    """Secrets with registry credentials."""
    pod_security_context: PodSecurityContext = PodSecurityContext(run_as_user=65534, run_as_group=65534, fs_group=65534)
    """User and groups of the pods."""
    node_selector: Labels = {}
    """Labels of the nodes for a managed adapter."""
    tolerations: list[Toleration] = []
    """Tolerations of its pods."""
    port: Port = 6443
    """Port of its pods and its Service."""
    relist_seconds: Annotated[int, Field(ge=10, le=600)] = 30
    """Interval in seconds at which the adapter lists the metrics of Prometheus."""
    tls: AdapterTls = AdapterTls()
    """Certificate of a managed adapter."""
