/* SPDX-License-Identifier: Apache-2.0 */
#include "y_probe.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probes/hit/hit_find.h"
#include "probes/hit/hit_tails.h"
#include "probes/uprobe.h"
#include "unwind/cfi/cfi.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/now.h"
#include "unwind/process/table_maker.h"
#include "y_other_words.h"

#define LOG_SIZE   (1u << 20)
#define TURN_US    50
#define AHEAD_MOST (64u << 20) /* bytes of entries that are made before they are needed */

struct y_probe {
	const struct y_object *object;
	const struct y_probe_options *o;
	int *maps, *programs;
	int *edits; /* of the program's own maps; 0: none */
	u32 *verified;
	const u8 *states;
	size_t states_size;
	u8 *globals;
	size_t globals_size;
	struct ring_buffer *ring;
	struct uprobe **uprobes;
	u32 nuprobes;
	int *links; /* of tracepoints and clocks */
	u32 nlinks;
	s32 kfuncs[Y_KFUNCS];
};

/* --- what the kernel has --- */

static int try_load(u32 flags)
{
	const struct bpf_insn nothing[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K}, {.code = BPF_JMP | BPF_EXIT}};
	LIBBPF_OPTS(bpf_prog_load_opts, options, .prog_flags = flags);

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "yrt_y", "GPL", nothing, 2, &options);
}

struct error *y_kernel_ask(struct y_kernel *ret)
{
	int plain = try_load(0), sleepable = try_load(BPF_F_SLEEPABLE), cpus = libbpf_num_possible_cpus();
	struct error *err = NULL;

	if (plain < 0)
		err = error_hint(error_errno(errno, "the kernel takes no BPF program"),
		        "probes need root, or CAP_BPF and CAP_PERFMON; `yrt doctor` says more");
	*ret = (struct y_kernel){
	        .multi = uprobe_has_multi(), .sleepable = sleepable >= 0, .cpus = cpus > 0 ? (u32)cpus : 1};
	ret->sleepable = ret->sleepable && !getenv("YRT_NO_SLEEPABLE"); /* for tests */
	if (plain >= 0)
		close(plain);
	if (sleepable >= 0)
		close(sleepable);
	return err;
}

static struct error *find_kfuncs(struct y_probe *p)
{
	static const char *const names[] = {"bpf_iter_num_new", "bpf_iter_num_next", "bpf_iter_num_destroy"};
	struct btf *btf = btf__load_vmlinux_btf();
	bool all = btf != NULL;

	for (u32 i = 0; btf && i < Y_KFUNCS; i++) {
		p->kfuncs[i] = btf__find_by_name_kind(btf, names[i], BTF_KIND_FUNC);
		all = all && p->kfuncs[i] > 0;
	}
	btf__free(btf);
	if (all)
		return NULL;
	return error_hint(error_new(ERROR_UNSUPPORTED, "loops in probes need Linux 6.4 (bpf_iter_num)"),
	        "handlers of _timer, _begin and _end have loops on all kernels");
}

/* --- maps --- */

static bool is_hash(const struct y_object_map *m)
{
	return m->type == BPF_MAP_TYPE_HASH || m->type == BPF_MAP_TYPE_PERCPU_HASH;
}

/* Handlers of the kernel and of the clock run where the kernel may have no memory at hand. */
static bool needs_entries_ahead(const struct y_probe *p, const struct y_object_map *m)
{
	u64 size = (m->type == BPF_MAP_TYPE_PERCPU_HASH ? p->o->kernel->cpus : 1) * (u64)m->value_size + m->key_size;
	bool all_code = true;

	for (u32 i = 0; i < p->object->nhandlers; i++)
		all_code = all_code && p->object->handlers[i].kind == Y_OF_CODE;
	return !all_code && size * m->most <= AHEAD_MOST;
}

