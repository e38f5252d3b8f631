"""Where a program is looked for, in which order, and what is said where none fits."""

from pathlib import Path

import pytest
import yaml

from rayhelm.errors import MissingError, RayhelmError, UsageError
from rayhelm.versions import versions
from testbed.tools.find import found, missing, program
from testbed.tools.site import HERE, Site
from unit.tool_shop import VERSION, Shop, script


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop.open(tmp_path)


def test_a_program_is_looked_for_in_its_variable_then_path_then_assets_then_what_was_built(shop: Shop) -> None:
    built = shop.built()
    assert program("oven", shop.site) == built
    shop.env["KUBEBUILDER_ASSETS"] = str(shop.root / "assets")
    assert program("oven", shop.site) == built, "a folder without it"
    assets = shop.program("assets", "oven", "1.2.0")
    assert program("oven", shop.site) == assets
    on_path = shop.program("host", "oven", "1.2.9")
    assert program("oven", shop.site) == on_path
    named = shop.program("mine", "oven", "1.2.3")
    shop.env["OVEN"] = str(named)
    assert program("oven", shop.site) == named


@pytest.mark.parametrize(("where", "variable"), [("host", "PATH"), ("assets", "KUBEBUILDER_ASSETS")])
def test_a_program_of_another_minor_version_is_passed_over_and_the_message_says_so(
    where: str, variable: str, shop: Shop
) -> None:
    shop.env["KUBEBUILDER_ASSETS"] = str(shop.root / "assets")
    other = shop.program(where, "oven", "1.1.9")
    with pytest.raises(MissingError) as error:
        program("oven", shop.site)
    assert f"oven {VERSION} is missing" in str(error.value)
    assert f"{other} ({variable}) is 1.1.9, not 1.2" in str(error.value)
    assert "make tools" in str(error.value)
    assert error.value.exit_code == 3
    built = shop.built()
    assert program("oven", shop.site) == built


@pytest.mark.parametrize(("text", "why"), [("echo hello", "does not say"), ("\x7fELF", "cannot be run")])
def test_what_does_not_answer_on_path_is_passed_over(text: str, why: str, shop: Shop) -> None:
    path = script(shop.root / "host" / "oven", text)
    path.write_text(text if text.startswith("\x7f") else path.read_text())
    with pytest.raises(MissingError, match=why):
        program("oven", shop.site)
    built = shop.built()
    assert program("oven", shop.site) == built


def test_a_variable_takes_any_version_and_it_is_told(shop: Shop) -> None:
    shop.built()
    shop.env["OVEN"] = str(shop.program("mine", "oven", "7.0.1"))
    assert (found("oven", shop.site).version, found("oven", shop.site).where) == ("7.0.1", "OVEN")


def test_a_variable_that_names_no_program_is_never_skipped_over(shop: Shop) -> None:
    shop.built()
    shop.program("host", "oven", VERSION)
    plain = shop.root / "plain"
    plain.write_text("#!/bin/sh\n")
    broken = shop.root / "broken"
    broken.write_bytes(b"\x7fELF")
    broken.chmod(0o755)
    for path, why in (
        (shop.root / "nothing", "is not there"),
        (shop.root, "is not a file"),
        (plain, "may not be run"),
        (broken, "cannot be run"),
    ):
        shop.env["OVEN"] = str(path)
        with pytest.raises(MissingError, match=f"OVEN={path} {why}"):
            program("oven", shop.site)
        with pytest.raises(MissingError, match=f"OVEN={path} {why}"):
            missing(shop.site)


def test_a_variable_may_hold_a_bare_name_that_is_on_path(shop: Shop) -> None:
    shop.env["OVEN"] = "oven-7"
    path = shop.program("host", "oven-7", "7.0.1")
    assert program("oven", shop.site) == path
    shop.env["OVEN"] = "oven-8"
    with pytest.raises(MissingError, match="OVEN=oven-8 is not there"):
        program("oven", shop.site)


def test_a_variable_is_named_after_the_program(shop: Shop) -> None:
    shop.env["BIG_POT"] = str(shop.program("mine", "big-pot", VERSION))
    assert found("big-pot", shop.site).where == "BIG_POT"


def test_what_was_built_from_another_pin_does_not_count(shop: Shop) -> None:
    built = shop.built()
    assert program("oven", shop.site) == built
    with (shop.root / "ci" / "tools" / "oven" / "go.sum").open("a") as file:
        file.write("example.org/else v0.1.0 h1:new=\n")
    with pytest.raises(MissingError):
        program("oven", shop.site)


def test_a_file_without_its_note_does_not_count(shop: Shop) -> None:
    built = shop.built()
    built.with_name(".oven.pin").unlink()
    with pytest.raises(MissingError):
        program("oven", shop.site)


