"""Text to speech as a Serve application, with OpenAI's `POST /v1/audio/speech`. vLLM's server has no such task.

It runs SpeechT5 checkpoints of transformers with their vocoder. Voices are speaker embeddings: `voices/NAME.npy` in the
model's folder, and a neutral one where there are none. This module has to be in the serving image.
"""

import io
import wave
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy
from fastapi import FastAPI, HTTPException
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field
from ray import serve
from ray.serve import Application

__all__ = ["SpeechRequest", "Voice", "build_app", "speech_answer", "wav"]

LONGEST = 4096
"""Characters of one request, as OpenAI bounds them."""

Samples = numpy.ndarray[Any, numpy.dtype[numpy.float32]]


class SpeechRequest(BaseModel):
    """OpenAI's body; `speed` and compressed formats are not offered, so they are refused and not ignored."""

    model_config = ConfigDict(extra="forbid")

    model: str
    input: str = Field(min_length=1, max_length=LONGEST)
    voice: str = "default"
    response_format: Literal["wav", "pcm"] = "wav"


class Voice(Protocol):
    """Something that speaks."""

    rate: int
    """Samples per second."""

    def speak(self, text: str, voice: str) -> Samples:
        """Samples between -1 and 1. Raises KeyError for a voice that is not there."""


class SpeechT5:
    """A SpeechT5 checkpoint with its vocoder, on a GPU where there is one."""

    def __init__(self, source: str, vocoder: str) -> None:
        import torch
        from transformers import SpeechT5ForTextToSpeech, SpeechT5HifiGan, SpeechT5Processor

        device = "cuda" if torch.cuda.is_available() else "cpu"
        self._torch = torch
        self._processor = SpeechT5Processor.from_pretrained(source)
        self._model = SpeechT5ForTextToSpeech.from_pretrained(source).to(device).eval()
        self._vocoder = SpeechT5HifiGan.from_pretrained(vocoder).to(device).eval()
        self._voices = {path.stem: numpy.load(path) for path in Path(source, "voices").glob("*.npy")}
        self.rate = int(self._vocoder.config.sampling_rate)

    def speak(self, text: str, voice: str) -> Samples:
        torch, device = self._torch, self._model.device
        embedding = torch.tensor(self._embedding(voice), dtype=torch.float32, device=device).reshape(1, -1)
        tokens = self._processor(text=text, return_tensors="pt").input_ids.to(device)
        with torch.inference_mode():
            spoken = self._model.generate_speech(tokens, embedding, vocoder=self._vocoder)
        samples: Samples = spoken.float().cpu().numpy()
        return samples

    def _embedding(self, voice: str) -> Samples:
        """`default` without a file of that name is a neutral speaker: zeros."""
        if voice == "default" and voice not in self._voices:
            return numpy.zeros(self._model.config.speaker_embedding_dim, dtype=numpy.float32)
        chosen: Samples = self._voices[voice]
        return chosen


def speech_answer(request: SpeechRequest, served: str, engine: Voice) -> Response:
    """The HTTP answer to one request, in OpenAI's shapes."""
    if request.model != served:
        raise HTTPException(404, f"the model `{request.model}` does not exist; this endpoint serves `{served}`")
    try:
        samples = engine.speak(request.input, request.voice)
    except KeyError:
        raise HTTPException(400, f"there is no voice `{request.voice}`") from None
    if request.response_format == "pcm":
        return Response(_pcm(samples), media_type=f"audio/pcm;rate={engine.rate}")
    return Response(wav(samples, engine.rate), media_type="audio/wav")


def wav(samples: Samples, rate: int) -> bytes:
    """A mono WAV file of 16-bit samples."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(_pcm(samples))
    return buffer.getvalue()


def _pcm(samples: Samples) -> bytes:
    return (numpy.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()


api = FastAPI(title="Text to speech")


@serve.deployment(name="Speech")
@serve.ingress(api)
class Speech:
    """One replica: one model, one request at a time on its thread."""

    def __init__(self, model: str, source: str, vocoder: str) -> None:
        self._served = model
        self._engine: Voice = SpeechT5(source, vocoder)

    @api.get("/v1/models")
    def models(self) -> dict[str, Any]:
        return {"object": "list", "data": [{"id": self._served, "object": "model", "owned_by": "rayhelm"}]}

    @api.post("/v1/audio/speech")
    def speech(self, request: SpeechRequest) -> Response:
        return speech_answer(request, self._served, self._engine)


def build_app(args: dict[str, str]) -> Application:
    """`args`: `model` (the name that clients send), `source` and `vocoder` (folders)."""
    application: Application = Speech.bind(args["model"], args["source"], args["vocoder"])  # type: ignore[attr-defined]
    return application
