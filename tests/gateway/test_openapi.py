"""The OpenAPI document has exactly the operations of the routes, and is served as its value says."""

import re

import pytest
import yaml

from charts.kit import VALUES
from gateway.kit import minimal_values, start_gateway, start_upstreams
from gateway.kit.process import render_files

EVERYTHING = yaml.safe_load((VALUES / "gateway/everything.yaml").read_text())
PATHS = {"llama-8b": "/llama"}
"""Paths of models that have another path than their name."""


def list_routes(files):
    lines = [line.split(" ") for line in files["routes.map"].splitlines()]
    return {(words[2], words[0]) for words in lines}


def test_document_has_exactly_the_operations_of_the_routes():
    files = render_files(EVERYTHING)
    paths = yaml.safe_load(files["openapi.json"])["paths"]
    documented = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert documented == {(method, generalize(path, EVERYTHING["models"])) for method, path in list_routes(files)}


def generalize(path, names):
    """Replace the path of a model by `{model}`, and its name by `{name}` behind that, else by `{model}`."""
    for name in names:
        own = PATHS.get(name, f"/{name}")
        if path.startswith(f"{own}/v1/") and not path.startswith("/{model}"):
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
