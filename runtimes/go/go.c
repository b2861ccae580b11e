/* SPDX-License-Identifier: Apache-2.0 */
#include "go.h"

#include <arch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "cleanup.h"
#include "error.h"
#include "go_code.h"
#include "go_fold.h"
#include "go_goroutines.h"
#include "go_labels.h"
#include "go_layout.h"
#include "go_names.h"
#include "go_refs.h"
#include "go_release.h"
#include "go_rows.h"
#include "go_snapshots.h"
#include "go_table.h"
#include "go_view.h"
#include "report.h"
#include "runtime.h"
#include "runtime_calls.h"
#include "runtime_tasks.h"
#include "symbols/symbols.h"

/*
 * Why Go's runtime ended the process: the value of a panic that nobody recovered, or what a fatal error says. The
 * runtime replaces values of type error and Stringer by their text before it dies (runtime/panic.go: preprintpanics,
 * since 1.9). g._panic follows two words of stack and two guards in all releases; the linker knows that offset.
 * _panic began with argp until 1.25 (runtime/runtime2.go of 1.11 to 1.26).
 */

struct go_dying { /* a thread */
	const struct runtime_process *p;
	struct go_table *table;
	u64 bias;
	const struct frame *frames; /* as walked */
	u32 n;
};

#define TEXT_MOST 512
#define NAME_MOST 64

enum { G_STACK_END = 8, G_PANIC = 32, TYPE_KIND = 23 };

/* internal/abi/type.go: the low five bits of a type's kind */
enum kind {
	KIND_BOOL = 1,
	KIND_INT,
	KIND_INT8,
	KIND_INT16,
	KIND_INT32,
	KIND_INT64,
	KIND_UINT,
	KIND_UINT8,
	KIND_UINT16,
	KIND_UINT32,
	KIND_UINT64,
	KIND_UINTPTR,
	KIND_FLOAT32,
	KIND_FLOAT64,
	KIND_STRING = 24,
	KIND_MASK = 31
};

static u64 word(const struct go_dying *at, u64 addr)
{
	u64 ret;

	return memory_read(at->p->memory, &ret, sizeof(ret), addr) ? ret : 0;
}

static bool name_at(const struct go_dying *at, u32 i, char ret[NAME_MOST])
{
	struct go_function fn;
	u64 pc;

	return i < at->n && frame_kind(&at->frames[i]) == FRAME_NATIVE &&
	       go_frame_function(at->table, at->bias, &at->frames[i], &pc, &fn) &&
	       go_function_name(at->table, &fn, ret, NAME_MOST);
}

/* The outermost frame of the function; at->n: it is not on the stack. */
static u32 frame_of(const struct go_dying *at, const char *name)
{
	char found[NAME_MOST];

	for (u32 i = at->n; i-- > 0;)
		if (name_at(at, i, found) && !strcmp(found, name))
			return i;
	return at->n;
}

static bool read_text(const struct go_dying *at, u64 text, u64 length, char ret[TEXT_MOST])
{
	u64 n = length < TEXT_MOST - 1 ? length : TEXT_MOST - 1;

	if (!text || !n || !memory_read(at->p->memory, ret, n, text))
		return false;
	ret[n] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	return *ret;
}

/* --- a panic --- */

static s64 as_signed(u64 value, u32 kind)
{
	return kind == KIND_INT8    ? (s8)value
	       : kind == KIND_INT16 ? (s16)value
	       : kind == KIND_INT32 ? (s32)value
	                            : (s64)value;
}

static u64 as_unsigned(u64 value, u32 kind)
{
	return kind == KIND_UINT8    ? (u8)value
	       : kind == KIND_UINT16 ? (u16)value
	       : kind == KIND_UINT32 ? (u32)value
	                             : value;
}

static void put_float(u64 value, u32 kind, char ret[TEXT_MOST])
{
	double d;
	float f;

	memcpy(&d, &value, sizeof(d));
	memcpy(&f, &value, sizeof(f));
	snprintf(ret, TEXT_MOST, "%g", kind == KIND_FLOAT32 ? (double)f : d);
}