/* Entries are made as they come; before Linux 6.1 that is not safe wherever a probe may be. */
static int create_map(const struct y_probe *p, u32 number)
{
	const struct y_object_map *m = &p->object->maps[number];
	LIBBPF_OPTS(bpf_map_create_opts, options);
	bool demand = libbpf_probe_bpf_map_type(BPF_MAP_TYPE_USER_RINGBUF, NULL) == 1;

	if (is_hash(m) && demand && !needs_entries_ahead(p, m))
		options.map_flags = BPF_F_NO_PREALLOC;
	if (number == Y_MAP_GLOBALS || number == Y_MAP_STATES)
		options.map_flags = BPF_F_MMAPABLE;
	return bpf_map_create((enum bpf_map_type)m->type, "yrt_y", m->key_size, m->value_size, m->most, &options);
}

static size_t state_size(const struct y_probe *p)
{
	return (p->object->maps[Y_MAP_STATES].value_size + 7u) & ~7ul;
}

static struct error *map_states(struct y_probe *p)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *at;

	p->states_size = (state_size(p) * p->object->maps[Y_MAP_STATES].most + page - 1) & ~(page - 1);
	at = mmap(NULL, p->states_size, PROT_READ, MAP_SHARED, p->maps[Y_MAP_STATES], 0);
	if (at == MAP_FAILED)
		return error_errno(errno, "mmap of the handlers' states");
	p->states = at;
	return NULL;
}

static struct error *create_maps(struct y_probe *p)
{
	const u32 zero = 0;
	long page = sysconf(_SC_PAGESIZE);

	for (u32 i = 0; i < p->object->nmaps; i++) {
		if (i >= Y_MAP_PENDING && i < Y_OWN_MAPS) {
			int fd = i == Y_MAP_PENDING     ? p->o->pending
			         : i == Y_MAP_ARGUMENTS ? p->o->arguments
			                                : p->o->on_y[i - Y_MAP_ON_Y];
			bool used = p->object->stacks || (i == Y_MAP_ARGUMENTS && p->o->handlers >= 0);

			p->maps[i] = used && fd >= 0 ? dup(fd) : 0;
			continue;
		}
		p->maps[i] = create_map(p, i);
		if (p->maps[i] < 0)
			return error_errno(errno, "the kernel makes no map of %u entries of %u bytes",
			        p->object->maps[i].most, p->object->maps[i].value_size);
	}
	if (bpf_map_update_elem(p->maps[Y_MAP_GLOBALS], &zero, p->object->globals, 0) ||
	        bpf_map_update_elem(p->maps[Y_MAP_LITERALS], &zero, p->object->literals, 0))
		return error_errno(errno, "the program's values cannot be put into the kernel");
	p->globals_size = (p->object->maps[Y_MAP_GLOBALS].value_size + (size_t)page - 1) & ~((size_t)page - 1);
	p->globals = mmap(NULL, p->globals_size, PROT_READ | PROT_WRITE, MAP_SHARED, p->maps[Y_MAP_GLOBALS], 0);
	if (p->globals == MAP_FAILED) {
		p->globals = NULL;
		return error_errno(errno, "mmap of the program's values");
	}
	return map_states(p);
}

/* --- programs --- */

static void put_numbers(const struct y_probe *p, struct bpf_insn *insns, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		struct bpf_insn *insn = &insns[i];

		if (insn->code == (BPF_LD | BPF_IMM | BPF_DW)) {
			if (insn->src_reg)
				insn->imm = p->maps[insn->imm];
			i++;
		} else if (insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_KFUNC_CALL) {
			insn->imm = p->kfuncs[insn->imm];
		}
	}
}

/* "processed 123 insns (limit …" */
static u32 verified_of(const char *log)
{
	const char *line = strstr(log, "processed ");

	return line ? (u32)strtoul(line + 10, NULL, 10) : 0;
}

static const char *last_line(char *log)
{
	size_t n = strlen(log);

	for (u32 lines = 0; n && lines < 4; n--)
		lines += log[n - 1] == '\n';
	return n ? log + n + 1 : log;
}

static const enum bpf_prog_type program_types[] = {[Y_OF_CODE] = BPF_PROG_TYPE_KPROBE,
        [Y_OF_KERNEL] = BPF_PROG_TYPE_RAW_TRACEPOINT,
        [Y_OF_CLOCK] = BPF_PROG_TYPE_PERF_EVENT,
        [Y_OF_CALL] = BPF_PROG_TYPE_PERF_EVENT};

