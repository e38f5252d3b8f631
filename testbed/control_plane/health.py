"""Whether a part says that it is well."""

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
    """Ask a part's port on loopback; False also without an answer, or without a certificate to ask with."""
    scheme, _, path = PATHS[part.name].partition(":")
    return answers(f"{scheme}://127.0.0.1:{part.port}{path}", home)


def answers(url: str, home: Home) -> bool:
    """Return whether a URL is answered with 200, asked with the administrator's certificate where it is encrypted."""
    scheme = url.partition(":")[0]
    try:
        made = (home.certificates / "admin.crt").stat().st_mtime_ns if scheme == "https" else 0
        return _client(scheme, home.certificates, made).get(url).status_code == 200
    except (httpx.HTTPError, OSError):
        return False


@cache
def _client(scheme: str, certificates: Path, _made: int) -> httpx.Client:
    # Controllers without a certificate sign one for themselves; they are asked on loopback, and only for their health.
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if scheme == "https":
        context.load_cert_chain(certificates / "admin.crt", certificates / "admin.key")
    return httpx.Client(verify=context, timeout=10, trust_env=False)
