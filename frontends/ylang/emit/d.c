/* SPDX-License-Identifier: Apache-2.0 */
/* From blocks to clauses: each round of a loop by itself, as far as constants say how many there are. */
#include "d_make.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* --- slots --- */

bool d_known(const struct d *y, u32 slot, u64 *ret)
{
	*ret = y->slots[slot].value;
	return y->slots[slot].known;
}

static void use(struct d *y, u32 slot)
{
	u32 number = y->first_slot + slot;

	while (y->nused <= number) {
		y->used = y_grow(y->s, y->used, y->nused, 1);
		y->used[y->nused++] = 0;
	}
	y->used[number] = y->f.slots[slot] == Y_STR ? Y_STR : Y_I64;
}

const char *d_slot(struct d *y, u32 slot, char ret[D_TEXT])
{
	u64 v;

	if (d_known(y, slot, &v))
		return d_number(v, ret);
	snprintf(ret, D_TEXT, "this->s%u", y->first_slot + slot);
	use(y, slot);
	return ret;
}

void d_assign(struct d *y, u32 dst)
{
	y->slots[dst].known = false;
	use(y, dst);
	fprintf(y->out, "\tthis->s%u = ", y->first_slot + dst);
}

void d_set(struct d *y, u32 dst, const char *format, ...)
{
	va_list args;

	d_assign(y, dst);
	va_start(args, format);
	vfprintf(y->out, format, args);
	va_end(args);
	fputs(";\n", y->out);
}

/* --- clauses --- */

void d_open(struct d *y, const char *condition)
{
	if (++y->clauses > D_CLAUSES)
		d_refuse(&y->f, y->p->functions[y->h->function].place, y->p->functions[y->h->function].name,
		        "it has more than 200 clauses there, with its calls inlined and its loops unrolled");
	fprintf(y->out, "%s /%sthis->b == %u%s%s/\n{\n", y->point, y->in, y->id, *condition ? " && " : "", condition);
	y->printed = false;
	y->failure = y->cause = y->place = 0;
}

void d_close(struct d *y)
{
	fputs("}\n", y->out);
}

void d_next(struct d *y)
{
	y->id = y->next_id++;
	fprintf(y->out, "\tthis->b = %u;\n", y->id);
}

/* --- nodes --- */

#define FAILED 1u /* this->b where the handler has ended by an error */

/* Of the loop with this head. */
static u32 loop_place(const struct d *y, u32 head, u32 otherwise)
{
	for (u32 k = 0; k < y->f.nblocks; k++) {
		const struct d_block *b = &y->f.blocks[k];

		for (u32 i = 0; i < b->n; i++)
			if (b->insns[i].op == Y_OP_LOOP && b->nloops && b->loops[b->nloops - 1] == head)
				return b->insns[i].place;
	}
	return otherwise;
}

/* The node of this block in its rounds, with what is known here. */
static struct d_node *lead_to(struct d *y, u32 block, u32 place)
{
	struct d_node *n = NULL;
	u32 rounds[D_NEST];

	if (!d_follow(&y->f, y->node->block, y->node->rounds, block, rounds))
		d_refuse(&y->f, loop_place(y, block, place), "loop", "no constant says that it ends within 64 rounds");
	for (u32 i = 0; !n && i < y->nnodes; i++)
		if (y->nodes[i]->block == block && !memcmp(y->nodes[i]->rounds, rounds, sizeof(rounds)))
			n = y->nodes[i];
	if (n && n->done)
		d_refuse(&y->f, place, "loop", "it is entered at several places");
	if (n) {
		for (u32 i = 0; i < y->f.nslots; i++)
			n->slots[i].known &= y->slots[i].known && n->slots[i].value == y->slots[i].value;
		return n;
	}
	if (y->nnodes > 20 * D_CLAUSES)
		d_refuse(&y->f, place, "loop", "the program is too long with its loops unrolled");
	n = y_new(y->s, sizeof(*n));
	*n = (struct d_node){.block = block, .id = y->next_id++};
	memcpy(n->rounds, rounds, sizeof(rounds));
	n->slots = y_new(y->s, (y->f.nslots + 1) * sizeof(*n->slots));
	memcpy(n->slots, y->slots, y->f.nslots * sizeof(*n->slots));
	y->nodes = y_grow(y->s, y->nodes, y->nnodes, sizeof(*y->nodes));
	y->nodes[y->nnodes++] = n;
	return n;
}