static struct error *load_program(struct y_probe *p, u32 number)
{
	const struct y_object_handler *h = &p->object->handlers[number];
	cleanup(free) struct bpf_insn *insns = malloc(h->ninsns * sizeof(*insns));
	cleanup(free) char *log = calloc(1, LOG_SIZE);
	LIBBPF_OPTS(bpf_prog_load_opts, options, .prog_flags = h->sleepable ? BPF_F_SLEEPABLE : 0,
	        .log_level = getenv("YRT_Y_LOG") ? 2 : 4, .log_buf = log, .log_size = LOG_SIZE);

	if (!insns || !log)
		return &error_no_memory;
	if (h->kind == Y_OF_CODE && p->o->kernel->multi)
		options.expected_attach_type = UPROBE_MULTI;
	memcpy(insns, h->insns, h->ninsns * sizeof(*insns));
	put_numbers(p, insns, h->ninsns);
	p->programs[number] = bpf_prog_load(program_types[h->kind], "yrt_y", "GPL", insns, h->ninsns, &options);
	p->verified[number] = verified_of(log);
	if (p->programs[number] >= 0)
		return NULL;
	if (getenv("YRT_Y_LOG"))
		fputs(log, stderr);
	return error_hint(
	        error_new(ERROR_UNSUPPORTED, "_probe %s: the kernel refuses the program: %s", h->spec, strerror(errno)),
	        "%s", last_line(log));
}

static struct error *load_edit(struct y_probe *p, u32 map)
{
	const struct y_object_edit *e = &p->object->edits[map];
	cleanup(free) struct bpf_insn *insns = malloc(e->ninsns * sizeof(*insns));

	if (!insns)
		return &error_no_memory;
	memcpy(insns, e->insns, e->ninsns * sizeof(*insns));
	put_numbers(p, insns, e->ninsns);
	p->edits[map] = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "yrt_y", "GPL", insns, e->ninsns, NULL);
	return p->edits[map] > 0 ? NULL : error_errno(errno, "the kernel refuses what changes maps for timers");
}

static int take_records(void *ctx, void *data, size_t size)
{
	const struct y_probe *p = ctx;

	for (size_t at = 0; at + sizeof(struct y_record) <= size;) {
		const struct y_record *r = (const struct y_record *)((const u8 *)data + at);

		if (r->size < sizeof(*r) || r->size > size - at)
			break;
		p->o->record(p->o->ctx, r);
		at += r->size;
	}
	return 0;
}

struct error *y_probe_open(const struct y_object *object, const struct y_probe_options *o, struct y_probe **ret)
{
	struct y_probe *p = calloc(1, sizeof(*p));
	struct error *err = NULL;

	*ret = NULL;
	if (!p)
		return &error_no_memory;
	p->object = object;
	p->o = o;
	p->maps = calloc(object->nmaps, sizeof(*p->maps));
	p->programs = calloc(object->nhandlers, sizeof(*p->programs));
	p->verified = calloc(object->nhandlers, sizeof(*p->verified));
	p->edits = calloc(object->nmaps, sizeof(*p->edits));
	if (!p->maps || !p->programs || !p->verified || !p->edits)
		err = &error_no_memory;
	if (!err && object->loops)
		err = find_kfuncs(p);
	if (!err)
		err = create_maps(p);
	for (u32 i = 0; !err && i < object->nhandlers; i++)
		err = load_program(p, i);
	for (u32 i = 0; !err && i + Y_OWN_MAPS < object->nmaps; i++)
		if (object->edits[i].insns)
			err = load_edit(p, i);
	if (!err) {
		p->ring = ring_buffer__new(p->maps[Y_MAP_RING], take_records, p, NULL);
		err = p->ring ? NULL : error_errno(errno, "the kernel's ring of records");
	}
	if (err)
		y_probe_close(p);
	else
		*ret = p;
	return err;
}

/* --- places --- */

