/* SPDX-License-Identifier: Apache-2.0 */
/* A dump as JSON: each stack once; threads refer to theirs by index. */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "dump_view.h"
#include "frontends/format/text.h"
#include "unwind/cleanup.h"
#include "unwind/binary/core_file.h"
#include "unwind/process/process.h"
#include "unwind/process/syscall.h"
#include "unwind/profile/locks.h"

static const char *const hows[] = {
        [DUMP_WALKED] = "walked",
        [DUMP_TORN] = "torn",
        [DUMP_SAMPLED] = "sampled",
        [DUMP_UNSEEN] = "unseen",
        [DUMP_EXITING] = "exiting",
};

static void set_text(json_t *object, const char *key, const char *text)
{
	char clean[TEXT_CLEAN];

	text_clean(text, clean);
	json_object_set_new(object, key, json_string(clean));
}

static json_t *json_frame(const struct profile_function *f)
{
	json_t *object = json_object();
	char name[VIEW_NAME];

	view_name(f, name);
	set_text(object, "name", *name ? name : text_name(f));
	set_text(object, "kind", text_kind(f->kind));
	if (*f->module)
		set_text(object, "module", f->module);
	if (*f->file)
		set_text(object, "file", f->file);
	if (f->line)
		json_object_set_new(object, "line", json_integer(f->line));
	if (f->flags & FRAME_GUESS)
		json_object_set_new(object, "guess", json_true());
	if (f->flags & FRAME_APPROX)
		json_object_set_new(object, "approximate", json_true());
	return object;
}

static json_t *json_stack(const struct dump_view *v, u32 top)
{
	json_t *list = json_array();
	u32 n;
	cleanup(free) u32 *frames = view_frames(v, top, &n);

	for (u32 i = 0; frames && i < n; i++)
		json_array_append_new(list, json_frame(&v->profile->functions[v->profile->nodes[frames[i]].function]));
	return list;
}

static void set_syscall(json_t *object, const struct view_thread *t)
{
	json_t *call, *arguments;
	const char *name = syscall_name(t->t->at.syscall);

	if (!t->t->syscall)
		return;
	call = json_object();
	arguments = json_array();
	json_object_set_new(call, "number", json_integer(t->t->at.syscall));
	if (name)
		json_object_set_new(call, "name", json_string(name));
	set_text(call, "text", t->t->syscall);
	for (int i = 0; i < 6; i++)
		json_array_append_new(arguments, json_integer((json_int_t)t->t->at.arguments[i]));
	json_object_set_new(call, "arguments", arguments);
	json_object_set_new(object, "syscall", call);
}

static void set_wait(json_t *object, const struct dump_view *v, const struct view_thread *t)
{
	const struct runtime_wait *w = &t->t->wait;
	json_t *wait;

	if (!t->waits)
		return;
	wait = json_pack("{s:s, s:I, s:b}", "kind", lock_kind_awaited(w->kind), "address", (json_int_t)w->at,
	        "deadlock", (int)t->deadlocked);
	if (*w->type)
		set_text(wait, "type", w->type);
	if (t->t->lock)
		set_text(wait, "name", t->t->lock);
	if (t->owned)
		json_object_set_new(wait, "owner", json_integer(v->threads[t->owner].t->at.tid));
	if (*w->holder_name)
		set_text(wait, "owner_name", w->holder_name);
	json_object_set_new(object, "waits_for", wait);
}

static json_t *json_thread(const struct dump_view *v, const struct view_thread *t, u32 stack)
{
	const struct dump_thread *d = t->t;
	json_t *object = json_pack(
	        "{s:i, s:i, s:i}", "pid", (int)d->at.tgid, "tid", (int)d->at.tid, "own_tid", (int)d->at.own_tid);

	set_text(object, "name", t->name);
	set_text(object, "comm", d->at.comm);
	if (t->own)
		set_text(object, "own", t->own);
	set_text(object, "state", view_state(d));
	set_text(object, "how", hows[d->how]);
	json_object_set_new(object, "stack", json_integer(stack));
	json_object_set_new(object, "switches", json_integer((json_int_t)d->at.switches));
	json_object_set_new(object, "cpu_ns", json_integer((json_int_t)d->at.run_ns));
	if (d->at.off_ns && d->how == DUMP_WALKED)
		json_object_set_new(object, "off_cpu_ns", json_integer((json_int_t)d->at.off_ns));
	if (d->how == DUMP_WALKED || d->how == DUMP_TORN)
		set_text(object, "walk", stop_word(d->stop));
	if (d->left_out)
		json_object_set_new(object, "frames_left_out", json_integer(d->left_out));
	if (v->dumps > 1) {
		json_object_set_new(object, "same_stack", json_integer(t->same + 1));
		json_object_set_new(object, "not_run", json_integer(t->still + 1));
	}
	set_syscall(object, t);
	set_wait(object, v, t);
	return object;
}

