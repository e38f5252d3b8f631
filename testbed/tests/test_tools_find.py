"""Where a program is looked for, in which order, and what is said where none fits."""

from pathlib import Path

import pytest
import yaml

from rayhelm.errors import MissingError, RayhelmError, UsageError
from rayhelm.facts.versions import versions
from shared.small_checkout import VERSION, SmallCheckout, script
from testbed.tools.checkout import HERE, Checkout
from testbed.tools.find import found, missing, program


@pytest.fixture
def small(tmp_path: Path) -> SmallCheckout:
    return SmallCheckout.open(tmp_path)


def test_program_is_searched_in_variable_path_assets_and_build_in_this_order(
    small: SmallCheckout,
) -> None:
    built = small.built()
    assert program("alpha", small.checkout) == built
    small.env["KUBEBUILDER_ASSETS"] = str(small.root / "assets")
    assert program("alpha", small.checkout) == built, "a folder without it"
    assets = small.program("assets", "alpha", "1.2.0")
    assert program("alpha", small.checkout) == assets
    on_path = small.program("host", "alpha", "1.2.9")
    assert program("alpha", small.checkout) == on_path
    named = small.program("mine", "alpha", "1.2.3")
    small.env["ALPHA"] = str(named)
    assert program("alpha", small.checkout) == named


@pytest.mark.parametrize(("where", "variable"), [("host", "PATH"), ("assets", "KUBEBUILDER_ASSETS")])
def test_program_of_another_minor_version_is_rejected_with_a_message(
    where: str, variable: str, small: SmallCheckout
) -> None:
    small.env["KUBEBUILDER_ASSETS"] = str(small.root / "assets")
    other = small.program(where, "alpha", "1.1.9")
    with pytest.raises(MissingError) as error:
        program("alpha", small.checkout)
    assert f"alpha {VERSION} is missing" in str(error.value)
    assert f"{other} ({variable}) is 1.1.9, not 1.2" in str(error.value)
    assert "make tools" in str(error.value)
    assert error.value.exit_code == 3
    built = small.built()
    assert program("alpha", small.checkout) == built


@pytest.mark.parametrize(("text", "why"), [("echo hello", "unknown version"), ("\x7fELF", "cannot be run")])
def test_what_does_not_answer_on_path_is_passed_over(text: str, why: str, small: SmallCheckout) -> None:
    path = script(small.root / "host" / "alpha", text)
    path.write_text(text if text.startswith("\x7f") else path.read_text())
    with pytest.raises(MissingError, match=why):
        program("alpha", small.checkout)
    built = small.built()
    assert program("alpha", small.checkout) == built


def test_variable_takes_any_version_and_it_is_reported(small: SmallCheckout) -> None:
    small.built()
    small.env["ALPHA"] = str(small.program("mine", "alpha", "7.0.1"))
    assert (found("alpha", small.checkout).version, found("alpha", small.checkout).where) == ("7.0.1", "ALPHA")


def test_variable_with_a_wrong_path_is_an_error(small: SmallCheckout) -> None:
    small.built()
    small.program("host", "alpha", VERSION)
    plain = small.root / "plain"
    plain.write_text("#!/bin/sh\n")
    broken = small.root / "broken"
    broken.write_bytes(b"\x7fELF")
    broken.chmod(0o755)
    for path, why in (
        (small.root / "nothing", "does not exist"),
        (small.root, "is not a file"),
        (plain, "is not executable"),
        (broken, "cannot be run"),
    ):
        small.env["ALPHA"] = str(path)
        with pytest.raises(MissingError, match=f"ALPHA={path} {why}"):
            program("alpha", small.checkout)
        with pytest.raises(MissingError, match=f"ALPHA={path} {why}"):
            missing(small.checkout)


def test_variable_may_be_a_name_on_path(small: SmallCheckout) -> None:
    small.env["ALPHA"] = "alpha-7"
    path = small.program("host", "alpha-7", "7.0.1")
    assert program("alpha", small.checkout) == path
    small.env["ALPHA"] = "alpha-8"
    with pytest.raises(MissingError, match="ALPHA=alpha-8 does not exist"):
        program("alpha", small.checkout)


def test_variable_is_named_after_the_program(small: SmallCheckout) -> None:
    small.env["BETA_ONE"] = str(small.program("mine", "beta-one", VERSION))
    assert found("beta-one", small.checkout).where == "BETA_ONE"


def test_what_was_built_from_another_pin_does_not_count(small: SmallCheckout) -> None:
    built = small.built()
    assert program("alpha", small.checkout) == built
    with (small.root / "ci" / "tools" / "alpha" / "go.sum").open("a") as file:
        file.write("example.org/else v0.1.0 h1:new=\n")
    with pytest.raises(MissingError):
        program("alpha", small.checkout)


def test_program_without_its_note_is_not_used(small: SmallCheckout) -> None:
    built = small.built()
    built.with_name(".alpha.pin").unlink()
    with pytest.raises(MissingError):
        program("alpha", small.checkout)