static void set_failure(struct d *y, const struct y_insn *i, enum y_status cause)
{
	bool ends = i->fail == Y_PROPAGATE;
	u32 to = ends ? FAILED : lead_to(y, i->fail, i->place)->id;

	if (y->failure != to)
		fprintf(y->out, "\tthis->b = %u;\n", to);
	if (y->cause != cause)
		fprintf(y->out, "\tthis->cause = %u;\n", cause);
	if (ends && y->place != i->place)
		fprintf(y->out, "\tthis->place = %u;\n", i->place);
	y->failure = to;
	y->cause = cause;
	if (ends)
		y->told[y->place = i->place] = true;
}

void d_expect(struct d *y, const struct y_insn *i, enum y_status cause, const char *at)
{
	if (y->printed) {
		d_next(y);
		d_close(y);
		d_open(y, "");
	}
	set_failure(y, i, cause);
	fprintf(y->out, "\tthis->where = %s;\n", at);
}

void d_check(struct d *y, const struct y_insn *i, enum y_status cause, const char *condition)
{
	u32 next = y->next_id++;

	set_failure(y, i, cause);
	fputs("\tthis->where = 0;\n", y->out);
	y->ended = !condition;
	if (!condition)
		return;
	fprintf(y->out, "\tthis->b = %s ? %u : %u;\n}\n", condition, next, y->failure);
	y->id = next;
	d_open(y, "");
}

/* What an instruction gives, if all that it takes is known. */
static bool is_known(const struct d *y, const struct y_insn *i, u64 *ret)
{
	u64 a = 0, b = 0;

	switch (i->op) {
	case Y_OP_CONST:
		*ret = i->imm;
		return i->type != Y_STR;
	case Y_OP_ADDRESS:
		*ret = y->p->modules[i->a].bias + i->imm;
		return true;
	case Y_OP_MOVE:
		return d_known(y, i->a, ret);
	case Y_OP_CONVERT:
		*ret = y_convert((enum y_type)i->type, (enum y_type)i->imm, d_known(y, i->a, &a) ? a : 0);
		return y->slots[i->a].known;
	default:
		if (i->op < Y_OP_ADD || i->op > Y_OP_LE || i->type == Y_STR || !d_known(y, i->a, &a))
			return false;
		if (i->op != Y_OP_NEG && i->op != Y_OP_NOT && !d_known(y, i->b, &b))
			return false;
		return y_compute((enum y_op)i->op, (enum y_type)i->type, a, b, ret) == Y_OK;
	}
}

static void put_known(struct d *y, u32 dst, u64 v)
{
	char text[D_TEXT];

	y->slots[dst] = (struct d_value){true, v};
	if (y->f.local[dst])
		return;
	d_slot(y, dst, text);
	d_set(y, dst, "%s", text);
	y->slots[dst] = (struct d_value){true, v};
}

static void put_message(struct d *y, const struct y_insn *i, const char *what)
{
	const struct y_place *at = &y->p->places[i->place];
	char a[D_TEXT];

	fputs("\tprintf(\"yrt: %s:%d:%d: %s: %s\\n\", ", y->out);
	d_text(y->out, at->file, (u32)strlen(at->file));
	fprintf(y->out, ", %u, %u, \"%s\", %s);\n", at->line, at->column, what, d_slot(y, i->a, a));
	y->printed = true;
}

static void put_stop(struct d *y, int code)
{
	fprintf(y->out, "\tthis->b = 0;\n\texit(%d);\n", code);
}

/* Is the edge the only one to the node? */
static bool is_alone(const struct d *y, const struct d_node *n)
{
	const struct d_block *from = &y->f.blocks[y->node->block], *to = &y->f.blocks[n->block];
	bool head = to->nloops && to->loops[to->nloops - 1] == n->block;

	if (from->nloops > to->nloops || to->after_failure) /* out of a loop: from any of its rounds */
		return false;
	return (head && n->rounds[to->nloops - 1] ? to->backs : to->entries) == 1;
}

