"""Images without Docker: layers of files in an OCI layout, made by umoci.

layout    a folder with images that share their layers
tar       a layer, as a stream
program   an image of one static program and nothing else
base      a small Debian with Python
haproxy   the gateway's program
redis     where a head of Ray keeps what outlives it
python    what a lock names, and rayhelm itself, each a layer
"""

from testbed.images.layout import LAYOUTS, Layout
from testbed.images.program import of_program

__all__ = ["LAYOUTS", "Layout", "of_program"]
