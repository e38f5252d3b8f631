"""Values of the gateways of other clusters, and of the authorities that a gateway trusts."""

from rayhelm.deploy.values.gateway.remote_gateways import CertificateAuthority, RemoteGateway, UpstreamTls
from rayhelm.fleet.pools import Cluster
from rayhelm.fleet.remotes import RemoteAuthority
from rayhelm.planner.plan import RemotePlan

__all__ = ["build_remote", "build_upstream_tls"]


def build_remote(name: str, planned: RemotePlan, cluster: Cluster) -> RemoteGateway:
    """Build the values of the gateway of cluster `name`, as the gateway of `cluster` uses it."""
    if not planned.models:
        return RemoteGateway(secret_name=planned.secret)
    declared = cluster.gateway.remotes[name]
    return RemoteGateway(
        host=planned.host,
        port=planned.port,
        server_name=declared.server_name or "",
        certificate_authority=_build_authority(declared.certificate_authority),
        secret_name=planned.secret,
        priority=planned.priority,
        model_weights=dict(planned.weights),
        models={model: list(versions) for model, versions in planned.models.items()},
        cidrs=list(declared.cidrs),
    )


def build_upstream_tls(cluster: Cluster) -> UpstreamTls:
    if not cluster.serve_tls:
        return UpstreamTls()
    return UpstreamTls(certificate_authority=_build_authority(cluster.serve_tls.certificate_authority))


def _build_authority(declared: RemoteAuthority) -> CertificateAuthority:
    return CertificateAuthority(
        config_map_name=declared.config_map or "", secret_name=declared.secret or "", key=declared.key
    )
