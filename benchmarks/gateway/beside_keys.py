"""python -m gateway.beside_keys [--rounds N] [--write FILE]

Compare requests with a JSON Web Token and requests with an API key, at one gateway in one run.
"""

import argparse
import base64
import datetime
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from rich.console import Console

from gateway import load
from gateway.contenders import Contender, start_gateway
from gateway.cores import pin_to, split_cores
from gateway.plan import STREAMS, TYPICAL, Load
from gateway.report import Figures, print_tables, ratios, summary
from gateway.upstream import Upstream
from rayhelm.processes import create_run_id, stop_run

ISSUER = "https://idp.example.org"
KEYS = "API key"
TENANT = {"keys": {"secretName": "bench"}, "models": ["llama"], "requestsPerMinute": 1_000_000_000, "concurrency": 1000}
VALUES: dict[str, Any] = {
    "tenants": {"bench": {**TENANT, "claimValues": ["bench"]}},
    "oidc": {"enabled": True, "issuer": ISSUER, "audiences": ["bench"], "jwks": {"configMapName": "jwks"}},
}
LOADS = (Load("1 connection", 1, TYPICAL), Load("16 connections", 16, TYPICAL), Load("128 connections", 128, TYPICAL))


def encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def create_token(algorithm: str, sign: Callable[[bytes], bytes]) -> str:
    """Return a token for an hour, signed by the key whose `kid` is the algorithm."""
    header = {"alg": algorithm, "kid": algorithm, "typ": "JWT"}
    claims = {"iss": ISSUER, "aud": "bench", "exp": int(time.time()) + 3600, "tenant": "bench", "sub": "load"}
    signed = ".".join(encode(json.dumps(part).encode()) for part in (header, claims))
    return f"{signed}.{encode(sign(signed.encode()))}"


def create_tokens() -> tuple[str, dict[str, str]]:
    """Return a JWKS, and a token of each algorithm."""
    first, second = rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP256R1())
    numbers, point = first.public_key().public_numbers(), second.public_key().public_numbers()
    jwks = [
        {"kty": "RSA", "kid": "RS256", "n": encode(numbers.n.to_bytes(256, "big")), "e": "AQAB"},
        {
            "kty": "EC",
            "kid": "ES256",
            "crv": "P-256",
            "x": encode(point.x.to_bytes(32, "big")),
            "y": encode(point.y.to_bytes(32, "big")),
        },
    ]

    def sign_ec(data: bytes) -> bytes:
        r, s = decode_dss_signature(second.sign(data, ec.ECDSA(SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")

    tokens = {
        "RS256 token": create_token("RS256", lambda data: first.sign(data, padding.PKCS1v15(), SHA256())),
        "ES256 token": create_token("ES256", sign_ec),
    }
    return json.dumps({"keys": jwks}), tokens


def measure_all(rounds: int, console: Console) -> dict[str, Any]:
    cores, load_cores = split_cores()
    run, taken = create_run_id(), set[int]()
    figures: Figures = {}
    jwks, tokens = create_tokens()
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        try:
            with pin_to(load_cores):
                upstream = Upstream(run, home, STREAMS, taken)
            one = start_gateway(KEYS, VALUES, {"jwks.json": jwks}, upstream, run, home / "gateway", cores, taken)
            kinds: list[Contender] = [one, *(replace(one, name=kind, key=token) for kind, token in tokens.items())]
            for number in range(rounds):
                console.print(f"==> round {number + 1} of {rounds}", highlight=False)
                turn = kinds[number % len(kinds) :] + kinds[: number % len(kinds)]
                for each in LOADS:
                    for kind in turn:
                        found = load.measure(kind, each, load_cores)
                        figures.setdefault(each.name, {}).setdefault(kind.name, []).append(found)
        finally:
            stop_run(run)
    return {
        "command": "make bench-gateway-tokens",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "rounds": rounds,
        "cores": {
            "of the gateway": len(cores),
            "of load and upstream": len(load_cores),
            "shared": cores == load_cores,
        },
        "others_waiting_for_a_core": round(os.getloadavg()[1], 1),
        "version": one.version,
        "body_bytes": len(TYPICAL),
        "ratios": {f"{kind} / {KEYS}": ratios(figures, kind, KEYS) for kind in tokens},
        "added": {},
        "figures": summary(figures),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-gateway-tokens", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--write", type=Path, help="file for the result as JSON")
    arguments = parser.parse_args()
    console = Console(width=150)
    result = measure_all(arguments.rounds, console)
    print_tables(result, console)
    if arguments.write:
        arguments.write.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
