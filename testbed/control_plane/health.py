"""Health checks of the parts of a control plane."""

import ssl
from functools import cache
from pathlib import Path

import httpx

from testbed.control_plane.home import Home, Part

__all__ = ["answers", "is_healthy"]

PATHS = {
    "etcd": "https:/readyz",
    "kube-apiserver": "https:/readyz",
    "kube-controller-manager": "https:/healthz",
    "kube-scheduler": "https:/readyz",
    "ray-stand-in": "http:/-/stand-in",
    "kwok": "http:/healthz",
    "kuberay-operator": "http:/readyz",
}


def is_healthy(part: Part, home: Home) -> bool:
    """Return whether the health port of a part answers 200 on loopback; False also if the client certificate is
    missing."""
    scheme, _, path = PATHS[part.name].partition(":")
    return answers(f"{scheme}://127.0.0.1:{part.port}{path}", home)


def answers(url: str, home: Home) -> bool:
    """Return whether a GET of the URL answers 200, with the administrator's certificate for https."""
    scheme = url.partition(":")[0]
    try:
        made = (home.certificates / "admin.crt").stat().st_mtime_ns if scheme == "https" else 0
        return _create_client(scheme, home.certificates, made).get(url).status_code == 200
    except (httpx.HTTPError, OSError):
        return False


@cache
def _create_client(scheme: str, certificates: Path, _made: int) -> httpx.Client:
    # Controllers without a certificate use a self-signed one, so it is not verified; requests stay on loopback.
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if scheme == "https":
        context.load_cert_chain(certificates / "admin.crt", certificates / "admin.key")
    return httpx.Client(verify=context, timeout=60, trust_env=False)
