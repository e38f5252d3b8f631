"""Remove what a fleet uses outside of itself, because a rehearsal does not have it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rayhelm.deploy.render.releases import Release
from rayhelm.deploy.values.common.scraping import Scraping
from rayhelm.deploy.values.gateway import GatewayValues
from rayhelm.deploy.values.gateway.exposure import Exposure, GatewayService
from rayhelm.deploy.values.gateway.models import Model
from rayhelm.deploy.values.gateway.remote_gateways import UpstreamTls
from rayhelm.deploy.values.gateway.tenants import GatewayTenant
from rayhelm.deploy.values.platform import PlatformValues
from rayhelm.deploy.values.platform.dashboards import Dashboards
from rayhelm.deploy.values.platform.prometheus_rules import PrometheusRules
from rayhelm.deploy.values.platform.scraping import PlatformScraping
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.deploy.values.ray_service.cluster import GcsFaultTolerance, Ray
from rayhelm.deploy.values.ray_service.serve import ProxyTls
from rayhelm.deploy.values.tenant import TenantValues
from rayhelm.deploy.values.tenant.network import TenantRedis
from rayhelm.run.rehearsal.without_gpus import StandInSet

__all__ = ["remove_external"]


@dataclass
class _Removals:
    """Notes on what is removed, each once."""

    notes: dict[str, None]

    def add(self, value: object, default: object, note: str) -> None:
        if value != default:
            self.notes[note] = None


def remove_external(stand_ins: StandInSet) -> StandInSet:
    """Remove Redis, Prometheus, Ingress and HTTPRoute, and Service aliases in other namespaces."""
    removals = _Removals({})
    releases = tuple(_remove_from(release, removals) for release in stand_ins.releases)
    return replace(stand_ins, releases=releases, notes=(*stand_ins.notes, *removals.notes))


def _remove_from(release: Release, removals: _Removals) -> Release:
    match release.values:
        case RayServiceValues() as values:
            return replace(release, values=_remove_from_service(values, removals))
        case GatewayValues() as values:
            return replace(release, values=_remove_from_gateway(values, removals))
        case PlatformValues() as values:
            return replace(release, values=_remove_from_platform(values, removals))
        case TenantValues() as values:
            # The namespace of Redis is not there.
            network = values.network_policy.model_copy(update={"redis": TenantRedis()})
            return replace(release, values=values.model_copy(update={"network_policy": network}))
    return release


def _remove_from_service(values: RayServiceValues, removals: _Removals) -> RayServiceValues:
    redis = values.gcs_fault_tolerance.enabled
    removals.add(redis, False, "no Redis: a rehearsal loses the Ray cluster if its head fails")
    removals.add(values.scraping.kind, "None", "no Prometheus: `scraping` is left out")
    removals.add(values.aliases, {}, "Service aliases in other namespaces are left out")
    removals.add(values.ray.version, Ray().version, f"Ray {Ray().version} replaces {values.ray.version}")
    removals.add(values.serve.tls, ProxyTls(), "no certificates: TLS of the Serve port is left out")
    return values.model_copy(
        update={
            "gcs_fault_tolerance": GcsFaultTolerance(),
            "serve": values.serve.model_copy(update={"tls": ProxyTls()}),
            "scraping": Scraping(),
            "aliases": {},
            "ray": Ray(),
        }
    )


def _remove_from_gateway(values: GatewayValues, removals: _Removals) -> GatewayValues:
    removals.add(
        values.exposure, Exposure(), "the load runs inside the cluster: Ingress, HTTPRoute and TLS are left out"
    )
    removals.add(values.scraping.kind, "None", "no Prometheus: `scraping` is left out")
    removals.add(values.remote_gateways, {}, "gateways of other clusters are left out")
    models = {name: _remove_from_model(model) for name, model in values.models.items() if _has_endpoints(model)}
    removals.add(len(models), len(values.models), "models that only other clusters serve are left out")
    return values.model_copy(
        update={
            "exposure": Exposure(),
            "service": GatewayService(),
            "scraping": Scraping(),
            "remote_gateways": {},
            "upstream_tls": UpstreamTls(),
            "models": models,
            "tenants": {
                name: _remove_models(tenant, models)
                for name, tenant in values.tenants.items()
                if any(model in models for model in tenant.models)
            },
        }
    )


def _has_endpoints(model: Model) -> bool:
    return any(version.endpoints for version in model.versions.values())


def _remove_models(tenant: GatewayTenant, kept: Mapping[str, Model]) -> GatewayTenant:
    """Return the tenant without the models that are left out."""
    by_model = ("pinned_versions", "max_output_tokens", "max_body_bytes")
    return tenant.model_copy(
        update={"models": [model for model in tenant.models if model in kept]}
        | {key: {name: value for name, value in getattr(tenant, key).items() if name in kept} for key in by_model}
    )


def _remove_from_model(model: Model) -> Model:
    versions = {
        name: version.model_copy(
            update={"endpoints": {key: end.model_copy(update={"tls": False}) for key, end in version.endpoints.items()}}
        )
        for name, version in model.versions.items()
    }
    return model.model_copy(update={"spill_above": 0, "versions": versions})


def _remove_from_platform(values: PlatformValues, removals: _Removals) -> PlatformValues:
    removals.add(values.metrics.scraping.kind, "None", "no Prometheus: `scraping` is left out")
    removals.add(values.prometheus_rules.kind, "None", "no Prometheus: alert and recording rules are left out")
    has_grafana = values.dashboards.kind == "GrafanaDashboard"
    removals.add(has_grafana, False, "no Grafana operator: the dashboards are ConfigMaps")
    metrics = values.metrics.model_copy(update={"scraping": PlatformScraping()})
    return values.model_copy(
        update={"metrics": metrics, "prometheus_rules": PrometheusRules(), "dashboards": Dashboards()}
    )
