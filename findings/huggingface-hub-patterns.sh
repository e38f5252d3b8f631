#!/usr/bin/env bash
# huggingface_hub: what `allow_patterns` and `ignore_patterns` of snapshot_download, and --include and --exclude of `hf
# download`, select.
#
# Software: huggingface_hub 2.4.0.
# A good guess: patterns are those of a shell with `**`: `*.safetensors` means the top folder, `**/*.json` each folder with
# the top one, and `original` leaves out the folder of that name.
# What happens: a `*` also matches "/", so `*.safetensors` takes the copies in `metal/` and `original/` too; `**/*.json`
# leaves out the files of the top folder, config.json among them; `original` matches nothing, only `original/` does.
# Why it matters: repositories with the same weights in several formats fill a volume that was sized for one of them, and a
# download that left config.json out ends without an error.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check huggingface_hub==2.4.0

cat >"$folder/patterns.py" <<'PYTHON'
from huggingface_hub.utils import filter_repo_objects

FILES = [
    "config.json",
    "model.safetensors",
    "metal/model.safetensors",
    "original/config.json",
    "original/model.safetensors",
]
ROWS = [
    # arguments, files that a shell would select, files selected
    ({"allow_patterns": "*.safetensors"}, FILES[1:2], [FILES[1], FILES[2], FILES[4]]),
    ({"allow_patterns": "**/*.json"}, [FILES[0], FILES[3]], FILES[3:4]),
    ({"ignore_patterns": "original"}, FILES[:3], FILES),
    ({"ignore_patterns": "original/"}, FILES[:3], FILES[:3]),
]
changed = 0
for arguments, guessed, expected in ROWS:
    found = list(filter_repo_objects(FILES, **arguments))
    print(f"{arguments}: {found}{'' if found == guessed else f', a shell: {guessed}'}")
    if found != expected:
        changed += 1
        print(f"changed: expected {expected}")
raise SystemExit(bool(changed))
PYTHON
"$folder/venv/bin/python" "$folder/patterns.py"
