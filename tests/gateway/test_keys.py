"""API keys: stored as hashes, changed under load, never logged."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from gateway.kit import endpoint, hash_key, minimal_values, start_gateway, start_upstreams, tenant, wait_for


@pytest.fixture(scope="module")
def environment():
    with start_upstreams("one") as (one,):
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
        with start_gateway(minimal_values(one, values)) as gateway:
            yield gateway, one


def expiry(**time):
    """Return the expiry of a key in the form of a key file."""
    return (datetime.now(UTC) + timedelta(**time)).strftime("%Y-%m-%dT%H:%M:%SZ")


def wait_for_status(gateway, key, status):
    return wait_for(lambda: gateway.chat(key=key).status == status, f"{status} for {key}")


def test_valid_key_is_accepted(gateway):
    assert gateway.chat().endpoint == "one"


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
        [("Authorization", f"Bearer {hash_key('acme-key')}")],
        [("Authorization", "Bearer acme-key"), ("Authorization", "Bearer acme-key")],
        [("Authorization", "Bearer acme-key"), ("Authorization", "Bearer wrong-key")],
        [("X-Api-Key", "wrong-key")],
        [("X-Api-Key", "")],
        [("Proxy-Authorization", "Bearer acme-key")],
    ],
)
def test_other_authorization_gets_401(gateway, headers):
    response = gateway.chat(key=None, headers=headers)
    assert response.status == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert response.error["code"] == "invalid_api_key"


def test_bearer_scheme_is_case_insensitive(gateway):
    assert gateway.chat(key=None, headers=[("authorization", "bEARER acme-key")]).endpoint == "one"


def test_key_is_accepted_in_x_api_key_and_removed(gateway, one):
    for other in (None, "Bearer acme-key", "bearer acme-key", "", "Bearer ", "Basic d3Jvbmc6a2V5"):
        more = [] if other is None else [("Authorization", other)]
        assert gateway.chat(key=None, headers=[("X-Api-Key", "acme-key"), *more]).endpoint == "one", other
        assert not {"x-api-key", "authorization"} & set(one.requests[-1].headers)


def test_empty_x_api_key_beside_a_bearer_is_ignored(gateway):
    assert gateway.chat(headers=[("X-Api-Key", "")]).endpoint == "one"


@pytest.mark.parametrize(
    "headers",
    [
        [("X-Api-Key", "acme-key"), ("Authorization", "Bearer wrong-key")],
        [("X-Api-Key", "wrong-key"), ("Authorization", "Bearer acme-key")],
        [("X-Api-Key", "acme-key"), ("X-Api-Key", "acme-key")],
        [("X-Api-Key", "acme-key"), ("Authorization", "Basic acme-key"), ("Authorization", "Bearer wrong-key")],
    ],
)
def test_keys_that_differ_get_401(gateway, headers):
    response = gateway.chat(key=None, headers=headers)
    assert (response.status, response.error["code"]) == (401, "api_keys_differ")


def test_every_path_gets_401_without_a_key(gateway):
    for path in ("/v1/models", "/llama/v1/models", "/nothing"):
        assert gateway.request(path, key=None).status == 401


def test_body_is_not_awaited_without_a_key(gateway):
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
    assert gateway.send(head.encode()).status == 401


def test_key_gives_access_to_models_of_its_tenant_only(gateway):
    response = gateway.chat(key="search-key")
    assert response.status == 404
    assert response.error["code"] == "model_not_found"
    assert gateway.request("/whisper/v1/audio/transcriptions", b"sound", key="search-key").endpoint == "one"
    assert gateway.request("/whisper/v1/audio/transcriptions", b"sound").status == 404


def test_key_rotation_under_load_loses_no_request(gateway):
    pid = gateway.process.pid
    gateway.write_keys("acme", f"{hash_key('acme-key')} main", f"{hash_key('old')} old")
    wait_for_status(gateway, "old", 200)
    key, ended, statuses = ["old"], threading.Event(), []
    answered = [""] * 4
    """The key of the last answered request of each client."""

    def client(number):
        with gateway.connect() as connection:
            while not ended.is_set():
                used = key[0]
                response = connection.request("/v1/chat/completions", {"model": "llama", "messages": []}, key=used)
                statuses.append(response.status)
                answered[number] = used

    clients = [threading.Thread(target=client, args=(number,)) for number in range(len(answered))]
    for thread in clients:
        thread.start()
    wait_for(lambda: all(used == "old" for used in answered), "clients use the old key")
    gateway.write_keys("acme", f"{hash_key('acme-key')} main", f"{hash_key('old')} old", f"{hash_key('new')} new")
    wait_for_status(gateway, "new", 200)
    key[0] = "new"
    wait_for(lambda: all(used == "new" for used in answered), "clients use the new key")
    gateway.write_keys("acme", f"{hash_key('acme-key')} main", f"{hash_key('new')} new")
    wait_for_status(gateway, "old", 401)
    sent = len(statuses)
    wait_for(lambda: len(statuses) > sent + 50, "requests after the old key was revoked")
    ended.set()
    for thread in clients:
        thread.join(300)
    assert set(statuses) == {200}
    assert gateway.process.is_alive
    assert gateway.process.pid == pid
    gateway.write_keys("acme", f"{hash_key('acme-key')} main")
    wait_for_status(gateway, "new", 401)


def test_key_expires_at_the_time_of_its_line(gateway):
    gateway.write_keys(
        "acme",
        f"{hash_key('acme-key')} main",
        f"{hash_key('later')} later {expiry(days=1)}",
        f"{hash_key('earlier')} earlier {expiry(seconds=-1)}",
        f"{hash_key('here')} here {expiry(hours=1)[:-1]}+02:00",
        f"{hash_key('there')} there {expiry(hours=-1)[:-1]}.5-02:00",
    )
    wait_for_status(gateway, "later", 200)
    wait_for_status(gateway, "there", 200)
    assert gateway.chat(key="earlier").status == 401
    assert gateway.chat(key="here").status == 401
    gateway.write_keys("acme", f"{hash_key('acme-key')} main", f"{hash_key('later')} later {expiry(seconds=2)}")
    wait_for_status(gateway, "later", 401)


def test_key_file_accepts_uppercase_hashes_and_comments(gateway):
    gateway.write_keys("acme", "# ours", "", f"{hash_key('acme-key').upper()}\tmain  ", "\r")
    gateway.write_keys("acme", "# ours", "", f"{hash_key('acme-key').upper()}\tmain  ", f"{hash_key('mark')} x")
    wait_for_status(gateway, "mark", 200)
    assert gateway.chat().status == 200


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


def test_invalid_line_of_a_key_file_is_ignored(gateway):
    """A key with a mistyped expiry is not valid. The content of the line is not logged."""
    lines = [connection.format(hash_key(f"bad-{number}")) for number, connection in enumerate(BAD)]
    gateway.write_keys("acme", *lines, f"{hash_key('acme-key')} main", f"{hash_key('after')} after")
    wait_for_status(gateway, "after", 200)
    assert {gateway.chat(key=f"bad-{number}").status for number in range(len(BAD))} == {401}
    gateway.wait_for_output(f"keys of acme: 2 valid, {len(BAD)} invalid")
    assert not [connection for connection in lines if connection.split()[0] in gateway.output]


def test_key_file_without_valid_lines_changes_nothing(gateway):
    gateway.write_keys("acme", f"{hash_key('acme-key')} main")
    wait_for_status(gateway, "acme-key", 200)
    gateway.write_keys("acme", "bm90IGEgaGFzaA== oops")
    gateway.wait_for_output("no line is valid, so the keys stay as they were")
    assert gateway.chat().status == 200


def test_keys_are_revoked_when_the_file_is_empty_or_deleted(gateway):
    gateway.write_keys("search", "# no keys")
    wait_for_status(gateway, "search-key", 401)
    gateway.write_keys("search", f"{hash_key('search-key')} main")
    wait_for_status(gateway, "search-key", 404)
    (gateway.folder / "keys/search/keys").unlink()
    wait_for_status(gateway, "search-key", 401)
    gateway.wait_for_output("keys of search: the file does not exist")
    gateway.write_keys("search", f"{hash_key('search-key')} main")
    wait_for_status(gateway, "search-key", 404)


def test_tenant_cannot_take_over_the_key_of_another(gateway):
    gateway.write_keys("acme", f"{hash_key('acme-key')} main")
    gateway.write_keys(
        "search", f"{hash_key('search-key')} main", f"{hash_key('acme-key')} mine", f"{hash_key('seen')} seen"
    )
    wait_for_status(gateway, "seen", 404)
    gateway.wait_for_output("keys of search and acme: both have the same key")
    assert gateway.chat().endpoint == "one"


def test_old_keys_are_revoked_when_10000_keys_are_replaced(gateway):
    """Changes of that many entries of a map take HAProxy 2.8 more than the second that it gives a task."""

    def write(name):
        every = (f"{hash_key(f'{name}-{number}')} key" for number in range(10_000))
        gateway.write_keys("acme", f"{hash_key('acme-key')} main", f"{hash_key(name)} key", *every)
        wait_for_status(gateway, f"{name}-9999", 200)

    write("first")
    write("second")
    assert [gateway.chat(key=key).status for key in ("first", "first-0", "first-9999", "acme-key")] == [401] * 3 + [200]
    assert gateway.is_ready
    assert "Lua task" not in gateway.output
    gateway.write_keys("acme", f"{hash_key('acme-key')} main")
    wait_for_status(gateway, "second", 401)


def test_pod_is_not_ready_while_a_key_file_cannot_be_read():
    timeouts = {"keyRefreshSeconds": 0.1, "keyMaxAgeSeconds": 1}
    with start_upstreams("one") as (one,), start_gateway(minimal_values(one, {"timeouts": timeouts})) as gateway:
        keys = gateway.folder / "keys/acme/keys"
        keys.unlink()
        keys.mkdir()
        wait_for(lambda: not gateway.is_ready, "the pod is not ready")
        status, text = gateway.request_metrics_port("/readyz")
        assert (status, text.startswith("the API keys were not read for ")) == (503, True)
        assert gateway.request_metrics_port("/livez") == (200, "ok")
        assert gateway.chat().status == 200, "the keys stay as they were"
        gateway.wait_for_output("keys of acme: the file cannot be read")
        keys.rmdir()
        gateway.write_keys("acme", f"{hash_key('acme-key')} main")
        wait_for(lambda: gateway.is_ready, "the pod is ready again")


def test_keys_and_hashes_are_neither_logged_nor_forwarded(gateway, one):
    gateway.chat(headers=[("X-Request-Id", "watched")])
    assert gateway.log_entry("watched")["key"] == "main"
    assert "acme-key" not in gateway.output
    assert hash_key("acme-key") not in gateway.output.lower()
    assert one.requests[-1].header("authorization") is None


def test_gateway_is_not_ready_until_it_has_read_a_key():
    with (
        start_upstreams("one") as (one,),
        start_gateway(minimal_values(one, {"timeouts": {"keyRefreshSeconds": 0.1}}), keys=False) as gateway,
    ):
        assert gateway.request_metrics_port("/livez") == (200, "ok")
        assert gateway.request_metrics_port("/readyz") == (503, "no API key was read yet")
        assert gateway.chat().status == 401
        gateway.write_keys("acme", f"{hash_key('acme-key')} main")
        wait_for(lambda: gateway.is_ready, "the pod is ready")
        assert gateway.chat().status == 200
