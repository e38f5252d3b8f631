"""Licenses of models: what the data files say."""

import pytest

from rayhelm.facts.licenses import find_license, load_licenses


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("coqui/XTTS-v2", "coqui-public-model-license-1.0"),
        ("Coqui/xtts-v2", "coqui-public-model-license-1.0"),
        ("facebook/mms-tts-deu", "cc-by-nc-4.0"),
        ("mistralai/Pixtral-Large-Instruct-2411", "mistral-research-0.1"),
    ],
)
def test_license_is_found_by_the_hub_id(source: str, name: str) -> None:
    assert find_license(source) == load_licenses()[name]


@pytest.mark.parametrize("source", ["microsoft/speecht5_tts", "facebook/mms-1b", "s3://coqui/XTTS-v2", ""])
def test_other_sources_have_no_known_restriction(source: str) -> None:
    assert find_license(source) is None
