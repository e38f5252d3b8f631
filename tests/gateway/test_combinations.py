"""Features that meet in one model: names, sessions, salts, remote gateways, paths."""

import json
from pathlib import Path

import pytest
import yaml

from charts.kit import VALUES
from gateway.kit import minimal_values, model, start_gateway, start_upstreams, tenant
from gateway.kit.connection import build_request
from gateway.kit.hostile import exchange
from gateway.kit.pair import remote, start_pair, tls_values
from gateway.test_config import find_warnings
from gateway.test_sessions import CHAT, FIELDS, USERS, chat, find_endpoints

LONG = "a-name-as-long-as-any-may-be-" + "x" * 67
POST = {"method": "POST"}


@pytest.fixture(scope="module")
def three():
    with start_upstreams("one", "two", "three") as found:
        yield found


def aliased(*found, **balancing):
    return {
        "tenants": {"acme": tenant("acme", ["llama"])},
        "models": {"llama": model(*found, aliases=["fast", LONG], loadBalancing={"prefixBytes": 16, **balancing})},
        "health": {"intervalSeconds": 3600},
    }


def test_alias_selects_the_endpoint_that_its_model_selects_by_prefix(three):
    with start_gateway(aliased(*three)) as gateway:
        by_name = {
            name: find_endpoints(
                gateway, [chat(f"{number}: a prompt of its own") | {"model": name} for number in range(24)]
            )
            for name in ("llama", "fast", LONG)
        }
    assert set(by_name["llama"]) == {"one", "two", "three"}
    assert by_name["fast"] == by_name[LONG] == by_name["llama"]


def test_alias_selects_the_endpoint_that_its_model_selects_by_session(three):
    with start_gateway(aliased(*three, session=FIELDS)) as gateway:
        by_name = {
            name: find_endpoints(gateway, [chat(f"to {user}", user=user) | {"model": name} for user in USERS])
            for name in ("llama", "fast", LONG)
        }
    assert set(by_name["llama"]) == {"one", "two", "three"}
    assert by_name["fast"] == by_name[LONG] == by_name["llama"]


def test_custom_model_has_no_path_of_another_one(three):
    one, *_ = three
    values = {
        "tenants": {"acme": tenant("acme", ["first"]), "search": tenant("search", ["second"])},
        "models": {
            "first": model(one, route="/x", task="custom", operations={"/admin": POST}),
            "second": model(one, route="/y", task="custom", operations={"/run": POST}),
        },
    }
    with start_gateway(values) as gateway:
        statuses = {
            path: gateway.request(path, b"{}", key="search-key").status
            for path in ("/second/run", "/second/admin", "/first/admin")
        }
    assert statuses == {"/second/run": 200, "/second/admin": 404, "/first/admin": 404}


@pytest.mark.parametrize("end", [b"", b"}\v", b"} x"])
def test_body_without_an_end_breaks_no_filter(three, end):
    """The model server refuses it. A fault of the filter would be a 400 without a cause, and an alert in the log."""
    one, *_ = three
    values = minimal_values(one, {"tenants": {"search": tenant("search", ["llama"])}})
    body = b'{"model":"llama","messages":[{"role":"user","content":"hi"}]' + end
    with start_gateway(values) as gateway:
        found = exchange(gateway, one, build_request(CHAT, body, key="acme-key"))
    assert found.statuses == [200]
    (request,) = found.requests
    assert request.body.startswith(body.removesuffix(end))
    with pytest.raises(ValueError, match=r"delimiter|Extra data|Expecting"):
        json.loads(request.body)


def test_haproxy_accepts_one_session_header_for_many_models(tmp_path, three):
    names = [f"model-{number}" for number in range(100)]
    session = {"loadBalancing": {"session": {"header": "x-session-id"}}}
    values = {"tenants": {"acme": tenant("acme", names)}, "models": dict.fromkeys(names, model(*three, **session))}
    memory = {"resources": {"limits": {"memory": "16Gi"}}}
    assert find_warnings(tmp_path, values | memory) == (0, [])


def test_haproxy_accepts_a_remote_gateway_of_a_version_with_many_endpoints(tmp_path):
    values = yaml.safe_load((VALUES / "gateway/everything.yaml").read_text())
    name, version = next(
        (name, version)
        for other in values["remoteGateways"].values()
        for name, (version, *_) in other["models"].items()
    )
    endpoints = values["models"][name]["versions"][version]["endpoints"]
    endpoints |= dict.fromkeys((f"more-{number}" for number in range(40)), next(iter(endpoints.values())))
    assert find_warnings(tmp_path, values) == (0, [])


def test_bound_of_a_body_counts_no_salt_of_another_gateway():
    bounded = {"tenants": {name: tenant(name, ["llama"], maxBodyBytes={"llama": 200}) for name in ("acme", "search")}}
    body = json.dumps(chat("x" * 110)).encode()
    assert 120 < len(body) <= 200
    with start_pair({"overlay": bounded}, {"overlay": bounded}) as (eu, us):
        eu.wait_until("remote.us", up=True)
        eu.upstream.close()
        eu.wait_until("eu", up=False)
        answer = eu.gateway.request(CHAT, body)
        assert (answer.status, answer.endpoint) == (200, "us")
        assert "cache_salt" in json.loads(us.upstream.requests[-1].body)
        assert eu.gateway.request(CHAT, body.replace(b"xxx", b"x" * 90)).status == 413


def test_config_with_many_endpoints_and_equal_remotes_is_valid(tmp_path: Path, three) -> None:
    """A line of HAProxy has at most 64 words."""
    values = tls_values(three[0], {"remoteGateways": {"us": remote(9443), "asia": remote(9444)}})
    (version,) = values["models"]["llama"]["versions"].values()
    (endpoint,) = version["endpoints"].values()
    version["endpoints"] = {f"one-{number}": endpoint | {"port": 9000 + number} for number in range(60)}
    assert find_warnings(tmp_path, values) == (0, [])
