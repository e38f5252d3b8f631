"""python -m testbed.tools [--list] [--group GROUP] [NAME...]: build or fetch missing tools. Without NAME: all tools of
the group; without a group: all tools that have none."""

import argparse
import signal
import sys
from itertools import groupby

from rich.console import Console
from rich.table import Table

from rayhelm.errors import MissingError, RayhelmError, UsageError
from testbed.tools import crds
from testbed.tools.build import build
from testbed.tools.catalog import Module, Tool, tools
from testbed.tools.checkout import HERE, Checkout
from testbed.tools.find import search
from testbed.tools.lock import one_at_a_time


def main(arguments: list[str], checkout: Checkout = HERE) -> int:
    """Build and fetch tools. Exit codes: 0 success, 2 unknown name, 3 a tool cannot be built or fetched, 130
    interrupted."""
    parser = argparse.ArgumentParser(prog="python -m testbed.tools", description=__doc__)
    parser.add_argument("--list", action="store_true", help="list the tools, and build nothing")
    parser.add_argument("--group", default="", help="tools of one command only, for example node")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a program or a bundle of CRDs")
    chosen = parser.parse_args(arguments)
    # SIGTERM stops the compiler too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        print_tools(checkout) if chosen.list else make_tools(chosen.names, checkout, chosen.group)
    except RayhelmError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"{error}\n    fix the cause (full disk, folder of another user), then: make tools", file=sys.stderr)
        return MissingError.exit_code
    except KeyboardInterrupt:
        print("interrupted; `make tools` continues", file=sys.stderr)
        return 130
    return 0


def make_tools(names: list[str], checkout: Checkout, group: str = "") -> None:
    known, bundles = tools(checkout), {bundle.name: bundle for bundle in crds.bundles(checkout)}
    if unknown := [name for name in names if name not in known and name not in bundles]:
        raise UsageError(f"unknown tool {', '.join(unknown)}; known: {', '.join([*known, *bundles])}")
    if group not in (groups := {tool.group for tool in known.values()}):
        raise UsageError(f"unknown group {group}; known: {', '.join(sorted(groups - {''}))}")
    wanted = [tool for name, tool in known.items() if (name in names if names else tool.group == group)]
    todo = find_missing(wanted, checkout)
    unfetched = [
        bundle
        for bundle in bundles.values()
        if (bundle.name in names if names else not group) and not crds.is_fetched(bundle, checkout)
    ]
    # Without the lock: where nothing is missing, nothing waits for a build of other tools.
    if not todo and not unfetched:
        return
    with one_at_a_time(checkout.store / "go", "tools"):
        make_programs([tool for tool in todo if not search(tool, checkout).found], checkout)
        for bundle in unfetched:
            if not crds.is_fetched(bundle, checkout):
                print(f"==> CRDs of {bundle.name} {bundle.version}", flush=True)
                crds.fetch(bundle, checkout)


def find_missing(wanted: list[Tool], checkout: Checkout) -> list[Tool]:
    """Return the tools that are not found, and print which other versions were."""
    todo: list[Tool] = []
    for tool in wanted:
        result = search(tool, checkout)
        if not result.found:
            for line in result.passed_over:
                print(f"    passed over: {line}", flush=True)
            todo.append(tool)
        elif result.found.where == tool.variable and result.found.version != tool.version:
            said = result.found.version or "an unknown version"
            print(f"    {tool.variable}={result.found.path} is {said}; {tool.version} is pinned", flush=True)
    return todo


def make_programs(todo: list[Tool], checkout: Checkout) -> None:
    if unfetched := [tool.name for tool in todo if not tool.module]:
        raise MissingError(f"not fetched yet: {', '.join(unfetched)}", "make setup")
    builds: list[tuple[Module, list[Tool]]] = []
    for _, group in groupby(todo, key=lambda tool: tool.module and tool.module.name):
        programs = list(group)
        assert programs[0].module
        builds.append((programs[0].module, programs))
    for number, (module, programs) in enumerate(builds, 1):
        build(module, programs, checkout, f"{number} of {len(builds)}")


def print_tools(checkout: Checkout) -> None:
    table = Table("name", "version", "where", box=None, pad_edge=False)
    for tool in tools(checkout).values():
        found = search(tool, checkout).found
        if found:
            table.add_row(tool.name, found.version or "?", f"{found.path} ({found.where})")
        elif tool.module:
            table.add_row(tool.name, tool.version, f"not built, about {tool.module.recipe.seconds / 60:.1f} min")
        else:
            table.add_row(tool.name, tool.version, "not fetched: make setup")
    for bundle in crds.bundles(checkout):
        where = str(bundle.home(checkout)) if crds.is_fetched(bundle, checkout) else "not fetched: make tools"
        table.add_row(f"CRDs of {bundle.name}", bundle.version, where)
    Console(width=None if sys.stdout.isatty() else 200).print(table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
