"""The Serve application: one model per replica, which speaks one piece at a time."""

from collections.abc import Iterator
from itertools import chain
from threading import Lock
from typing import Any

import ray
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response, StreamingResponse
from ray import serve
from ray.serve import Application
from starlette.exceptions import HTTPException

from rayhelm.runtime.speech import errors
from rayhelm.runtime.speech.encoding import Samples, change_speed, encode, get_media_type
from rayhelm.runtime.speech.engine import SpeechEngine, limit_gpu_memory
from rayhelm.runtime.speech.errors import BadRequest
from rayhelm.runtime.speech.request import SpeechRequest

__all__ = ["answer_speech", "build_api", "build_app"]


def answer_speech(request: SpeechRequest, served: str, engine: SpeechEngine, lock: Lock) -> Response:
    """Return the response. A text of one piece comes as a whole; a longer one is streamed piece by piece."""
    if request.model != served:
        message = f"the model `{request.model}` does not exist; this endpoint serves `{served}`"
        raise BadRequest(message, "model", status=404, code="model_not_found")
    if request.voice_name not in engine.voices:
        message = f"the voice `{request.voice_name}` does not exist; there are {', '.join(engine.voices)}"
        raise BadRequest(message, "voice")
    texts = engine.split(request.input)
    if not texts:
        raise BadRequest("the input has no words", "input")
    pieces = _speak(texts, request, engine, lock)
    media_type = get_media_type(request.response_format)
    if len(texts) == 1:
        whole = b"".join(encode(pieces, engine.rate, request.response_format, seekable=True))
        return Response(whole, media_type=media_type)
    # The first piece is made before the response starts: what fails until then is answered with a status.
    pieces = chain([next(pieces)], pieces)
    return StreamingResponse(encode(pieces, engine.rate, request.response_format), media_type=media_type)


def _speak(texts: list[str], request: SpeechRequest, engine: SpeechEngine, lock: Lock) -> Iterator[Samples]:
    for text in texts:
        with lock:
            samples = engine.speak(text, request.voice_name)
        yield change_speed(samples, engine.rate, request.speed)


def build_api() -> FastAPI:
    """Return an API whose errors have OpenAI's structure."""
    api = FastAPI(title="Text to speech")
    api.add_exception_handler(BadRequest, errors.answer_bad_request)  # type: ignore[arg-type]
    api.add_exception_handler(RequestValidationError, errors.answer_invalid_body)  # type: ignore[arg-type]
    api.add_exception_handler(HTTPException, errors.answer_http_error)  # type: ignore[arg-type]
    api.add_exception_handler(Exception, errors.answer_crash)
    return api


api = build_api()


@serve.deployment(name="Speech")
@serve.ingress(api)
class Speech:
    """A replica. FastAPI calls its methods in threads, so that health checks are answered while the model computes."""

    def __init__(self, model: str, files: dict[str, str]) -> None:
        from rayhelm.runtime.speech.models import load_engine

        limit_gpu_memory(ray.get_runtime_context().get_assigned_resources().get("GPU", 0))
        self._served = model
        self._engine = load_engine(**files)
        self._lock = Lock()

    @api.get("/v1/models")
    def models(self) -> dict[str, Any]:
        return {"object": "list", "data": [{"id": self._served, "object": "model", "owned_by": "rayhelm"}]}

    @api.post("/v1/audio/speech")
    def speech(self, request: SpeechRequest) -> Response:
        return answer_speech(request, self._served, self._engine, self._lock)


def build_app(args: dict[str, str]) -> Application:
    """Build the application.

    `args`: `model` (the name that clients send), `source` (the model's folder), the folders of its other parts
    (SpeechT5: `vocoder`), and `load_format: dummy` for random weights.
    """
    files = {key: value for key, value in args.items() if key != "model"}
    application: Application = Speech.bind(args["model"], files)  # type: ignore[attr-defined]
    return application