static struct error *place(
        struct y_probe *p, u32 number, const struct y_probe_file *file, const struct hit_place *at, u64 cookie)
{
	struct error *err = grow(&p->uprobes, p->nuprobes, sizeof(*p->uprobes));

	if (!err)
		err = uprobe_place_loaded(p->programs[number], p->o->kernel->multi, p->o->pid, file->path, at->offset,
		        at->counter, cookie, &p->uprobes[p->nuprobes]);
	p->nuprobes += !err;
	return err;
}

static const struct y_probe_file *file_of(const struct y_probe *p, const struct image *img)
{
	for (u32 i = 0; i < p->o->nfiles; i++)
		if (p->o->files[i].image == img)
			return &p->o->files[i];
	return NULL;
}

static struct error *place_way(struct y_probe *p, u32 number, const struct hit_way *way)
{
	const struct y_probe_file *file = file_of(p, way->img);
	u64 cookie = (way->borrowed ? Y_COOKIE_BORROWED : 0) | (way->kind == WAY_TAIL ? Y_COOKIE_JUMP : 0);
	struct hit_place at = {0};

	if (way->kind == WAY_AGAIN || !file || !hit_offset(way->img, way->exit.jump.at, true, &at.offset))
		return NULL;
	return place(p, number, file, &at, cookie);
}

/* Unwind rows tell jumps within a function, as of a switch, from those that leave it. */
static struct error *load_rows(struct y_probe *p, struct image *img)
{
	struct cfi_options options = {.cache_dir = cfi_default_cache()};

	return img->cfi ? NULL : tables_load(img, &options, p->o->root);
}

/* Where it is left, with its result in the register. */
static struct error *place_returns(struct y_probe *p, u32 number, const struct y_probe_file *file, u64 addr)
{
	const char *spec = p->object->handlers[number].spec;
	struct hit_ways ways = {0};
	struct error *err = load_rows(p, file->image);

	if (!err)
		err = hit_tails_find(spec, file->image, addr, &ways);
	for (u32 i = 0; !err && i < ways.n; i++)
		if (ways.of[i].kind == WAY_ASK || ways.of[i].kind == WAY_LOST)
			err = error_hint(error_new(ERROR_UNSUPPORTED,
			                         "its return: at 0x%lx it jumps to where its code does not tell",
			                         ways.of[i].exit.jump.at),
			        "`yrt latency -e %s` follows such jumps", spec);
	for (u32 i = 0; !err && i < ways.n; i++)
		err = place_way(p, number, &ways.of[i]);
	hit_tails_free(&ways);
	return err;
}

static u64 variant_of(const struct y_object_handler *h, const struct hit_place *at)
{
	u32 i = 0;

	while (i < h->nvariants && strcmp(h->variants[i], at->arguments ? at->arguments : "") != 0)
		i++;
	return i;
}

static struct error *place_in(
        struct y_probe *p, u32 number, const struct y_probe_file *file, const struct hit_spec *spec, u32 *n)
{
	struct hit_found found;
	struct error *err = hit_find(spec, file->image, p->o->root, &found);

	if (!err && found.usdt && p->object->handlers[number].returns)
		err = error_new(ERROR_UNSUPPORTED, "a USDT probe has no return");
	for (u32 i = 0; !err && i < found.n; i++, ++*n)
		err = p->object->handlers[number].returns && !found.usdt
		              ? place_returns(p, number, file, found.addr[i])
		              : place(p, number, file, &found.place[i],
		                        variant_of(&p->object->handlers[number], &found.place[i]));
	free(found.others);
	return err;
}

/* The first file that has it, where the point names another one. */
static const char *elsewhere(const struct y_probe *p, const struct hit_spec *spec)
{
	struct hit_spec any = *spec;
	const char *path = NULL;

	*any.file = '\0';
	for (u32 i = 0; *spec->file && !spec->by_addr && i < p->o->nfiles && !path; i++) {
		struct hit_found found;

		error_free(hit_find(&any, p->o->files[i].image, p->o->root, &found));
		path = found.n ? p->o->files[i].image->path : NULL;
		free(found.others);
	}
	return path;
}

