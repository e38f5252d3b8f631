"""Versions of a model side by side: by weight, by header, by tenant; and who may see which models."""

from math import sqrt

import pytest

from charts.kit import over
from gateway.kit import endpoint, gateway, sites, smallest, tenant


@pytest.fixture(scope="module")
def two():
    with sites("old", "new") as found:
        yield found


def values(two, old=80, new=20):
    def version(site, weight):
        return {"weight": weight, "routePrefix": f"/{site.name}", "endpoints": {site.name: endpoint(site)}}

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
def door(two):
    with gateway(values(two)) as door:
        yield door


def test_requests_are_shared_out_by_weight(door):
    """2,000 throws of a dice: six deviations miss the truth once in a thousand million runs."""
    throws, share = 2000, 0.2
    with door.line() as line:
        found = [line.ask("/v1/chat/completions", {"model": "llama"}).site for _ in range(throws)]
    assert abs(found.count("new") - throws * share) < 6 * sqrt(throws * share * (1 - share))


def test_an_answer_says_which_version_it_comes_from_and_each_has_its_own_address(door):
    for name, site in (("stable", "old"), ("canary", "new")):
        answer = door.chat(headers=[("X-Model-Version", name)])
        assert answer.headers["x-model-version"] == name
        assert answer.json()["path"] == f"/{site}/v1/chat/completions"


def test_a_header_decides_before_anything_else(door):
    for key in ("acme-key", "brave-key"):
        for name, site in (("stable", "old"), ("canary", "new")):
            found = {door.chat(key=key, headers=[("X-Model-Version", name)]).site for _ in range(20)}
            assert found == {site}


def test_a_tenants_pin_decides_before_the_weights(door):
    assert {door.chat(key="brave-key").site for _ in range(50)} == {"new"}


@pytest.mark.parametrize("named", ["beta", "only", "", "STABLE", "stable canary", "*", "0"])
def test_a_version_that_is_not_there_is_refused(door, named):
    answer = door.chat(headers=[("X-Model-Version", named)])
    assert answer.status == 400
    assert answer.error["code"] == "version_not_found"


def test_two_versions_at_once_are_refused(door):
    named = [("X-Model-Version", "canary"), ("X-Model-Version", "stable")]
    assert door.chat(headers=named).error["code"] == "version_not_found"


def test_one_value_takes_a_version_back(two):
    back = over(values(two), {"models": {"llama": {"versions": {"stable": {"weight": 100}, "canary": {"weight": 0}}}}})
    with gateway(back) as door:
        assert {door.chat().site for _ in range(200)} == {"old"}
        assert door.chat(headers=[("X-Model-Version", "canary")]).site == "new", "still there for who asks for it"


def test_a_weight_of_one_percent_is_kept():
    with sites("old", "new") as two, gateway(values(two, old=99, new=1)) as door:
        table = dict(line.split() for line in (door.folder / "slot-versions.map").read_text().splitlines())
        assert [*table.values()].count("canary") == 1
        assert len(table) == 101  # and the one of `other`


# -- which models there are ------------------------------------------------------------------------------------------


def listed(door, path, key):
    answer = door.ask(path, key=key)
    assert answer.headers["content-type"] == "application/json"
    content = answer.json()
    assert content["object"] == "list"
    assert all(set(item) == {"id", "object", "created", "owned_by"} for item in content["data"])
    return [item["id"] for item in content["data"]]


def test_a_tenant_sees_the_models_that_it_may_call(door):
    assert listed(door, "/v1/models", "acme-key") == ["llama"]
    assert listed(door, "/v1/models", "brave-key") == ["llama", "other"]
    assert listed(door, "/other/v1/models", "brave-key") == ["other"]


def test_one_model_can_be_asked_for(door):
    for path in ("/v1/models/other", "/other/v1/models/other"):
        answer = door.ask(path, key="brave-key")
        assert (answer.json()["id"], answer.json()["object"]) == ("other", "model")
        assert door.ask(path).error["code"] == "model_not_allowed"
    assert door.ask("/v1/models/none").status == 404


def test_the_answer_of_one_site_is_not_asked_for_a_list(two, door):
    before = [len(site.asked) for site in two]
    listed(door, "/v1/models", "acme-key")
    assert [len(site.asked) for site in two] == before


def test_a_model_without_a_tenants_leave_is_not_shown():
    with sites("one") as (one,):
        hidden = {"hidden": {"versions": {"v": {"routePrefix": "/", "endpoints": {"one": endpoint(one)}}}}}
        boss = {"boss": tenant("boss", ["hidden"])}
        with gateway(smallest(one, {"models": hidden, "tenants": boss})) as door:
            assert listed(door, "/v1/models", "acme-key") == ["llama"]
