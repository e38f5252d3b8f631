"""An application of the user's own, for values that name one: the import path of a test has to be real."""

from typing import Any

from ray import serve


@serve.deployment
class Speech:
    def __init__(self, voice: str) -> None:
        self.voice = voice

    async def __call__(self, request: Any) -> str:
        return self.voice


def build(args: dict[str, Any]) -> Any:
    return Speech.bind(args["voice"])  # type: ignore[attr-defined]
