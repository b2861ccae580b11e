# SPDX-License-Identifier: Apache-2.0
"""
Builds of Perl that the layout library does not have: a struct interpreter of another size, versions of the future.
"""

import os
import re
import shutil
import struct
import subprocess
import tempfile

import yrt

PERL = "/usr/bin/perl"
SCRIPT = os.path.join(yrt.SOURCE, "fixtures", "perl", "depth.pl")


def offset(symbol):
    """Where a symbol's data is in the file."""
    symbols = subprocess.run(["readelf", "-W", "--dyn-syms", PERL], capture_output=True, text=True, check=True).stdout
    address = next(int(line.split()[1], 16) for line in symbols.splitlines() if line.endswith(f" {symbol}"))
    segments = subprocess.run(["readelf", "-W", "-l", PERL], capture_output=True, text=True, check=True).stdout
    for line in re.findall(r"LOAD\s+(\w+) (\w+) \w+ (\w+)", segments):
        at, start, size = (int(word, 16) for word in line)
        if start <= address < start + size:
            return address - start + at
    raise AssertionError(f"{symbol} is in no segment")


def build(directory, **values):
    """A copy of perl, of a build of its own, with other values of symbols: NAME=(format, value)."""
    path = os.path.join(directory, "perl")
    notes = subprocess.run(["readelf", "-n", PERL], capture_output=True, text=True, check=True).stdout
    build_id = bytes.fromhex(re.search(r"Build ID: (\w+)", notes)[1])
    with open(PERL, "rb") as file:
        data = bytearray(file.read())
    at = data.index(build_id)
    data[at:at + 4] = b"test"
    for name, (form, value) in values.items():
        struct.pack_into(form, data, offset(name), value)
    with open(path, "wb") as file:
        file.write(data)
    shutil.copymode(PERL, path)
    return path


def sample(**values):
    """(how many samples show subs of the fixture, what yrt says)"""
    with tempfile.TemporaryDirectory() as directory, yrt.Fixture(
        build(directory, **values), SCRIPT, 600, 20, seconds=None
    ) as f:
        result = yrt.sample(f, view="perl-flame", seconds=1, rate=499)
    return sum(n for frames, n in result.stacks if any(frame.startswith("main::") for frame in frames)), result


@yrt.measured
def test_size():
    """The end of struct interpreter depends on the C library: what is read lies before it."""
    if "YRT_PERL" in os.environ:
        return
    samples, result = sample(PL_interp_size=("<H", 4000))
    assert samples > 20, f"{samples} samples with subs: {result.stderr}"
    assert result.incomplete() <= 0.001, result.summary()
    yield f"{samples} samples; {result.summary()}"


def test_versions():
    """A version without a layout and one that is not supported are refused by name."""
    if "YRT_PERL" in os.environ:
        return
    for version, words in ((46, "holds Perl 5.46."), (98, "holds Perl 5.98.")):
        samples, result = sample(PL_version=("<B", version))
        assert not samples, f"{samples} samples have frames of an unknown layout"
        assert words in result.stderr, result.stderr


yrt.main(globals())
