"""Versions of a model by weight, header and tenant, and lists of models."""

from math import sqrt

import pytest

from charts.kit import over
from gateway.kit import endpoint, minimal_values, start_gateway, start_upstreams, tenant


@pytest.fixture(scope="module")
def two():
    with start_upstreams("old", "new") as found:
        yield found


def values(two, old=80, new=20):
    def version(upstream, weight):
        return {"weight": weight, "routePrefix": f"/{upstream.name}", "endpoints": {upstream.name: endpoint(upstream)}}

    return {
        "tenants": {
            "acme": tenant("acme", ["llama"]),
            "brave": tenant("brave", ["llama", "other"], pinnedVersions={"llama": "canary"}),
        },
        "models": {
            "llama": {"versions": {"stable": version(two[0], old), "canary": version(two[1], new)}},
            "other": {"versions": {"only": version(two[1], 100)}},
        },
    }


@pytest.fixture(scope="module")
def gateway(two):
    with start_gateway(values(two)) as gateway:
        yield gateway


def test_requests_are_divided_by_weight(gateway):
    """2,000 requests. A deviation of six sigma fails once in 10^9 runs."""
    throws, share = 2000, 0.2
    with gateway.connect() as connection:
        found = [connection.request("/v1/chat/completions", {"model": "llama"}).endpoint for _ in range(throws)]
    assert abs(found.count("new") - throws * share) < 6 * sqrt(throws * share * (1 - share))


def test_response_names_its_version(gateway):
    for name, upstream in (("stable", "old"), ("canary", "new")):
        response = gateway.chat(headers=[("X-Model-Version", name)])
        assert response.headers["x-model-version"] == name
        assert response.json()["path"] == f"/{upstream}/v1/chat/completions"


def test_version_header_overrides_pinned_version_and_weights(gateway):
    for key in ("acme-key", "brave-key"):
        for name, upstream in (("stable", "old"), ("canary", "new")):
            found = {gateway.chat(key=key, headers=[("X-Model-Version", name)]).endpoint for _ in range(20)}
            assert found == {upstream}


def test_pinned_version_overrides_weights(gateway):
    assert {gateway.chat(key="brave-key").endpoint for _ in range(50)} == {"new"}


@pytest.mark.parametrize("named", ["beta", "only", "", "STABLE", "stable canary", "*", "0"])
def test_unknown_version_is_refused(gateway, named):
    response = gateway.chat(headers=[("X-Model-Version", named)])
    assert response.status == 400
    assert response.error["code"] == "version_not_found"


def test_two_version_headers_are_refused(gateway):
    named = [("X-Model-Version", "canary"), ("X-Model-Version", "stable")]
    assert gateway.chat(headers=named).error["code"] == "version_not_found"


def test_version_is_rolled_back_by_weights(two):
    back = over(values(two), {"models": {"llama": {"versions": {"stable": {"weight": 100}, "canary": {"weight": 0}}}}})
    with start_gateway(back) as gateway:
        assert {gateway.chat().endpoint for _ in range(200)} == {"old"}
        assert gateway.chat(headers=[("X-Model-Version", "canary")]).endpoint == "new", (
            "still there for who asks for it"
        )


def test_tenant_with_a_pinned_version_does_not_reach_versions_of_weight_0(two):
    shares = {"stable": {"weight": 0}, "canary": {"weight": 100}}
    with start_gateway(over(values(two), {"models": {"llama": {"versions": shares}}})) as gateway:
        named = {"headers": [("X-Model-Version", "stable")]}
        assert gateway.chat(key="brave-key", **named).error["code"] == "version_not_found"
        assert gateway.chat(**named).endpoint == "old", "this tenant has no pinned version"
        assert gateway.chat(key="brave-key", headers=[("X-Model-Version", "canary")]).endpoint == "new"


def test_weight_of_one_percent_is_kept():
    with start_upstreams("old", "new") as two, start_gateway(values(two, old=99, new=1)) as gateway:
        lines = (gateway.folder / "slot-versions.map").read_text().splitlines()
        table = dict(line.split() for line in lines if not line.startswith("#"))
        assert [*table.values()].count("canary") == 1
        assert len(table) == 101  # and the one of `other`


# -- which models there are ------------------------------------------------------------------------------------------


def list_models(gateway, path, key):
    response = gateway.request(path, key=key)
    assert response.headers["content-type"] == "application/json"
    content = response.json()
    assert content["object"] == "list"
    assert all(set(item) == {"id", "object", "created", "owned_by"} for item in content["data"])
    return [item["id"] for item in content["data"]]


def test_model_list_has_the_models_of_the_tenant(gateway):
    assert list_models(gateway, "/v1/models", "acme-key") == ["llama"]
    assert list_models(gateway, "/v1/models", "brave-key") == ["llama", "other"]
    assert list_models(gateway, "/other/v1/models", "brave-key") == ["other"]


def test_single_model_can_be_requested(gateway):
    for path in ("/v1/models/other", "/other/v1/models/other"):
        response = gateway.request(path, key="brave-key")
        assert (response.json()["id"], response.json()["object"]) == ("other", "model")
        assert gateway.request(path).error["code"] == "unknown_url", "this tenant may not use it"
    assert gateway.request("/v1/models/none").status == 404


def test_model_list_is_answered_by_the_gateway(two, gateway):
    before = [len(upstream.requests) for upstream in two]
    list_models(gateway, "/v1/models", "acme-key")
    assert [len(upstream.requests) for upstream in two] == before


def test_model_list_hides_models_of_other_tenants():
    with start_upstreams("one") as (one,):
        hidden = {"hidden": {"versions": {"v": {"routePrefix": "/", "endpoints": {"one": endpoint(one)}}}}}
        boss = {"boss": tenant("boss", ["hidden"])}
        with start_gateway(minimal_values(one, {"models": hidden, "tenants": boss})) as gateway:
            assert list_models(gateway, "/v1/models", "acme-key") == ["llama"]
