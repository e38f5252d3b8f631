"""`ci/node check|packages|up|load|down|status`."""

import sys
import time
from typing import Annotated

import typer

from rayhelm.cli.output import Format, FormatOption
from rayhelm.errors import MissingError, RayhelmError, UsageError
from rayhelm.live.cluster.kubectl import Kubectl
from testbed.command import run, say, show
from testbed.control_plane.home import Record
from testbed.control_plane.status import State, state_of
from testbed.images.archive import layout_of
from testbed.node.down import alive, down, left_behind
from testbed.node.home import NodeHome, home
from testbed.node.host import check, packages
from testbed.node.images import give, wait_until_reported
from testbed.node.network import DEFAULT, Network
from testbed.node.running import ORDER, Node
from testbed.node.up import touches, up
from testbed.tools import program

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__, pretty_exceptions_enable=False)

NetworkOption = Annotated[str, typer.Option("--network", help="A private /16 network that this computer does not use.")]


@app.command("check")
def check_command(
    network: NetworkOption = DEFAULT,
    clusters: Annotated[int, typer.Option(help="Number of Ray clusters that must fit on the node.", min=0)] = 0,
) -> None:
    """Report what this computer lacks for a node and what `up` would change. Changes nothing."""
    addresses = Network.parse(network)
    if home().record() is None:
        check(home(), addresses, clusters)
    print(touches(home(), addresses))


@app.command("packages")
def packages_command() -> None:
    """List the missing Debian packages for the node and for images."""
    for name in packages():
        print(name)


@app.command("up")
def up_command(
    network: NetworkOption = DEFAULT,
    operator: Annotated[bool, typer.Option(help="Install the KubeRay operator on the node.")] = True,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Make this computer a Kubernetes node, and return when pods can run. Linux, as root."""
    begin = time.monotonic()
    node = up(home(), Network.parse(network), operator=operator, agree=lambda text: _confirm(text, yes), say=say)
    print(f"ready after {time.monotonic() - begin:.1f} s: {node.record.description}")
    print(f"export KUBECONFIG={node.home.kubeconfig}")


@app.command("load")
def load_command(
    image: Annotated[str, typer.Argument(help="Image of ci/images/build, for example ray:cpu.")],
) -> None:
    """Load an image into the node; only missing layers are copied. Prints the name for pods."""
    place = home()
    if place.record() is None:
        raise MissingError("no node runs here", "make node")
    layout, tag = layout_of(image)
    begin = time.monotonic()
    reference = give(place, int((place.folder / "pid").read_text()), layout, tag)
    wait_until_reported(Kubectl(program("kubectl"), place.kubeconfig), reference)
    print(f"{reference}, imagePullPolicy: Never ({time.monotonic() - begin:.1f} s)")


@app.command("down")
def down_command(
    keep_images: Annotated[bool, typer.Option("--keep-images", help="Keep the images for the next node.")] = False,
) -> None:
    """Stop the node and remove everything that it created, also after a crash."""
    place = home()
    there = left_behind(place) or alive(place)
    kept = place.kept.exists() and not keep_images
    ended = down(place, say, keep_images=keep_images)
    print(f"ended: {ended} processes" if there else "no node runs here")
    if kept:
        print("the kept images of an earlier node were removed too")


@app.command("status")
def status_command(format: FormatOption = Format.text) -> None:
    """Show the parts of the node. Exit code 1: a part does not answer; 3: no node runs."""
    place = home()
    record = place.record()
    if record is None and (rest := left_behind(place)):
        raise RayhelmError(f"a stopped node left {', '.join(rest)}: `ci/node down` removes it")
    if record is None:
        raise MissingError("no node runs here", "make node")
    states = _list_states(place, record)
    show(place, record, states, format)
    if not record.complete:
        raise RayhelmError("its start is incomplete: `up` starts again, `down` removes it")
    if ill := [state.name for state in states if state.state != "ready"]:
        raise RayhelmError(f"{', '.join(ill)} did not answer: `up` starts again")


def _list_states(place: NodeHome, record: Record) -> list[State]:
    node = Node(place, Network.of(record.server))
    return [state_of(node, name) for name in ORDER if name in record.parts]


def _confirm(text: str, yes: bool) -> None:
    print(text, flush=True)
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("no terminal for the confirmation: use `ci/node up --yes`")
    if not typer.confirm("continue?"):
        raise UsageError("nothing was changed")


def main() -> None:
    run(app, "ci/node")


if __name__ == "__main__":
    main()