/* A jump; the node to go on with in the same clause, or NULL. */
static struct d_node *put_jump(struct d *y, u32 block, u32 place)
{
	struct d_node *n = lead_to(y, block, place);

	if (is_alone(y, n))
		return n;
	fprintf(y->out, "\tthis->b = %u;\n", n->id);
	return NULL;
}

static struct d_node *put_branch(struct d *y, const struct y_insn *i, u32 place)
{
	char a[D_TEXT];
	u64 v;

	if (d_known(y, i->a, &v))
		return put_jump(y, v ? i->b : i->c, place);
	fprintf(y->out, "\tthis->b = %s ? %u : %u;\n", d_slot(y, i->a, a), lead_to(y, i->b, place)->id,
	        lead_to(y, i->c, place)->id);
	return NULL;
}

/* The instructions of a node; the one that goes on in the same clause. */
static struct d_node *put_node(struct d *y)
{
	const struct d_block *b = &y->f.blocks[y->node->block];
	u32 place = 0;
	u64 v;

	for (u32 k = 0; k < b->n; k++) {
		const struct y_insn *i = &b->insns[k];

		place = i->place ? i->place : place;
		switch (i->op) {
		case Y_OP_JUMP:
			return put_jump(y, i->b, place);
		case Y_OP_BRANCH:
			return put_branch(y, i, place);
		case Y_OP_RETURN:
			fputs("\tthis->b = 0;\n", y->out);
			return NULL;
		case Y_OP_WARN:
			put_message(y, i, "warning");
			break;
		case Y_OP_ERROR:
			put_message(y, i, "error");
			put_stop(y, 1);
			return NULL;
		case Y_OP_EXIT:
			put_stop(y, 0);
			return NULL;
		case Y_OP_PRINT:
			d_put_print(y, i);
			break;
		case Y_OP_PRINT_MAP:
			d_print_map(y, (u32)i->imm, i->a == Y_HIST);
			break;
		default:
			if (is_known(y, i, &v))
				put_known(y, i->dst, v);
			else
				d_put_insn(y, i);
			if (y->ended)
				return NULL;
		}
	}
	return NULL;
}

static struct d_node *first_node(struct d *y)
{
	struct d_node *ret = NULL;

	for (u32 i = 0; i < y->nnodes; i++) {
		struct d_node *n = y->nodes[i];

		if (!n->done && (!ret || d_is_before(&y->f, n->block, n->rounds, ret->block, ret->rounds)))
			ret = n;
	}
	return ret;
}

static void put_nodes(struct d *y)
{
	y->node = &(struct d_node){};
	y->slots = y_new(y->s, (y->f.nslots + 1) * sizeof(*y->slots));
	lead_to(y, 0, 0);
	while ((y->node = first_node(y))) {
		y->id = y->node->id;
		d_open(y, "");
		if (y->f.blocks[y->node->block].after_failure)
			fputs("\tthis->status = this->cause;\n\tthis->at = this->where;\n", y->out);
		for (struct d_node *next = y->node; next; next = put_node(y)) {
			y->node = next;
			next->done = true;
			y->slots = next->slots;
			y->ended = false;
		}
		d_close(y);
	}
}

/* --- handlers --- */

static const char *function_point(struct d *y)
{
	const struct y_handler *h = y->h;
	const char *last = strrchr(h->spec, ':'), *name = last ? last + 1 : h->spec, *file;
	struct y_target_object o = {};

	y_target_function(y->t, h->spec, &o);
	file = y->t->modules[o.module].path;
	if (o.module)
		file = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
	return y_format(y->s, "pid%d:%s:%s:entry", (int)y->t->pid, o.module ? file : "a.out", name);
}

