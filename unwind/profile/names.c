/* SPDX-License-Identifier: Apache-2.0 */
#include "names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "binary/proc_path.h"
#include "collect.h"
#include "frame_code.h"
#include "inline_sites.h"
#include "native_kind.h"
#include "native_names.h"
#include "process/process.h"
#include "profile_places.h"
#include "runtime.h"
#include "runtime_alloc.h"
#include "symbols/jit_symbols.h"
#include "symbols/perf_map.h"
#include "symbols/symbols.h"
#include "symbols/translated.h"
#include "table.h"

/* What processes say of code that they compiled themselves: in /tmp/perf-PID.map, or to debuggers (jit_symbols.h). */

struct jit {
	struct perf_map *map;
	struct jit_symbols *symbols;
};

static void jit_destroy(struct jit *jit)
{
	perf_map_destroy(jit->map);
	jit_symbols_destroy(jit->symbols);
	free(jit);
}

static struct error *jit_create(pid_t pid, struct jit **ret)
{
	struct jit *jit = calloc(1, sizeof(*jit));
	struct error *err =
	        jit && (jit->symbols = jit_symbols_create()) ? perf_map_create(pid, &jit->map) : &error_no_memory;

	if (err && jit)
		jit_destroy(jit);
	*ret = jit;
	return err;
}

/* processes: what is known of each so far, empty at first. */
static void jit_names_free(struct table *processes)
{
	for (size_t i = 0; i < processes->capacity; i++)
		if (processes->entries[i].key)
			jit_destroy((struct jit *)(uintptr_t)processes->entries[i].value);
	table_free(processes);
}

/* The name of the code at addr in p, valid until the next call; *ret is NULL if there is none. */
static struct error *jit_names_find(struct table *processes, const struct process *p, u64 addr, const char **ret)
{
	u64 key = XXH3_64bits(&p->number, sizeof(p->number)) | 1, *known = table_get(processes, key);
	struct jit *jit = known ? (struct jit *)(uintptr_t)*known : NULL;
	struct error *err = NULL;

	*ret = NULL;
	if (!jit && p->dead)
		return NULL; /* its pid may be another's by now */
	if (!jit) {
		err = jit_create(p->pid, &jit);
		if (!err && (err = table_put(processes, key, (u64)(uintptr_t)jit)))
			jit_destroy(jit);
	}
	if (err)
		return err;
	*ret = perf_map_find(jit->map, addr);
	if (!*ret)
		*ret = jit_symbols_find(jit->symbols, p->memory, p->mappings, p->maps.nlines, addr);
	return NULL;
}

static enum profile_kind frame_kind_of(const struct frame_name *name)
{
	static const enum profile_kind kinds[] = {[FORM_INTERPRETED] = KIND_SCRIPT,
	        [FORM_BASELINE] = KIND_SCRIPT_BASELINE,
	        [FORM_JIT] = KIND_SCRIPT_JIT,
	        [FORM_NATIVE] = KIND_SCRIPT_NATIVE,
	        [FORM_STUB] = KIND_STUB,
	        [FORM_WORK] = KIND_WORK,
	        [FORM_CLASS] = KIND_CLASS,
	        [FORM_LABEL] = KIND_LABEL};

	return kinds[name->form];
}

/* "name (file.lua:42)" or "name(int)", and behind it ":57" where functions are split by line. */
static void frame_show(const struct frame_name *name, const struct names_options *options, char *text, size_t size)
{
	int n = snprintf(text, size, "%s%s",
	        name->name[0]      ? name->name
	        : name->definition ? "function"
	                           : "?",
	        options->signatures ? name->signature : "");

	if (name->file[0] && name->definition && !name->qualified)
		n += snprintf(text + n, size - n, " (%s:%u)", profile_place(name->file), name->definition);
	else if (name->file[0] && !name->qualified)
		n += snprintf(text + n, size - n, " (%s)", profile_place(name->file));
	if (options->lines && name->line)
		snprintf(text + n, size - n, ":%u", name->line);
}

#define PLACE_TEXT 320 /* a file's name, and where in it */