static void count_one(void *n, const char *name)
{
	++*(u32 *)n;
}

static struct error *nothing_there(const struct y_probe *p, u32 number, const struct hit_spec *spec)
{
	const struct y_object_handler *h = &p->object->handlers[number];
	const char *other = y_other_words(h->spec), *path = elsewhere(p, spec);
	bool usdt = spec->kind == HIT_USDT;
	struct hit_near near = {0};
	char names[HIT_NEAR_TEXT];
	u32 all = 0;
	struct error *err = error_new(ERROR_USAGE, "%s:%u:%u: _probe %s: no file of the process has such a %s", h->file,
	        h->line, h->column, h->spec, usdt ? "USDT probe" : "function");

	if (other)
		return error_hint(err, "%s", other);
	if (path)
		return error_hint(err, "%s has it, but is not called %s", path, spec->file);
	for (u32 i = 0; usdt && i < p->o->nfiles; i++)
		hit_each_usdt(p->o->files[i].image, count_one, &all);
	if (usdt && !all)
		return error_hint(err, "its files have no USDT probe at all: they were built without");
	for (u32 i = 0; i < p->o->nfiles; i++)
		hit_find_near(spec, p->o->files[i].image, &near);
	hit_near_text(&near, names);
	if (near.n)
		return error_hint(err, "near: %s", names);
	return error_hint(err,
	        "`yrt functions -p PID '*%s*'` lists what can be probed; a file without symbols takes places "
	        "as stacks show them: nginx+0x51340",
	        spec->name);
}

struct error *y_probe_at(struct error *err, const struct y_object_handler *h)
{
	struct error *ret;
	size_t len = strlen(h->spec);
	const char *text = err->message;

	if (err == &error_no_memory)
		return err;
	text += strncmp(text, "-e ", 3) ? 0 : 3;
	text += strncmp(text, h->spec, len) || text[len] != ':' ? 0 : len + 2;
	ret = error_new(err->kind, "%s:%u:%u: _probe %s: %s", h->file, h->line, h->column, h->spec, text);
	if (err->hint)
		error_hint(ret, "%s", err->hint);
	error_free(err);
	return ret;
}

static struct error *place_handler(struct y_probe *p, u32 number)
{
	const struct y_object_handler *h = &p->object->handlers[number];
	const char *text = h->spec, *other = y_other_words(text);
	struct hit_spec spec;
	struct error *err = hit_parse(text, &spec);
	u32 n = 0, files = 0;

	if (!err && spec.kind == HIT_TRACEPOINT)
		err = error_hint(error_new(ERROR_USAGE, "it is a tracepoint"), "%s",
		        other ? other : "_probe tracepoint:NAME { … }");
	for (u32 i = 0; !err && i < p->o->nfiles; i++) {
		u32 before = n;

		err = place_in(p, number, &p->o->files[i], &spec, &n);
		files += n > before;
		if (!err && files > 1)
			err = error_hint(error_new(ERROR_USAGE, "several files of the process have it"),
			        "_probe FILE:NAME chooses one");
	}
	if (err)
		return y_probe_at(err, h);
	return n ? NULL : nothing_there(p, number, &spec);
}

/* --- of the kernel, and of the clock --- */

static struct error *keep(struct y_probe *p, int fd)
{
	struct error *err = grow(&p->links, p->nlinks, sizeof(*p->links));

	if (err)
		close(fd);
	else
		p->links[p->nlinks++] = fd;
	return err;
}

static struct error *attach_tracepoint(struct y_probe *p, u32 number)
{
	const char *name = p->object->handlers[number].spec;
	int fd = bpf_raw_tracepoint_open(name, p->programs[number]);

	return fd < 0 ? error_errno(errno, "the kernel refuses the tracepoint %s", name) : keep(p, fd);
}

