"""TLS of the gateway itself."""

import socket
import ssl
import threading
from collections.abc import Iterator

import pytest
from cryptography import x509

from gateway.kit import GatewayProcess, start_gateway, start_upstreams, wait_for
from gateway.kit.certificates import Certificate, create_client_context, issue
from gateway.kit.pair import tls_files, tls_values
from gateway.kit.process import replace_file


@pytest.fixture(scope="module")
def gateway() -> Iterator[GatewayProcess]:
    with start_upstreams("one") as (one,):
        files = tls_files(issue("gateway.example"))
        with start_gateway(tls_values(one), mounted=files, tls=create_client_context()) as found:
            yield found


def install(gateway: GatewayProcess, certificate: Certificate) -> None:
    for name, text in tls_files(certificate).items():
        replace_file(gateway.folder / name, text)


def serial(gateway: GatewayProcess) -> int:
    """Serial number of the certificate that the gateway shows."""
    with gateway.connect() as connection:
        shown = ssl.DER_cert_to_PEM_cert(connection.certificate)
    return Certificate(shown, "").serial


def test_gateway_answers_over_tls_only(gateway: GatewayProcess) -> None:
    assert gateway.chat().endpoint == "one"
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as plain:
        plain.sendall(b"GET /v1/models HTTP/1.1\r\nhost: gateway.example\r\n\r\n")
        assert not plain.recv(65_536).startswith(b"HTTP")


def test_gateway_refuses_old_tls(gateway: GatewayProcess) -> None:
    context = create_client_context()
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as plain, pytest.raises(ssl.SSLError):
        context.wrap_socket(plain, server_hostname="gateway.example")


def test_renewed_certificate_is_used_and_no_request_is_lost(gateway: GatewayProcess) -> None:
    statuses, stopped = [], threading.Event()

    def repeat() -> None:
        while not stopped.is_set():
            statuses.append(gateway.chat().status)

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        with gateway.connect() as kept:
            assert kept.request("/v1/models").status == 200
            for _ in range(3):
                new = issue("gateway.example")
                install(gateway, new)
                wait_for(lambda wanted=new.serial: serial(gateway) == wanted, "the new certificate is shown")
            assert kept.request("/v1/models").status == 200
    finally:
        stopped.set()
        thread.join()
    assert set(statuses) == {200}


def test_invalid_certificate_leaves_the_last_one(gateway: GatewayProcess) -> None:
    before = serial(gateway)
    replace_file(gateway.folder / "tls/public.crt", "no certificate")
    gateway.wait_for_output("tls/public: the new certificate and its key are not valid, so the last ones stay")
    assert serial(gateway) == before
    assert gateway.chat().status == 200


def test_metrics_have_the_validity_of_the_certificate_in_use(gateway: GatewayProcess) -> None:
    new = issue("gateway.example")
    install(gateway, new)
    loaded = x509.load_pem_x509_certificate(new.certificate.encode())
    times = {"not_before": loaded.not_valid_before_utc, "not_after": loaded.not_valid_after_utc}
    wanted = {
        f'rayhelm_gateway_certificate_{name}_timestamp_seconds{{secret="public"}} {int(time.timestamp())}'
        for name, time in times.items()
    }

    def read() -> set[str]:
        return set(gateway.request_metrics_port("/metrics/tenants")[1].splitlines())

    wait_for(lambda: wanted <= read(), "the metrics have the new certificate")
