# SPDX-License-Identifier: Apache-2.0
"""
heap: jemalloc's blocks by size, and its free pages, against mallctl() of the same moment. YRT_JEMALLOC: another file.
"""

import glob
import os

import heap_rows
import yrt

PROGRAM = """
import ctypes, json, os, signal, sys
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
ALL = 4096

def number(name, kind=ctypes.c_size_t):
    value, size = kind(), ctypes.c_size_t(ctypes.sizeof(kind))
    failed = libc.mallctl(name, ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0))
    return None if failed else value.value

def refresh():
    epoch = ctypes.c_uint64(1)
    libc.mallctl(b"epoch", None, None, ctypes.byref(epoch), ctypes.c_size_t(8))

def allocate():
    blocks = []
    for size in (8, 24, 100, 320, 1000, 4000, 9000, 50000, 3 << 20):
        for _ in range(200 if size < 10000 else 3):
            blocks.append((size, libc.malloc(size)))
            ctypes.memset(blocks[-1][1], 1, size)
    for size, at in blocks[::3]:
        libc.free(at)
    return blocks

blocks = allocate()
small, large = number(b"arenas.nbins", ctypes.c_uint), number(b"arenas.nlextents", ctypes.c_uint)
names = [(b"arenas.bin.%d.size" % i, b"stats.arenas.%d.bins.%d.curregs" % (ALL, i)) for i in range(small)]
names += [(b"arenas.lextent.%d.size" % i, b"stats.arenas.%d.lextents.%d.curlextents" % (ALL, i)) for i in range(large)]
sizes = [number(size) for size, _ in names]
held = [0] * len(names)
for again in range(4):  # of the last pass nothing is new to the threads' caches
    refresh()
    for i in range(len(names)):
        held[i] = number(names[i][1])
    dirty, muzzy = number(b"stats.arenas.%d.pdirty" % ALL), number(b"stats.arenas.%d.pmuzzy" % ALL)
os.kill(os.getpid(), signal.SIGSTOP)
print(json.dumps({"held": [[s, n] for s, n in zip(sizes, held) if n], "pages": dirty + muzzy}))
"""


def libraries():
    named = os.environ.get("YRT_JEMALLOC")
    return [named] if named else glob.glob("/usr/lib/*/libjemalloc.so.2")


def held(rows):
    """{size: blocks} of all arenas."""
    ret = {}
    for path, row in rows.items():
        if len(path) == 4 and path[2] == "in use, or kept for threads":
            size = heap_rows.size(path[3])
            ret[size] = ret.get(size, 0) + row.blocks
    return ret


def check(library, *core):
    rows, text, truth = heap_rows.stopped(PROGRAM, library, ["jemalloc"], *core, PYTHONMALLOC="malloc",
                                          MALLOC_CONF="background_thread:false")
    own = {size: n for size, n in truth["held"] if n}
    assert held(rows) == own, f"{held(rows)}\n{own}\n{text}"
    free = sum(row.size for path, row in rows.items() if path[2:] in (("free pages, dirty",),
                                                                      ("free pages that the kernel may take",)))
    assert free == truth["pages"] * 4096, f"{free} bytes of free pages, not {truth['pages'] * 4096}\n{text}"
    return f"{sum(own.values())} blocks of {len(own)} sizes, {truth['pages']} free pages: as mallctl() says"


def test_live():
    for library in libraries():
        yield check(library)


def test_core():
    yield from heap_rows.of_cores(check, libraries())


yrt.main(globals())