/* An interface{}: its type, and where the value is. */
static bool put_value(const struct go_dying *at, u64 type, u64 data, char ret[TEXT_MOST])
{
	u64 value = word(at, data);
	u8 kind;

	if (!memory_read(at->p->memory, &kind, 1, type + TYPE_KIND))
		return false;
	kind &= KIND_MASK;
	if (kind == KIND_STRING)
		return read_text(at, value, word(at, data + 8), ret);
	if (kind == KIND_BOOL)
		snprintf(ret, TEXT_MOST, value & 0xff ? "true" : "false");
	else if (kind >= KIND_INT && kind <= KIND_INT64)
		snprintf(ret, TEXT_MOST, "%ld", as_signed(value, kind));
	else if (kind >= KIND_UINT && kind <= KIND_UINTPTR)
		snprintf(ret, TEXT_MOST, "%lu", as_unsigned(value, kind));
	else if (kind == KIND_FLOAT32 || kind == KIND_FLOAT64)
		put_float(value, kind, ret);
	else
		snprintf(ret, TEXT_MOST, "a value that is no text and no number");
	return true;
}

static bool panic_text(
        const struct go_dying *at, const struct go_config *config, u64 thread_pointer, char ret[TEXT_MOST])
{
	u64 g = word(at, thread_pointer + (u64)config->tls), m = g ? word(at, g + config->g_m) : 0;
	u64 goroutine = m ? word(at, m + config->m_curg) : 0, panic, first;

	panic = goroutine ? word(at, goroutine + G_PANIC) : 0;
	if (!panic)
		return false;
	first = word(at, panic); /* argp: into the goroutine's stack, or 0 */
	if (!first || (first >= word(at, goroutine) && first < word(at, goroutine + G_STACK_END)))
		panic += 8;
	return put_value(at, word(at, panic), word(at, panic + 8), ret);
}

/* --- a fatal error --- */

/*
 * Its text is a constant where throw() is called: lea text(%rip), %rax; mov $length, %ebx; call, the arguments in
 * registers since 1.17. at: the return address.
 */
static bool constant_text(const struct go_dying *at, u64 pc, char ret[TEXT_MOST])
{
	u8 code[24];
	s32 offset;
	u32 length;

	if (!memory_read(at->p->memory, code, sizeof(code), pc - sizeof(code)) || code[19] != 0xe8)
		return false;
	for (u32 i = 0; i + 12 <= 19; i++) {
		if (code[i] != 0x48 || code[i + 1] != 0x8d || code[i + 2] != 0x05 || code[i + 7] != 0xbb)
			continue;
		memcpy(&offset, code + i + 3, sizeof(offset));
		memcpy(&length, code + i + 8, sizeof(length));
		return read_text(at, pc - sizeof(code) + i + 7 + (u64)(s64)offset, length, ret);
	}
	return false;
}

/* sync.fatal() and the like, which only pass the text on. */
static bool is_relay(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && (!strcmp(dot, ".throw") || !strcmp(dot, ".fatal"));
}

static bool throw_text(const struct go_dying *at, char ret[TEXT_MOST])
{
	u32 i = frame_of(at, "runtime.throw");
	char name[NAME_MOST];

	if (i == at->n)
		i = frame_of(at, "runtime.fatal");
	while (name_at(at, ++i, name) && is_relay(name))
		;
	return i < at->n && constant_text(at, frame_addr(&at->frames[i]), ret);
}

/* config may be NULL: then only fatal errors are known. As runtime_ops.last_words. */
static bool go_last_words(
        const struct go_dying *at, const struct go_config *config, u64 thread_pointer, char *ret, size_t size)
{
	char text[TEXT_MOST];

	if (throw_text(at, text)) {
		snprintf(ret, size, "fatal error: %s", text);
		return true;
	}
	if (frame_of(at, "runtime.fatalpanic") == at->n || !config || !panic_text(at, config, thread_pointer, text))
		return false;
	snprintf(ret, size, "panic: %s", text);
	return true;
}

/*
 * What a goroutine has besides its functions, shown outside of the outermost of them on request: its creator, its
 * labels, its number.
 */

