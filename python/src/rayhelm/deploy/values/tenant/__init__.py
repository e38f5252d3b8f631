"""Values of the chart `tenant`: one release is one team's namespace, quota, rights and NetworkPolicies.

`values.schema.json`, `values.yaml` and the README table are generated from these models. Every key of a section has a
default. Entries of maps (`quota.gpus.*`, `externalSecrets.*`) have required keys; the chart completes the others.
"""

from typing import Annotated

from pydantic import Field

from rayhelm.deploy.values.common.base import Text
from rayhelm.deploy.values.common.release import ReleaseValues
from rayhelm.deploy.values.common.secrets import ExternalSecret, SecretName
from rayhelm.deploy.values.tenant.access import NamespaceAccess
from rayhelm.deploy.values.tenant.kueue import Kueue
from rayhelm.deploy.values.tenant.limits import TenantLimits
from rayhelm.deploy.values.tenant.namespace import DefaultServiceAccount, PodSecurity, TenantNamespace
from rayhelm.deploy.values.tenant.network import TenantNetworkPolicy
from rayhelm.deploy.values.tenant.quota import Quota

__all__ = ["TenantValues"]


class TenantValues(ReleaseValues):
    """A team: its namespace, quota, rights and network."""

    name_override: Annotated[str, Field(pattern=r"^([a-z]([-a-z0-9]*[a-z0-9])?)?$")] = ""
    """Name of the tenant, at most 63 characters. Empty: the name of the release."""
    namespace: TenantNamespace = TenantNamespace()
    """The namespace."""
    pod_security: PodSecurity = PodSecurity()
    """Pod Security level of the namespace."""
    default_service_account: DefaultServiceAccount = DefaultServiceAccount()
    """The service account `default` of the namespace."""
    access: NamespaceAccess = NamespaceAccess()
    """Rights in the namespace. No role may run commands in pods or connect to their ports through the API server, and
    only `deployers` may read Secrets."""
    quota: Quota = Quota()
    """Quota of GPUs, pods, objects and storage."""
    limits: TenantLimits = TenantLimits()
    """Limits of single containers and claims."""
    network_policy: TenantNetworkPolicy = TenantNetworkPolicy()
    """NetworkPolicies. All traffic of every pod is denied, except DNS and what is listed here. `ray-service` and
    `gateway` make the policies of their own pods."""
    cloud_identities: list[Annotated[Text, Field(pattern=r"^[^,]+$")]] = []
    """Identities in the cloud that service accounts of the namespace may have: role ARNs of AWS, accounts of Google
    Cloud, client IDs of Azure. Empty: none."""
    csi_drivers: list[Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=63)]] = []
    """CSI drivers whose volumes pods may mount without a claim, such as `secrets-store.csi.k8s.io`. The policy
    `tenant-objects` refuses others, because such a driver can mount data of other tenants, or issue certificates."""
    dashboard_folder: Annotated[str, Field(pattern=r"^([A-Za-z0-9][-A-Za-z0-9 _]*)?$", max_length=63)] = ""
    """Folder of Grafana for dashboards of members: ConfigMaps with the label `grafana_dashboard` and the annotation
    `grafana_folder` of this value. Empty: the policy `tenant-objects` refuses them, because the sidecar of Grafana
    reads them from all namespaces, and one could replace that of another tenant. Not `rayhelm`, and no
    other folder that `dashboards.folder` of chart `platform` or another tenant has."""
    external_secrets: dict[SecretName, ExternalSecret] = {}
    """Secrets that the External Secrets operator creates, by name. Needs its CRDs (`external-secrets.io/v1`)."""
    kueue: Kueue = Kueue()
    """A LocalQueue of Kueue. Needs its CRDs."""
