"""Uploads above `limits.bodyBytes` that a gateway forwards to another one."""

from collections.abc import Iterator

import pytest

from gateway.kit.pair import Side, start_pair
from gateway.test_forms import FILE, assert_no_field, build_form, build_sound, upload

TRANSCRIBE = {"models": {"llama": {"task": "transcribe"}}}
PATH = "/llama/v1/audio/transcriptions"
SOUND = build_sound(3_000_000)


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Side, Side]]:
    """The upstream of the first gateway is down."""
    with start_pair({"overlay": TRANSCRIBE}, {"overlay": TRANSCRIBE}) as (eu, us):
        eu.wait_until("remote.us", up=True)
        eu.upstream.close()
        eu.wait_until("eu", up=False)
        yield eu, us


@pytest.mark.parametrize("attempt", range(12))
def test_long_upload_reaches_the_remote_gateway(pair: tuple[Side, Side], attempt: int) -> None:
    eu, us = pair
    form = build_form((FILE, SOUND), ("prompt", b"%d" % attempt))
    response = upload(eu.gateway, form, path=PATH)
    assert (response.status, response.endpoint) == (200, "us")
    assert us.upstream.requests[-1].body == form


@pytest.mark.parametrize("attempt", range(4))
def test_field_of_a_long_upload_to_a_remote_gateway_is_refused(pair: tuple[Side, Side], attempt: int) -> None:
    eu, us = pair
    before = len(us.upstream.requests)
    form = build_form((FILE, SOUND), ("vllm_xargs", b"%d" % attempt))
    response = upload(eu.gateway, form, path=PATH)
    assert (response.status, response.error["code"]) == (400, "field_not_allowed")
    for request in us.upstream.requests[before:]:
        assert_no_field(request.body, "vllm_xargs")
