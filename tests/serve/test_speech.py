"""Text to speech: the application of our own, with a tiny SpeechT5 of random weights."""

import io
import wave
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rayhelm.runtime.speech import SpeechT5

pytestmark = pytest.mark.serve

ALPHABET = "abcdefghijklmnopqrstuvwxyz ,.'"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint as the application expects it: model, vocoder and one voice."""
    import numpy
    import sentencepiece
    import torch
    from transformers import (
        SpeechT5Config,
        SpeechT5FeatureExtractor,
        SpeechT5ForTextToSpeech,
        SpeechT5HifiGan,
        SpeechT5HifiGanConfig,
        SpeechT5Processor,
        SpeechT5Tokenizer,
    )

    path = tmp_path_factory.mktemp("speech")
    (path / "corpus.txt").write_text("\n".join([ALPHABET] * 50))
    sentencepiece.SentencePieceTrainer.train(
        input=str(path / "corpus.txt"), model_prefix=str(path / "spm_char"), model_type="char", vocab_size=34
    )
    torch.manual_seed(0)
    small = {"encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
    config = SpeechT5Config(
        vocab_size=81, hidden_size=32, encoder_ffn_dim=64, decoder_ffn_dim=64, num_mel_bins=8, reduction_factor=2,
        speaker_embedding_dim=16, speech_decoder_prenet_units=16, speech_decoder_postnet_units=16,
        speech_decoder_postnet_layers=1, **small,
    )  # fmt: skip
    SpeechT5ForTextToSpeech(config).save_pretrained(path)
    vocoder = SpeechT5HifiGanConfig(
        model_in_dim=8, upsample_initial_channel=8, upsample_rates=[4, 4], upsample_kernel_sizes=[8, 8],
        resblock_kernel_sizes=[3], resblock_dilation_sizes=[[1]],
    )  # fmt: skip
    SpeechT5HifiGan(vocoder).save_pretrained(path / "vocoder")
    SpeechT5Processor(
        feature_extractor=SpeechT5FeatureExtractor(num_mel_bins=8),
        tokenizer=SpeechT5Tokenizer(str(path / "spm_char.model")),
    ).save_pretrained(path)
    (path / "voices").mkdir()
    numpy.save(path / "voices" / "anna.npy", numpy.ones(16, dtype="float32"))
    return path


@pytest.fixture(scope="module")
def engine(folder: Path) -> "SpeechT5":
    from rayhelm.runtime.speech import SpeechT5

    return SpeechT5(str(folder), str(folder / "vocoder"))


@pytest.mark.parametrize("voice", ["default", "anna"])
def test_speech_is_a_wav_with_the_rate_of_the_model(engine: "SpeechT5", voice: str) -> None:
    from rayhelm.runtime.speech import SpeechRequest, answer_speech

    answer = answer_speech(SpeechRequest(model="tts", input="hello.", voice=voice), "tts", engine)
    assert answer.media_type == "audio/wav"
    with wave.open(io.BytesIO(answer.body)) as spoken:
        assert (spoken.getnchannels(), spoken.getsampwidth(), spoken.getframerate()) == (1, 2, engine.rate)
        assert spoken.getnframes() > 0


def test_unknown_voice_is_a_400(engine: "SpeechT5") -> None:
    from fastapi import HTTPException

    from rayhelm.runtime.speech import SpeechRequest, answer_speech

    with pytest.raises(HTTPException) as caught:
        answer_speech(SpeechRequest(model="tts", input="hello", voice="berta"), "tts", engine)
    assert caught.value.status_code == 400


def test_unknown_model_is_a_404(engine: "SpeechT5") -> None:
    from fastapi import HTTPException

    from rayhelm.runtime.speech import SpeechRequest, answer_speech

    with pytest.raises(HTTPException) as caught:
        answer_speech(SpeechRequest(model="llm", input="hello"), "tts", engine)
    assert caught.value.status_code == 404


def test_unsupported_options_are_refused() -> None:
    from pydantic import ValidationError

    from rayhelm.runtime.speech import SpeechRequest

    with pytest.raises(ValidationError):
        SpeechRequest.model_validate({"model": "tts", "input": "hello", "speed": 2})
