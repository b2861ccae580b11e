/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a target: a live process, a core file, a test's own bytes. It is read only through this, and only with
 * sizes that the caller bounds.
 */
#ifndef YRT_MEMORY_H
#define YRT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct memory_piece;

struct memory {
	/* Reads all of size bytes at addr, or returns false. */
	bool (*read)(struct memory *mem, void *dst, size_t size, uint64_t addr);
	void (*destroy)(struct memory *mem);
	/* As memory_read_pieces(). May be NULL. */
	size_t (*read_pieces)(struct memory *mem, const struct memory_piece *pieces, size_t n);
	void (*forget)(struct memory *mem); /* as memory_forget(). May be NULL: it keeps nothing */
};

struct memory_piece {
	void *dst;
	uint64_t addr;
	size_t size;
};

#define MEMORY_PIECES_MAX 1024 /* UIO_MAXIOV of the kernel */

/* process_vm_readv; never fails to create (a dead pid fails to read). NULL: out of memory. */
struct memory *memory_live(pid_t pid);
void memory_destroy(struct memory *mem);

static inline bool memory_read(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	return mem->read(mem, dst, size, addr);
}

/* What it kept of earlier reads is read again: for what did not fit together. */
static inline void memory_forget(struct memory *mem)
{
	if (mem->forget)
		mem->forget(mem);
}

/*
 * Reads n <= MEMORY_PIECES_MAX pieces in one system call. Returns how many of them, counted from the first, were read
 * whole.
 */
size_t memory_read_pieces(struct memory *mem, const struct memory_piece *pieces, size_t n);

/* A C string of at most max - 1 bytes, cut there; always terminated. False: not even one byte was readable. */
bool memory_string(struct memory *mem, char *dst, size_t max, uint64_t addr);
/* The same, up to the end of its first line. */
bool memory_line(struct memory *mem, char *dst, size_t max, uint64_t addr);

#endif
