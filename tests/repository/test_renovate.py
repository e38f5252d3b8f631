"""The bot finds the digests of a fleet file, in the forms that `rayhelm images --fill` writes."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RENOVATE = json.loads((ROOT / "renovate.json").read_text())
(MANAGER,) = RENOVATE["customManagers"]
DIGEST = f"sha256:{'0a' * 32}"


@pytest.mark.parametrize(
    ("text", "name", "tag"),
    [
        (
            f"image: {{repository: registry.example:5000/ray, tag: 2.60.0-ours, digest: {DIGEST}}}",
            "registry.example:5000/ray",
            "2.60.0-ours",
        ),
        (f"image: {{repository: r/ray, tag: '1', ray: 2.60.0, vllm: 0.29.0, digest: '{DIGEST}'}}", "r/ray", "1"),
        (
            f'image:\n  repository: haproxy   # ours\n  # a comment\n  tag: "3.4"\n  digest: {DIGEST}\n',
            "haproxy",
            "3.4",
        ),
        (f"test: {{image: registry.example:5000/a/b:1.2@{DIGEST}}}", "registry.example:5000/a/b", "1.2"),
        (f"source: oci://registry.example/qwen:v1@{DIGEST}/weights", "registry.example/qwen", "v1"),
    ],
)
def test_renovate_finds_name_tag_and_digest(text: str, name: str, tag: str) -> None:
    found = [
        match for pattern in MANAGER["matchStrings"] for match in re.finditer(pattern.replace("(?<", "(?P<"), text)
    ]
    assert [match.groupdict() for match in found] == [{"depName": name, "currentValue": tag, "currentDigest": DIGEST}]


def test_renovate_does_not_join_two_images() -> None:
    text = f"a: {{repository: one, tag: 1}}\nb: {{repository: two, tag: 2, digest: {DIGEST}}}\n"
    found = [
        match for pattern in MANAGER["matchStrings"] for match in re.finditer(pattern.replace("(?<", "(?P<"), text)
    ]
    assert [match["depName"] for match in found] == ["two"]


def test_renovate_changes_digests_of_fleet_files_alone() -> None:
    (rule,) = [rule for rule in RENOVATE["packageRules"] if rule.get("matchManagers") == ["custom.regex"]]
    assert (rule["matchUpdateTypes"], rule["enabled"]) == (["major", "minor", "patch"], False)
    (pattern,) = (re.compile(each.strip("/")) for each in MANAGER["managerFilePatterns"])
    assert pattern.search("values/single-gpu/fleet.yaml")