static u32 details_of(u32 features)
{
	return (features & FEATURE_CREATORS ? GO_DETAIL_CREATOR : 0) |
	       (features & FEATURE_LABELS ? GO_DETAIL_LABELS : 0) | (features & FEATURE_TASKS ? GO_DETAIL_NUMBER : 0);
}

/* What the code that switches stacks reads is where the layout has it. */
static bool agrees(const struct go_layout *at, const struct go_config *code)
{
	return at->g_m.at == code->g_m && at->g_sp.at == code->g_sched && at->m_curg.at == code->m_curg;
}

static struct error *configure_root(const struct go_view *v, u32 details, struct go_config *ret)
{
	unsigned long minor = go_release_minor(v->release);

	if (!agrees(v->at, ret))
		return error_new(ERROR_UNSUPPORTED, "%s of %s: its code contradicts the layout of that release",
		        v->table->file.img->path, v->release);
	ret->g_gopc = v->at->g_gopc.at;
	ret->g_labels = v->at->g_labels.at;
	ret->g_goid = v->at->g_goid.at;
	ret->labels_map = minor && minor < GO_LABELS_BY_LIST;
	ret->details = details;
	return NULL;
}

/* Takes err. */
static struct error *not_shown(struct error *err)
{
	struct error *ret =
	        error_new(err->kind, "%s; creators, labels and numbers of goroutines are not shown", err->message);

	if (err->hint)
		ret = error_hint(ret, "%s", err->hint);
	error_free(err);
	return ret;
}

/*
 * Where the walker finds what was requested. An error says why it is not available, for example because the process
 * contradicts the layout of its release; ret->details is 0 then. *starting: there is no goroutine yet to check the
 * layout on.
 */
static struct error *go_root_configure(
        const struct runtime_process *p, struct go_table *t, u64 bias, struct go_config *ret, bool *starting)
{
	u32 details = details_of(p->features);
	struct go_view *v = NULL;
	struct error *err = details ? go_view_open(p, t, bias, &v) : NULL;

	*starting = v && !v->allgs;
	ret->details = 0;
	if (v)
		err = configure_root(v, details, ret);
	go_view_close(v);
	return err ? not_shown(err) : NULL;
}

/* The walker says that there are some, so it is known which of the two they are: of one that does not fit the mix will
 * not be the same. */
static void name_labels(const struct runtime_process *p, const struct frame *f, char *ret, size_t room)
{
	u32 want = (u32)(f->detail >> 32), n = 0, size;
	char packed[GO_LABELS_PACKED];
	u64 mix;

	for (u32 map = 0; map < 2 && !n; map++) {
		n = go_labels_read(p, frame_addr(f), map, GO_LABELS_MAX, packed, &size, &mix);
		n = n && (u32)mix == want ? n : 0;
	}
	go_labels_name(n, packed, ret, room);
}

static bool name_creator(struct go_table *t, u64 bias, const struct frame *f, char *ret, size_t room)
{
	char name[NAME_MAX_BYTES - 32];
	struct go_function fn;

	if (!go_function_find(t, frame_addr(f) - bias - ARCH_CALL_BACK, &fn))
		return false;
	go_short_name(t, fn.name, name, sizeof(name));
	snprintf(ret, room, "created by %s", name);
	return true;
}

/* Names a frame that holds such information. False: it is another. */
static bool go_root_name(
        struct go_table *t, u64 bias, const struct runtime_process *p, const struct frame *f, struct frame_name *ret)
{
	switch ((u32)f->detail) {
	case GO_CREATED:
		if (!name_creator(t, bias, f, ret->name, sizeof(ret->name)))
			return false;
		break;
	case GO_LABELS:
		name_labels(p, f, ret->name, sizeof(ret->name));
		break;
	case GO_GOROUTINE:
		snprintf(ret->name, sizeof(ret->name), "goroutine %lu", frame_addr(f));
		break;
	default:
		return false;
	}
	ret->identity = XXH3_64bits(ret->name, strlen(ret->name));
	ret->qualified = true;
	ret->form = (u32)f->detail == GO_LABELS ? FORM_LABEL : FORM_CLASS;
	return true;
}

