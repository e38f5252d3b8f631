"""Values of chart `platform` that run the doctor in the cluster."""

import re
from pathlib import Path

from rayhelm.deploy.compose.platform import build_platform_network_policy
from rayhelm.deploy.render.files import Rendered
from rayhelm.deploy.values.emit import dump_yaml
from rayhelm.deploy.values.platform import PlatformValues
from rayhelm.deploy.values.platform.doctor import Doctor, DoctorImage
from rayhelm.errors import UsageError
from rayhelm.live.doctor.access import list_secrets

__all__ = ["build_values"]

_IMAGE = re.compile(r"(?P<repository>[^\s@]+?)(:(?P<tag>[^\s:/@]+))?(@(?P<digest>sha256:[0-9a-f]{64}))?")


def build_values(rendered: Rendered, region: str, image: str) -> str:
    """Return the values as YAML; `image` is repository:tag or repository@digest. Raises UsageError."""
    fleet = rendered.plan.declared
    settings = fleet.clusters[region].prometheus
    file = Path(rendered.plan.source.file)
    measurements = Path(fleet.measurements).as_posix() if fleet.measurements else ""
    doctor = Doctor(
        enabled=True,
        image=_read_image(image),
        fleet=file.read_text(encoding="utf-8"),
        measurements=(file.parent / measurements).read_text(encoding="utf-8") if measurements else "",
        measurements_path=measurements or Doctor().measurements_path,
        cluster=region if len(fleet.clusters) > 1 else "",
        secrets=list_secrets(rendered, region),
        prometheus_url=settings.url if settings and settings.url else "",
    )
    header = (
        f"Values of chart platform: runs `rayhelm doctor` in cluster `{region}`. Pass them after the release's own."
    )
    policy = build_platform_network_policy(region, rendered.plan)
    return dump_yaml(PlatformValues(doctor=doctor, network_policy=policy), header).strip()


def _read_image(text: str) -> DoctorImage:
    found = _IMAGE.fullmatch(text)
    if not found or not (found["digest"] or found["tag"] not in (None, "latest")):
        raise UsageError(f"`{text}` has neither a tag other than `latest` nor a digest: registry.example/rayhelm:0.2.0")
    return DoctorImage(repository=found["repository"], tag=found["tag"] or "", digest=found["digest"] or "")
