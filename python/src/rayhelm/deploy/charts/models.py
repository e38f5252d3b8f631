"""The types of each chart's values."""

from pydantic import BaseModel

from rayhelm.deploy.values.argocd import ArgocdValues
from rayhelm.deploy.values.gateway import GatewayValues
from rayhelm.deploy.values.platform import PlatformValues
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.deploy.values.tenant import TenantValues

__all__ = ["CHARTS"]

CHARTS: dict[str, type[BaseModel]] = {
    "argocd": ArgocdValues,
    "gateway": GatewayValues,
    "platform": PlatformValues,
    "ray-service": RayServiceValues,
    "tenant": TenantValues,
}
"""Model of the values by chart."""