/* A clock of each CPU that runs while a thread has it: the handler asks whose it is. */
static struct error *attach_clock(struct y_probe *p, u32 number)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
	        .type = PERF_TYPE_SOFTWARE,
	        .config = PERF_COUNT_SW_CPU_CLOCK,
	        .sample_period = p->object->handlers[number].period_ns};
	struct error *err = NULL;

	for (u32 cpu = 0, n = 0; !err && cpu < p->o->kernel->cpus; cpu++) {
		int event = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC), link;

		if (event < 0 && (errno == ENODEV || errno == ENXIO) && (n || cpu + 1 < p->o->kernel->cpus))
			continue; /* it is offline */
		if (event < 0)
			return error_errno(errno, "perf_event_open of CPU %u", cpu);
		link = bpf_link_create(p->programs[number], event, BPF_PERF_EVENT, NULL);
		if (link < 0)
			err = error_errno(errno, "the kernel attaches no program to a clock");
		else
			err = keep(p, link);
		close(event); /* the link holds it */
		n++;
	}
	return err;
}

/* on_callee() calls it. */
static struct error *attach_call(struct y_probe *p, u32 number)
{
	return bpf_map_update_elem(p->o->handlers, &number, &p->programs[number], BPF_ANY)
	               ? error_errno(errno, "the kernel takes no handler of calls")
	               : NULL;
}

static struct error *attach(struct y_probe *p, u32 number)
{
	switch (p->object->handlers[number].kind) {
	case Y_OF_CALL:
		return attach_call(p, number);
	case Y_OF_KERNEL:
		return attach_tracepoint(p, number);
	case Y_OF_CLOCK:
		return attach_clock(p, number);
	default:
		return place_handler(p, number);
	}
}

static void take_away(struct y_probe *p)
{
	for (u32 i = 0; i < p->nuprobes; i++)
		uprobe_take_away(p->uprobes[i]);
	for (u32 i = 0; i < p->nlinks; i++)
		close(p->links[i]);
	p->nuprobes = p->nlinks = 0;
}

int y_probe_program(const struct y_probe *p, u32 handler)
{
	return p->programs[handler];
}

struct error *y_probe_start(struct y_probe *p)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < p->object->nhandlers; i++)
		err = attach(p, i);
	if (!err)
		((struct y_control *)p->globals)->running = 1;
	return err;
}

bool y_probe_wait(struct y_probe *p, u32 ms)
{
	return ring_buffer__poll(p->ring, (int)ms) >= 0;
}

void y_probe_stop(struct y_probe *p)
{
	((volatile struct y_control *)p->globals)->running = 0;
	take_away(p);
	ring_buffer__consume(p->ring);
}

/* --- generations --- */

/* The states of handlers that run. */
static u32 running(const struct y_probe *p, u64 *oldest)
{
	u32 n = 0;

	for (u32 i = 0; i < p->object->maps[Y_MAP_STATES].most; i++) {
		const struct y_state *s = (const struct y_state *)(p->states + i * state_size(p));

		if (!__atomic_load_n(&s->busy, __ATOMIC_SEQ_CST))
			continue;
		n++;
		*oldest = s->generation < *oldest ? s->generation : *oldest;
	}
	return n;
}

/* And of those that have ended but for their stack. */
static void pending(const struct y_probe *p, u64 *oldest)
{
	int fd = p->maps[Y_MAP_PENDING];
	u32 key;

	if (!p->object->stacks || bpf_map_get_next_key(fd, NULL, &key))
		return;
	for (u32 n = 0; n < Y_PENDING; n++) {
		struct y_pending pending;

		if (!bpf_map_lookup_elem(fd, &key, &pending) && pending.generation < *oldest)
			*oldest = pending.generation;
		if (bpf_map_get_next_key(fd, &key, &key))
			return;
	}
}

u64 y_probe_turn(struct y_probe *p, u32 ms)
{
	struct y_control *control = (struct y_control *)p->globals;
	u64 next = __atomic_add_fetch(&control->generation, 1, __ATOMIC_SEQ_CST), until = now_ns() + ms * 1000000ull;

	for (;;) {
		u64 oldest = next;

		running(p, &oldest);
		pending(p, &oldest);
		if (oldest == next || now_ns() > until)
			return oldest;
		usleep(TURN_US);
	}
}