/* Where the kernel's function has another name than the system call. */
static const char *syscall_name(const char *name)
{
	static const char *const others[][2] = {{"stat", "newstat"}, {"fstat", "newfstat"}, {"lstat", "newlstat"},
	        {"uname", "newuname"}, {"sendfile", "sendfile64"}, {"umount2", "umount"}};

	for (u32 i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (!strcmp(name, others[i][0]))
			return others[i][1];
	return name;
}

static const char *point(struct d *y)
{
	const struct y_handler *h = y->h;

	switch (h->point) {
	case Y_BEGIN:
		return "dtrace:::BEGIN";
	case Y_END:
		return "dtrace:::END";
	case Y_TIMER:
		return y_format(y->s, "tick-%luus", h->period_ns / 1000 ? h->period_ns / 1000 : 1);
	case Y_ONESHOT:
		return "profile-97, rawtp:::sys_enter";
	case Y_PROFILE:
		return y_format(y->s, "profile-%lu", h->period_ns);
	case Y_TRACEPOINT:
		return y_format(y->s, "rawtp:::%s", strrchr(h->spec, ':') ? strrchr(h->spec, ':') + 1 : h->spec);
	case Y_SYSCALL:
		return y_format(y->s, "syscall::%s:%s", syscall_name(h->spec), h->returns ? "return" : "entry");
	default:
		return function_point(y);
	}
}

/* What has ended the handler is counted. */
static void put_failed(struct d *y)
{
	bool any = false;

	for (u32 i = 1; i < y->p->nplaces; i++)
		any |= y->told[i];
	if (!any)
		return;
	y->id = FAILED;
	d_open(y, "");
	fputs("\tthis->b = 0;\n\t@failed[", y->out);
	for (u32 i = 1; i < y->p->nplaces; i++) {
		const struct y_place *at = &y->p->places[i];
		const char *text = y_format(y->s, "%s:%u:%u", at->file, at->line, at->column);

		if (!y->told[i])
			continue;
		fprintf(y->out, "this->place == %u ? ", i);
		d_text(y->out, text, (u32)strlen(text));
		fputs(" : ", y->out);
	}
	fprintf(y->out,
	        "\"?\",\n\t        this->cause == %u ? \"fault\" : this->cause == %u ? \"division by zero\" : "
	        "\"limit\",\n\t        this->where] = count();\n}\n",
	        Y_FAULT, Y_DIV);
	y->fails = true;
}

static void put_handler(struct d *y, const struct y_handler *h)
{
	bool outside = y_is_outside(h->point), once = h->point == Y_ONESHOT;
	const char *of;

	y->h = h;
	y->f = (struct d_flat){.p = y->p, .s = y->s};
	d_flatten(&y->f, h->function);
	y->point = point(y);
	of = y->t->machine ? "pid != $pid" : y_format(y->s, "pid == %d", (int)y->t->pid);
	y->in = outside ? "" : y_format(y->s, "%s && ", of);
	y->nodes = NULL;
	y->nnodes = y->clauses = 0;
	y->next_id = FAILED + 1;
	y->told = y_new(y->s, y->p->nplaces + 1);
	fprintf(y->out, "\n/* %s */\n%s", y->p->functions[h->function].name, y->point);
	if (!outside)
		fprintf(y->out, " /%s%s/", of, once ? " && !once" : "");
	fprintf(y->out, "\n{\n%s\tthis->b = %u;\n}\n", once ? "\tonce = 1;\n" : "", y->next_id);
	put_nodes(y);
	put_failed(y);
	if (once)
		fprintf(y->out, "%s /%sonce/\n{\n\texit(0);\n}\n", y->point, y->in);
	y->first_slot += y->f.nslots;
	y->first_array += y->f.narrays;
}

/* --- the whole --- */

/* As yrt: maps that nothing prints are printed at the end. */
bool d_prints_at_end(const struct y_program *p)
{
	return y_has_probes(p) && !y_prints_map(p) && !y_has_point(p, Y_END);
}

static void put_end_of_all(struct d *y)
{
	bool maps = y->p->nmaps && d_prints_at_end(y->p);

	if (!maps && !y->fails)
		return;
	fputs("\ndtrace:::END\n{\n", y->out);
	for (u32 i = 0; maps && i < y->p->nmaps; i++)
		d_print_map(y, i, false);
	if (y->fails)
		fputs("\tprinta(\"yrt: %s: %s at 0x%x ended a handler %@d times\\n\", @failed);\n", y->out);
	fputs("}\n", y->out);
}

static const char differences[] =
        " * It needs none of DTrace's libraries: where they do not compile, -xsyslibdir=DIR with bpf_dlib.o alone.\n"
        " * Other than in yrt: _oneshot runs at the process's next system call, or at a tick of the clock in it;\n"
        " * pages that are not present are faults; strings end at a NUL and after 255 bytes, and are printed as they\n"
        " * are; tables have no columns, histograms are DTrace's own, maps are printed by key; threads that add to a\n"
        " * variable at once may lose one; lines of several CPUs are not in order. Warnings and errors are lines\n"
        " * behind \"yrt: \" among the others; dtrace itself reports each read that fails on stderr.\n"
        " */\n";

static void put_head(struct d *y, FILE *out)
{
	bool by_key = false;

	for (u32 i = 0; i < y->p->nmaps; i++)
		by_key |= !y->p->maps[i].is_agg;
	if (y->t->machine)
		fputs("/*\n * Made by yrt y --emit d, for all processes:\n *\tdtrace -s THIS\n", out);
	else
		fprintf(out,
		        "/*\n * Made by yrt y --emit d, for process %d: addresses are its own.\n"
		        " *\tdtrace -p %d -s THIS\n",
		        (int)y->t->pid, (int)y->t->pid);
	fputs(differences, out);
	fprintf(out, "#pragma D option quiet\n#pragma D option aggsort%s\n", by_key ? "key" : "rev");
}

static void put_declarations(struct d *y, FILE *out)
{
	fputs("\nint once;\nthis int b;\nthis int cause;\nthis int status;\nthis int place;\nthis int pad;\n"
	      "this int64_t where;\nthis int64_t at;\n",
	        out);
	for (u32 i = 0; i < y->nused; i++)
		if (y->used[i])
			fprintf(out, "this %s s%u;\n", y->used[i] == Y_STR ? "string" : "int64_t", i);
	for (u32 i = 0; i < y->p->nglobals; i++) {
		const struct y_global *g = &y->p->globals[i];

		fprintf(out, g->n ? "long g%u[long];" : g->type == Y_STR ? "string g%u;" : "int64_t g%u;", i);
		fprintf(out, " /* %s */\n", g->name);
	}
	for (u32 i = 0; i < y->p->nmaps; i++) {
		const struct y_map *m = &y->p->maps[i];

		if (d_is_added(y->p, i))
			continue;
		fprintf(out, m->value == Y_STR ? "string m%u[" : "long m%u[", i);
		for (u32 k = 0; k < m->nkeys; k++)
			fprintf(out, "%s%s", k ? ", " : "", m->keys[k] == Y_STR ? "string" : "long");
		fprintf(out, "]; /* %s */\n", m->name);
	}
}

static void put_globals(struct d *y, FILE *out)
{
	fputs("\ndtrace:::BEGIN\n{\n\tonce = 0;\n", out);
	for (u32 i = 0; i < y->p->nglobals; i++) {
		const struct y_global *g = &y->p->globals[i];
		char text[D_TEXT];

		if (g->n || (g->type != Y_STR && !g->value))
			continue;
		fprintf(out, "\tg%u = ", i);
		if (g->type == Y_STR)
			d_text(out, y->p->literals[g->value].bytes, y->p->literals[g->value].len);
		else
			fputs(d_number(g->value, text), out);
		fputs(";\n", out);
	}
	fputs("}\n", out);
}

/* out: NULL: it only says what is refused. */
static struct error *make(const struct y_program *p, struct y_target *t, FILE *out)
{
	struct y_source s = {.memory = y_memory_new()};
	struct d y = {.p = p, .t = t, .s = &s};
	char *text = NULL;
	size_t size = 0;

	y.out = s.memory ? open_memstream(&text, &size) : NULL;
	if (!y.out) {
		y_memory_free(s.memory);
		return &error_no_memory;
	}
	if (!setjmp(s.leave)) {
		d_check_program(&y);
		for (u32 i = 0; i < p->nhandlers; i++)
			put_handler(&y, &p->handlers[i]);
		put_end_of_all(&y);
	}
	fclose(y.out);
	if (!s.error && out) {
		put_head(&y, out);
		put_declarations(&y, out);
		put_globals(&y, out);
		fwrite(text, 1, size, out);
	}
	free(text);
	y_memory_free(s.memory);
	return s.error;
}

struct error *y_d_refuses(const struct y_program *p, struct y_target *t)
{
	return make(p, t, NULL);
}

struct error *y_emit_d(const struct y_program *p, struct y_target *t, FILE *out)
{
	return make(p, t, out);
}
