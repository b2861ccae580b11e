# SPDX-License-Identifier: Apache-2.0
"""Dumps as tests compare them: threads by number, once they have settled."""

import json
import os
import time

import yrt


def told(*args, code=yrt.OK, command="dump", **kw):
    """The JSON of a dump, with the frames of each thread in it."""
    result = yrt.run(command, *args, "--json", output=False, stats=False, **kw)
    assert result.code == code, result.stderr
    all_of_it = json.loads(result.stdout)
    for thread in all_of_it["threads"]:
        thread["frames"] = all_of_it["stacks"][thread["stack"]]
    return all_of_it


def of(pid, *flags, **kw):
    """Threads by number."""
    return {t["tid"]: t for t in told("-p", pid, *flags, **kw)["threads"]}


def settle(pid, names=None, seconds=120):
    """Waits until each thread, or each of these names, is asleep and has not run between two looks."""
    end, before, names = time.monotonic() + seconds, None, names and {name[:15] for name in names}
    while time.monotonic() < end:
        seen, tids = {}, os.listdir(f"/proc/{pid}/task")
        for tid in tids:
            status = yrt.read(f"/proc/{pid}/task/{tid}/status")
            fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
            if fields.get("State", "").startswith("S") and (not names or fields["Name"] in names):
                switches = fields["voluntary_ctxt_switches"], fields["nonvoluntary_ctxt_switches"]
                seen[fields["Name"] if names else tid] = switches
        if seen == before and seen.keys() == (names or set(tids)):
            return
        before = seen
        time.sleep(0.1)
    raise AssertionError(f"of {names} of {pid} only {sorted(seen)} sleep")
