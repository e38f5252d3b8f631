"""Keys of a test that packaged charts are signed with."""

import os
import subprocess
from pathlib import Path

from rayhelm.deploy.charts.helm import charts_dir

PASSPHRASE = "of a test"


def sign_charts(folder: Path, keyring: Path) -> None:
    """Sign the packages of `folder`, as the release workflow does."""
    passphrase = keyring.with_name("passphrase")
    passphrase.write_text(PASSPHRASE)
    key = {
        "CHART_SIGNING_KEY": "releases",
        "CHART_KEYRING": str(keyring),
        "CHART_PASSPHRASE_FILE": str(passphrase),
    }
    command = [charts_dir().parent / "ci/sign-charts", folder]
    ended = subprocess.run(command, env={**os.environ, **key}, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def make_keys(home: Path) -> tuple[Path, Path]:
    """Return keyrings with a new secret key and with its public key."""
    home.mkdir(mode=0o700)
    gpg = ["gpg", "--homedir", str(home), "--batch", "--pinentry-mode", "loopback", "--passphrase", PASSPHRASE]
    try:
        _run([*gpg, "--quick-generate-key", "releases", "rsa2048", "sign", "never"])
        _run([*gpg, "--output", str(home / "secret.gpg"), "--export-secret-keys"])
        _run([*gpg, "--output", str(home / "public.gpg"), "--export"])
    finally:
        subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False)
    return home / "secret.gpg", home / "public.gpg"


def _run(command: list[str]) -> None:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
