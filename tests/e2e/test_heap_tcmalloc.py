# SPDX-License-Identifier: Apache-2.0
"""heap: the spans of gperftools' tcmalloc against what MallocExtension says of the same moment; also of a core."""

import glob
import os

import heap_rows
import yrt

PROGRAM = """
import ctypes, json, os, signal
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
NAMES = ("generic.current_allocated_bytes", "tcmalloc.pageheap_free_bytes", "tcmalloc.pageheap_unmapped_bytes",
         "tcmalloc.central_cache_free_bytes", "tcmalloc.transfer_cache_free_bytes", "tcmalloc.thread_cache_free_bytes")
values = (ctypes.c_size_t * len(NAMES))()
names = [name.encode() for name in NAMES]
pointers = [ctypes.byref(values, 8 * i) for i in range(len(NAMES))]
read = libc.MallocExtension_GetNumericProperty
blocks = []
for size in (8, 24, 100, 320, 1000, 4000, 9000, 50000, 3 << 20):
    for _ in range(200 if size < 10000 else 3):
        blocks.append((size, libc.malloc(size)))
        ctypes.memset(blocks[-1][1], 1, size)
for size, at in blocks[::3]:
    libc.free(at)
for again in range(4):  # of the last pass nothing is new to the threads' caches
    for i in range(len(names)):
        read(names[i], pointers[i])
os.kill(os.getpid(), signal.SIGSTOP)
print(json.dumps(list(values)))
"""
MALLOC = "malloc of tcmalloc (gperftools)"


def libraries():
    named = os.environ.get("YRT_TCMALLOC")
    return [named] if named else glob.glob("/usr/lib/*/libtcmalloc_minimal.so.4")


def size_of(rows, *names):
    row = rows.get((MALLOC, *names))
    return row.size if row else 0


def check(library, *core):
    rows, text, truth = heap_rows.stopped(PROGRAM, library, ["tcmalloc"], *core, PYTHONMALLOC="malloc")
    used, free, returned, central, transfer, threads = truth
    assert size_of(rows, "free pages") == free, (free, text)
    assert size_of(rows, "free pages, given back") == returned, (returned, text)
    assert size_of(rows, "free in spans") + size_of(rows, "ends of spans") == central, (central, text)
    out = size_of(rows, "in use, or kept for threads") + size_of(rows, "blocks of whole pages")
    assert out == used + transfer + threads, (out, used, transfer, threads, text)
    assert rows[MALLOC, "in use, or kept for threads", "4096 B" if (MALLOC, "in use, or kept for threads", "4096 B")
                in rows else "4 KiB"].blocks >= 133, text
    return f"{out} bytes in use or in caches, {central} free in spans, {free} in free pages: as it says itself"


def test_live():
    for library in libraries():
        yield check(library)


def test_core():
    yield from heap_rows.of_cores(check, libraries())


yrt.main(globals())