/* What `yrt inspect` shows of a Go program. */

static const char *const layouts[GO_MAGICS] = {"1.2", "1.16", "1.18", "1.20"};

static void report_module(struct go_table *t, u64 bias, struct report *out)
{
	char version[GO_RELEASE_MAX];

	image_report(t->file.img, out);
	if (go_release(t, version))
		report_text(out, "version", NULL, "%s", version);
	report_text(out, "load bias", NULL, "0x%lx", bias);
	report_text(out, "pclntab", layouts[t->magic], "0x%lx", t->addr + bias);
	if (t->module)
		report_text(out, "moduledata", NULL, "0x%lx", t->module + bias);
	report_number(out, "functions", t->nfunctions, NULL);
	report_text(out, "inlined calls", t->inlining.size ? "checked by 64 of them" : NULL, "%s",
	        t->inlining.size ? "told" : "not told");
}

static void report_stretch(struct report *out, const char *name, const struct go_stretch *s, u64 bias)
{
	if (s->end)
		report_text(out, name, "on the other stack", "0x%lx-0x%lx", s->start + bias, s->end + bias);
}

/* config NULL: changes of stacks are not walked; missing: as go_code_switches() returns it. */
static struct error *go_inspect(struct go_table *t, u64 bias, const struct go_switches *s, const char *missing,
        const struct go_config *config, struct report *out)
{
	const char *origin = "code of runtime.systemstack";

	report_module(t, bias, out);
	report_section(out, "changes of stacks", NULL);
	if (missing)
		report_text(out, "walked", NULL,
		        *missing ? "no: code of runtime.%s is not of a known form"
		                 : "no: it has no runtime of its own%s",
		        missing);
	if (missing || !config)
		return report_end(out);
	report_stretch(out, "systemstack", &s->systemstack, bias);
	report_stretch(out, "mcall", &s->mcall, bias);
	report_stretch(out, "morestack", &s->morestack, bias);
	report_stretch(out, "asmcgocall", &s->asmcgocall, bias);
	report_stretch(out, "cgocallback", &s->callback, bias);
	report_section(out, "layout", NULL);
	report_number(out, "g, from the thread pointer", config->tls,
	        s->tls_at ? "a word that the dynamic linker filled in" : origin);
	report_number(out, "g.m", config->g_m, origin);
	report_number(out, "g.sched.sp", config->g_sched, origin);
	report_number(out, "m.g0", config->m_g0, origin);
	report_number(out, "m.curg", config->m_curg, origin);
	if (s->asmcgocall.end) {
		report_number(out, "g in a frame of asmcgocall", config->asm_g, "its code");
		report_number(out, "depth in a frame of asmcgocall", config->asm_depth, "its code");
	}
	return report_end(out);
}

/* runtime_ops.tasks (runtime_tasks.h): goroutines wait without a thread; those of Go's runtime itself are left out. */

#define TASKS_MAX 262144

struct listing {
	const struct runtime_process *p;
	const struct go_goroutine_snapshot *s;
	struct frame frames[GO_DEPTH_MAX];
};

static u32 module_of(const struct runtime_process *p, u64 pc)
{
	const struct mapping *m = mapping_find(p->mappings, p->nmappings, pc - ARCH_CALL_BACK);

	return m ? m->module : 0;
}

static void put_frames(struct listing *l, const struct go_chain *c, struct runtime_task *ret)
{
	for (u32 i = 0; i < c->n; i++) {
		u64 pc = l->s->stacks.pcs[c->first + i];

		l->frames[i] = (struct frame){.where = frame_where(FRAME_NATIVE, RUNTIME_NATIVE, FRAME_RETADDR, pc),
		        .detail = module_of(l->p, pc)};
	}
	ret->frames = l->frames;
	ret->nframes = c->n;
	if (c->cut)
		ret->stop = STOP_DEPTH;
}

