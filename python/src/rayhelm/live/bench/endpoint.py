"""Whether an endpoint answers for a model, before a load is sent."""

import httpx

from rayhelm.errors import Fix, FleetError, MissingError, Problem
from rayhelm.live.bench.load import PATH

__all__ = ["check_endpoint"]

TIMEOUT = 300
"""Seconds: a model that scaled to zero replicas has to load first."""


def check_endpoint(url: str, model: str, key: str) -> None:
    """Ask for one token. Raises MissingError if nothing answers, and FleetError with the reason of a refusal."""
    body = {"model": model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        answer = httpx.post(url.rstrip("/") + PATH, json=body, headers=headers, timeout=TIMEOUT)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise MissingError(f"{url} does not answer: {error}", Fix.advice("give the address of the gateway")) from None
    if answer.is_success:
        return
    with_key = Fix(command="rayhelm bench ... --key-file FILE", why="a file with an API key")
    fix = with_key if answer.status_code == 401 else ""
    raise FleetError(Problem(f"{url} answers {answer.status_code} for `{model}`: {_read_message(answer)}", fix=fix))


def _read_message(answer: httpx.Response) -> str:
    """Return the message of an error of OpenAI's form, else the start of the body."""
    try:
        return str(answer.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return answer.text[:200].strip() or answer.reason_phrase
