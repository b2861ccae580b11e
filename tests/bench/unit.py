# SPDX-License-Identifier: Apache-2.0
"""
The unit of the benchmarks: one 16-byte bpf_probe_read_user in a loop, in nanoseconds, on this machine and now.

A hand-assembled BPF program of type SYSCALL reads this process's own memory and is run by BPF_PROG_TEST_RUN; it returns
the time that its loop took. Not a benchmark itself.
"""

import ctypes
import os
import statistics
import struct

SYS_BPF = 321
PROG_LOAD, PROG_TEST_RUN = 5, 10
PROG_TYPE_SYSCALL, SLEEPABLE = 31, 1 << 4
KTIME_GET_NS, PROBE_READ_USER = 5, 112
READS, RUNS = 4000, 200

libc = ctypes.CDLL(None, use_errno=True)


def instruction(code, dst=0, src=0, offset=0, immediate=0):
    return struct.pack("<BBhi", code, src << 4 | dst, offset, immediate)


def program(size):
    mov_reg, mov, add, sub_reg, jne, call, leave = 0xBF, 0xB7, 0x07, 0x1F, 0x55, 0x85, 0x95
    load = 0x79  # r = *(u64 *)(r + offset)
    return b"".join([
        instruction(load, 6, 1),
        instruction(mov, 7, immediate=READS),
        instruction(call, immediate=KTIME_GET_NS),
        instruction(mov_reg, 9, 0),
        instruction(mov_reg, 1, 10),
        instruction(add, 1, immediate=-size),
        instruction(mov, 2, immediate=size),
        instruction(mov_reg, 3, 6),
        instruction(call, immediate=PROBE_READ_USER),
        instruction(add, 7, immediate=-1),
        instruction(jne, 7, offset=-7, immediate=0),
        instruction(call, immediate=KTIME_GET_NS),
        instruction(sub_reg, 0, 9),
        instruction(leave),
    ])


def bpf(command, attributes):
    buffer = ctypes.create_string_buffer(attributes.ljust(144, b"\0"), 144)
    result = libc.syscall(SYS_BPF, command, buffer, len(buffer))
    if result < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, f"bpf({command}): {os.strerror(errno)}")
    return result, buffer.raw


def measure(size=16):
    """Nanoseconds of one read of size bytes: the median of many runs."""
    code = program(size)
    instructions = ctypes.create_string_buffer(code, len(code))
    licence = ctypes.create_string_buffer(b"GPL")
    memory = ctypes.create_string_buffer(4096)
    fd, _ = bpf(PROG_LOAD, struct.pack("<IIQQIIQII", PROG_TYPE_SYSCALL, len(code) // 8, ctypes.addressof(instructions),
                                       ctypes.addressof(licence), 0, 0, 0, 0, SLEEPABLE))
    context = ctypes.create_string_buffer(struct.pack("<Q", ctypes.addressof(memory)), 8)
    try:
        runs = []
        for _ in range(RUNS):
            # prog_fd, retval, data sizes, data pointers, repeat, duration, ctx sizes, ctx pointers
            attributes = struct.pack("<IIIIQQIIIIQQ", fd, 0, 0, 0, 0, 0, 0, 0, 8, 0, ctypes.addressof(context), 0)
            runs.append(struct.unpack_from("<I", bpf(PROG_TEST_RUN, attributes)[1], 4)[0] / READS)
    finally:
        os.close(fd)
    return statistics.median(runs)


if __name__ == "__main__":
    print(f"one 16-byte bpf_probe_read_user: {measure():.1f} ns")
