"""Encode samples in OpenAI's six audio formats, piece by piece, and change their speed. PyAV does both."""

import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy

__all__ = ["FORMATS", "Format", "Samples", "change_speed", "decode", "encode", "get_media_type"]

Format = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]
Samples = numpy.ndarray[Any, numpy.dtype[numpy.float32]]
"""One channel, between -1 and 1."""


@dataclass(frozen=True)
class AudioFormat:
    """How FFmpeg writes a format."""

    container: str
    codec: str
    media_type: str
    rate: int = 0
    """Samples per second; 0: as the model's."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of the container."""


FORMATS: Mapping[Format, AudioFormat] = {
    "mp3": AudioFormat("mp3", "libmp3lame", "audio/mpeg"),
    "opus": AudioFormat("ogg", "libopus", "audio/ogg", 48000, {"page_duration": "200000"}),
    "aac": AudioFormat("adts", "aac", "audio/aac"),
    "flac": AudioFormat("flac", "flac", "audio/flac"),
    "wav": AudioFormat("wav", "pcm_s16le", "audio/wav"),
    # Raw samples have no header: clients of OpenAI's API take 24 kHz for granted.
    "pcm": AudioFormat("s16le", "pcm_s16le", "audio/pcm", rate=24000),
}


def get_media_type(name: Format) -> str:
    """Return the content type of a format."""
    chosen = FORMATS[name]
    return f"{chosen.media_type};rate={chosen.rate}" if name == "pcm" else chosen.media_type


def encode(pieces: Iterable[Samples], rate: int, name: Format, *, seekable: bool = False) -> Iterator[bytes]:
    """Encode each piece as soon as it is there.

    A `seekable` file is complete only at the end, but its header has the right length. The header of a stream says that
    the length is unknown.
    """
    import av

    chosen = FORMATS[name]
    output = io.BytesIO() if seekable else _Pipe()
    with av.open(output, mode="w", format=chosen.container, options=dict(chosen.options)) as container:
        stream: Any = container.add_stream(chosen.codec, rate=chosen.rate or rate, layout="mono")
        position = 0
        for piece in pieces:
            frame = _build_frame(piece, rate)
            frame.pts = position
            position += frame.samples
            container.mux(stream.encode(frame))
            if isinstance(output, _Pipe) and (ready := output.take()):
                yield ready
        container.mux(stream.encode(None))
    rest = output.take() if isinstance(output, _Pipe) else output.getvalue()
    if rest:
        yield rest


def change_speed(samples: Samples, rate: int, speed: float) -> Samples:
    """Return samples that take `1 / speed` of the time, at the same pitch."""
    if speed == 1:
        return samples
    import av

    graph = av.filter.Graph()
    # FFmpeg's filter accepts 0.5 or more, so half the speed is applied twice below that.
    factors = [speed] if speed >= 0.5 else [0.5, speed / 0.5]
    filters = [graph.add("atempo", str(factor)) for factor in factors]
    source = graph.add_abuffer(format="s16", sample_rate=rate, layout="mono", time_base=Fraction(1, rate))
    graph.link_nodes(source, *filters, graph.add("abuffersink")).configure()
    source.push(_build_frame(samples, rate))
    source.push(None)
    return numpy.concatenate([numpy.zeros(0, numpy.float32), *_pull(graph)])


def decode(path: Path, rate: int) -> Samples:
    """Read a sound file as one channel with `rate` samples per second."""
    import av

    resampler = av.AudioResampler(format="flt", layout="mono", rate=rate)
    with av.open(str(path)) as container:
        frames = [part for frame in container.decode(audio=0) for part in resampler.resample(frame)]
    frames += resampler.resample(None)
    return numpy.concatenate([frame.to_ndarray().reshape(-1) for frame in frames])


def _pull(graph: Any) -> Iterator[Samples]:
    import av

    while True:
        try:
            frame = graph.pull()
        except (av.FFmpegError, EOFError):
            return
        yield frame.to_ndarray().reshape(-1).astype(numpy.float32) / 32767


def _build_frame(samples: Samples, rate: int) -> Any:
    import av

    whole = (numpy.clip(samples, -1, 1) * 32767).astype("<i2").reshape(1, -1)
    frame = av.AudioFrame.from_ndarray(whole, format="s16", layout="mono")
    frame.sample_rate = rate
    return frame


class _Pipe:
    """A file that is written once, front to back: FFmpeg then does not go back to correct the header."""

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, data: bytes) -> int:
        self._written += data
        return len(data)

    def take(self) -> bytes:
        """Return what was written since the last call."""
        taken = bytes(self._written)
        self._written.clear()
        return taken
