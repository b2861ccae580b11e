/* SPDX-License-Identifier: Apache-2.0 */
/* All ways through a regex side by side, in order of preference: each instruction at most once a byte (Pike's VM). */
#include <string.h>

#include "regex.h"

struct thread {
	u32 pc;
	u32 saved[2 * Y_REGEX_CAPTURES];
};

struct list {
	struct thread *threads;
	u32 n;
};

struct pending { /* an instruction to follow, or a capture to put back */
	u32 pc, restore, value;
};

struct matcher {
	const struct y_regex *r;
	const char *text;
	u32 len;
	u32 *seen; /* by instruction: the round of the byte it was reached at */
	u32 round;
	struct pending *stack;
	u32 saved[2 * Y_REGEX_CAPTURES];
};

size_t y_regex_room(const struct y_regex *r)
{
	return r->n * (2 * sizeof(struct thread) + sizeof(u32)) + (3 * (size_t)r->n + 1) * sizeof(struct pending);
}

static bool is_word_at(const struct matcher *m, u32 at)
{
	unsigned char c = at < m->len ? (unsigned char)m->text[at] : 0;

	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool holds(const struct matcher *m, u32 assert, u32 at)
{
	bool word;

	switch (assert) {
	case Y_A_BEGIN:
		return !at;
	case Y_A_END:
		return at == m->len;
	case Y_A_END_LINE:
		return at == m->len || (at + 1 == m->len && m->text[at] == '\n');
	default:
		word = (at && is_word_at(m, at - 1)) != is_word_at(m, at);
		return word == (assert == Y_A_WORD);
	}
}

/* Adds what pc leads to without reading a byte; m->saved: the captures so far. */
static void add(struct matcher *m, struct list *l, u32 pc, u32 at)
{
	u32 n = 0;

	m->stack[n++] = (struct pending){pc, UINT32_MAX, 0};
	while (n) {
		struct pending p = m->stack[--n];
		const struct y_regex_insn *i;

		if (p.restore != UINT32_MAX) {
			m->saved[p.restore] = p.value;
			continue;
		}
		if (m->seen[p.pc] == m->round)
			continue;
		m->seen[p.pc] = m->round;
		i = &m->r->insns[p.pc];
		switch (i->op) {
		case Y_R_JUMP:
			m->stack[n++] = (struct pending){i->x, UINT32_MAX, 0};
			break;
		case Y_R_SPLIT:
			m->stack[n++] = (struct pending){i->y, UINT32_MAX, 0};
			m->stack[n++] = (struct pending){i->x, UINT32_MAX, 0};
			break;
		case Y_R_SAVE:
			m->stack[n++] = (struct pending){0, i->x, m->saved[i->x]};
			m->saved[i->x] = at;
			m->stack[n++] = (struct pending){p.pc + 1, UINT32_MAX, 0};
			break;
		case Y_R_ASSERT:
			if (holds(m, i->x, at))
				m->stack[n++] = (struct pending){p.pc + 1, UINT32_MAX, 0};
			break;
		default:
			l->threads[l->n].pc = p.pc;
			memcpy(l->threads[l->n++].saved, m->saved, sizeof(m->saved));
		}
	}
}

/* One byte for all threads. True: one of them has matched; those after it are less preferred. */
static bool step(struct matcher *m, const struct list *now, struct list *next, u32 at, u32 *saved)
{
	next->n = 0;
	for (u32 k = 0; k < now->n; k++) {
		const struct thread *t = &now->threads[k];
		const struct y_regex_insn *i = &m->r->insns[t->pc];

		if (i->op == Y_R_MATCH) {
			memcpy(saved, t->saved, sizeof(t->saved));
			return true;
		}
		if (at < m->len) {
			unsigned char c = (unsigned char)m->text[at];

			if (m->r->sets[i->x].bits[c / 32] >> (c % 32) & 1) {
				memcpy(m->saved, t->saved, sizeof(m->saved));
				add(m, next, t->pc + 1, at + 1);
			}
		}
	}
	return false;
}

bool y_regex_match(const struct y_regex *r, const char *text, u32 len, u32 saved[2 * Y_REGEX_CAPTURES], void *room)
{
	struct list a = {.threads = room}, b = {.threads = a.threads + r->n}, *now = &a, *next = &b, *other;
	struct matcher m = {.r = r, .text = text, .len = len};
	bool matched = false;

	m.seen = (u32 *)(b.threads + r->n);
	m.stack = (struct pending *)(m.seen + r->n);
	memset(m.seen, 0, r->n * sizeof(*m.seen));
	m.round = 1;
	for (u32 at = 0; at <= len; at++) {
		if (!matched) { /* one may also begin here, less preferred than those that began before */
			memset(m.saved, 0xff, sizeof(m.saved));
			add(&m, now, 0, at);
		}
		if (matched && !now->n)
			break;
		m.round++;
		matched |= step(&m, now, next, at, saved);
		other = now;
		now = next;
		next = other;
	}
	return matched;
}
