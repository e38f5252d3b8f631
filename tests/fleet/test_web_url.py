"""Secrets in URLs: what is refused, and what messages show."""

import pytest

from rayhelm.fleet.base import short
from rayhelm.fleet.web_url import find_secret_part, remove_secrets
from shared.small_fleet import SMALL, problems, read

GITOPS = "gitops: {repository: {url: 'URL'}, charts: {path: charts}}\n"
URLS = {
    "repository": GITOPS,
    "charts": "gitops: {repository: {url: 'https://git.example.com/a.git'}, charts: {url: 'URL', version: 0.2.0}}\n",
    "cluster": "gitops: {repository: {url: 'https://git.example.com/a.git'}, clusters: {main: {server: 'URL'}}}\n",
    "prometheus": "clusters: {main: {prometheus: {url: 'URL'}}}\n",
    "runbooks": "clusters: {main: {prometheus: {url: 'http://prometheus:9090', runbookUrl: 'URL'}}}\n",
}


@pytest.mark.parametrize("key", URLS)
@pytest.mark.parametrize(
    "url",
    [
        "https://s3cret@git.example.com/a.git",
        "https://robot:s3cret@git.example.com/a.git",
        "https://git.example.com/a?private_token=s3cret",
        "https://git.example.com/a#s3cret",
    ],
    ids=["token", "password", "query", "fragment"],
)
def test_url_with_a_secret_is_refused_without_showing_it(key: str, url: str) -> None:
    (problem,) = problems(SMALL + URLS[key].replace("URL", url))
    assert "which all readers of the file and of the objects in the cluster can read" in problem.message
    assert "s3cret" not in str(problem)


@pytest.mark.parametrize("url", ["ssh://git:s3cret@git.example.com/a.git", "git:s3cret@git.example.com:a.git"])
def test_password_of_ssh_is_refused(url: str) -> None:
    (problem,) = problems(SMALL + GITOPS.replace("URL", url))
    assert "a user or password" in problem.message
    assert "s3cret" not in str(problem)


@pytest.mark.parametrize(
    "url",
    [
        "https://git.example.com/ai/fleets.git", "git@git.example.com:ai/fleets.git",
        "ssh://git@git.example.com:22/ai/fleets.git", "git.example.com/ai/fleets",
        "https://git.example.com/a/team@v2",
    ],
)  # fmt: skip
def test_url_of_a_repository_is_accepted(url: str) -> None:
    found = read(SMALL + GITOPS.replace("URL", url)).gitops
    assert found
    assert found.repository.url == url


@pytest.mark.parametrize("source", ["s3://key:s3cret@models/x", "s3://models/x?token=s3cret"])
def test_source_with_a_secret_is_refused_without_showing_it(source: str) -> None:
    (problem,) = problems(SMALL.replace("Qwen/Qwen2.5-7B-Instruct", f"'{source}'"))
    assert "s3cret" not in str(problem)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://robot:s3cret@git.example.com/a", "https://…@git.example.com/a"),
        ("https://git.example.com/a?token=s3cret", "https://git.example.com/a?…"),
        ("azure://models@acme.blob.core.windows.net/x", "azure://models@acme.blob.core.windows.net/x"),
        ("no URL? yes", "no URL? yes"),
    ],
)
def test_message_shows_no_secret_of_a_url(text: str, shown: str) -> None:
    assert short(text) == shown


def test_url_without_its_secrets_has_none() -> None:
    assert remove_secrets("https://a:b@host:8443/path?x#y") == "https://host:8443/path"
    assert not find_secret_part(remove_secrets("a:b@host/path?x"))
