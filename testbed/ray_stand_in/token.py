"""Ray's token authentication, with the token of the head pod's start."""

import hmac

from testbed.ray_stand_in.exchange import Answer, Request, text
from testbed.ray_stand_in.lookup import Dead, Head
from testbed.ray_stand_in.objects import Objects

__all__ = ["Tokens"]


class Tokens:
    """Tokens by container. A container reads its token at its start, so a later change of the Secret has no effect."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._known: dict[tuple[str, int], str] = {}

    def refusal(self, head: Head, request: Request) -> Answer | None:
        """Return Ray's answer to a request without the right token, or None. Raises Dead for a head that cannot start,
        and Unreachable."""
        if not head.pod.token_mode:
            return None
        token = self._token(head)
        given = request.headers.get("authorization") or request.headers.get("x-ray-authorization")
        if not given:
            return text(401, "Unauthorized: Missing authentication token")
        if not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
            return text(403, "Forbidden: Invalid authentication token")
        return None

    def _token(self, head: Head) -> str:
        life = (head.pod.uid, head.pod.restarts)
        if life not in self._known:
            self._known[life] = self._read(head)
        return self._known[life]

    def _read(self, head: Head) -> str:
        if head.pod.token_secret is None:
            raise Dead(f"the head {head.pod.name} is in token mode and has no RAY_AUTH_TOKEN from a Secret")
        name, key = head.pod.token_secret
        token = self._objects.secret(head.pod.namespace, name, key)
        if token is None:
            raise Dead(f"the head {head.pod.name} could not have started: the Secret {name} has no {key}")
        return token