struct names {
	struct profile *profile;
	const struct modules *modules;
	struct names_options options;
	struct kernel_names kernel;
	struct table cache;         /* of frames: packed struct named */
	struct inline_sites *sites; /* NULL: inlined functions are not wanted */
	struct table files;         /* whose names were read by the reader, or never will be */
	struct native_names native;
	struct table jits; /* struct jit_names */
};

/* Facts that make a function, hashed to its key in the profile. */
struct identity {
	u64 kind, a, b, c;
};

static u64 identity_key(u64 kind, u64 a, u64 b, u64 c)
{
	struct identity id = {kind, a, b, c};

	return XXH3_64bits(&id, sizeof(id));
}

struct error *names_create(
        struct profile *profile, const struct modules *modules, const struct names_options *options, struct names **ret)
{
	struct names *names = calloc(1, sizeof(*names));

	if (!names)
		return &error_no_memory;
	names->profile = profile;
	names->modules = modules;
	names->options = *options;
	names->native.mangled = options->mangled;
	names->kernel.ask = options->kernel;
	names->kernel.ctx = options->kernel_ctx;
	if (options->inlines) {
		struct inline_sites_options sites = {.lines = options->lines,
		        .mangled = options->mangled,
		        .addresses = options->addresses,
		        .modules = modules,
		        .view = options->view,
		        .objects = options->objects};
		struct error *err = inline_sites_create(&sites, &names->sites);

		if (err) {
			free(names);
			return err;
		}
	}
	*ret = names;
	return NULL;
}

void names_destroy(struct names *names)
{
	if (!names)
		return;
	table_free(&names->cache);
	table_free(&names->files);
	jit_names_free(&names->jits);
	native_names_free(&names->native);
	inline_sites_destroy(names->sites);
	free(names);
}

static u64 file_key(const struct loaded *loaded)
{
	return identity_key((u64)(uintptr_t)loaded, 0, 0, 0) | 1;
}

static bool module_ready(struct names *names, u32 number)
{
	const struct module *m = module_at(names->modules, number);
	struct file_names file;
	char root[64];
	u64 key;

	if (!m)
		return true;
	key = file_key(m->loaded);
	if (table_get(&names->files, key))
		return true;
	proc_path(root, sizeof(root), m->pid, "root");
	if (!name_reader_has(names->options.reader, m->loaded->image, root, &file))
		return false;
	error_free(table_put(&names->files, key, 1));
	if (file.read)
		native_names_keep(&names->native, m->loaded, &file.by_language);
	else
		c_names_free(&file.by_language);
	return true;
}

/* All are looked at, so that what is not there is read in one go. */
bool names_ready(struct names *names, const struct frame *frames, u32 n)
{
	bool ready = true;

	for (u32 i = 0; names->options.reader && i < n; i++)
		if (frame_kind(&frames[i]) == FRAME_NATIVE)
			ready &= module_ready(names, (u32)frames[i].detail);
	return ready;
}

static struct error *name_kernel(struct names *names, const struct frame *f, struct named *ret)
{
	u64 addr = frame_code(f);
	struct profile_function fn = {.module = "kernel", .file = "", .kind = KIND_KERNEL};

	fn.name = kernel_names_find(&names->kernel, addr);
	ret->unresolved = !fn.name;
	ret->leads = fn.name && names->options.leads_to_program && names->options.leads_to_program(fn.name);
	if (!fn.name)
		fn.name = "[kernel]";
	return profile_function(names->profile, 0, &fn, false, &ret->function);
}

/* A forked child has what its parent had. If it has ended or runs another program, the parent still knows that. */
static const struct process *parent_of(const struct names *names, const struct process *p)
{
	return p->parent && p->parent < p->number ? names->options.find(names->options.find_ctx, p->parent) : NULL;
}