static struct runtime_task describe(struct listing *l, const struct go_goroutine *g)
{
	static const u32 stops[] = {[GO_STANDS] = STOP_ROOT_RUNTIME,
	        [GO_ON_CPU] = STOP_NO_USER,
	        [GO_TORN] = STOP_VM_BROKEN,
	        [GO_UNWALKED] = STOP_VM_BROKEN};
	struct runtime_task ret = {
	        .id = g->id, .stop = stops[g->seen], .on_thread = g->status == GO_RUNNING || g->status == GO_SYSCALL};
	u64 minutes = go_goroutine_minutes(l->s, g);
	int n;

	snprintf(ret.name, sizeof(ret.name), "%lu", g->id);
	n = snprintf(ret.state, sizeof(ret.state), "%s%s", go_goroutine_state(l->s, g), go_goroutine_manner(l->s, g));
	if (minutes)
		n += snprintf(ret.state + n, sizeof(ret.state) - (size_t)n, ", %lu minutes", minutes);
	if (g->seen == GO_UNWALKED)
		n += snprintf(ret.state + n, sizeof(ret.state) - (size_t)n, ", not walked");
	if (g->locked)
		n += snprintf(ret.state + n, sizeof(ret.state) - (size_t)n, ", locked to thread");
	if (g->bubble)
		snprintf(ret.state + n, sizeof(ret.state) - (size_t)n, ", synctest bubble %lu", g->bubble);
	if (g->seen == GO_STANDS)
		put_frames(l, &l->s->stacks.chains[g->chain], &ret);
	return ret;
}

static struct error *list_all(const struct runtime_process *p, const struct go_goroutine_snapshot *s,
        struct error *(*add)(void *ctx, const struct runtime_task *t), void *ctx)
{
	cleanup(free) struct listing *l = calloc(1, sizeof(*l));
	struct error *err = l ? NULL : &error_no_memory;
	u32 i;

	if (err)
		return err;
	l->p = p;
	l->s = s;
	for (i = 0; !err && i < s->goroutines.n && i < TASKS_MAX; i++) {
		struct runtime_task t = describe(l, &s->goroutines.all[i]);

		err = add(ctx, &t);
	}
	if (err || i == s->goroutines.n)
		return err;
	return error_hint(error_new(ERROR_UNSUPPORTED, "process %d has %u goroutines: %u are shown", p->pid,
	                          s->goroutines.n, TASKS_MAX),
	        "yrt go-goroutines shows them all, by stack");
}

static struct error *list(void *instance, const struct runtime_process *p,
        struct error *(*add)(void *ctx, const struct runtime_task *t), void *ctx)
{
	void *snapshot;
	struct error *err = go_take_goroutines(instance, p, 0, &snapshot);

	if (!err && snapshot)
		err = list_all(p, snapshot, add, ctx);
	go_goroutines_drop(snapshot);
	return err;
}

static const struct runtime_tasks_ops go_tasks = {
        .kind = "goroutine", .kinds = "goroutines", .all = true, .list = list};

#define KEEPERS_MAX 24
#define LOOKS_MAX   100

struct go_image {
	struct go_table *table;
	u32 nkeepers;
	struct go_keeping keeper[KEEPERS_MAX];
	const char *missing; /* as go_code_switches() returns it */
	struct go_switches switches;
};

struct go_instance {
	struct go_image *image;
	u64 bias;
	u32 config;            /* arena offset; 0: none */
	bool knows_goroutines; /* besides their functions */
	bool starting;         /* there was none yet to check that on */
	u32 looks;             /* for one */
	struct error *unknown; /* why it does not know them, though that was requested; reported once */
};

int go_step(struct walk *w);

static void image_destroy(void *data)
{
	struct go_image *image = data;

	go_table_close(image->table);
	free(image);
}

/* Some names are those of two functions, one of them a wrapper. */
static void find_keepers(struct go_image *image, struct go_code *code)
{
	struct go_function fn;
	char name[GO_SPECIAL_MAX];
	u32 end, i;

	go_runtime_functions(image->table, &i, &end);
	for (; i < end && image->nkeepers < KEEPERS_MAX; i++) {
		if (!go_special_name(image->table, i, &fn, name))
			continue;
		for (u32 k = 0; go_keepers[k]; k++)
			if (!strcmp(name, go_keepers[k]) &&
			        go_code_keeping(code, image->table, &fn, &image->keeper[image->nkeepers])) {
				image->nkeepers++;
				break;
			}
	}
}