static json_t *json_task(const struct dump_view *v, const struct view_task *t, u32 stack)
{
	json_t *object = json_pack("{s:i, s:i, s:i, s:i}", "pid", (int)process_view(t->t->process).first, "task",
	        (int)t->number, "stack", (int)stack, "awaiters", (int)t->awaiters);

	set_text(object, "kind", t->t->ops->kind);
	set_text(object, "name", t->t->name);
	set_text(object, "state", t->t->state);
	set_text(object, "walk", stop_word(t->t->stop));
	if (t->awaits)
		json_object_set_new(object, "awaits", json_integer(v->tasks[t->awaits - 1].number));
	if (t->awaiter)
		json_object_set_new(object, "awaited_by", json_integer(v->tasks[t->awaiter - 1].number));
	return object;
}

/* Their stacks follow those of the threads. */
static void set_tasks(json_t *root, const struct dump_view *v, json_t *stacks)
{
	json_t *tasks = json_array();

	for (u32 i = 0; i < v->ntasks; i++) {
		if (!i || v->tasks[i].stack != v->tasks[i - 1].stack)
			json_array_append_new(stacks, json_stack(v, v->tasks[i].top));
		json_array_append_new(tasks, json_task(v, &v->tasks[i], (u32)json_array_size(stacks) - 1));
	}
	json_object_set_new(root, "tasks", tasks);
	json_object_set_new(root, "all_tasks", json_boolean(!v->partial));
}

/* As text: a number of JSON has 53 bits. */
static void set_address(json_t *object, u64 addr)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%lx", addr);
	set_text(object, "address", text);
}

static void set_crash(json_t *object, const struct crash *c)
{
	const char *access = crash_access_word(c->access);

	if (*c->instruction)
		set_text(object, "instruction", c->instruction);
	if (*c->about)
		set_text(object, "address_is", c->about);
	if (access)
		set_text(object, "access", access);
	if (*c->message)
		set_text(object, "message", c->message);
	if (c->speaker)
		json_object_set_new(object, "message_of", json_integer(c->speaker));
	if (c->first)
		json_object_set_new(object, "first_signal", json_integer(c->first));
	if (c->has_address)
		set_address(object, c->address);
}

static void set_core(json_t *root, const struct dump_view *v)
{
	const struct core_file *core = v->core;
	json_t *object;

	if (!core)
		return;
	object = json_object();
	set_text(object, "file", core->path);
	json_object_set_new(object, "pid", json_integer(core->pid));
	if (core->signal) {
		json_object_set_new(object, "signal", json_integer(core->signal));
		json_object_set_new(object, "thread", json_integer(core->killed));
	}
	if (core->sent)
		json_object_set_new(object, "sent_by", json_integer(core->sender));
	if (core->has_address)
		set_address(object, core->address);
	if (v->crash)
		set_crash(object, v->crash);
	if (v->verdict)
		set_text(object, "verdict", v->verdict);
	json_object_set_new(object, "missing_bytes", json_integer((json_int_t)core->missing));
	json_object_set_new(root, "core", object);
}

struct error *dump_write_json(const struct dump_view *v, FILE *out)
{
	json_t *root = json_object(), *threads = json_array(), *stacks = json_array();
	bool failed;
	u32 n = 0;

	set_text(root, "target", v->target);
	set_core(root, v);
	json_object_set_new(root, "dumps", json_integer(v->dumps));
	for (u32 i = 0, end; i < v->nthreads; i = end, n++) {
		end = view_group_end(v, i);
		json_array_append_new(stacks, json_stack(v, v->threads[i].top));
		for (u32 k = i; k < end; k++)
			json_array_append_new(threads, json_thread(v, &v->threads[k], n));
	}
	json_object_set_new(root, "threads", threads);
	if (v->logical)
		set_tasks(root, v, stacks);
	json_object_set_new(root, "stacks", stacks);
	failed = json_dumpf(root, out, JSON_INDENT(1)) || fputc('\n', out) == EOF;
	json_decref(root);
	return failed ? error_new(ERROR_OUTPUT, "cannot write the JSON: %s", strerror(errno)) : NULL;
}