static bool hides(const struct names *names, const struct process *p, const struct loaded *loaded, const char *symbol)
{
	for (u32 i = 0; i < p->ninstances; i++) {
		const struct instance *at = &p->instances[i];
		const struct runtime_ops *ops = at->ops;

		if (!view_has(names->options.view, ops->id) || at->loaded != loaded || !at->data)
			continue;
		if (ops->is_runtime_internal && ops->is_runtime_internal(at->data, symbol))
			return true;
		if (names->options.objects && ops->alloc && (!*symbol || ops->alloc->is_runtime_internal(symbol)))
			return true;
	}
	return false;
}

/* Does a language's frame stand for this native one? */
static bool is_hidden(
        const struct names *names, const struct process *p, const struct loaded *loaded, const char *symbol, u32 flags)
{
	bool hidden = names->options.view && flags & FRAME_VM;

	for (; names->options.view && loaded && p && !hidden; p = parent_of(names, p))
		hidden = hides(names, p, loaded, symbol);
	return hidden;
}

/* Of a core, whoever has the file can look the place up: "libx.so.1+0x1149" is an offset in it. */
static const char *name_missing(const struct process *p, const struct mapping *m, u64 addr, char text[PLACE_TEXT])
{
	if (!p->core || *m->name != '/')
		return m->name[0] ? basename(m->name) : "[anonymous]";
	snprintf(text, PLACE_TEXT, "%s+0x%lx", basename(m->name), addr - m->start + m->offset);
	return text;
}

/* Code that lies in no ELF file: a JIT's, or a file that could not be read. */
static struct error *name_anonymous(
        struct names *names, const struct process *p, const struct frame *f, struct named *ret)
{
	const struct mapping *m = process_mapping(p, frame_addr(f));
	bool vm = frame_flags(f) & FRAME_VM;
	char text[PLACE_TEXT];
	struct profile_function fn = {.module = m && m->name[0] ? m->name : "",
	        .file = "",
	        .kind = vm ? KIND_VM : KIND_UNKNOWN,
	        .flags = frame_flags(f) & FRAME_GUESS};
	u64 addr = frame_code(f), key = 0;
	struct error *err = vm ? NULL : jit_names_find(&names->jits, p, addr, &fn.name);

	if (err)
		return err;
	if (fn.name)
		fn.kind = KIND_SCRIPT_JIT;
	ret->unresolved = !vm && !fn.name;
	if (!fn.name)
		fn.name = vm ? "[jit]" : !m ? "[unmapped]" : name_missing(p, m, addr, text);
	ret->hidden = is_hidden(names, p, NULL, "", frame_flags(f));
	if (names->options.addresses) {
		fn.address = addr;
		key = identity_key(fn.kind | fn.flags << 8, 0, fn.address, p->number);
	}
	return profile_function(names->profile, key, &fn, false, &ret->function);
}

/* Where fn's code is from, for formats that record it. */
static struct error *set_image(struct names *names, const struct loaded *loaded, struct profile_function *fn)
{
	const struct image *img = loaded->image;
	char build_id[IMAGE_ID_TEXT];

	image_id_text(img, build_id);
	return profile_image(names->profile, loaded->path, build_id, &fn->image);
}

/* Where debug information has inlined functions, a place in code is a function of its own for now. */
static struct error *name_site(struct names *names, const struct module *m, const struct profile_function *fn, u64 addr,
        enum site_part part, struct named *ret)
{
	bool site;
	struct error *err = inline_sites_has(names->sites, m, &site);
	u64 key = site && !names->options.addresses ? addr : fn->address;

	if (!err)
		err = profile_function(names->profile,
		        identity_key(fn->kind | fn->flags << 8, (u64)(uintptr_t)m->loaded, key, site ? 1 + part : 0),
		        fn, false, &ret->function);
	ret->hidden = part == SITE_INLINED && !site;
	if (err || !site || ret->function <= PROFILE_FULL)
		return err;
	return inline_sites_add(names->sites, ret->function, m, addr, part);
}

static enum site_part site_part(const struct frame *frames, u32 i)
{
	if (frame_flags(&frames[i]) & FRAME_INLINED)
		return SITE_INLINED;
	return names_runs_script(frames, i) ? SITE_OUTERMOST : SITE_WHOLE;
}