static struct error *read_code(struct go_image *image)
{
	struct go_code *code = go_code_create();

	if (!code)
		return &error_no_memory;
	image->missing = go_code_switches(code, image->table, &image->switches);
	find_keepers(image, code);
	go_code_destroy(code);
	return NULL;
}

static bool begins(void *part, const char *string)
{
	return !strncmp(string, part, strlen(part));
}

/*
 * A program of TinyGo, another compiler with its own runtime, by its symbols: assembly of that (tinygo_startTask,
 * tinygo_scanCurrentStack …) beside functions of a package "runtime". A stripped one looks like one in C.
 */
static bool is_tinygo(struct image *img)
{
	static char assembly[] = "tinygo_", package[] = "runtime.";

	return symbols_search(img, assembly, begins, assembly) && symbols_search(img, package, begins, package);
}

static struct error *image_probe(struct image *img, void **ret)
{
	struct go_image *image;
	struct go_table *table;
	struct error *err = go_table_open(img, &table);

	*ret = NULL;
	if (!err && !table && is_tinygo(img))
		return error_hint(error_new(ERROR_UNSUPPORTED, "%s was made by TinyGo", img->path),
		        "its functions are shown as native code, without goroutines: yrt knows the runtime of Go "
		        "itself");
	if (err || !table)
		return err;
	image = calloc(1, sizeof(*image));
	if (!image) {
		go_table_close(table);
		return &error_no_memory;
	}
	image->table = table;
	err = read_code(image);
	if (err)
		image_destroy(image);
	else
		*ret = image;
	return err;
}

/* The offset of g from the thread pointer, which the dynamic linker may have put into a word. */
static bool find_tls(const struct go_instance *instance, const struct runtime_process *p, s64 *ret)
{
	const struct go_switches *s = &instance->image->switches;
	s64 word = 0;

	if (s->tls_at && !memory_read(p->memory, &word, sizeof(word), s->tls_at + instance->bias))
		return false;
	*ret = s->tls + word;
	return true;
}

static struct error *configure(struct go_instance *instance, const struct runtime_process *p)
{
	const struct go_switches *s = &instance->image->switches;
	struct go_config config = {.resume = s->resume + instance->bias,
	        .g_m = s->g_m,
	        .g_sched = s->g_sched,
	        .m_g0 = s->m_g0,
	        .m_curg = s->m_curg,
	        .asm_g = s->asm_g,
	        .asm_depth = s->asm_depth};
	struct error *err;

	if (instance->image->missing || !find_tls(instance, p, &config.tls))
		return NULL;
	instance->unknown = go_root_configure(p, instance->image->table, instance->bias, &config, &instance->starting);
	instance->knows_goroutines = config.details;
	err = arena_alloc(p->arena, sizeof(config), &instance->config);
	if (!err)
		memcpy(arena_at(p->arena, instance->config, sizeof(config)), &config, sizeof(config));
	return err;
}

static struct error *attach(const struct runtime_process *p, void *image, u64 bias, void **ret)
{
	struct go_instance *instance = calloc(1, sizeof(*instance));
	struct error *err;

	*ret = NULL;
	if (!instance)
		return &error_no_memory;
	instance->image = image;
	instance->bias = bias;
	err = configure(instance, p);
	if (err)
		free(instance);
	else
		*ret = instance;
	return err;
}

static void detach(void *data, const struct runtime_process *p)
{
	struct go_instance *instance = data;

	arena_free(p->arena, instance->config, sizeof(struct go_config));
	error_free(instance->unknown);
	free(instance);
}

static struct error *keeper_regions(
        const struct go_instance *instance, struct error *(*add)(void *ctx, const struct runtime_region *r), void *ctx)
{
	const struct go_image *image = instance->image;
	struct error *err = NULL;

	for (u32 i = 0; instance->config && i < image->nkeepers; i++)
		for (u32 k = 0; !err && k < image->keeper[i].n; k++) {
			const struct go_stretch *s = &image->keeper[i].stretch[k];
			struct runtime_region r = {.start = s->start + instance->bias,
			        .end = s->end + instance->bias,
			        .part = GO_KEPT + image->keeper[i].reg,
			        .vm = instance->config};

			err = add(ctx, &r);
		}
	return err;
}

