/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc_marks.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/hit/hit_find.h"
#include "probes/uprobe.h"
#include "probes/uprobe_cost.h"
#include "unwind/binary/endbr64.h"
#include "unwind/binary/proc_path.h"
#include "unwind/cfi/cfi.h"
#include "unwind/code/capstone_group.h"
#include "unwind/code/disassembler.h"
#include "unwind/table.h"

#define CANDIDATES  256
#define FILES       64
#define DEPTH       12                /* frames of a stack that are looked at */
#define INSNS       8                 /* of a function, in which its uprobe has a place */
#define SLOWS       0.2               /* chosen ones take this part of the program's own time, at most */
#define MUCH        0.5               /* and this, where there are no such */
#define WORTH       (1.0 / 4)         /* of that, at least: else more are tried, */
#define MANY        (3 * ALLOC_MARKS) /* up to so many, */
#define WORTH_LEAST (1.0 / 32)        /* after which this will do */
#define TRIED_HITS  16                /* so many tell a rate, */
#define TRIED_NS    20e6              /* or so long */
#define SILENT_NS   300e6             /* chosen ones without a hit for so long are chosen no more */
#define CHANGED     3                 /* times the rate: nor are those */

struct file { /* as a process maps it */
	pid_t pid;
	int fd;
	char path[PROC_MAP_PATH];
	struct uprobe *uprobe; /* at all of its landmarks that have one */
	struct alloc_breakpoint last;
};

struct mark {
	u32 file; /* place in files */
	u64 offset, addr;
	double hits, ns; /* of trials */
	bool dense;      /* too much so */
};

struct alloc_marks {
	const struct bpf_program *program;
	struct file files[FILES];
	u32 nfiles;
	struct mark of[CANDIDATES];
	u32 n;
	struct table known; /* functions that were looked at, by process and address */
	struct disassembler d;
	u32 placed[ALLOC_MARKS]; /* places in of: chosen, or tried */
	u32 nplaced;
	u32 choice, choices;
	double silent_ns;
};

struct error *alloc_marks_create(const struct bpf_program *program, struct alloc_marks **ret)
{
	struct alloc_marks *m = *ret = calloc(1, sizeof(*m));

	if (!m || !disassembler_open(&m->d))
		return &error_no_memory;
	m->program = program;
	return NULL;
}

void alloc_marks_destroy(struct alloc_marks *m)
{
	if (!m)
		return;
	for (u32 i = 0; i < m->nfiles; i++) {
		uprobe_take_away(m->files[i].uprobe);
		close(m->files[i].fd);
	}
	table_free(&m->known);
	disassembler_close(&m->d);
	free(m);
}

/* The first instruction from the function's begin on that the kernel emulates; 0: there is none. */
static u64 find_place(struct alloc_marks *m, struct image *img, u64 start, u64 end)
{
	u8 code[INSNS * UPROBE_CODE + UPROBE_CODE] = {0};
	u64 addr = probed_entry(img, start);
	size_t left = sizeof(code) - UPROBE_CODE;
	const u8 *at = code;

	if (!image_has_code(img, addr, addr + left) || !image_read(img, code, left, addr))
		return 0;
	for (u32 i = 0; i < INSNS && addr < end; i++) {
		if (uprobe_is_emulated(at))
			return addr;
		if (!cs_disasm_iter(m->d.handle, &at, &left, &addr, m->d.in) ||
		        capstone_in_group(m->d.in, CS_GRP_JUMP) || capstone_in_group(m->d.in, CS_GRP_RET))
			return 0;
	}
	return 0;
}

/* FILES: it cannot be opened, or there is no room. */
static u32 file_of(struct alloc_marks *m, const struct process *p, const struct mapping *map)
{
	struct file f = {.pid = p->pid};

	proc_map_path(f.path, living_thread(p->pid) ?: p->pid, map->start, map->end);
	for (u32 i = 0; i < m->nfiles; i++)
		if (m->files[i].pid == f.pid && !strcmp(m->files[i].path, f.path))
			return i;
	f.fd = m->nfiles < FILES ? open(f.path, O_PATH | O_CLOEXEC) : -1;
	if (f.fd < 0)
		return FILES;
	m->files[m->nfiles] = f;
	return m->nfiles++;
}

static struct error *add(struct alloc_marks *m, const struct process *p, const struct mapping *map, u64 addr)
{
	const struct cfi_fde *fde = map->image->cfi ? cfi_fde_at(map->image->cfi, addr) : NULL;
	struct mark mark = {0};
	struct error *err;
	u64 key, place;

	if (!fde || addr < fde->start || addr >= fde->end || m->n == CANDIDATES)
		return NULL;
	key = (map->bias + fde->start) ^ (u64)p->number << 48;
	if (table_get(&m->known, key))
		return NULL;
	err = table_put(&m->known, key, 1);
	place = err ? 0 : find_place(m, map->image, fde->start, fde->end);
	if (!place || !hit_offset(map->image, place, true, &mark.offset))
		return err;
	mark.addr = map->bias + place;
	mark.file = file_of(m, p, map);
	if (mark.file < FILES)
		m->of[m->n++] = mark;
	return NULL;
}

struct error *alloc_marks_see(struct alloc_marks *m, const struct process *p, const struct frame *frames, u32 n)
{
	struct error *err = NULL;