/* A library that is a runtime, or a program that has its name; not one that a runtime is a part of. */
static bool is_runtime_file(const struct process *p, const struct loaded *loaded)
{
	const char *file = basename(loaded->path);

	for (u32 i = 0; p && i < p->ninstances; i++)
		if (p->instances[i].loaded == loaded)
			return strstr(file, ".so") || strstr(file, p->instances[i].ops->name);
	return false;
}

static struct error *name_native(
        struct names *names, const struct process *p, const struct frame *frames, u32 i, struct named *ret)
{
	const struct frame *f = &frames[i];
	const struct module *m = module_at(names->modules, (u32)f->detail);
	u32 flags = frame_flags(f);
	u64 place = frame_code(f);
	struct native_name name;
	struct profile_function fn = {.file = "", .name = name.text, .flags = flags & FRAME_GUESS};
	struct error *err;

	if (!m)
		return name_anonymous(names, p, f, ret);
	err = native_names_find(&names->native, m, place - m->bias, &name);
	if (err)
		return err;
	ret->unresolved = !name.start;
	ret->layer = names->options.mangled ? TRANSLATED_NONE : translated_layer(name.mangled);
	fn.module = loaded_name(m->loaded);
	fn.kind = native_kind(name.mangled, flags & FRAME_VM);
	fn.address = names->options.addresses ? place - m->bias : name.start;
	err = set_image(names, m->loaded, &fn);
	if (err)
		return err;
	ret->is_thread_entry = view_is_thread_entry(names->options.view, name.mangled);
	ret->hidden = ret->is_thread_entry || is_hidden(names, p, m->loaded, name.mangled, flags) ||
	              (names->options.view && translated_is_glue(name.mangled));
	if (names->sites && !ret->hidden && !(names->options.own_inlines && is_runtime_file(p, m->loaded)))
		return name_site(names, m, &fn, name.addr, site_part(frames, i), ret);
	return profile_function(names->profile,
	        identity_key(fn.kind | fn.flags << 8, (u64)(uintptr_t)m->loaded, fn.address, 0), &fn, false,
	        &ret->function);
}

/* A function of the language that is written in C and has no name there: that of its code. */
static struct error *name_by_code(struct names *names, const struct process *p, struct frame_name *name)
{
	const struct mapping *map = process_mapping(p, name->native_address);
	const struct module *m = map ? module_at(names->modules, map->module) : NULL;
	struct native_name native;
	struct error *err = m ? native_names_find(&names->native, m, name->native_address - m->bias, &native) : NULL;

	if (m && !err)
		snprintf(name->name, sizeof(name->name), "%.*s", NAME_MAX_BYTES - 1, native.text);
	return err;
}

/* Where the code of a language that is compiled ahead of time lies. */
static struct error *set_code(
        struct names *names, const struct process *p, const struct frame_name *name, struct profile_function *fn)
{
	const struct mapping *map = name->code ? process_mapping(p, name->code) : NULL;
	const struct module *m = map ? module_at(names->modules, map->module) : NULL;

	if (!m)
		return NULL;
	fn->address = (names->options.addresses ? name->code : name->code_start) - m->bias;
	return set_image(names, m->loaded, fn);
}

static struct error *name_gone(struct names *names, const struct runtime_ops *ops, struct named *ret)
{
	struct profile_function fn = {
	        .module = ops ? ops->name : "", .file = "", .name = "[gone]", .kind = KIND_UNKNOWN};

	ret->unresolved = true;
	return profile_function(names->profile, 0, &fn, false, &ret->function);
}

static bool leads_to_object(const struct names *names, const struct runtime_ops *ops, const struct frame_name *name)
{
	return names->options.objects && ops->alloc && name->form == FORM_STUB &&
	       ops->alloc->is_runtime_internal(name->name);
}

