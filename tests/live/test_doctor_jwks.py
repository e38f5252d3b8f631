"""The doctor's reading of a JWKS, compared with the gateway's own program, and the faults of its source."""

import base64
import json
import subprocess
from pathlib import Path

import pytest

from gateway.kit.identity import encode, publish_ec, publish_rsa, write_jwks
from gateway.kit.process import find_haproxy
from gateway.test_jwks import BAD
from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.live.doctor.jwks import find_jwks_problem
from shared.doctor_world import World, fleet

BOTH = ["RS256", "ES256"]
GOOD = [
    write_jwks(publish_rsa("rsa")),
    write_jwks(publish_ec("ec"), publish_rsa("rsa", use="enc"), {"kty": "new"}),
    write_jwks(publish_rsa("rsa", kid=None), publish_rsa("rsa", key_ops=["sign", "verify"])),
]
MORE_BAD = [
    "<html>502 Bad Gateway</html>",
    '{"keys": null}',
    '{"keys": [null]}',
    '{"keys": [NaN]}',
    '{"keys": []} {}',
    write_jwks(publish_rsa("rsa", kid="")),
    write_jwks(publish_rsa("rsa", kid=7)),
    write_jwks(publish_rsa("rsa", key_ops="verify")),
    write_jwks(publish_rsa("rsa", e=encode(b"\x02"))),
    write_jwks(publish_rsa("rsa", n=encode(b"\xff" * 1025))),
    write_jwks(publish_ec("ec", y=encode(b"\x01" * 33))),
    write_jwks(publish_ec("ec", alg="RS256")),
]


def read_in_haproxy(folder, texts):
    """Return whether jwks.lua accepts each text: HAProxy runs the program while it checks its configuration."""
    files = charts_dir() / "gateway/files"
    for number, text in enumerate(texts):
        (folder / str(number)).write_text(text)
    (folder / "read.lua").write_text(
        f"""
        local load = dofile
        dofile = function(name) return load("{files}/" .. name) end
        local jwks = load("{files}/jwks.lua")
        for number = 0, {len(texts) - 1} do
          local file <close> = assert(io.open("{folder}/" .. number))
          local text = file:read("a")
          local found = #text <= 1048576 and jwks.read(text)
          local result <close> = assert(io.open("{folder}/" .. number .. ".result", "w"))
          assert(result:write(found and "yes" or "no"))
        end
        """
    )
    (folder / "haproxy.cfg").write_text(f"global\n  lua-load {folder}/read.lua\n")
    subprocess.run([find_haproxy(), "-c", "-f", folder / "haproxy.cfg"], check=False, capture_output=True)
    return [(folder / f"{number}.result").read_text() == "yes" for number in range(len(texts))]


def test_doctor_and_gateway_accept_the_same_sets(tmp_path: Path) -> None:
    texts = [*GOOD, *BAD, *MORE_BAD]
    accepted = read_in_haproxy(tmp_path, texts)
    assert accepted == [True] * len(GOOD) + [False] * (len(BAD) + len(MORE_BAD))
    assert [not find_jwks_problem(text, BOTH) for text in texts] == accepted


@pytest.mark.parametrize("algorithms", [["ES256"], ["RS256"]])
def test_set_without_an_accepted_algorithm_is_a_problem(algorithms: list[str]) -> None:
    keys = {"RS256": publish_rsa("rsa"), "ES256": publish_ec("ec")}
    (other,) = set(keys) - set(algorithms)
    assert find_jwks_problem(write_jwks(*keys.values()), algorithms) == ""
    problem = find_jwks_problem(write_jwks(keys[other]), algorithms)
    assert problem == f"has keys for {other} only, and the gateway accepts {algorithms[0]} (`oidc.algorithms`)"


def test_no_part_of_a_key_is_shown() -> None:
    secret = publish_rsa("rsa", d="c2VjcmV0LXZhbHVl")
    assert "c2VjcmV0" not in find_jwks_problem(write_jwks(secret), BOTH)


def gateway_with_secret(world: World) -> None:
    """A gateway whose JWKS is in a Secret."""
    items = [{"key": "keys", "path": "jwks.json"}]
    sources = [{"secret": {"name": "jwks", "optional": True, "items": items}}]
    spec = {"containers": [{"name": "haproxy"}], "volumes": [{"name": "config", "projected": {"sources": sources}}]}
    metadata = {"name": "other", "namespace": "gateway"}
    world.create({"kind": "Deployment", "metadata": metadata, "spec": {"selector": {}, "template": {"spec": spec}}})


def write_secret(world: World, text: str) -> None:
    data = {"keys": base64.b64encode(text.encode()).decode()}
    world.create({"kind": "Secret", "metadata": {"name": "jwks", "namespace": "gateway"}, "data": data})


def test_jwks_of_a_secret_is_read_as_keys_of_tokens() -> None:
    """The same Secret is not read as a file of API keys."""
    world = World(fleet())
    gateway_with_secret(world)
    write_secret(world, write_jwks(publish_rsa("rsa")))
    assert world.examine("token-keys", "secrets").findings == ()


def test_bad_jwks_of_a_secret_is_found_once() -> None:
    world = World(fleet())
    gateway_with_secret(world)
    (missing,) = world.examine("token-keys", "secrets").findings
    write_secret(world, json.dumps({"keys": []}))
    (empty,) = world.examine("token-keys", "secrets").findings
    assert (missing.object, empty.object) == ("Secret gateway/jwks", "Secret gateway/jwks")
    assert missing.evidence == "it does not exist"
    assert "has 0 keys" in empty.evidence
    assert empty.fix.startswith("kubectl create secret generic jwks -n gateway --from-file=keys=FILE")


def test_forbidden_jwks_is_a_finding_with_the_missing_right() -> None:
    world = World(fleet())
    gateway_with_secret(world)
    world.forbidden = frozenset({"/api/v1/namespaces/gateway/secrets/jwks"})
    (finding,) = world.examine("token-keys", "secrets").findings
    assert finding.evidence == "forbidden: Secret gateway/jwks"
    assert "resourceNames: [jwks], verbs: [get]" in finding.fix
