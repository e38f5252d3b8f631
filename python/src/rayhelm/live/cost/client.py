"""The HTTP API of Prometheus. Every failure becomes a MissingError with its fix."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import yaml

from rayhelm.errors import MissingError, UsageError
from rayhelm.fleet.web_url import split_web_url

__all__ = ["TOKEN_VARIABLE", "PrometheusClient", "QueryError", "Series", "open_client", "read_headers"]

TOKEN_VARIABLE = "RAYHELM_PROMETHEUS_TOKEN"
"""Environment variable with a bearer token. Not an option: other users of the computer can read command lines."""
_TIMEOUT = httpx.Timeout(10, read=150)
"""Seconds. Prometheus itself ends a query after 2 minutes."""


class QueryError(MissingError):
    """Prometheus answers, and refuses a query."""


@dataclass(frozen=True)
class Series:
    """One series of a range query: values by Unix time."""

    labels: Mapping[str, str]
    values: Mapping[float, float]


@dataclass(frozen=True)
class PrometheusClient:
    """A connection to one Prometheus."""

    url: str
    http: httpx.Client

    def query_range(self, query: str, start: datetime, end: datetime, step_s: int) -> list[Series]:
        """Return the series of a query at `start`, `start` + step and so on until `end`. Raises MissingError."""
        form = {"query": query, "start": start.timestamp(), "end": end.timestamp(), "step": step_s}
        data = self._get_data("query_range", form)
        try:
            return [
                Series(dict(found["metric"]), {float(at): float(value) for at, value in found["values"]})
                for found in data["result"]
            ]
        except (LookupError, TypeError, ValueError):
            raise self._not_prometheus("its answer has another form") from None

    def query(self, query: str) -> list[dict[str, str]]:
        """Return the labels of the series that a query has now. Raises QueryError if Prometheus refuses the query."""
        answer = self._get_data("query", {"query": query})
        return [dict(found["metric"]) for found in answer["result"]] if answer["resultType"] == "vector" else [{}]

    def list_rules(self) -> list[dict[str, Any]]:
        """Return all rules, each with its group, health and last error."""
        groups = self._get_data("rules")["groups"]
        return [{**rule, "group": group["name"]} for group in groups for rule in group["rules"]]

    def list_targets(self) -> list[dict[str, Any]]:
        """Return the targets that Prometheus scrapes now, each with its health and last error."""
        return list(self._get_data("targets?state=active")["activeTargets"])

    def read_config(self) -> dict[str, Any]:
        """Return the configuration that Prometheus has loaded."""
        return dict(yaml.safe_load(self._get_data("status/config")["yaml"]) or {})

    def list_values(self, label: str) -> list[str]:
        """Return all values of a label; `__name__` for the names of metrics."""
        return [str(value) for value in self._get_data(f"label/{label}/values")]

    def check(self) -> None:
        """Raises MissingError if the URL is not the one of a Prometheus that answers."""
        self._get_data("query", {"query": "vector(1)"})

    def _get_data(self, path: str, form: Mapping[str, Any] | None = None) -> Any:
        try:
            response = self.http.request("POST" if form else "GET", f"{self.url}/api/v1/{path}", data=form)
        except httpx.TimeoutException as error:
            raise MissingError(
                f"{self.url} does not answer in time ({type(error).__name__})",
                "check the network between here and Prometheus, or ask for less: --last 7d",
            ) from None
        except httpx.TransportError as error:
            raise MissingError(f"{self.url} does not answer: {error}", _how_to_connect(str(error))) from None
        if response.status_code in (401, 403):
            raise MissingError(
                f"{self.url} refuses the credentials ({response.status_code})",
                f"export {TOKEN_VARIABLE}=...    # bearer token; for other headers: --header-file FILE",
            )
        if response.is_redirect:
            raise MissingError(
                f"{self.url} redirects to {_host_and_path(response.headers.get('location', ''))}",
                "give the URL that it redirects to; if it is a login page, give the URL of Prometheus inside the"
                " cluster: kubectl port-forward",
            )
        return self._read(response)

    def _read(self, response: httpx.Response) -> Any:
        try:
            answer = response.json()
        except ValueError:
            answer = None
        if isinstance(answer, dict) and answer.get("status") == "error":
            raise QueryError(
                f"{self.url} refuses a query: {answer.get('error', 'no reason')}",
                "ask for less (--last 7d), or raise its limits: --query.timeout, --query.max-samples",
            )
        if not response.is_success or not isinstance(answer, dict) or "data" not in answer:
            raise self._not_prometheus(f"{response.status_code} without an answer of its API")
        return answer["data"]

    def _not_prometheus(self, why: str) -> MissingError:
        how = "give the URL before /api/v1: http://prometheus-operated.monitoring:9090"
        return MissingError(f"{self.url} is not a Prometheus: {why}", how)


@contextmanager
def open_client(
    url: str, headers: Mapping[str, str], transport: httpx.BaseTransport | None = None
) -> Iterator[PrometheusClient]:
    """Yield a client. Raises UsageError for a wrong URL."""
    _check_url(url)
    # Redirects are not followed: they would lead to a login page, and the token to another host.
    with httpx.Client(headers=dict(headers), timeout=_TIMEOUT, transport=transport, follow_redirects=False) as http:
        yield PrometheusClient(url.rstrip("/").removesuffix("/api/v1"), http)


def _check_url(url: str) -> None:
    parts = split_web_url(url)
    if not parts:
        raise UsageError(f"`--prometheus {url}` is not a URL; write it like `--prometheus http://localhost:9090`")
    if parts.username or parts.password:
        raise UsageError(
            f"`--prometheus` has a password, which other users can read in the list of processes; write"
            f" `--prometheus {parts.scheme}://{parts.netloc.rpartition('@')[2]}` and put the header `Authorization`"
            " into a file: `--header-file FILE`"
        )


def read_headers(file: Path | None) -> dict[str, str]:
    """Read headers, `Name: value` in each line, and the token of the environment. Raises UsageError."""
    headers: dict[str, str] = {}
    if token := os.environ.get(TOKEN_VARIABLE, "").strip():
        headers["Authorization"] = f"Bearer {token}"
    try:
        lines = file.read_text(encoding="utf-8").splitlines() if file else []
    except UnicodeDecodeError:
        raise UsageError(f"{file}: is not text; write one header in each line, like `X-Scope-OrgID: team`") from None
    for number, line in enumerate(lines, start=1):
        name, colon, value = line.partition(":")
        if not line.strip() or line.startswith("#"):
            continue
        if not colon or not name.strip().replace("-", "").replace("_", "").isalnum() or not value.strip().isascii():
            # Without the line: it may be a secret.
            raise UsageError(f"{file}:{number}: is not a header; write it like `X-Scope-OrgID: team`")
        headers[name.strip()] = value.strip()
    return headers


def _host_and_path(location: str) -> str:
    """A URL without its query, which may have secrets."""
    parts = urlsplit(location)
    return f"{parts.scheme}://{parts.hostname}{parts.path}" if parts.hostname else parts.path or "nothing"


def _how_to_connect(error: str) -> str:
    if "CERTIFICATE" in error.upper() or "SSL" in error.upper():
        return "export SSL_CERT_FILE=ca.pem    # the CA that signed the certificate of Prometheus"
    return (
        "kubectl --namespace monitoring port-forward svc/prometheus-operated 9090    # then:"
        " --prometheus http://localhost:9090"
    )