static bool ask_runtime(const struct process *p, const struct runtime_ops *ops, const struct frame *frames, u32 i,
        u32 n, struct frame_name *ret)
{
	struct runtime_process view = process_view(p);

	for (u32 k = 0; k < p->ninstances; k++) {
		memset(ret, 0, sizeof(*ret));
		if (p->instances[k].ops == ops && p->instances[k].data &&
		        ops->name_frame(p->instances[k].data, &view, frames, i, n, ret))
			return true;
	}
	return false;
}

static struct error *name_script(
        struct names *names, const struct process *p, const struct frame *frames, u32 i, u32 n, struct named *ret)
{
	const struct runtime_ops *ops = runtime_by_id(frame_runtime(&frames[i]));
	struct frame_name name;
	struct error *err = NULL;
	char text[SHOWN_MAX];
	u64 place;
	struct profile_function fn = {
	        .name = text, .flags = frame_flags(&frames[i]) & (FRAME_GUESS | FRAME_APPROX | FRAME_INLINED)};

	while (ops && p && !ask_runtime(p, ops, frames, i, n, &name))
		p = parent_of(names, p);
	if (!ops || !p)
		return name_gone(names, ops, ret);
	ret->by_code = name.native_address;
	if (ret->by_code && !name.name[0] && (err = name_by_code(names, p, &name)))
		return err;
	frame_show(&name, &names->options, text, sizeof(text));
	fn.module = ops->name;
	fn.file = name.file;
	fn.line = names->options.lines && name.line ? name.line : name.definition;
	fn.definition = name.definition;
	fn.kind = frame_kind_of(&name);
	ret->hidden = view_has(names->options.view, ops->id) && (name.entry || leads_to_object(names, ops, &name));
	place = names->options.addresses && name.code ? name.code : names->options.lines ? name.line : 0;
	err = set_code(names, p, &name, &fn);
	return err ? err
	           : profile_function(names->profile,
	                     identity_key(fn.kind | fn.flags << 8, name.identity, place, p->number), &fn,
	                     name.name[0] != '\0', &ret->function);
}

/* What a frame of a language may be named by: its caller, behind frames of its VM. */
static u32 caller_of(const struct frame *frames, u32 i, u32 n)
{
	for (i++; i < n && frame_kind(&frames[i]) == FRAME_NATIVE && frame_flags(&frames[i]) & FRAME_VM;)
		i++;
	return i;
}

static u64 cache_key(const struct process *p, const struct frame *frames, u32 i, u32 n)
{
	u32 caller = caller_of(frames, i, n);

	struct {
		struct frame frame, caller;
		u64 process;
	} key = {.frame = frames[i]};

	if (frame_kind(&frames[i]) == FRAME_SCRIPT) {
		key.process = p->number;
		if (caller < n)
			key.caller = frames[caller];
	} else if (frame_kind(&frames[i]) == FRAME_NATIVE && !frames[i].detail) {
		key.process = p->number; /* no module: named by the process's own mappings */
	} else if (frame_kind(&frames[i]) == FRAME_NATIVE) {
		key.process = names_runs_script(frames, i);
	} else if (frame_kind(&frames[i]) == FRAME_GAP) {
		key.process = i + 1 == n;
	}
	return XXH3_64bits(&key, sizeof(key));
}

/*
 * Native frames between the callee and what its runtime went on with, and why they are not there. A view shows no
 * native frames outside of its language's anyway.
 */
static struct error *name_gap(struct names *names, const struct frame *f, bool outermost, struct named *ret)
{
	char text[64];
	struct profile_function fn = {.module = "", .file = "", .name = text, .kind = KIND_UNKNOWN};

	snprintf(text, sizeof(text), "[native frames missing here: %s]", stop_word((u32)f->detail));
	ret->hidden = outermost && names->options.view;
	return profile_function(names->profile, 0, &fn, false, &ret->function);
}

/* Why the event happened. */
static struct error *name_reason(struct names *names, const struct frame *f, struct named *ret)
{
	char text[REASON_LEN] = "", shown[REASON_LEN + 2];
	struct profile_function fn = {.module = "", .file = "", .name = shown, .kind = KIND_KERNEL};
	bool object = frame_kind(f) == FRAME_OBJECT;

