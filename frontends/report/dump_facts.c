/* SPDX-License-Identifier: Apache-2.0 */
#include "dump_facts.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/cleanup.h"

#define FRAMES_MAX  65536
#define OTHERS_TOLD 4
#define HEAP_LINES  64
#define STATS       "{\"event\": \"%s\"}"

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static enum profile_kind kind_of(const char *word)
{
	static const char *const words[] = {
#define X(id, word) [id] = word,
	        PROFILE_KINDS(X)
#undef X
	};

	for (u32 i = 0; i < KIND_MAX; i++)
		if (!strcmp(words[i], word))
			return i;
	return KIND_UNKNOWN;
}

/* A stack, leaf first in the file, as a path of the profile. */
static struct error *add_stack(struct profile *p, const json_t *stack)
{
	size_t n = json_array_size(stack);
	u32 node = 0, function;
	struct error *err = NULL;

	for (size_t i = n < FRAMES_MAX ? n : FRAMES_MAX; !err && i-- > 0;) {
		const json_t *frame = json_array_get(stack, i);
		struct profile_function f = {.name = text_of(frame, "name"),
		        .module = text_of(frame, "module"),
		        .file = text_of(frame, "file"),
		        .line = (u32)json_integer_value(json_object_get(frame, "line")),
		        .kind = kind_of(text_of(frame, "kind"))};

		err = profile_function(p, 0, &f, false, &function);
		if (!err)
			err = profile_child(p, node, function, &node);
	}
	if (!err && node)
		profile_add(p, node, 1);
	return err;
}

/* The stacks of all threads, or of one (tid > 0). */
static struct error *make_profile(const json_t *root, json_int_t tid, struct profile **ret)
{
	const json_t *stacks = json_object_get(root, "stacks");
	struct error *err = profile_create(ret);
	json_t *thread;
	size_t i;

	if (err)
		return err;
	json_array_foreach(json_object_get(root, "threads"), i, thread)
	{
		json_int_t stack = json_integer_value(json_object_get(thread, "stack"));

		if (err || stack < 0 || (tid && json_integer_value(json_object_get(thread, "tid")) != tid))
			continue;
		err = add_stack(*ret, json_array_get(stacks, (size_t)stack));
	}
	if (err) {
		profile_destroy(*ret);
		return err;
	}
	(*ret)->meta.unit = "threads";
	(*ret)->meta.target = text_of(root, "target");
	return NULL;
}

static struct error *add_view(struct evidence *e, const json_t *root, const char *name, json_int_t tid)
{
	struct profile *p = NULL;
	char stats[64];
	struct error *err = make_profile(root, tid, &p);

	if (err)
		return err;
	snprintf(stats, sizeof(stats), STATS, name);
	err = profile_string(p, stats, &p->meta.stats);
	if (!err)
		err = profile_string(p, p->meta.target, &p->meta.target);
	profile_finish(p);
	return err ? err : evidence_add(e, name, p);
}

static const json_t *thread_of(const json_t *root, json_int_t tid)
{
	json_t *thread;
	size_t i;

	json_array_foreach(json_object_get(root, "threads"), i, thread)
	{
		if (json_integer_value(json_object_get(thread, "tid")) == tid)
			return thread;
	}
	return NULL;
}

/* "worker (tid 12) waits for a mutex that worker (tid 13) holds", a sentence for each. */
static void deadlock_facts(const json_t *root, struct facts *f)
{
	char *text = NULL;
	size_t size, i;
	FILE *out = open_memstream(&text, &size);
	json_t *thread;
	u32 n = 0;

	if (!out)
		return;
	json_array_foreach(json_object_get(root, "threads"), i, thread)
	{
		const json_t *wait = json_object_get(thread, "waits_for");
		json_int_t owner = json_integer_value(json_object_get(wait, "owner"));
		const char *type = text_of(wait, "type");

		if (!json_is_true(json_object_get(wait, "deadlock")) || n++ >= 8)
			continue;
		fprintf(out, "%s%s (tid %lld) waits for the %s%s%s%s that tid %lld holds", n > 1 ? "; " : "",
		        text_of(thread, "name"), (long long)json_integer_value(json_object_get(thread, "tid")),
		        text_of(wait, "kind"), *type ? " (a " : "", type, *type ? ")" : "", (long long)owner);
	}
	fclose(out);
	facts_set(f, "dump.deadlocked", n);
	if (n)
		facts_set_text(f, "dump.deadlock", text);
	free(text);
}

/* Of the signal, unless a process sent it, or of the one that was being handled when abort() was called. */
static bool is_fault(const json_t *core, json_int_t signal)
{
	const json_t *first = json_object_get(core, "first_signal");
	json_int_t number = json_is_integer(first) ? json_integer_value(first) : signal;

	if (!json_is_integer(first) && json_object_get(core, "sent_by"))
		return false;
	return number == SIGSEGV || number == SIGBUS || number == SIGILL || number == SIGFPE || number == SIGTRAP;
}

/* abort() was called. A supervisor sends SIGABRT, too, to what does not answer. */
static bool is_abort(const json_t *core, json_int_t signal)
{
	const json_t *sender = json_object_get(core, "sent_by");

	return signal == SIGABRT &&
	       (!sender || json_integer_value(sender) == json_integer_value(json_object_get(core, "pid")));
}

/* What lies at the address, as numbers for rules: at most one is 1. */
static void address_facts(const char *about, bool fault, struct facts *f)
{
	bool null = !strncmp(about, "a null pointer", 14), overflow = !strncmp(about, "stack overflow", 14),
	     wild = *about && strncmp(about, "it is not aligned", 17);

	facts_set(f, "core.null", fault && null);
	facts_set(f, "core.overflow", fault && overflow);
	facts_set(f, "core.wild", fault && wild && !null && !overflow);
	facts_set(f, "core.fault", fault);
	facts_set_text(f, "core.about", *about ? about : "not known");
}

