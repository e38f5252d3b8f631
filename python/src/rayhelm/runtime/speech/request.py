"""OpenAI's body of `POST /v1/audio/speech`."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from rayhelm.runtime.speech.encoding import Format

__all__ = ["SpeechRequest", "VoiceId"]

MAX_INPUT = 4096
"""Largest number of characters, as in OpenAI's API."""


class VoiceId(BaseModel):
    """A voice as an object, as OpenAI's clients send their own voices."""

    model_config = ConfigDict(extra="forbid")

    id: str


class SpeechRequest(BaseModel):
    """What is spoken, and how. `instructions` and server-sent events are not supported, so they are refused."""

    model_config = ConfigDict(extra="forbid")

    model: str
    input: str = Field(min_length=1, max_length=MAX_INPUT)
    voice: str | VoiceId = "default"
    response_format: Format = "mp3"
    speed: float = Field(default=1.0, ge=0.25, le=4.0)
    stream_format: Literal["audio"] = "audio"

    @property
    def voice_name(self) -> str:
        return self.voice if isinstance(self.voice, str) else self.voice.id