	if (object && names->options.object)
		names->options.object(f->detail, text);
	else if (!object && names->options.reason)
		names->options.reason((u32)f->detail, text);
	if (!object && names->options.reason_kind)
		fn.kind = names->options.reason_kind((u32)f->detail);
	if (object && names->options.object_kind)
		fn.kind = names->options.object_kind;
	snprintf(shown, sizeof(shown), object && *text ? "%s" : "[%s]", *text ? text : object ? "others" : "?");
	return profile_function(names->profile, 0, &fn, false, &ret->function);
}

void names_prefetch(struct names *names, const struct process *p, const struct frame *frames, u32 n)
{
	struct frame_name name;

	for (u32 i = 0; i < n; i++) {
		const struct runtime_ops *ops =
		        frame_kind(&frames[i]) == FRAME_SCRIPT ? runtime_by_id(frame_runtime(&frames[i])) : NULL;

		if (ops && !table_get(&names->cache, cache_key(p, frames, i, n)))
			ask_runtime(p, ops, frames, i, n, &name);
	}
}

static struct error *name_frame(
        struct names *names, const struct process *p, const struct frame *frames, u32 i, u32 n, struct named *ret)
{
	if (frame_kind(&frames[i]) == FRAME_GAP)
		return name_gap(names, &frames[i], i + 1 == n, ret);
	if (frame_kind(&frames[i]) == FRAME_REASON || frame_kind(&frames[i]) == FRAME_OBJECT)
		return name_reason(names, &frames[i], ret);
	if (frame_kind(&frames[i]) == FRAME_KERNEL)
		return name_kernel(names, &frames[i], ret);
	if (!p)
		return name_gone(names, NULL, ret);
	if (frame_kind(&frames[i]) == FRAME_NATIVE)
		return name_native(names, p, frames, i, ret);
	return name_script(names, p, frames, i, n, ret);
}

struct error *names_frame(
        struct names *names, const struct process *p, const struct frame *frames, u32 i, u32 n, struct named *ret)
{
	u64 key = p ? cache_key(p, frames, i, n) : 0, *known = p ? table_get(&names->cache, key) : NULL;
	struct error *err;

	if (known) {
		*ret = (struct named){.function = (u32)*known,
		        .hidden = *known >> 32 & 1,
		        .unresolved = *known >> 33 & 1,
		        .by_code = *known >> 34 & 1,
		        .layer = *known >> 35 & 3,
		        .is_thread_entry = *known >> 37 & 1,
		        .leads = *known >> 38 & 1};
		return NULL;
	}
	*ret = (struct named){0};
	err = name_frame(names, p, frames, i, n, ret);
	if (err || !p ||
	        (ret->unresolved && (frame_kind(&frames[i]) == FRAME_SCRIPT ||
	                                    (frame_kind(&frames[i]) == FRAME_NATIVE && !frames[i].detail))))
		return err; /* a JIT may report it later, or another function stands where this one is gone */
	return table_put(&names->cache, key,
	        (u64)ret->function | (u64)ret->hidden << 32 | (u64)ret->unresolved << 33 | (u64)ret->by_code << 34 |
	                (u64)ret->layer << 35 | (u64)ret->is_thread_entry << 37 | (u64)ret->leads << 38);
}

struct error *names_inlined_part(
        struct names *names, const struct process *p, const struct frame *loop, struct named *ret)
{
	struct frame f = *loop;

	f.where |= (u64)FRAME_INLINED << FRAME_ADDR_BITS;
	*ret = (struct named){.hidden = true};
	return names->sites && p && f.detail ? names_frame(names, p, &f, 0, 1, ret) : NULL;
}

struct error *names_inlined(struct names *names, u32 function, const char *const **ret, u32 *n)
{
	*n = 0;
	return names->sites ? inline_sites_names(names->sites, function, ret, n) : NULL;
}

struct error *names_expand(struct names *names, struct profile **p, volatile sig_atomic_t *stop)
{
	struct error *err = names->sites ? inline_sites_expand(names->sites, p, stop) : NULL;

	names->profile = *p;
	return err;
}
