"""Values of the gateways of other clusters."""

from rayhelm.planner.plan import RemotePlan
from rayhelm.spec.pools import Cluster
from rayhelm.values.gateway.remote_gateways import CertificateAuthority, RemoteGateway

__all__ = ["build_remote"]


def build_remote(name: str, planned: RemotePlan, cluster: Cluster) -> RemoteGateway:
    """Build the values of the gateway of cluster `name`, as the gateway of `cluster` uses it."""
    if not planned.models:
        return RemoteGateway(secret_name=planned.secret)
    declared = cluster.gateway.remotes[name]
    authority = declared.certificate_authority
    return RemoteGateway(
        host=planned.host,
        port=planned.port,
        server_name=declared.server_name or "",
        certificate_authority=CertificateAuthority(
            config_map_name=authority.config_map or "", secret_name=authority.secret or "", key=authority.key
        ),
        secret_name=planned.secret,
        priority=planned.priority,
        model_weights=dict(planned.weights),
        models={model: list(versions) for model, versions in planned.models.items()},
        cidrs=list(declared.cidrs),
    )
