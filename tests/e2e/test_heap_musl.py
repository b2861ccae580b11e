# SPDX-License-Identifier: Apache-2.0
"""heap: blocks of musl's malloc by size: what the program counted itself; shared, static and stripped, a core."""

import os
import subprocess
import tempfile

import heap_rows
import yrt

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int sizes[] = {3, 24, 100, 300, 1000, 4000, 9000, 50000, 300000};
#define KINDS (sizeof(sizes) / sizeof(*sizes))
static void *blocks[KINDS][2000];

int main(void)
{
	char line[256] = "{\"pid\": ", *at = line + strlen(line);

	for (unsigned k = 0; k < KINDS; k++)
		for (int i = 0; i < (k < 6 ? 2000 : 20); i++)
			memset(blocks[k][i] = malloc(sizes[k]), 1, sizes[k]);
	for (unsigned k = 0; k < KINDS; k++)
		for (int i = 0; i < (k < 6 ? 2000 : 20); i += 3)
			free(blocks[k][i]);
	at += sprintf(at, "%d, \"chain\": []}\n", getpid());
	write(1, line, at - line);
	for (;;)
		pause();
}
"""
SMALL, LARGE = 2000 - 667, 20 - 7  # of a size, that are alive
MALLOC = "malloc of musl"


def check(path, *core):
    with yrt.Fixture(path, wait=False) as f:
        target = ["-p", f.pid]
        if core:
            subprocess.run(["gcore", "-o", *core, str(f.pid)], check=True, stdin=subprocess.DEVNULL,
                           capture_output=True)
            target = ["--core", f"{core[0]}.{f.pid}"]
        rows, text, notes = heap_rows.heap(*target)
    assert "note" not in notes, notes
    used = {path[2]: row.blocks for path, row in rows.items() if path[:2] == (MALLOC, "in use") and path[2:]}
    own = rows[MALLOC, "blocks with a mapping of their own"]
    for size in ("16 B", "32 B", "112 B", "320 B", "1008 B"):
        assert used[size] == SMALL, (size, text)
    assert sum(used.values()) + own.blocks == 6 * SMALL + 3 * LARGE, text
    assert own.size >= LARGE * 300000, text
    return sum(used.values()) + own.blocks


def test_blocks():
    with tempfile.TemporaryDirectory(prefix="yrt-heap-") as directory:
        for flags in (), ("-static", "-s"):
            path = os.path.join(directory, "program" + "".join(flags))
            subprocess.run(["musl-gcc", "-O1", "-w", "-x", "c", "-", "-o", path, *flags], input=PROGRAM, text=True,
                           check=True)
            n = check(path)
            assert check(path, os.path.join(directory, "core")) == n
            yield f"{flags or 'shared'}: {n} blocks, as the program and its core have"


yrt.main(globals())
