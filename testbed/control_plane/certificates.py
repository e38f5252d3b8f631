"""Create certificates: one authority for the cluster, one for the API server's front proxy."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import trustme

__all__ = ["CLIENTS", "SERVERS", "write_certificates"]

SERVERS = ("127.0.0.1", "localhost", "kubernetes.default.svc", "10.96.0.1")
# The API server reads the user from CN and the group from O.
CLIENTS: dict[str, tuple[str, str | None]] = {
    "admin": ("admin", "system:masters"),
    "kube-controller-manager": ("system:kube-controller-manager", None),
    "kube-scheduler": ("system:kube-scheduler", None),
}


def write_certificates(
    folder: Path, servers: Sequence[str] = SERVERS, clients: Mapping[str, tuple[str, str | None]] = CLIENTS
) -> None:
    """Authorities, server, clients and the key that signs service account tokens; a folder that has them is left.

    `servers` are the names and addresses that the server's is good for, `clients` user and group by file."""
    if (folder / "done").exists():
        return
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    cluster, proxy = trustme.CA(), trustme.CA()
    cluster.cert_pem.write_to_path(str(folder / "ca.crt"))
    proxy.cert_pem.write_to_path(str(folder / "proxy-ca.crt"))
    _write(folder, "server", cluster.issue_cert(*servers))
    _write(folder, "tokens", cluster.issue_cert("tokens.local"))
    _write(folder, "proxy", proxy.issue_cert("front-proxy", common_name="front-proxy"))
    for name, (user, group) in clients.items():
        # Go refuses a certificate without a subject alternative name.
        _write(folder, name, cluster.issue_cert(f"{name}.local", common_name=user, organization_name=group))
    (folder / "done").touch()


def _write(folder: Path, name: str, leaf: trustme.LeafCert) -> None:
    key = folder / f"{name}.key"
    key.touch(mode=0o600)
    leaf.private_key_pem.write_to_path(str(key))
    leaf.cert_chain_pems[0].write_to_path(str(folder / f"{name}.crt"))
