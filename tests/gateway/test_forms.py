"""Fields in forms by which a client would choose what the operator chooses."""

import ast
import asyncio
import random
import re
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pytest
from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException, MultiPartParser

from gateway.kit import minimal_values, model, start_gateway, start_upstreams
from gateway.kit.connection import build_request
from gateway.kit.hostile import assert_unaffected
from rayhelm.deploy.values.gateway.limits import RefusedField

PATH = "/whisper/v1/audio/transcriptions"
FIELDS = get_args(RefusedField)
TYPE = "multipart/form-data; boundary=B0undary"
FILE = 'file"; filename="a.wav'
SIZES = {"small": 100, "held": 900_000, "streamed": 3_000_000}
"""The gateway holds forms of up to `limits.bodyBytes`, and forwards longer ones while they arrive."""


def build_values(one, **more):
    return minimal_values(
        one,
        {
            "tenants": {"acme": {"models": ["llama", "whisper"]}},
            "models": {"whisper": model(one, route="/whisper", task="transcribe")},
            **more,
        },
    )


@pytest.fixture(scope="module")
def environment():
    with (
        start_upstreams("one") as (one,),
        start_gateway(build_values(one)) as gateway,
        assert_unaffected(gateway, megabytes=400),
    ):
        yield gateway, one


def build_form(*parts, boundary="B0undary"):
    """A form of names and contents; a name that is bytes stands for all headers of its part."""
    lines = []
    for name, content in parts:
        head = name if isinstance(name, bytes) else f'Content-Disposition: form-data; name="{name}"'.encode()
        lines.append(b"--%s\r\n%s\r\n\r\n%s\r\n" % (boundary.encode(), head, content))
    return b"".join(lines) + b"--%s--\r\n" % boundary.encode()


def build_sound(size):
    return random.Random(size).randbytes(size)


def build_upload(form, content_type=TYPE, headers=(), path=PATH):
    given = [("Content-Length", str(len(form))), *headers]
    if content_type is not None:
        given.append(("Content-Type", content_type))
    return build_request(path, method="POST", headers=given) + form


