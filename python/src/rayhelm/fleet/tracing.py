"""Traces of the requests of a cluster, sent to an OpenTelemetry collector."""

import re
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from rayhelm.errors import Fix
from rayhelm.fleet.base import ListOf, Record, Refusal, short
from rayhelm.fleet.labels import Labels
from rayhelm.fleet.names import Name
from rayhelm.fleet.redis import Cidr

__all__ = ["Tracing"]

_ENDPOINT = re.compile(r"https?://[A-Za-z0-9.-]+:(?P<port>[0-9]{1,5})(/[A-Za-z0-9._/-]*)?")


def _endpoint(text: str) -> str:
    found = _ENDPOINT.fullmatch(text)
    if not found or not 1 <= int(found["port"]) <= 65535:
        raise Refusal(
            f"`{short(text)}` is not the URL of an OTLP receiver with its port",
            Fix(
                "", "http://otel-collector.observability:4317", "http:// or https://, a host name, a port; no password"
            ),
        )
    return text


class Tracing(Record):
    """Traces of requests through the gateway, Ray Serve and vLLM. They contain no text of a request or a response. They
    need `image.includesRayhelm`."""

    endpoint: Annotated[str, AfterValidator(_endpoint)] = Field(
        max_length=253, examples=["http://otel-collector.observability:4317"]
    )
    """URL of the OTLP receiver inside the cluster, with its port."""
    protocol: Literal["grpc", "http/protobuf"] = "grpc"
    """Protocol of the receiver. For `http/protobuf`, `/v1/traces` is added to a URL without a path."""
    sampling_ratio: float = Field(default=0.01, ge=0, le=1, examples=[0.01])
    """Share of the requests that are traced. The gateway decides; no header of a client changes it."""
    namespace: Name = "observability"
    """Namespace of the collector's pods; with `endpoint`'s port the only new egress of Ray's pods."""
    pod_labels: Labels = Field(default={}, examples=[{"app.kubernetes.io/name": "opentelemetry-collector"}])
    """Labels of the collector's pods; default: all pods of the namespace."""
    cidrs: ListOf[Cidr] = ()
    """CIDRs of a collector outside the cluster; then no pods of `namespace` are allowed."""
    client_traces: Literal["Replace", "Continue"] = "Replace"
    """`Continue`: a request with a valid `traceparent` header continues the trace of the client. Default: every request
    starts a new trace."""

    @model_validator(mode="after")
    def _check_collector(self) -> Self:
        if self.cidrs and self.pod_labels:
            raise Refusal(
                "`podLabels` is for a collector in this cluster, `cidrs` for one outside: keep one",
                Fix.removal("cidrs"),
            )
        return self

    @property
    def port(self) -> int:
        port = urlsplit(self.endpoint).port
        assert port
        return port