	for (u32 i = 1; !err && i < n && i < DEPTH; i++) {
		u64 addr = frame_addr(&frames[i]) - 1;
		const struct mapping *map =
		        frame_kind(&frames[i]) == FRAME_NATIVE && !(frame_flags(&frames[i]) & FRAME_GUESS)
		                ? mapping_find(p->mappings, p->maps.nlines, addr)
		                : NULL;

		if (map && map->image && map->image->fd >= 0)
			err = add(m, p, map, addr - map->bias);
	}
	return err;
}

static bool is_tried(const struct mark *k)
{
	return k->hits >= TRIED_HITS || k->ns >= TRIED_NS;
}

static double rate(const struct mark *k)
{
	return k->ns > 0 ? k->hits / k->ns : 0;
}

/* Of those that were tried, the most frequent that cost little together. Returns what part they cost. */
static double choose(struct alloc_marks *m, double hit_ns, double most)
{
	double sum = 0;

	m->nplaced = 0;
	while (m->nplaced < ALLOC_MARKS) {
		u32 best = m->n;

		for (u32 i = 0; i < m->n; i++) {
			bool has = false;

			for (u32 k = 0; k < m->nplaced; k++)
				has |= m->placed[k] == i;
			if (!has && !m->of[i].dense && is_tried(&m->of[i]) && m->of[i].hits > 0 &&
			        sum + rate(&m->of[i]) * hit_ns <= most &&
			        (best == m->n || rate(&m->of[i]) > rate(&m->of[best])))
				best = i;
		}
		if (best == m->n)
			break;
		sum += rate(&m->of[best]) * hit_ns;
		m->placed[m->nplaced++] = best;
	}
	return sum;
}

void alloc_marks_next(struct alloc_marks *m)
{
	if (m->choice)
		return;
	m->nplaced = 0;
	for (u32 i = 0; i < m->n && m->nplaced < ALLOC_MARKS; i++)
		if (!m->of[i].dense && !is_tried(&m->of[i]))
			m->placed[m->nplaced++] = i;
}

bool alloc_marks_any(const struct alloc_marks *m)
{
	bool any = m->choice > 0;

	for (u32 i = 0; !any && i < m->n; i++)
		any = !m->of[i].dense && !is_tried(&m->of[i]);
	return any;
}

u32 alloc_marks_choice(const struct alloc_marks *m)
{
	return m->choice;
}

u32 alloc_marks_count(const struct alloc_marks *m)
{
	return m->nplaced;
}

static void place_in(struct alloc_marks *m, u32 file)
{
	struct file *f = &m->files[file];
	u64 offset[ALLOC_MARKS], cookie[ALLOC_MARKS], last = 0;
	char path[32];
	u32 n = 0;

	for (u32 i = 0; i < m->nplaced; i++)
		if (m->of[m->placed[i]].file == file) {
			offset[n] = m->of[m->placed[i]].offset;
			last = m->of[m->placed[i]].addr;
			cookie[n++] = i;
		}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
	if (!n || f->uprobe)
		return;
	alloc_breakpoint_before(&f->last, f->pid, last);
	error_free(uprobe_place_all(m->program, f->pid, path, offset, cookie, n, &f->uprobe)); /* it may have ended */
	alloc_breakpoint_after(&f->last, f->uprobe);
}

void alloc_marks_place(struct alloc_marks *m)
{
	for (u32 i = 0; i < m->nfiles; i++)
		place_in(m, i);
}

void alloc_marks_leave(struct alloc_marks *m, struct alloc_departures *d)
{
	for (u32 i = 0; i < m->nfiles; i++)
		alloc_depart(d, &m->files[i].uprobe, &m->files[i].last);
}

/* Has what was chosen become something else? */
static bool has_changed(struct alloc_marks *m, double hits, double own_ns, double hit_ns)
{
	m->silent_ns = hits > 0 ? 0 : m->silent_ns + own_ns;
	return m->silent_ns > SILENT_NS || (hits > TRIED_HITS && hits * hit_ns > CHANGED * MUCH * own_ns);
}

static void forget_trials(struct alloc_marks *m)
{
	for (u32 i = 0; i < m->n; i++) {
		m->of[i].hits = m->of[i].ns = 0;
		m->of[i].dense = false;
	}
	m->silent_ns = 0;
	m->choice = 0;
}

/* Is this choice good enough, with so many that were not tried? */
static bool is_worth(const struct alloc_marks *m, double part, u32 left)
{
	if (!left || m->n - left >= MANY)
		return part > SLOWS * WORTH_LEAST;
	return part > SLOWS * WORTH;
}

void alloc_marks_learn(struct alloc_marks *m, const struct alloc_mark_hits *hits, double own_ns, double hit_ns)
{
	double sum = 0;
	u32 left = 0;

	for (u32 i = 0; i < m->nplaced; i++) {
		struct mark *k = &m->of[m->placed[i]];

		sum += (double)hits->of[i];
		k->hits += (double)hits->of[i];
		k->ns += own_ns;
		k->dense |= k->hits >= TRIED_HITS && rate(k) * hit_ns > MUCH;
	}
	if (m->choice) {
		if (has_changed(m, sum, own_ns, hit_ns))
			forget_trials(m);
		return;
	}
	for (u32 i = 0; i < m->n; i++)
		left += !m->of[i].dense && !is_tried(&m->of[i]);
	if (is_worth(m, choose(m, hit_ns, SLOWS), left) || is_worth(m, choose(m, hit_ns, MUCH), left))
		m->choice = ++m->choices;
}
