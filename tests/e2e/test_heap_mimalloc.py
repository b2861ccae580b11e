# SPDX-License-Identifier: Apache-2.0
"""
heap: mimalloc's blocks by size against its own visit of all blocks of the same moment; also of a core. YRT_MIMALLOC:
another file.
"""

import glob
import os

import heap_rows
import yrt

PROGRAM = """
import collections, ctypes, json, os, signal, threading
libc = ctypes.CDLL(None)
libc.mi_malloc.restype = ctypes.c_void_p
libc.mi_malloc.argtypes = [ctypes.c_size_t]
libc.mi_free.argtypes = [ctypes.c_void_p]
heap = libc.mi_heap_get_default if hasattr(libc, "mi_heap_get_default") else libc.mi_heap_main
heap.restype = ctypes.c_void_p
class Area(ctypes.Structure):
    _fields_ = [(n, ctypes.c_size_t) for n in ("blocks", "reserved", "committed", "used", "block_size", "full")]
Visit = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.POINTER(Area), ctypes.c_void_p, ctypes.c_size_t,
                         ctypes.c_void_p)
libc.mi_heap_visit_blocks.argtypes = [ctypes.c_void_p, ctypes.c_bool, Visit, ctypes.c_void_p]
blocks = []
for size in (600, 1000, 4000, 9000, 50000, 200000, 3 << 20, 40 << 20):
    for _ in range(600 if size < 10000 else 4):
        blocks.append((size, libc.mi_malloc(size)))
        ctypes.memset(blocks[-1][1], 1, size)
def some(first):
    for size, at in blocks[first::3]:
        libc.mi_free(at)
thread = threading.Thread(target=some, args=(1,))  # what another thread frees
thread.start()
thread.join()
some(0)
def count(heap, area, block, size, argument):
    if block:
        counts[area.contents.block_size] += 1
    return True
visit = Visit(count)
counts = collections.Counter()
for _ in range(3):  # in the last nothing is new
    counts.update({size: -n for size, n in counts.items()})
    libc.mi_heap_visit_blocks(heap(), True, visit, None)
os.kill(os.getpid(), signal.SIGSTOP)
print(json.dumps(counts))
"""
SMALLEST = 640  # of smaller blocks Python has some itself


def libraries():
    named = os.environ.get("YRT_MIMALLOC")
    return [named] if named else glob.glob("/usr/lib/*/libmimalloc.so.2.0")


def check(library, *core):
    rows, text, counts = heap_rows.stopped(PROGRAM, library, ["mimalloc", "read again"], *core)
    truth = {int(size): n for size, n in counts.items()}
    (name,) = {path[0] for path in rows if path and path[0].startswith("malloc of mimalloc ")}
    found = {heap_rows.size(path[2]): row for path, row in rows.items() if path[:2] == (name, "in use") and path[2:]}
    large = {size for size in truth if size not in found}
    for size, n in truth.items():
        assert size < SMALLEST or size in large or found[size].blocks == n, (size, n, found[size], text)
    assert rows[name, "blocks with pages of their own"].blocks == sum(truth[size] for size in large), (large, text)
    assert max(large) == 40 << 20 and found[1024].blocks > 150, (truth, text)
    return f"{name}: {sum(truth.values())} blocks as it says itself"


def test_live():
    for library in libraries():
        yield check(library)


def test_core():
    yield from heap_rows.of_cores(check, libraries())


yrt.main(globals())
