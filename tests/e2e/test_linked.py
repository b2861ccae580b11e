# SPDX-License-Identifier: Apache-2.0
"""
A program that embeds Python the usual way: it is linked with libpython, and has copies of its variables (linked.py). All
frames are there, as in Python's own program. Perl's: test_perl_frames.py test_linked.
"""

import glob
import os
import tempfile

import linked
import yrt

LIBRARIES = "/usr/lib/x86_64-linux-gnu"
SPIN = """
import json, os, sys, time
def leaf(n):
    return sum(i * i for i in range(n))
def middle(n):
    return max([n], key=lambda n: leaf(n))
print(json.dumps({"pid": os.getpid(), "chain": []}), flush=True)
sys.stdin.readline()
while time.process_time() < 2:
    middle(1000)
print("{}")
"""


def python_library():
    """YRT_LIBPYTHON, else Debian's."""
    found = [os.environ.get("YRT_LIBPYTHON")] if "YRT_LIBPYTHON" in os.environ else sorted(
        glob.glob(f"{LIBRARIES}/libpython3.*.so.1.0")
    )
    if not found:
        raise yrt.Skipped("no libpython3.*.so.1.0")
    return found[-1]


@yrt.measured
def test_python():
    library = python_library()
    source = os.path.join(yrt.SOURCE, "fixtures", "python", "embedded.c")
    with tempfile.TemporaryDirectory() as directory:
        program = linked.link(directory, source, library, "PyCode_Type", "PyFrame_Type", "PyUnicode_Type", "_PyRuntime")
        script = os.path.join(directory, "spin.py")
        with open(script, "w") as f:
            f.write(SPIN)
        os.environ["YRT_LIBPYTHON"] = library  # fixtures/python/embedded.c opens it by this name
        with yrt.Fixture(program, script, seconds=None) as f:
            result = yrt.sample_whole(f, view="python-flame", rate=499)[0]
    assert result.incomplete() <= 0.001, result.stats["truncated"]
    # up to 3.10 names are not qualified
    chain = ["<module>", "middle", "<lambda>", "leaf"]
    whole = sum(n for frames, n in result.stacks if in_order([f.split(" (")[0].split(".")[-1] for f in frames], chain))
    assert whole >= 0.8 * result.samples, yrt.show(result.stacks)
    yield f"{whole} of {result.samples} samples in {os.path.basename(library)}"


def in_order(names, chain):
    rest = iter(names)
    return all(name in rest for name in chain)


yrt.main(globals())
