"""Mutated bodies as the gateway's parser and Python's read them: a part of `make verify-bodies`, and its result."""

import json

import pytest

from gateway.kit.bodies import REFUSED, SERVED, as_bytes
from gateway.kit.body_reader import WAYS, compare, generate_bodies, read_bodies, render_parser
from gateway.verify_bodies import BODIES, RESULT, compute_digest

SEED, COUNT = 0, 20_000


@pytest.fixture(scope="module")
def parser():
    return render_parser()


def test_no_mutated_body_is_read_in_two_ways(parser):
    bodies = generate_bodies(SEED, COUNT)
    found = compare(bodies, read_bodies(bodies, parser))
    assert found.differences == []
    assert found.bodies == COUNT
    assert all(found.accepted[kind] > COUNT / 10 for kind in WAYS), "enough bodies must be valid"
    assert {"model-duplicate", "model-missing", "model-not-string", "body-not-json"} <= set(found.refused)


def test_parser_reads_bodies_as_it_does_for_requests(parser):
    """The same bodies are sent to a gateway in test_hostile_bodies.py."""
    served = read_bodies([as_bytes(body) for body in SERVED.values()], parser)
    assert served == [["llama"] * 3] * len(SERVED)
    bodies = [as_bytes(body) for body in REFUSED.values()]
    assert compare(bodies, read_bodies(bodies, parser)).differences == []


FAULTS = {
    "escapes of keys": ('if letter == "u" and #hex == 4 then', "if false then"),
    "a second key in the fast path": ("""or find(body, 'model"', after, true)""", ""),
    "inner objects in the fast path": ("{[^{}%[%]]-", "{.-"),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_comparison_finds_a_fault_of_the_parser(parser, fault):
    def edit(text):
        assert text.count(fault[0]) == 1
        return text.replace(*fault)

    bodies = generate_bodies(SEED, COUNT)
    assert compare(bodies, read_bodies(bodies, parser, edit)).differences


def test_result_belongs_to_the_present_inputs(parser):
    """If not: make verify-bodies."""
    result = json.loads(RESULT.read_text())
    assert result["inputs"] == compute_digest(parser)
    assert result["bodies"] >= BODIES
    assert result["differences"] == 0
    assert min(result["accepted"][kind] for kind in WAYS) > BODIES / 10