def upload(gateway, form, content_type=TYPE, pieces=1, path=PATH):
    """Send a form, in pieces with a pause between them."""
    data = build_upload(form, content_type, path=path)
    size = -(-len(data) // pieces)
    with gateway.connect() as connection:
        for at in range(0, len(data), size):
            connection.send(data[at : at + size])
            time.sleep(0.02 if pieces > 1 else 0)
        return connection.read_response("POST")


def assert_refused(gateway, one, form, name, content_type=TYPE, pieces=1):
    """The client gets the error, and the model server no refused field."""
    before = len(one.requests)
    response = upload(gateway, form, content_type, pieces)
    code = "field_not_allowed" if name else "invalid_form"
    assert (response.status, response.error["code"], response.error["param"]) == (400, code, name)
    assert "x-rayhelm-reason" not in response.headers
    for request in one.requests[before:]:
        assert len(form) > 1_048_576, "a form that is held is not forwarded"
        assert len(request.body) == len(form)
        assert_no_field(request.body, name or "priority")


def assert_no_field(body, name):
    """At most a part of the headers of a refused field reached the model server: no end of them, and no value."""
    assert body.endswith(b"?")
    assert not re.search(rb"\n\r?\n", body.partition(name.encode())[2])
    assert name not in parse_form(body)


def assert_passed(gateway, one, form, content_type=TYPE, pieces=1):
    response = upload(gateway, form, content_type, pieces)
    assert response.status == 200
    assert one.requests[-1].body == form


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("place", ["before", "after"])
def test_refused_field_of_a_form_is_refused(gateway, one, name, size, place):
    parts = [(FILE, build_sound(size)), (name, b"1"), ("model", b"whisper")]
    assert_refused(gateway, one, build_form(*(parts if place == "after" else parts[::-1])), name)


@pytest.mark.parametrize("pieces", [2, 5, 40])
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_field_in_a_form_that_arrives_in_pieces_is_refused(gateway, one, size, pieces):
    form = build_form((FILE, build_sound(size)), ("vllm_xargs", b"{}"))
    assert_refused(gateway, one, form, "vllm_xargs", pieces=pieces)


CUT_HEADS = {
    "vllm_xargs": "vllm_xargs",
    "lines of LF": b'X: y\nContent-Disposition: form-data; name="vllm_xargs"\n\nvalue',
}


@pytest.mark.parametrize("head", CUT_HEADS.values(), ids=CUT_HEADS)
@pytest.mark.parametrize("cut", range(1, 75, 3))
def test_field_behind_a_cut_at_any_byte_is_refused(gateway, one, cut, head):
    """The end of a long form arrives in two pieces."""
    form = build_form((FILE, build_sound(1_200_000)), (head, b"value"))
    data = build_upload(form)
    at = data.rindex(b"--B0undary\r\n") + cut
    with gateway.connect() as connection:
        connection.send(data[:at])
        time.sleep(0.1)
        connection.send(data[at:])
        expected = "vllm_xargs" if head == "vllm_xargs" else None
        assert connection.read_response("POST").error["param"] == expected
    assert_no_field(one.requests[-1].body, "vllm_xargs")
    assert b"value" not in one.requests[-1].body


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("pieces", [1, 7])
def test_ordinary_form_is_unchanged(gateway, one, size, pieces):
    form = build_form(("model", b"whisper"), (FILE, build_sound(size)), ("prompt", b"priority, vllm_xargs"))
    assert_passed(gateway, one, form, pieces=pieces)


HEADS = {
    "curl": b'Content-Disposition: form-data; name="file"; filename="my name.wav"\r\nContent-Type: audio/wav',
    "httpx": b'Content-Disposition: form-data; name="file"; filename="a%22b.wav"\r\nContent-Type: audio/wav',
    "aiohttp": b"Content-Type: x/y\r\nContent-Disposition: form-data; name=\"file\"; filename*=utf-8''%C3%A9.wav",
    "unquoted": b"content-disposition: form-data;name=file; filename=a.wav",
    "a file called like a field": b'Content-Disposition: form-data; name="file"; filename="priority"',
    "a list": b'Content-Disposition: form-data; name="timestamp_granularities[]"',
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_headers_that_clients_send_pass(gateway, one, head):
    assert_passed(gateway, one, build_form((head, b"1")))


TYPES = [
    'multipart/form-data; boundary="B0undary"',
    "Multipart/Form-Data;boundary=B0undary",
    "multipart/form-data; boundary=B0undary; charset=UTF-8",
    "multipart/form-data; charset=utf-8; boundary=B0undary",
    "multipart/form-data; boundary=B0undary;",
    'multipart/form-data; charset="utf-8" ; boundary="B0undary" ; ',
]


@pytest.mark.parametrize("kind", TYPES)
def test_field_is_found_with_every_accepted_content_type(gateway, one, kind):
    assert_passed(gateway, one, build_form(("model", b"whisper")), kind)
    assert_refused(gateway, one, build_form(("priority", b"1")), "priority", kind)


ODD_TYPES = [
    "multipart/form-data",
    "multipart/form-data; boundary=",
    "multipart/form-data;",
    "multipart/form-data; charset=utf-8;",
    "multipart/form-data; boundary=B0undary;;",
    "multipart/form-data; boundary=B0undary; boundary=other;",
    "multipart/form-data; boundary=B0undary; x=y",
    'multipart/form-data; x="; boundary=other; charset="; boundary=B0undary',
    "multipart/form-data; boundary=B0undary; charset=utf-7",
    "multipart/form-data; charset=utf-7; boundary=B0undary",
    "multipart/form-data; boundary=other; boundary=B0undary",
    'multipart/form-data; boundary="B0\\undary"',
    "multipart/form-data; boundary*=utf-8''B0undary; boundary=x",
    "multipart/mixed; boundary=B0undary",
    "multipart/form-data; boundary=" + "x" * 71,
    "text/plain, multipart/form-data; boundary=B0undary",
]


@pytest.mark.parametrize("kind", ODD_TYPES)
def test_form_with_an_odd_content_type_is_refused(gateway, one, kind):
    assert_refused(gateway, one, build_form(("priority", b"1")), None, kind)


def test_form_with_two_content_types_is_refused(gateway, one):
    before = len(one.requests)
    with gateway.connect() as connection:
        connection.send(build_upload(build_form(("priority", b"1")), TYPE, [("Content-Type", "text/plain")]))
        assert connection.read_response("POST").error["code"] == "invalid_form"
    assert len(one.requests) == before


PART = b'Content-Disposition: form-data; name="%s"'
ODD_HEADS = {
    "no name": b"Content-Disposition: form-data",
    "no disposition": b"Content-Type: text/plain",
    "two dispositions": PART % b"x" + b"\r\n" + PART % b"priority",
    "two names": PART % b"x" + b'; name="priority"',
    "an encoded name": b"Content-Disposition: form-data; name*=utf-8''priority",
    "a name in parts": b'Content-Disposition: form-data; name*0="prio"; name*1="rity"',
    "a backslash": b'Content-Disposition: form-data; name="pri\\ority"',
    "a backslash in the file": PART % b"x" + b'; filename="a\\\\"; name="priority"',
    "a folded line": b'Content-Disposition: form-data;\r\n name="priority"',
    "a space before the colon": b'Content-Disposition : form-data; name="priority"',
    "a line feed": b'X: y\nContent-Disposition: form-data; name="priority"',
    "an attachment": b'Content-Disposition: attachment; name="priority"',
    "long": b"X: " + b"y" * 5000 + b"\r\n" + PART % b"priority",
    "a delimiter": b"X: --B0undary\r\n" + PART % b"priority",
    "no headers": b"",
}


@pytest.mark.parametrize("head", ODD_HEADS.values(), ids=ODD_HEADS)
@pytest.mark.parametrize("size", [10, 2_000_000], ids=["held", "streamed"])
def test_part_with_odd_headers_is_refused(gateway, one, head, size):
    assert_refused(gateway, one, build_form((FILE, build_sound(size)), (head, b"1")), None)


def test_other_content_types_are_unchanged(gateway, one):
    """FastAPI finds no file in them, so it answers 422."""
    for kind in ("application/json", "application/x-www-form-urlencoded", None):
        assert_passed(gateway, one, b"priority=1", kind)


def test_field_with_a_reason_is_allowed(one):
    values = build_values(one, validation={"allowedFields": {"vllm_xargs": "a plugin reads them"}})
    with start_gateway(values) as gateway:
        assert_passed(gateway, one, build_form(("vllm_xargs", b"{}")))
        assert_refused(gateway, one, build_form(("priority", b"1")), "priority")


def test_gateway_without_forms_has_no_filter(one):
    with start_gateway(minimal_values(one)) as gateway:
        assert not (gateway.folder / "forms.lua").exists()
        assert "lua.form" not in (gateway.folder / "haproxy.cfg").read_text()


PIECES = [
    *(b"--B0undary\r\n", b"--B0undary--", b"--B0undary", b"\r\n", b"\r\n\r\n", b"\r", b"\n", b"--", b" ", b"\t", b"\0"),
    *(b'Content-Disposition: form-data; name="priority"', b'; name="vllm_xargs"', b"; name=request_id", b";", b'"'),
    *(b"\\", b"*", b"X: y\r\n", b"content-disposition:form-data;NAME=priority", b"Content-Disposition: ", b"filename="),
]


def mutate(chance):
    """Build a form with odd parts, in any order, and change some bytes of some forms."""
    heads = ["model", FILE, "prompt", *FIELDS, *HEADS.values(), *ODD_HEADS.values()]
    parts = [(chance.choice(heads), chance.choice([b"", b"1", *PIECES])) for _ in range(chance.randrange(1, 5))]
    form = bytearray(build_form(*parts))
    for _ in range(chance.randrange(3)):
        start = chance.randrange(len(form) + 1)
        if chance.randrange(3):
            form[start:start] = chance.choice(PIECES)
        else:
            del form[start : start + chance.randrange(1, 20)]
    return bytes(form)


def parse_form(body):
    """Return the names that FastAPI finds, or none in a form that it refuses."""

    async def parse():
        async def stream():
            yield body

        parser = MultiPartParser(Headers({"content-type": TYPE}), stream())
        try:
            return [name for name, _ in (await parser.parse()).multi_items()]
        except MultiPartException:
            return []
        finally:
            for file in parser._files_to_close_on_error:
                file.close()

    return asyncio.run(parse())


def test_random_forms_that_pass_have_no_refused_field_for_starlette(gateway, one):
    chance, before = random.Random(18), len(one.requests)
    forms = [mutate(chance) for _ in range(1500)]
    assert sum(bool(set(parse_form(form)) & set(FIELDS)) for form in forms) > 20, "the attacks must be real"
    with gateway.connect() as connection:
        for form in forms:
            connection.send(build_upload(form))
            assert connection.read_response("POST").status in (200, 400)
    passed = [request.body for request in one.requests[before:] if request.path.startswith("/whisper")]
    assert len(passed) > 50
    assert not [form for form in passed if set(parse_form(form)) & set(FIELDS)]


def test_random_forms_in_pieces_give_starlette_no_refused_field(one):
    """Without retries of a lost response the gateway forwards each form while it arrives."""
    chance, before = random.Random(19), len(one.requests)
    forms = [mutate(chance) for _ in range(400)]
    with start_gateway(build_values(one, retries={"emptyResponse": False})) as gateway:
        for form in forms:
            data = build_upload(form)
            at = len(data) - chance.randrange(len(form))
            # The gateway answers and closes the connection if the first piece has an error.
            with gateway.connect() as connection, suppress(ConnectionError):
                connection.send(data[:at])
                time.sleep(0.005)
                connection.send(data[at:])
                connection.read_response("POST")
    received = [request.body for request in one.requests[before:] if request.path.startswith("/whisper")]
    assert sum(body in forms for body in received) > 20
    assert sum(body.endswith(b"?") for body in received) > 20
    assert not [body for body in received if set(parse_form(body)) & set(FIELDS)]


def list_fields(module, name):
    """Annotated names of a class in an installed module, which is read and not imported."""
    package, _, rest = module.partition(".")
    spec = find_spec(package)
    assert spec
    assert spec.submodule_search_locations
    file = Path(spec.submodule_search_locations[0], *rest.split(".")).with_suffix(".py")
    (found,) = [
        each for each in ast.parse(file.read_text()).body if isinstance(each, ast.ClassDef) and each.name == name
    ]
    fields = [
        each.target.id for each in found.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    ]
    return {each for each in fields if not each.startswith("_")} - {"model_config"}


HARMLESS = {
    *("file", "model", "language", "to_language", "hotwords", "prompt", "response_format", "timestamp_granularities"),
    *("stream", "stream_include_usage", "stream_continuous_usage_stats", "use_beam_search", "n", "length_penalty"),
    *("include_stop_str_in_output", "temperature", "top_p", "top_k", "min_p", "seed", "frequency_penalty"),
    *("repetition_penalty", "presence_penalty", "max_completion_tokens"),
}
"""Fields that change the own response of the client."""


def test_every_form_field_of_vllm_and_ray_is_known():
    """A version with another field fails here: decide whether the gateway refuses it."""
    vllm = list_fields("vllm.entrypoints.speech_to_text.transcription.protocol", "TranscriptionRequest")
    ray = list_fields("ray.llm._internal.serve.core.configs.openai_api_models", "TranscriptionRequest")
    assert (vllm | ray) - HARMLESS == {"vllm_xargs", "request_id"}
    assert (vllm | ray) - HARMLESS <= set(FIELDS)


def test_ray_serves_no_other_form():
    """`/v1/audio/translations` of vLLM has no route in Ray Serve LLM."""
    package = find_spec("ray")
    assert package
    assert package.submodule_search_locations
    text = Path(package.submodule_search_locations[0], "llm/_internal/serve/core/ingress/ingress.py").read_text()
    assert text.count("Request, Form()]") == text.count('"/v1/audio/') == 1