/* Nothing may be shown for long that was not checked. */
static void look_again(struct go_instance *instance, const struct runtime_process *p)
{
	struct go_config *config = instance->starting ? arena_at(p->arena, instance->config, sizeof(*config)) : NULL;
	struct go_config now;

	if (!config)
		return;
	now = *config;
	instance->unknown = go_root_configure(p, instance->image->table, instance->bias, &now, &instance->starting);
	if (instance->starting && ++instance->looks >= LOOKS_MAX) {
		instance->starting = false;
		now.details = 0;
		instance->unknown = error_new(ERROR_UNSUPPORTED,
		        "%s: creators, labels and numbers of goroutines are not shown: no goroutine was found",
		        instance->image->table->file.img->path);
	}
	*config = now;
}

static bool starting(void *data)
{
	const struct go_instance *instance = data;

	return instance->starting;
}

static struct error *regions(void *data, const struct runtime_process *p,
        struct error *(*add)(void *ctx, const struct runtime_region *r), void *ctx)
{
	struct go_instance *instance = data;
	const struct go_switches *s = &instance->image->switches;
	const struct {
		const struct go_stretch *at;
		enum go_part part;
	} parts[] = {{&s->dummy, GO_PLAIN}, {&s->asmcgocall_all, GO_PLAIN}, {&s->callback_all, GO_PLAIN},
	        {&s->schedule, GO_SCHEDULE}, {&s->systemstack, GO_SYSTEMSTACK}, {&s->mcall, GO_SUSPENDED},
	        {&s->morestack, GO_SUSPENDED}, {&s->asmcgocall, GO_ASMCGOCALL}, {&s->asmcgocall_g0, GO_ASMCGOCALL_G0},
	        {&s->gogo, GO_GOGO}, {&s->callback, GO_CALLBACK}, {&s->goexit, GO_ROOT}};
	struct error *err = keeper_regions(instance, add, ctx);

	look_again(instance, p);
	if (instance->image->missing && *instance->image->missing)
		return error_hint(error_new(ERROR_UNSUPPORTED, "%s: code of runtime.%s() is not of a known form",
		                          instance->image->table->file.img->path, instance->image->missing),
		        "stacks end where Go's runtime changes from one to another");
	for (u32 i = 0; !err && instance->config && i < sizeof(parts) / sizeof(*parts); i++) {
		struct runtime_region r = {.start = parts[i].at->start + instance->bias,
		        .end = parts[i].at->end + instance->bias,
		        .part = (u8)parts[i].part,
		        .vm = instance->config};

		if (parts[i].part != GO_ROOT || instance->knows_goroutines)
			err = add(ctx, &r);
	}
	if (!err) {
		err = instance->unknown;
		instance->unknown = NULL;
	}
	return err;
}

static bool name_frame(
        void *data, const struct runtime_process *p, const struct frame *frames, u32 i, u32 n, struct frame_name *ret)
{
	struct go_instance *instance = data;

	return go_root_name(instance->image->table, instance->bias, p, &frames[i], ret) ||
	       go_name_frame(instance->image->table, instance->bias, &frames[i], ret);
}

static u32 expand(void *data, const struct runtime_process *p, const struct frame *frames, u32 i, u32 n, u32 flags,
        struct frame *ret, u32 max, u32 *eaten)
{
	struct go_instance *instance = data;
	struct go_table *t = instance->image->table;
	u32 put = 0;

	*eaten = 0;
	if (frame_kind(&frames[i]) != FRAME_NATIVE)
		return 0;
	if (flags & EXPAND_OWN)
		*eaten = go_fold(t, instance->bias, frames, i, n, ret);
	if (*eaten)
		return 1;
	put = go_expand_frame(t, instance->bias, &frames[i], ret, max);
	*eaten = put != 0;
	return put;
}