def test_the_missing_are_told_by_name(shop: Shop) -> None:
    assert missing(shop.site) == ["oven", "big-pot", "small-pot", "bowl", "helm"]
    shop.built()
    script(shop.root / ".tools" / "bin" / "helm", "")
    assert missing(shop.site) == ["big-pot", "small-pot", "bowl"]


def test_what_belongs_to_a_group_is_missing_only_to_the_group(shop: Shop) -> None:
    shop.change("pots", group="kitchen")
    assert sorted(missing(shop.site)) == ["bowl", "helm", "oven"]
    assert missing(shop.site, group="kitchen") == ["big-pot", "small-pot"]


def test_the_fix_of_what_belongs_to_a_group_is_the_groups_own_command(shop: Shop) -> None:
    shop.change("pots", group="kitchen")
    with pytest.raises(MissingError, match="make kitchen"):
        program("big-pot", shop.site)


def test_an_unknown_name_is_refused_with_the_names_that_there_are(shop: Shop) -> None:
    with pytest.raises(UsageError, match=r"no tool pan; there are oven, big-pot"):
        program("pan", shop.site)


def test_a_tools_file_with_a_mistake_is_told_with_its_place(shop: Shop) -> None:
    path = shop.root / "ci" / "tools" / "tools.yaml"
    text = yaml.safe_load(path.read_text())
    text["modules"]["pots"]["programs"]["oven"] = "example.org/pots/oven"
    path.write_text(yaml.safe_dump(text))
    with pytest.raises(RayhelmError, match=r"(?s)tools\.yaml: .*two ways to have oven"):
        program("oven", shop.site)


# -- a program that cannot be asked ------------------------------------------------------------------------------------


def go_program(path: Path, lines: str) -> Path:
    """A file with the note that Go's linker leaves: magic, pointer size, flags, and two strings with their lengths."""
    note = b"\xff Go buildinf:\x08\x02".ljust(32, b"\0") + b"\x08go1.26.8" + b"\xc0\x02" + lines.encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x7fELF" + bytes(5000) + note + bytes(5000))
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("kind", ["mod", "dep"])
def test_the_version_of_a_program_that_says_none_is_read_from_the_note_inside(kind: str, shop: Shop) -> None:
    path = go_program(shop.root / "host" / "bowl", f"path\tx\n{kind}\texample.org/bowl\tv1.2.5\th1:a=\n")
    assert (found("bowl", shop.site).path, found("bowl", shop.site).version) == (path, "1.2.5")


@pytest.mark.parametrize("lines", ["mod\texample.org/bowl\t(devel)\n", "dep\texample.org/bowls\tv1.2.3\n", ""])
def test_a_note_without_the_version_is_passed_over(lines: str, shop: Shop) -> None:
    go_program(shop.root / "host" / "bowl", lines)
    with pytest.raises(MissingError, match=r"of a version that it does not say, not 1\.2"):
        program("bowl", shop.site)


@pytest.mark.parametrize("content", [b"", b"text", b"\xff Go buildinf:", b"\xff Go buildinf:\x08\x00"])
def test_a_file_that_go_did_not_make_has_no_version(content: bytes, shop: Shop) -> None:
    go_program(shop.root / "host" / "bowl", "").write_bytes(content)
    with pytest.raises(MissingError, match="does not say"):
        program("bowl", shop.site)


# -- Kubernetes' minor version -----------------------------------------------------------------------------------------


@pytest.fixture
def unbuilt(tmp_path: Path) -> Site:
    """What this checkout describes, and nothing built."""
    (tmp_path / "ci").symlink_to(HERE.root / "ci")
    return Site(tmp_path, {"PATH": str(tmp_path / "host")})


def choosing(minor: str, site: Site) -> Site:
    return Site(site.root, {**site.env, "KUBERNETES": minor})


def test_a_kubernetes_without_a_folder_is_refused_with_those_that_there_are(unbuilt: Site) -> None:
    there = " or ".join(versions().kubernetes.supported).replace(".", r"\.")
    with pytest.raises(UsageError, match=rf"KUBERNETES=1\.20: .* choose {there}$"):
        program("kube-apiserver", choosing("1.20", unbuilt))


@pytest.mark.parametrize("minor", versions().kubernetes.supported)
def test_a_supported_kubernetes_is_chosen_by_a_variable(minor: str, unbuilt: Site) -> None:
    path = script(unbuilt.root / "host" / "kube-apiserver", f"echo Kubernetes v{minor}.99")
    assert program("kube-apiserver", choosing(minor, unbuilt)) == path
    for other in set(versions().kubernetes.supported) - {minor}:
        with pytest.raises(MissingError, match=rf"(?s)kube-apiserver {other}\.\d+ is missing.*is {minor}\.99, not"):
            program("kube-apiserver", choosing(other, unbuilt))


def test_the_default_kubernetes_needs_no_variable(unbuilt: Site) -> None:
    with pytest.raises(MissingError, match=rf"kube-scheduler {versions().kubernetes.default}\.\d+ is missing"):
        program("kube-scheduler", unbuilt)