u32 y_probe_running(const struct y_probe *p)
{
	u64 oldest = UINT64_MAX;

	return running(p, &oldest);
}

static u64 misses_of(int program)
{
	struct bpf_prog_info info = {0};
	u32 size = sizeof(info);

	return program > 0 && !bpf_obj_get_info_by_fd(program, &info, &size) ? info.recursion_misses : 0;
}

u64 y_probe_missed(const struct y_probe *p)
{
	u64 n = 0;

	for (u32 i = 0; i < p->object->nhandlers; i++)
		n += misses_of(p->programs[i]);
	return n;
}

void y_probe_close(struct y_probe *p)
{
	if (!p)
		return;
	take_away(p);
	ring_buffer__free(p->ring);
	for (u32 i = 0; p->programs && i < p->object->nhandlers; i++)
		if (p->programs[i] > 0)
			close(p->programs[i]);
	for (u32 i = 0; p->maps && i < p->object->nmaps; i++)
		if (p->maps[i] > 0)
			close(p->maps[i]);
	for (u32 i = Y_OWN_MAPS; p->edits && i < p->object->nmaps; i++)
		if (p->edits[i - Y_OWN_MAPS] > 0)
			close(p->edits[i - Y_OWN_MAPS]);
	free(p->edits);
	if (p->states)
		munmap((void *)p->states, p->states_size);
	if (p->globals)
		munmap(p->globals, p->globals_size);
	free(p->uprobes);
	free(p->links);
	free(p->programs);
	free(p->verified);
	free(p->maps);
	free(p);
}

/* --- data --- */

void *y_probe_globals(struct y_probe *p)
{
	return p->globals;
}

bool y_probe_counted(struct y_probe *p, u32 number, struct y_counted *ret)
{
	return !bpf_map_lookup_elem(p->maps[Y_MAP_FAILURES], &number, ret);
}

bool y_probe_next(struct y_probe *p, u32 map, const void *key, void *next)
{
	return !bpf_map_get_next_key(p->maps[Y_OWN_MAPS + map], key, next);
}

bool y_probe_get(struct y_probe *p, u32 map, const void *key, void *value)
{
	return !bpf_map_lookup_elem(p->maps[Y_OWN_MAPS + map], key, value);
}

bool y_probe_set(struct y_probe *p, u32 map, const void *key, const void *value)
{
	return !bpf_map_update_elem(p->maps[Y_OWN_MAPS + map], key, value, 0);
}

void y_probe_delete(struct y_probe *p, u32 map, const void *key)
{
	bpf_map_delete_elem(p->maps[Y_OWN_MAPS + map], key);
}

bool y_probe_take_out(struct y_probe *p, u32 map, const void *key, void *value)
{
	int fd = p->maps[Y_OWN_MAPS + map];

	if (!bpf_map_lookup_and_delete_elem(fd, key, value))
		return true;
	return errno != ENOENT && !bpf_map_lookup_elem(fd, key, value) &&
	       !bpf_map_delete_elem(fd, key); /* Linux 5.13 */
}

bool y_probe_add(struct y_probe *p, u32 map, const void *key, u64 by, u64 *ret)
{
	u32 size = p->object->maps[Y_MAP_EDIT].value_size, zero = 0;
	cleanup(free) u8 *room = calloc(1, size + sizeof(u64));
	struct y_edit *edit = (struct y_edit *)room;
	LIBBPF_OPTS(bpf_test_run_opts, options);

	if (!room || p->edits[map] <= 0)
		return false;
	edit->by = by;
	memcpy(edit + 1, key, p->object->maps[Y_OWN_MAPS + map].key_size);
	if (bpf_map_update_elem(p->maps[Y_MAP_EDIT], &zero, room, 0) ||
	        bpf_prog_test_run_opts(p->edits[map], &options) ||
	        bpf_map_lookup_elem(p->maps[Y_MAP_EDIT], &zero, room))
		return false;
	*ret = edit->result;
	return true;
}

u32 y_probe_verified(struct y_probe *p, u32 handler)
{
	return p->verified[handler];
}
