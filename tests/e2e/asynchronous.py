# SPDX-License-Identifier: Apache-2.0
"""Requests of a fixture that end later, as io-flame and net-flame show them."""

import tempfile

import yrt


def requests_of(name, rounds, prefix, *args):
    """
    {(function that begins with the prefix or "", frames inside the call): value}, the run, and the folder of the files of
    the fixture of that name.
    """
    found = {}
    with tempfile.TemporaryDirectory() as directory, yrt.Fixture(name, rounds, directory) as fixture:
        at = yrt.Run(*args, "-p", fixture.pid, "-d", 600).sampling()
        fixture.release()
        fixture.finish()
        result = at.result().expect()
    for frames, n in result.stacks:
        last = next((i for i, f in enumerate(frames) if f.endswith(", asynchronous]")), None)
        if last is not None:
            key = next((f for f in frames if f.startswith(prefix)), ""), *frames[last:]
            found[key] = found.get(key, 0) + n
    assert result.stats["io"]["async_calls"] == 0 and not result.stats["truncated"], result.stats
    return found, result, directory
