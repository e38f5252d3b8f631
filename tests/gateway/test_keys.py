"""Keys: known by their hashes alone, changed while requests run, and never told to anybody."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from gateway.kit import endpoint, eventually, gateway, hashed, sites, smallest, tenant


@pytest.fixture(scope="module")
def place():
    with sites("one") as (one,):
        values = {
            "tenants": {"search": tenant("search", ["whisper"])},
            "models": {
                "whisper": {
                    "task": "transcribe",
                    "versions": {"stable": {"routePrefix": "/whisper", "endpoints": {"one": endpoint(one)}}},
                }
            },
            "timeouts": {"keyRefreshSeconds": 0.1},
        }
        with gateway(smallest(one, values)) as door:
            yield door, one


@pytest.fixture
def door(place):
    return place[0]


@pytest.fixture
def one(place):
    return place[1]


def lasts(**time):
    """A point in time from now, as a line of keys has it."""
    return (datetime.now(UTC) + timedelta(**time)).strftime("%Y-%m-%dT%H:%M:%SZ")


def answers(door, key, status):
    return eventually(lambda: door.chat(key=key).status == status, f"{status} for {key}")


def test_a_good_key_passes(door):
    assert door.chat().site == "one"


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("Authorization", "Bearer wrong-key")],
        [("Authorization", "Bearer ")],
        [("Authorization", "Bearer")],
        [("Authorization", "acme-key")],
        [("Authorization", "Basic acme-key")],
        [("Authorization", "Bearer  acme-key")],
        [("Authorization", "Bearer acme-key more")],
        [("Authorization", "Bearer acme-key, Bearer acme-key")],
        [("Authorization", f"Bearer {hashed('acme-key')}")],
        [("Authorization", "Bearer acme-key"), ("Authorization", "Bearer acme-key")],
        [("Authorization", "Bearer acme-key"), ("Authorization", "Bearer wrong-key")],
        [("X-Api-Key", "acme-key")],
        [("Proxy-Authorization", "Bearer acme-key")],
    ],
)
def test_anything_else_gets_401(door, headers):
    answer = door.chat(key=None, headers=headers)
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.error["code"] == "invalid_api_key"


def test_the_scheme_is_read_as_http_says_in_any_case(door):
    assert door.chat(key=None, headers=[("authorization", "bEARER acme-key")]).site == "one"


def test_without_a_key_nobody_learns_which_addresses_there_are(door):
    for path in ("/v1/models", "/llama/v1/models", "/nothing"):
        assert door.ask(path, key=None).status == 401


def test_without_a_key_no_body_is_waited_for(door):
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
    assert door.send(head.encode()).status == 401


def test_a_key_opens_what_its_tenant_may_call_and_nothing_else(door):
    answer = door.chat(key="search-key")
    assert answer.status == 403
    assert answer.error["code"] == "model_not_allowed"
    assert door.ask("/whisper/v1/audio/transcriptions", b"sound", key="search-key").site == "one"
    assert door.ask("/whisper/v1/audio/transcriptions", b"sound").status == 403


def test_keys_change_under_load_without_a_restart_and_without_a_lost_request(door):
    pid = door.process.pid
    door.write_keys("acme", f"{hashed('acme-key')} main", f"{hashed('old')} old")
    answers(door, "old", 200)
    key, ended, statuses = ["old"], threading.Event(), []

    def client():
        with door.line() as line:
            while not ended.is_set():
                statuses.append(line.ask("/v1/chat/completions", {"model": "llama", "messages": []}, key=key[0]).status)

    clients = [threading.Thread(target=client) for _ in range(4)]
    for thread in clients:
        thread.start()
    door.write_keys("acme", f"{hashed('acme-key')} main", f"{hashed('old')} old", f"{hashed('new')} new")
    answers(door, "new", 200)
    key[0] = "new"
    sent = len(statuses)
    eventually(lambda: len(statuses) > sent + 50, "clients took the new key")
    door.write_keys("acme", f"{hashed('acme-key')} main", f"{hashed('new')} new")
    answers(door, "old", 401)
    ended.set()
    for thread in clients:
        thread.join(60)
    assert set(statuses) == {200}
    assert len(statuses) > 100
    assert door.process.is_alive
    assert door.process.pid == pid
    door.write_keys("acme", f"{hashed('acme-key')} main")
    answers(door, "new", 401)


def test_a_key_ends_when_its_line_says_so(door):
    door.write_keys(
        "acme",
        f"{hashed('acme-key')} main",
        f"{hashed('later')} later {lasts(days=1)}",
        f"{hashed('earlier')} earlier {lasts(seconds=-1)}",
        f"{hashed('here')} here {lasts(hours=1)[:-1]}+02:00",
        f"{hashed('there')} there {lasts(hours=-1)[:-1]}.5-02:00",
    )
    answers(door, "later", 200)
    assert door.chat(key="earlier").status == 401
    assert door.chat(key="here").status == 401
    assert door.chat(key="there").status == 200
    door.write_keys("acme", f"{hashed('acme-key')} main", f"{hashed('later')} later {lasts(seconds=2)}")
    answers(door, "later", 401)


def test_a_hash_may_be_written_in_capitals_and_lines_may_hold_remarks(door):
    door.write_keys("acme", "# ours", "", f"{hashed('acme-key').upper()}\tmain  ", "\r")
    door.write_keys("acme", "# ours", "", f"{hashed('acme-key').upper()}\tmain  ", f"{hashed('mark')} x")
    answers(door, "mark", 200)
    assert door.chat().status == 200


BAD = [
    "plain-key-instead-of-its-hash name",
    "{}",
    "{} two names here",
    "{} na/me",
    f"{{}} {'n' * 65}",
    "{}0 name",
    "{} name 2099-01-01",
    "{} name 2099-02-30T00:00:00Z",
    "{} name 2099-13-01T00:00:00Z",
    "{} name 2099-01-01T25:00:00Z",
    "{} name 2099-01-01T00:00:00",
    "{} name 2099-01-01T00:00:00+99:00",
    "{} name never",
]


def test_a_line_that_is_not_valid_is_left_out_and_its_key_with_it(door):
    """So a mistyped end never keeps a key alive. What stood there is not logged."""
    lines = [line.format(hashed(f"bad-{number}")) for number, line in enumerate(BAD)]
    door.write_keys("acme", *lines, f"{hashed('acme-key')} main", f"{hashed('after')} after")
    answers(door, "after", 200)
    assert {door.chat(key=f"bad-{number}").status for number in range(len(BAD))} == {401}
    assert f"keys of acme: 2 valid, {len(BAD)} invalid" in door.said
    assert not [line for line in lines if line.split()[0] in door.said]


def test_a_file_with_no_valid_line_changes_nothing(door):
    door.write_keys("acme", f"{hashed('acme-key')} main")
    answers(door, "acme-key", 200)
    door.write_keys("acme", "bm90IGEgaGFzaA== oops")
    eventually(lambda: "no line is valid, so the keys stay as they were" in door.said, "it is told")
    assert door.chat().status == 200


def test_an_empty_file_or_none_takes_the_keys_along(door):
    door.write_keys("search", "# nobody")
    answers(door, "search-key", 401)
    door.write_keys("search", f"{hashed('search-key')} main")
    answers(door, "search-key", 403)
    (door.folder / "keys/search/keys").unlink()
    answers(door, "search-key", 401)
    assert "keys of search: the file does not exist" in door.said
    door.write_keys("search", f"{hashed('search-key')} main")
    answers(door, "search-key", 403)


def test_one_tenant_cannot_take_anothers_key(door):
    door.write_keys("acme", f"{hashed('acme-key')} main")
    door.write_keys("search", f"{hashed('search-key')} main", f"{hashed('acme-key')} mine", f"{hashed('seen')} seen")
    answers(door, "seen", 403)
    eventually(lambda: "keys of search and acme: both have the same key" in door.said, "it is told")
    assert door.chat().site == "one"


def test_neither_a_key_nor_its_hash_is_ever_logged_or_sent_on(door, one):
    door.chat(headers=[("X-Request-Id", "watched")])
    assert door.logged("watched")["key"] == "main"
    assert "acme-key" not in door.said
    assert hashed("acme-key") not in door.said.lower()
    assert one.asked[-1].header("authorization") is None


def test_a_pod_that_has_read_no_key_is_not_ready():
    with sites("one") as (one,), gateway(smallest(one, {"timeouts": {"keyRefreshSeconds": 0.1}}), keys=False) as door:
        assert door.watch("/livez") == (200, "ok")
        assert door.watch("/readyz") == (503, "no API key was read yet")
        assert door.chat().status == 401
        door.write_keys("acme", f"{hashed('acme-key')} main")
        eventually(lambda: door.is_ready, "the pod is ready")
        assert door.chat().status == 200
