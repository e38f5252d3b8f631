"""Parts of the doctor's checks: content of Secrets, quantities, differences, selectors, and reasons of pods."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trustme

from rayhelm.facts.quantities import are_equal_quantities, parse_quantity
from rayhelm.live.doctor.differences import find_differences
from rayhelm.live.doctor.pods import find_pod_problem, is_selected
from rayhelm.live.doctor.secret_content import find_content_problem

NOW = datetime(2026, 11, 23, tzinfo=UTC)
HASH = "ab" * 32


def problem(key: str, content: str | bytes, path: str = "") -> str:
    raw = content.encode() if isinstance(content, str) else content
    return find_content_problem(key, base64.b64encode(raw).decode(), NOW, path)


@pytest.mark.parametrize(
    ("key", "content", "expected"),
    [
        ("keys", f"# comment\n{HASH} ci\n{HASH} ci-2 2027-01-01T00:00:00Z\n", ""),
        ("keys", f"{HASH} ci\nsk-plain ci\n", "1 invalid lines of 2"),
        ("keys", "sk-plain\n", "none is `SHA256 NAME"),
        ("keys", "# only a comment\n", "has no key"),
        ("token", "hf_abc", ""),
        ("token", "hf_abc\n", "white space"),
        ("token", "", "is empty"),
        (".dockerconfigjson", '{"auths": {"registry.example": {}}}', ""),
        (".dockerconfigjson", '{"auths": {}}', "no registry"),
        (".dockerconfigjson", "[]", "not JSON with `auths`"),
        (".dockerconfigjson", "{", "not JSON with `auths`"),
        ("tls.crt", "no certificate", "not a certificate"),
        ("tls.key", "no key", "not a private key"),
    ],
)
def test_content_of_a_secret_is_judged_without_showing_it(key: str, content: str, expected: str) -> None:
    found = problem(key, content)
    assert expected in found if expected else not found
    assert not any(word in found for word in ("sk-plain", "hf_abc", HASH))


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("salt/key", "random", ""),
        ("salt/key", b"\0random\n", ""),
        ("salt/key", "", "is empty"),
        ("salt/key", " \r\n", "only white space"),
        ("remote/west/key", "sk-plain\n", ""),
        ("remote/west/key", "sk-plain sk-plain", "other characters"),
        ("keys/@west/keys", f"{HASH} ci\n", ""),
        ("keys/@west/keys", "sk-plain\n", "none is `SHA256 NAME"),
        ("other/file", "random\n", "white space"),
    ],
)
def test_file_that_the_gateway_reads_is_judged_as_it_does(path: str, content: str | bytes, expected: str) -> None:
    """The key of the Secret can have any name."""
    found = problem("anything", content, path)
    assert expected in found if expected else not found
    assert "sk-plain" not in found


def test_value_that_is_not_base64_is_found() -> None:
    assert find_content_problem("token", "§", NOW) == "is not base64"


@pytest.mark.parametrize(("days", "expected"), [(90, ""), (5, "expires on"), (-1, "expired on")])
def test_certificate_near_its_end_is_found(days: int, expected: str) -> None:
    authority = trustme.CA()
    end = NOW + timedelta(days=days, hours=1)
    cert = authority.issue_cert("ai.example", not_after=end, not_before=NOW - timedelta(days=100))
    found = problem("tls.crt", cert.cert_chain_pems[0].bytes())
    assert found.startswith(expected) if expected else not found
    assert problem("tls.key", cert.private_key_pem.bytes()) == ""


@pytest.mark.parametrize(("text", "number"), [("1", "1"), ("200m", "0.2"), ("256Mi", "268435456"), ("1.5G", "1.5e9")])
def test_quantity_is_parsed(text: str, number: str) -> None:
    assert float(parse_quantity(text)) == float(number)


def test_text_that_is_no_quantity_is_refused() -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity("many")
    assert not are_equal_quantities("many", "many more")
    assert not are_equal_quantities({}, 1)


@pytest.mark.parametrize(
    ("wanted", "found", "paths"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, []),
        ({"cpu": "1000m"}, {"cpu": "1"}, []),
        ({"a": None, "b": [], "c": False}, {}, []),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, ["a.b"]),
        ({"a": {"b": 1}}, {}, ["a.b"]),
        ([{"name": "x", "v": 1}], [{"name": "x", "v": 2}], ["[x].v"]),
        ([{"name": "x"}], [{"name": "x"}, {"name": "y"}], ["[y]"]),
        (["a"], ["a", "b"], [""]),
        (["a", "b"], ["a", "c"], ["[1]"]),
        ('{"model": {"len": 1}}', '{"model": {"len": 2}}', ["model.len"]),
        ("{not json", "{not json either", [""]),
    ],
)
def test_only_rendered_fields_are_compared(wanted: Any, found: Any, paths: list[str]) -> None:
    assert [path for path, _, _ in find_differences(wanted, found)] == paths


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"key": "a", "operator": "In", "values": ["1"]}, True),
        ({"key": "a", "operator": "NotIn", "values": ["1"]}, False),
        ({"key": "b", "operator": "NotIn", "values": ["1"]}, True),
        ({"key": "b", "operator": "Exists"}, False),
        ({"key": "b", "operator": "DoesNotExist"}, True),
    ],
)
def test_selector_selects_as_the_api_server_does(rule: dict[str, Any], expected: bool) -> None:
    assert is_selected({"matchExpressions": [rule]}, {"a": "1"}) is expected
    assert not is_selected({"matchLabels": {"a": "2"}}, {"a": "1"})


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        ({"containerStatuses": [{"name": "a", "state": {"running": {}}}], "phase": "Running"}, None),
        ({"containerStatuses": [{"name": "a", "state": {"waiting": {"reason": "ContainerCreating"}}}]}, None),
        ({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}, "the node ran out"),
        (
            {
                "containerStatuses": [
                    {
                        "name": "a",
                        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                        "lastState": {"terminated": {"reason": "OOMKilled"}},
                    }
                ]
            },
            "more memory than its limit",
        ),
        (
            {"initContainerStatuses": [{"name": "i", "state": {"waiting": {"reason": "ErrImagePull"}}}]},
            "cannot pull",
        ),
    ],
)
def test_pod_says_why_it_does_not_run(status: dict[str, Any], cause: str | None) -> None:
    found = find_pod_problem({"metadata": {"name": "p", "namespace": "n"}, "status": status})
    if cause is None:
        assert found is None
    else:
        assert found
        assert cause in found.cause
        assert "-n n" in found.fix
        assert "$" not in found.fix.replace("$(", "")
