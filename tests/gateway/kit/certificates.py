"""Certificates of a CA of the tests."""

import datetime
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Certificate:
    """A certificate and its private key, PEM."""

    certificate: str
    key: str

    @property
    def serial(self) -> int:
        return x509.load_pem_x509_certificate(self.certificate.encode()).serial_number


@cache
def create_ca(name: str = "ca") -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    """Return the same CA for the same name within a process."""
    key = ec.generate_private_key(ec.SECP256R1())
    return key, _sign(name, key, name, key)


def write_ca(name: str = "ca") -> str:
    """Return the certificate of a CA, PEM."""
    return create_ca(name)[1].public_bytes(serialization.Encoding.PEM).decode()


def issue(name: str, ca: str = "ca", names: Sequence[str] = ("gateway.example",)) -> Certificate:
    """Issue a new certificate for the DNS names `names`."""
    key = ec.generate_private_key(ec.SECP256R1())
    found = _sign(name, key, ca, create_ca(ca)[0], names)
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Certificate(found.public_bytes(pem).decode(), private.decode())


def create_client_context(ca: str = "ca") -> ssl.SSLContext:
    """Return a context that trusts only this CA."""
    return ssl.create_default_context(cadata=write_ca(ca))


def mount_certificates(folder: Path, values: dict[str, Any]) -> None:
    """Write the certificates that the pod of a gateway with these values mounts into its folder of configuration."""
    files = {f"remote/{name}/ca.crt": write_ca() for name in values.get("remoteGateways", {})}
    for name in values.get("exposure", {}).get("tls", {}).get("secretNames", ()):
        certificate = issue(name)
        files |= {f"tls/{name}.crt": certificate.certificate, f"tls/{name}.crt.key": certificate.key}
    if values.get("upstreamTls", {}).get("certificateAuthority"):
        files["upstream/ca.crt"] = write_ca()
    for file, text in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)


def _sign(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    names: Sequence[str] = (),
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=not names, path_length=None), critical=True)
    )
    if names:
        found = x509.SubjectAlternativeName([x509.DNSName(each) for each in names])
        builder = builder.add_extension(found, critical=False)
    return builder.sign(issuer_key, SHA256())