static struct error *inspect(void *data, const struct runtime_process *p, struct report *out)
{
	const struct go_instance *instance = data;
	const struct go_image *image = instance->image;
	const struct go_config *config =
	        instance->config ? arena_at(p->arena, instance->config, sizeof(*config)) : NULL;

	return go_inspect(image->table, instance->bias, &image->switches, image->missing, config, out);
}

struct go_table *go_instance_table(void *data, u64 *bias)
{
	const struct go_instance *instance = data;

	*bias = instance->bias;
	return instance->image->table;
}

/* runtime/stack.go: a goroutine's stack is copied to where there is more room; that of g0 stays. */
static bool moving_stacks(void *data, const struct runtime_process *p, struct runtime_stacks *ret)
{
	const struct go_instance *instance = data;
	const struct go_config *config =
	        instance->config ? arena_at(p->arena, instance->config, sizeof(*config)) : NULL;

	if (config)
		*ret = (struct runtime_stacks){.pointer = config->tls,
		        .bounds = 0,
		        .thread = config->g_m,
		        .own = config->m_g0,
		        .parks = "runtime.gopark"};
	return config;
}

static bool last_words(void *data, const struct runtime_dying *t, char *ret, size_t size)
{
	struct go_instance *instance = data;
	const struct go_config *config =
	        instance->config ? arena_at(t->p->arena, instance->config, sizeof(*config)) : NULL;
	struct go_dying at = {
	        .p = t->p, .table = instance->image->table, .bias = instance->bias, .frames = t->frames, .n = t->n};

	return go_last_words(&at, config, t->thread_pointer, ret, size);
}

/* rax, rbx, rcx, rdi, rsi, r8, r9, r10, r11: Go 1.17 and later (src/cmd/compile/abi-internal.md) */
static const u8 argument_regs[] = {0, 3, 2, 5, 4, 8, 9, 10, 11};

static const struct runtime_server servers[] = {
        /*
         * net/http/server.go: (sh serverHandler) ServeHTTP(rw ResponseWriter, req *Request), of HTTP/2, too, and below
         * gin, echo, chi, gorilla; request.go, net/url/url.go: Request.Method, .URL.Path
         */
        {"net/http", "go:net/http.serverHandler.ServeHTTP", "arg4+0#,arg4+16+56#", 0},
        /* server.go of grpc-go: (s, t or ctx, stream, info, MethodDesc or StreamDesc), whose name is first; 1.85 on: */
        {"gRPC", "go:google.golang.org/grpc.(*Server).processRPC", "arg6+0#", 0},
        {"gRPC", "go:google.golang.org/grpc.(*Server).processUnaryRPC", "arg6+0#", 0},
        {"gRPC", "go:google.golang.org/grpc.(*Server).processStreamingRPC", "arg6+0#", 0},
        {"Fiber", "go:github.com/gofiber/fiber/v2.(*App).handler", NULL, 0},        /* router.go */
        {"Fiber", "go:github.com/gofiber/fiber/v3.(*App).requestHandler", NULL, 0}, /* router.go */
        {0},
};

static bool made_program(struct image *img)
{
	u64 addr, size;

	return image_section_range(img, ".go.buildinfo", &addr, &size);
}

const struct runtime_ops go_runtime = {
        .name = "go",
        .view = "go",
        .language = "Go",
        .words = {.ahead = true},
        .id = RUNTIME_GO,
        .supported = "Go 1.11 to 1.27 (x86-64)",
        .layout = &go_layout_schema,
        .image_probe = image_probe,
        .cfi_provider = &go_provider,
        .image_destroy = image_destroy,
        .attach = attach,
        .detach = detach,
        .regions = regions,
        .starting = starting,
        .name_frame = name_frame,
        .expands_native = true,
        .expand = expand,
        .functions = go_functions,
        .argument_regs = argument_regs,
        .nargument_regs = sizeof(argument_regs),
        .servers = servers,
        .made_program = made_program,
        .moving_stacks = moving_stacks,
        .last_words = last_words,
        .inspect = inspect,
        .snapshots = go_snapshots,
        .tasks = &go_tasks,
        .heap = &go_refs,
        .rules = go_rules,
};
