"""Traces of a local endpoint: `rayhelm up --traces URL` sends each request's spans to an OTLP receiver over HTTP."""

import re
from urllib.parse import urlsplit

from rayhelm.deploy.values.gateway import GatewayValues
from rayhelm.deploy.values.gateway.tracing import GatewayTracing
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.deploy.values.ray_service.network import TracingEgress
from rayhelm.deploy.values.ray_service.tracing import RayTracing
from rayhelm.errors import UsageError

__all__ = ["SERVICE", "adapt_gateway_tracing", "adapt_tracing", "build_trace_environment", "check_url"]

SERVICE = "rayhelm-up"
"""Name of the local endpoint in traces."""
_URL = re.compile(r"https?://[A-Za-z0-9.-]+:[0-9]{1,5}(/[A-Za-z0-9._/-]*)?")


def check_url(url: str) -> str:
    """Return the URL with its path, `/v1/traces` by default. Raises UsageError for text that is not such a URL."""
    if not _URL.fullmatch(url) or not 1 <= int(urlsplit(url).netloc.rpartition(":")[2]) <= 65535:
        raise UsageError(
            f"`--traces {url}` is not the URL of an OTLP receiver over HTTP; write its port, for example"
            " `--traces http://127.0.0.1:4318`"
        )
    return url if urlsplit(url).path.strip("/") else f"{url.rstrip('/')}/v1/traces"


def adapt_tracing(values: RayServiceValues, url: str) -> RayServiceValues:
    """Return values that send all traces to `url`; without it none, wherever the fleet sends them."""
    if not url:
        return values.model_copy(update={"tracing": RayTracing()})
    policy = values.network_policy.model_copy(update={"tracing": TracingEgress(cidrs=["127.0.0.1/32"])})
    return values.model_copy(
        update={
            "tracing": RayTracing(enabled=True, endpoint=url, protocol="http/protobuf", sampling_ratio=1),
            "network_policy": policy,
            "image": values.image.model_copy(update={"includes_rayhelm": True}),
        }
    )


def adapt_gateway_tracing(values: GatewayValues, url: str) -> GatewayValues:
    """Return values of the gateway that trace each request if there is a URL."""
    return values.model_copy(update={"tracing": GatewayTracing(enabled=bool(url), sampling_ratio=1)})


def build_trace_environment(url: str) -> dict[str, str]:
    """Return the variables that the chart sets too; empty without a URL."""
    if not url:
        return {}
    return {
        "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": "rayhelm.runtime.tracing:middlewares",
        "RAY_SERVE_TRACING_EXPORTER_IMPORT_PATH": "rayhelm.runtime.tracing:span_processors",
        "RAY_SERVE_TRACING_SAMPLING_RATIO": "0",
        "RAYHELM_TRACING_RATIO": "1",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": url,
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
        "OTEL_TRACES_SAMPLER": "always_off",
        "OTEL_SERVICE_NAME": SERVICE,
    }
