"""Kubeconfig files: with a client certificate, or with a service account's token."""

import base64
from pathlib import Path
from typing import Any

import yaml

__all__ = ["server_of", "with_certificate", "with_token"]


def with_certificate(path: Path, server: str, certificates: Path, user: str) -> Path:
    credentials = {
        "client-certificate-data": _encode(certificates / f"{user}.crt"),
        "client-key-data": _encode(certificates / f"{user}.key"),
    }
    cluster = {"server": server, "certificate-authority-data": _encode(certificates / "ca.crt")}
    return _write(path, cluster, user, credentials)


def with_token(path: Path, administrator: Path, user: str, token: str) -> Path:
    """Write a kubeconfig for a service account, with the cluster of the administrator's kubeconfig."""
    return _write(path, _find_cluster(administrator), user, {"token": token})


def server_of(kubeconfig: Path) -> str:
    """Return the URL of the API server."""
    return str(_find_cluster(kubeconfig)["server"])


def _find_cluster(kubeconfig: Path) -> dict[str, Any]:
    """Return the cluster of the current context."""
    config = yaml.safe_load(kubeconfig.read_bytes())
    contexts = {item["name"]: item["context"] for item in config["contexts"]}
    clusters = {item["name"]: item["cluster"] for item in config["clusters"]}
    found: dict[str, Any] = clusters[contexts[config["current-context"]]["cluster"]]
    return found


def _write(path: Path, cluster: dict[str, Any], user: str, credentials: dict[str, str]) -> Path:
    name = "rayhelm-testbed"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "current-context": name,
    }
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    return path


def _encode(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
