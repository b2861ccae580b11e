/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "memory.h"
#include "proc_path.h"

#define PAGE 4096u

struct memory_process {
	struct memory mem;
	pid_t pid, tid; /* tid: whose it is read by */
};

/* process_vm_readv(2), by another thread once that one has ended. */
static ssize_t readv_alive(struct memory_process *p, const struct iovec *to, const struct iovec *from, size_t n)
{
	ssize_t done = process_vm_readv(p->tid, to, n, from, n, 0);
	pid_t tid;

	if (done >= 0 || errno != ESRCH)
		return done;
	tid = living_thread(p->pid);
	if (!tid || tid == p->tid)
		return -1;
	p->tid = tid;
	return process_vm_readv(p->tid, to, n, from, n, 0);
}

static bool process_read(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	struct memory_process *p = (struct memory_process *)mem;
	struct iovec to = {dst, size};
	struct iovec from = {(void *)addr, size};

	return readv_alive(p, &to, &from, 1) == (ssize_t)size;
}

static size_t process_read_pieces(struct memory *mem, const struct memory_piece *pieces, size_t n)
{
	struct memory_process *p = (struct memory_process *)mem;
	struct iovec to[MEMORY_PIECES_MAX], from[MEMORY_PIECES_MAX];
	ssize_t done;
	size_t i = 0;

	if (!n)
		return 0;
	do {
		to[i] = (struct iovec){pieces[i].dst, pieces[i].size};
		from[i] = (struct iovec){(void *)pieces[i].addr, pieces[i].size};
	} while (++i < n);
	done = readv_alive(p, to, from, n);
	for (i = 0; i < n && done >= (ssize_t)pieces[i].size; i++)
		done -= (ssize_t)pieces[i].size;
	return i;
}

static void process_destroy(struct memory *mem)
{
	free(mem);
}

struct memory *memory_live(pid_t pid)
{
	struct memory_process *p = malloc(sizeof(*p));

	if (!p)
		return NULL;
	p->mem = (struct memory){.read = process_read, .destroy = process_destroy, .read_pieces = process_read_pieces};
	p->pid = p->tid = pid;
	return &p->mem;
}

void memory_destroy(struct memory *mem)
{
	if (mem)
		mem->destroy(mem);
}

size_t memory_read_pieces(struct memory *mem, const struct memory_piece *pieces, size_t n)
{
	size_t i = 0;

	if (mem->read_pieces)
		return mem->read_pieces(mem, pieces, n);
	while (i < n && memory_read(mem, pieces[i].dst, pieces[i].size, pieces[i].addr))
		i++;
	return i;
}

bool memory_string(struct memory *mem, char *dst, size_t max, uint64_t addr)
{
	size_t len = 0, chunk;

	if (!max)
		return false;
	while (len < max - 1) {
		chunk = PAGE - ((addr + len) & (PAGE - 1));
		if (chunk > max - 1 - len)
			chunk = max - 1 - len;
		if (!memory_read(mem, dst + len, chunk, addr + len))
			break;
		if (memchr(dst + len, 0, chunk))
			return true;
		len += chunk;
	}
	dst[len] = 0;
	return len > 0;
}

bool memory_line(struct memory *mem, char *dst, size_t max, uint64_t addr)
{
	if (!memory_string(mem, dst, max, addr))
		return false;
	dst[strcspn(dst, "\n")] = 0;
	return true;
}
