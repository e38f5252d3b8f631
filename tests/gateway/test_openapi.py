"""The OpenAPI document has exactly the operations of the routes, and is served as its value says."""

import re

import pytest
import yaml

from charts.kit import VALUES
from gateway.kit import minimal_values, start_gateway, start_upstreams
from gateway.kit.process import render_files

EVERYTHING = yaml.safe_load((VALUES / "gateway/everything.yaml").read_text())
CUSTOM = {("GET", "/{model}/v1/styles"), ("POST", "/{model}/v1/images/generations")}
"""Operations of the application of one tenant."""
PATHS = {"llama-8b": "/llama"}
"""Paths of models that have another path than their name."""


def list_routes(files):
    """Method and path of the routes that a model serves. The gateway has those of other data paths for their error."""
    served = {tuple(line.split(":", 1)[1].split(" ")) for line in files["operations.map"].splitlines()}
    lines = [line.split(" ") for line in files["routes.map"].splitlines()]
    return {(words[2], words[0]) for words in lines if words[2] == "GET" or (words[3], "yes") in served}


def test_document_has_exactly_the_operations_of_the_routes():
    files = render_files(EVERYTHING)
    routes = {(method, generalize(path, EVERYTHING["models"])) for method, path in list_routes(files)}
    assert list_documented(files) == routes - CUSTOM


def list_documented(files):
    paths = yaml.safe_load(files["openapi.json"])["paths"]
    return {(method.upper(), path) for path, methods in paths.items() for method in methods}


def test_document_has_custom_paths_only_if_every_tenant_may_call_them():
    """A path can say what the application of another tenant does."""
    files = render_files(EVERYTHING)
    assert "/v1/styles" not in files["openapi.json"] + files["docs.html"]
    acme = EVERYTHING["tenants"]["acme"]
    shared = {**acme, "models": [*acme["models"], "painter"]}
    files = render_files({**EVERYTHING, "tenants": {**EVERYTHING["tenants"], "acme": shared}})
    assert list_documented(files) >= CUSTOM


def generalize(path, names):
    """Replace the path of a model by `{model}`, and its name by `{name}` behind that, else by `{model}`."""
    for name in names:
        own = PATHS.get(name, f"/{name}")
        if path.startswith(f"{own}/") and not path.startswith("/{model}"):
            path = f"/{{model}}{path.removeprefix(own)}"
        if path.endswith(f"/v1/models/{name}"):
            path = path.removesuffix(name) + ("{name}" if path.startswith("/{model}") else "{model}")
    return path


def test_document_names_no_model_and_no_tenant():
    files = render_files(EVERYTHING)
    for name in [*EVERYTHING["models"], *EVERYTHING["tenants"], "/llama/"]:
        if name not in ("search", "rank", "speech"):
            assert name not in files["openapi.json"] + files["docs.html"]


def test_every_reference_of_the_document_exists():
    text = render_files(EVERYTHING)["openapi.json"]
    document = yaml.safe_load(text)
    for reference in re.findall(r'"#/components/([^"]+)"', text):
        kind, name = reference.split("/")
        assert name in document["components"][kind]


def test_document_requires_the_fields_that_the_gateway_requires():
    document = yaml.safe_load(render_files(EVERYTHING)["openapi.json"])
    chat = document["paths"]["/v1/chat/completions"]["post"]
    schema = chat["requestBody"]["content"]["application/json"]["schema"]
    assert schema["required"] == ["model"]
    assert schema["anyOf"] == [{"required": ["messages"], "properties": {"messages": {"type": ["array"]}}}]
    errors = document["components"]["responses"]["Error"]["description"]
    assert all(str(status) in errors for status in (401, 404, 429, 503))
    assert chat["responses"]["default"] == {"$ref": "#/components/responses/Error"}


@pytest.fixture(scope="module")
def upstream():
    with start_upstreams("one") as (one,):
        yield one


@pytest.mark.parametrize(
    ("access", "without_key", "with_key"), [("Key", 401, 200), ("Public", 200, 200), ("None", 401, 404)]
)
def test_document_is_served_as_its_access_says(upstream, access, without_key, with_key):
    with start_gateway(minimal_values(upstream, {"openapi": {"access": access}})) as gateway:
        for path in ("/openapi.json", "/docs"):
            assert gateway.request(path, key=None).status == without_key
            assert gateway.request(path).status == with_key
            assert gateway.request(path, {"x": 1}, key=None).status == 401, "only GET"
        if with_key == 200:
            assert gateway.request("/openapi.json").json()["openapi"] == "3.1.0"
            page = gateway.request("/docs")
            assert page.headers["content-type"].startswith("text/html")
            assert b"/v1/chat/completions" in page.body
        assert gateway.request("/v1/models", key=None).status == 401