/* "2 in worker (jobs.c:40)", of threads other than the one that died, the greatest group first in the file. */
static void other_threads(const json_t *root, json_int_t killed, struct facts *f)
{
	const json_t *threads = json_object_get(root, "threads");
	char *text = NULL;
	const char *before = NULL;
	size_t size, i, n = json_array_size(threads), group = 0, groups = 0;
	FILE *out = open_memstream(&text, &size);
	json_t *thread;

	if (!out)
		return;
	for (i = 0; i <= n; i++) {
		const char *own;

		thread = json_array_get(threads, i);
		if (thread && json_integer_value(json_object_get(thread, "tid")) == killed)
			continue;
		own = thread ? text_of(thread, "own") : NULL;
		if (group && (!own || strcmp(own, before) != 0)) {
			if (groups++ < OTHERS_TOLD)
				fprintf(out, "%s%zu in %s", groups > 1 ? ", " : "", group,
				        *before ? before : "code of libraries");
			group = 0;
		}
		before = own;
		group += own != NULL;
	}
	if (groups > OTHERS_TOLD)
		fprintf(out, ", and %zu other groups", groups - OTHERS_TOLD);
	if (!groups)
		fputs("there were none", out);
	fclose(out);
	facts_set_text(f, "core.others", text);
	free(text);
}

static struct error *crash_facts(struct evidence *e, const json_t *root)
{
	const json_t *core = json_object_get(root, "core");
	json_int_t tid = json_integer_value(json_object_get(core, "thread")),
	           signal = json_integer_value(json_object_get(core, "signal"));
	const json_t *thread = tid ? thread_of(root, tid) : NULL;
	const char *instruction = text_of(core, "instruction");
	bool run = !strcmp(text_of(core, "access"), "run");

	if (!core)
		return NULL;
	facts_set(&e->facts, "core.signal", (double)signal);
	facts_set(&e->facts, "core.abort", is_abort(core, signal));
	facts_set_text(&e->facts, "core.signal.name", signal ? strsignal((int)signal) : "none");
	facts_set_text(&e->facts, "core.file", text_of(core, "file"));
	facts_set_text(&e->facts, "core.verdict", text_of(core, "verdict"));
	facts_set_text(&e->facts, "core.message", text_of(core, "message"));
	facts_set_text(&e->facts, "core.instruction",
	        *instruction ? instruction
	        : run        ? "a call or a jump"
	                     : "an unknown one");
	address_facts(text_of(core, "address_is"), is_fault(core, signal), &e->facts);
	other_threads(root, tid, &e->facts);
	if (json_object_get(core, "address"))
		facts_set_text(&e->facts, "core.address.text", text_of(core, "address"));
	if (!thread)
		return NULL;
	facts_set_text(&e->facts, "core.thread", text_of(thread, "name"));
	facts_set(&e->facts, "core.tid", (double)tid);
	facts_set(&e->facts, "core.frames",
	        (double)json_array_size(json_array_get(json_object_get(root, "stacks"),
	                (size_t)json_integer_value(json_object_get(thread, "stack")))));
	return add_view(e, root, "crash", tid);
}

void holder_facts_read(struct evidence *e, const char *path)
{
	json_t *root = json_load_file(path, 0, NULL);
	const json_t *thread = json_array_get(json_object_get(root, "threads"), 0);
	const char *own = text_of(thread, "own"), *call = text_of(json_object_get(thread, "syscall"), "name");
	char *text = NULL;

	if (thread && asprintf(&text, "It is %s%s%s%s%s.", text_of(thread, "state"), *call ? " in " : "", call,
	                      *own ? ", called by " : "", own) >= 0)
		facts_set_text(&e->facts, "lock.file.does", text);
	free(text);
	json_decref(root);
}

/* The first line of `yrt heap` that says what is broken, and what memory is used for. */
void heap_facts_read(struct evidence *e, const char *path)
{
	cleanup(fclose) FILE *in = fopen(path, "re");
	cleanup(free) char *line = NULL;
	size_t size = 0;

	facts_set(&e->facts, "core.heap.broken", 0);
	for (u32 i = 0; in && i < HEAP_LINES && getline(&line, &size, in) > 0; i++) {
		const char *memory = strstr(line, " (core of pid "), *rest = memory ? strstr(memory, "): ") : NULL;

		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "CORRUPT: ", 9) && !facts_number(&e->facts, "core.heap.broken")) {
			facts_set(&e->facts, "core.heap.broken", 1);
			facts_set_text(&e->facts, "core.heap", line + 9);
		} else if (rest) {
			facts_set_text(&e->facts, "core.memory", rest + 3);
			evidence_step(e, false, "memory: %s", rest + 3);
			return;
		}
	}
}

struct error *dump_facts_read(struct evidence *e, const char *path)
{
	json_error_t where;
	json_t *root = json_load_file(path, 0, &where);
	struct error *err;

	if (!root)
		return error_new(ERROR_INPUT, "%s:%d: %s", path, where.line, where.text);
	facts_set(&e->facts, "dump.threads", (double)json_array_size(json_object_get(root, "threads")));
	err = add_view(e, root, "dump", 0);
	if (!err) {
		deadlock_facts(root, &e->facts);
		err = crash_facts(e, root);
	}
	json_decref(root);
	return err ? err : facts_check(&e->facts);
}
