# SPDX-License-Identifier: Apache-2.0
"""
A program that compiles code for each task, with unwind information as LLVM's JIT compilers write it (PostgreSQL's
queries), and gets the same memory each time: rows of the code that was there before must not be followed.
"""

import os
import subprocess
import tempfile

import yrt

# Each function has a frame of another size, and calls work(). LLVM makes code executable, then .eh_frame read-only.
PROGRAM = r"""
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static volatile unsigned sink;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

void __attribute__((noinline)) work(void)
{
	for (double end = now() + LIFE; now() < end;)
		for (int i = 0; i < 1000; i++)
			sink += i;
}

static void *pages(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void put(uint8_t **at, const void *bytes, size_t n)
{
	memcpy(*at, bytes, n);
	*at += n;
}

void __attribute__((noinline)) task(uint32_t size)
{
	static const uint8_t cie[] = {20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0};
	uint8_t *code = pages(), *tables = pages(), *at = code, *to = tables;
	uint32_t words[4] = {28, sizeof(cie) + 4, 0, 19};
	uint8_t rows[16] = {0, 0x47, 0x0e, (size + 8) | 0x80, (size + 8) >> 7, 0x49, 0x0e, 8};

	put(&at, "\x48\x81\xec", 3); /* sub $size, %rsp */
	put(&at, &size, 4);
	put(&at, "\xff\xd7\x48\x81\xc4", 5); /* call *%rdi; add $size, %rsp */
	put(&at, &size, 4);
	put(&at, "\xc3", 1);
	put(&to, cie, sizeof(cie));
	words[2] = (uint32_t)(code - (to + 8));
	put(&to, words, sizeof(words));
	put(&to, rows, sizeof(rows));
	mprotect(code, 4096, PROT_READ | PROT_EXEC);
	mprotect(tables, 4096, PROT_READ);
	((void (*)(void (*)(void)))code)(work);
	munmap(code, 4096);
	munmap(tables, 4096);
}

int main(void)
{
	for (uint32_t i = 0;; i++)
		task(1032 + i * 3 % 8 * 16);
}
"""


@yrt.measured
def test_replaced_code():
    for life, least in (0.3, 0.85), (0.05, 0.75):  # until it has been read, code is unknown
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "tasks")
            subprocess.run(["gcc", "-O2", f"-DLIFE={life}", "-x", "c", "-o", path, "-"], input=PROGRAM, text=True,
                           check=True)
            with subprocess.Popen([path]) as process:
                try:
                    result = yrt.run("c-flame", "-p", process.pid, "-d", 3, "-F", 499, "--annotate").expect()
                finally:
                    yrt.stop(process)
        texts = [(";".join(frames), n) for frames, n in result.stacks]
        whole = sum(n for text, n in texts if ";main;task;[anonymous];work" in text)
        assert whole > least * result.samples > 20, yrt.show(result.stacks)
        lacking = sum(n for text, n in texts if text.startswith("_start;") and ";main;[anonymous]" in text)
        assert lacking < 0.1 * result.samples, yrt.show(result.stacks)  # read when it was replaced again
        yield f"{whole} of {result.samples} samples below the caller of code that is replaced each {life * 1000:.0f} ms"


yrt.main(globals())