def test_missing_tools_are_reported_by_name(small: SmallCheckout) -> None:
    assert missing(small.checkout) == ["alpha", "beta-one", "beta-two", "gamma", "helm"]
    small.built()
    script(small.root / ".tools" / "bin" / "helm", "")
    assert missing(small.checkout) == ["beta-one", "beta-two", "gamma"]


def test_what_belongs_to_a_group_is_missing_only_to_the_group(small: SmallCheckout) -> None:
    small.change("beta", group="team")
    assert sorted(missing(small.checkout)) == ["alpha", "gamma", "helm"]
    assert missing(small.checkout, group="team") == ["beta-one", "beta-two"]


def test_fix_for_a_tool_of_a_group_is_its_command(small: SmallCheckout) -> None:
    small.change("beta", group="team")
    with pytest.raises(MissingError, match="make team"):
        program("beta-one", small.checkout)


def test_unknown_name_is_refused_with_known_ones(small: SmallCheckout) -> None:
    with pytest.raises(UsageError, match=r"unknown tool pan; known: alpha, beta-one"):
        program("pan", small.checkout)


def test_mistake_in_tools_file_is_reported_with_its_position(small: SmallCheckout) -> None:
    path = small.root / "ci" / "tools" / "tools.yaml"
    text = yaml.safe_load(path.read_text())
    text["modules"]["beta"]["programs"]["alpha"] = "example.org/beta/alpha"
    path.write_text(yaml.safe_dump(text))
    with pytest.raises(RayhelmError, match=r"(?s)tools\.yaml: .*several recipes for alpha"):
        program("alpha", small.checkout)


# -- a program that cannot be asked ------------------------------------------------------------------------------------


def go_program(path: Path, lines: str) -> Path:
    """A file with the note that Go's linker leaves: magic, pointer size, flags, and two strings with their lengths."""
    note = b"\xff Go buildinf:\x08\x02".ljust(32, b"\0") + b"\x08go1.26.8" + b"\xc0\x02" + lines.encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x7fELF" + bytes(5000) + note + bytes(5000))
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("kind", ["mod", "dep"])
def test_version_is_read_from_build_information(kind: str, small: SmallCheckout) -> None:
    path = go_program(small.root / "host" / "gamma", f"path\tx\n{kind}\texample.org/gamma\tv1.2.5\th1:a=\n")
    assert (found("gamma", small.checkout).path, found("gamma", small.checkout).version) == (path, "1.2.5")


@pytest.mark.parametrize("lines", ["mod\texample.org/gamma\t(devel)\n", "dep\texample.org/bowls\tv1.2.3\n", ""])
def test_build_information_without_the_version_is_rejected(lines: str, small: SmallCheckout) -> None:
    go_program(small.root / "host" / "gamma", lines)
    with pytest.raises(MissingError, match=r"of an unknown version, not 1\.2"):
        program("gamma", small.checkout)


@pytest.mark.parametrize("content", [b"", b"text", b"\xff Go buildinf:", b"\xff Go buildinf:\x08\x00"])
def test_file_not_built_by_go_has_no_version(content: bytes, small: SmallCheckout) -> None:
    go_program(small.root / "host" / "gamma", "").write_bytes(content)
    with pytest.raises(MissingError, match="unknown version"):
        program("gamma", small.checkout)


# -- Kubernetes' minor version -----------------------------------------------------------------------------------------


@pytest.fixture
def unbuilt(tmp_path: Path) -> Checkout:
    """What this checkout describes, and nothing built."""
    (tmp_path / "ci").symlink_to(HERE.root / "ci")
    return Checkout(tmp_path, {"PATH": str(tmp_path / "host")})


def choosing(minor: str, checkout: Checkout) -> Checkout:
    return Checkout(checkout.root, {**checkout.env, "KUBERNETES": minor})


def test_kubernetes_without_a_folder_is_refused_with_known_ones(unbuilt: Checkout) -> None:
    there = " or ".join(versions().kubernetes.supported).replace(".", r"\.")
    with pytest.raises(UsageError, match=rf"KUBERNETES=1\.20: .* choose {there}$"):
        program("kube-apiserver", choosing("1.20", unbuilt))


@pytest.mark.parametrize("minor", versions().kubernetes.supported)
def test_supported_kubernetes_is_chosen_by_a_variable(minor: str, unbuilt: Checkout) -> None:
    path = script(unbuilt.root / "host" / "kube-apiserver", f"echo Kubernetes v{minor}.99")
    assert program("kube-apiserver", choosing(minor, unbuilt)) == path
    for other in set(versions().kubernetes.supported) - {minor}:
        with pytest.raises(MissingError, match=rf"(?s)kube-apiserver {other}\.\d+ is missing.*is {minor}\.99, not"):
            program("kube-apiserver", choosing(other, unbuilt))


def test_default_kubernetes_needs_no_variable(unbuilt: Checkout) -> None:
    with pytest.raises(MissingError, match=rf"kube-scheduler {versions().kubernetes.default}\.\d+ is missing"):
        program("kube-scheduler", unbuilt)
