# SPDX-License-Identifier: Apache-2.0
"""Dumps as tests compare them: threads by number, once they have settled."""

import json
import os
import time

import yrt


def of(pid, *flags, code=yrt.OK, **kw):
    """The JSON of a dump, threads by number with their frames in them."""
    result = yrt.run("dump", "-p", pid, "--json", *flags, output=False, stats=False, **kw)
    assert result.code == code, result.stderr
    told = json.loads(result.stdout)
    for thread in told["threads"]:
        thread["frames"] = told["stacks"][thread["stack"]]
    return {t["tid"]: t for t in told["threads"]}


def settle(pid, names, seconds=20):
    """Waits until each of the threads of these names is asleep and has not run between two looks."""
    end, before, names = time.monotonic() + seconds, None, {name[:15] for name in names}
    while time.monotonic() < end:
        seen = {}
        for tid in os.listdir(f"/proc/{pid}/task"):
            status = yrt.read(f"/proc/{pid}/task/{tid}/status")
            fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
            if fields.get("Name") in names and fields["State"].startswith("S"):
                seen[fields["Name"]] = fields["voluntary_ctxt_switches"], fields["nonvoluntary_ctxt_switches"]
        if seen == before and seen.keys() == names:
            return
        before = seen
        time.sleep(0.1)
    raise AssertionError(f"of {names} of {pid} only {sorted(seen)} sleep")
