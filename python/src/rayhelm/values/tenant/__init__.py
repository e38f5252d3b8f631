"""Values of the chart `tenant`: one release is one team's namespace and the walls around it.

The one place where they are typed: `values.schema.json`, `values.yaml` and the README table are written from here.
A key of a section always has a default and so stands in values.yaml; entries of maps (`quota.gpus.*`,
`externalSecrets.*`) have required keys, and the chart completes the others from the same defaults.
"""

from typing import Annotated, Any

from pydantic import Field

from rayhelm.values.common.base import Values
from rayhelm.values.tenant.access import NamespaceAccess
from rayhelm.values.tenant.kueue import Kueue
from rayhelm.values.tenant.limits import TenantLimits
from rayhelm.values.tenant.namespace import DefaultServiceAccount, PodSecurity, TenantNamespace
from rayhelm.values.tenant.network import TenantNetworkPolicy
from rayhelm.values.tenant.quota import Quota
from rayhelm.values.tenant.secrets import ExternalSecret, SecretName

__all__ = ["TenantValues"]


class TenantValues(Values):
    """A team: its namespace, what it may hold, who may do what in it, and who may reach it."""

    global_: Annotated[dict[str, Any], Field(alias="global")] = {}
    """Helm hands a parent chart's globals down here; this chart reads none of them."""
    name_override: Annotated[str, Field(pattern=r"^([a-z]([-a-z0-9]*[a-z0-9])?)?$")] = ""
    """Name of the tenant; empty for the release's. At most 63 characters, and never cut."""
    namespace: TenantNamespace = TenantNamespace()
    """The namespace."""
    pod_security: PodSecurity = PodSecurity()
    """What pods may ask of a node."""
    default_service_account: DefaultServiceAccount = DefaultServiceAccount()
    """The identity of pods that name none."""
    access: NamespaceAccess = NamespaceAccess()
    """Who may do what in the namespace. Nobody may enter its pods or reach their ports through the API server, and only
    `deployers` may read its Secrets."""
    quota: Quota = Quota()
    """What the tenant may hold at once."""
    limits: TenantLimits = TenantLimits()
    """What one container or claim may ask for."""
    network_policy: TenantNetworkPolicy = TenantNetworkPolicy()
    """Who may reach whom. Every pod is denied everything but DNS; `ray-service` and `gateway` open for their own pods
    alone."""
    external_secrets: dict[SecretName, ExternalSecret] = {}
    """Secrets that the External Secrets operator brings, by name. Needs its CRDs (`external-secrets.io/v1`)."""
    kueue: Kueue = Kueue()
    """A queue for jobs. Needs Kueue's CRDs."""
