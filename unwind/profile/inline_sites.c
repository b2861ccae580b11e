/* SPDX-License-Identifier: Apache-2.0 */
#include "inline_sites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "binary/proc_path.h"
#include "cleanup.h"
#include "symbols/debuginfod.h"
#include "symbols/demangled.h"
#include "profile_expand.h"
#include "native_kind.h"
#include "runtime_alloc.h"
#include "symbols/symbols.h"
#include "symbols/translated.h"
#include "table.h"

struct debug_image {
	const struct loaded *loaded;
	struct inlines *inlines; /* NULL: no debug information */
	bool served;             /* none here, but a debuginfod may have it */
	bool renamed;            /* there are symbols of debuginfod */
};

struct site {
	u32 function;
	u32 image; /* in images */
	u64 addr;
	enum site_part part;
	bool known;
	u32 first, n; /* in frames, innermost first */
};

struct inline_sites {
	struct inline_sites_options options;
	struct debug_image *images;
	u32 nimages;
	struct site *sites;
	u32 nsites, sites_room;
	struct table by_function; /* an index into sites */
	struct inline_frame *frames;
	u32 nframes, frames_room;
	struct demangled_names names;
	const char *list[INLINES_MAX];
	u32 chain[INLINES_MAX];
};

struct error *inline_sites_create(const struct inline_sites_options *options, struct inline_sites **ret)
{
	struct inline_sites *s = calloc(1, sizeof(*s));

	if (!s)
		return &error_no_memory;
	s->options = *options;
	*ret = s;
	return NULL;
}

void inline_sites_destroy(struct inline_sites *s)
{
	if (!s)
		return;
	for (u32 i = 0; i < s->nimages; i++)
		inlines_close(s->images[i].inlines);
	demangled_free(&s->names);
	table_free(&s->by_function);
	free(s->images);
	free(s->sites);
	free(s->frames);
	free(s);
}

static struct debug_image *find_image(struct inline_sites *s, const struct loaded *loaded)
{
	for (u32 i = 0; i < s->nimages; i++)
		if (s->images[i].loaded == loaded)
			return &s->images[i];
	return NULL;
}

static struct error *add_image(struct inline_sites *s, const struct module *m, struct debug_image **ret)
{
	struct debug_image *grown = realloc(s->images, (s->nimages + 1) * sizeof(*grown));
	struct error *err;
	char root[64];

	if (!grown)
		return &error_no_memory;
	s->images = grown;
	proc_path(root, sizeof(root), m->pid, "root");
	*ret = &s->images[s->nimages];
	(*ret)->loaded = m->loaded;
	err = inlines_open(m->loaded->image, root, &(*ret)->inlines);
	(*ret)->served = !err && !(*ret)->inlines && debuginfod_serves(m->loaded->image);
	(*ret)->renamed = false;
	s->nimages += !err;
	return err;
}

struct error *inline_sites_has(struct inline_sites *s, const struct module *m, bool *ret)
{
	struct debug_image *image = find_image(s, m->loaded);
	struct error *err = image ? NULL : add_image(s, m, &image);

	*ret = !err && (image->inlines || image->served);
	return err;
}

/* Room for more in a growing array. */
static bool reserve(void *array, u32 n, u32 more, u32 *room, size_t size)
{
	u32 wanted = *room ? *room : 256;
	void *grown;

	while (wanted < n + more)
		wanted *= 2;
	if (wanted == *room)
		return true;
	grown = realloc(*(void **)array, wanted * size);
	if (!grown)
		return false;
	*(void **)array = grown;
	*room = wanted;
	return true;
}

static u64 function_key(u32 function)
{
	return XXH3_64bits(&function, sizeof(function)) | 1;
}

struct error *inline_sites_add(
        struct inline_sites *s, u32 function, const struct module *m, u64 addr, enum site_part part)
{
	const struct debug_image *image = find_image(s, m->loaded);

	if (!image || table_get(&s->by_function, function_key(function)))
		return NULL;
	if (!reserve(&s->sites, s->nsites, 1, &s->sites_room, sizeof(*s->sites)))
		return &error_no_memory;
	s->sites[s->nsites] =
	        (struct site){.function = function, .image = image - s->images, .addr = addr, .part = part};
	return table_put(&s->by_function, function_key(function), s->nsites++);
}

static struct site *find_site(struct inline_sites *s, u32 function)
{
	const u64 *at = table_get(&s->by_function, function_key(function));

	return at && s->sites[*at].function == function ? &s->sites[*at] : NULL;
}

static struct error *keep(struct inline_sites *s, struct site *site, const struct inline_frame *frames, u32 n)
{
	if (!reserve(&s->frames, s->nframes, n, &s->frames_room, sizeof(*s->frames)))
		return &error_no_memory;
	memcpy(s->frames + s->nframes, frames, n * sizeof(*frames));
	site->known = true;
	site->first = s->nframes;
	site->n = n;
	s->nframes += n;
	return NULL;
}

static struct error *look_up(struct inline_sites *s, struct site *site)
{
	struct inlines *inlines = s->images[site->image].inlines;
	const struct inline_frame *frames;
	struct error *err;
	u32 n;

	if (site->known || !inlines)
		return NULL;
	err = inlines_find(inlines, site->addr, &frames, &n);
	return err ? err : keep(s, site, frames, n);
}

static struct error *show(struct inline_sites *s, const struct inline_frame *f, const char **ret)
{
	*ret = f->name ? f->name : "[inlined]";
	return f->name && !s->options.mangled ? demangled_name(&s->names, f->name, ret) : NULL;
}

struct error *inline_sites_names(struct inline_sites *s, u32 function, const char *const **ret, u32 *n)
{
	struct site *site = find_site(s, function);
	struct error *err = site ? look_up(s, site) : NULL;

	*ret = s->list;
	*n = 0;
	for (u32 i = site && site->part != SITE_OUTERMOST && !err && site->n ? site->n - 1 : 0; i-- > 0 && !err; (*n)++)
		err = show(s, &s->frames[site->first + i], &s->list[*n]);
	return err;
}

struct look_up {
	struct inline_sites *s;
	const u32 *sites;
};

static struct error *found(void *ctx, u32 index, const struct inline_frame *frames, u32 n)
{
	struct look_up *l = ctx;

	return keep(l->s, &l->s->sites[l->sites[index]], frames, n);
}

/* All places of one image. */
static struct error *look_up_image(struct inline_sites *s, u32 image)
{
	cleanup(free) u64 *addrs = calloc(s->nsites + 1, sizeof(*addrs));
	cleanup(free) u32 *sites = calloc(s->nsites + 1, sizeof(*sites));
	struct look_up l = {s, sites};
	struct error *err;
	u32 n = 0;

	if (!addrs || !sites)
		return &error_no_memory;
	for (u32 i = 0; i < s->nsites; i++) {
		if (s->sites[i].image != image || s->sites[i].known)
			continue;
		sites[n] = i;
		addrs[n++] = s->sites[i].addr;
	}
	if (!n)
		return NULL;
	err = inlines_find_all(s->images[image].inlines, addrs, n, found, &l);
	inlines_rest(s->images[image].inlines);
	return err;
}

/* "name", and behind it ":57" where functions are split by line. */
static void show_line(
        const struct inline_sites *s, const struct inline_frame *f, char *text, size_t size, const char *name)
{
	if (s->options.lines && f->line)
		snprintf(text, size, "%.*s:%u", (int)size - 16, name, f->line);
	else
		snprintf(text, size, "%.*s", (int)size - 16, name);
}

/* What makes two frames one function; the file need not be the same, where a macro or an included file is executed. */
static u64 function_identity(
        const struct inline_sites *s, const struct profile_function *fn, const struct inline_frame *f)
{
	struct {
		u64 kind, flags, image, address, name, line, file;
	} id = {fn->kind, fn->flags, fn->image, fn->address, XXH3_64bits(fn->name, strlen(fn->name)), 0, 0};

	if (s->options.lines) {
		id.line = f->line;
		id.file = (u64)(uintptr_t)f->file;
	}
	return XXH3_64bits(&id, sizeof(id)) | 1ULL << 63;
}

/* The name that only debuginfod's file has. */
static struct error *rename_function(struct inline_sites *s, const struct site *site, struct profile_function *fn)
{
	struct symbol sym;

	if (!s->images[site->image].renamed || !symbols_find(s->images[site->image].loaded->image, site->addr, &sym))
		return NULL;
	fn->name = sym.name;
	fn->kind = native_kind(sym.name, fn->kind == KIND_VM);
	if (!s->options.addresses)
		fn->address = sym.start;
	return s->options.mangled ? NULL : demangled_name(&s->names, sym.name, &fn->name);
}

/*
 * The function that a frame is. was: what stood for the place, whose name is that of the symbol; it is the outermost
 * one at outermost (NULL: another one is).
 */
static struct error *add_function(struct inline_sites *s, struct profile *to, const struct profile_function *was,
        const struct inline_frame *f, const struct site *outermost, u32 *ret)
{
	struct profile_function fn = *was;
	struct error *err = NULL;
	char text[4096];

	if (outermost) {
		err = rename_function(s, outermost, &fn);
	} else {
		err = show(s, f, &fn.name);
		fn.kind = f->name ? native_kind(f->name, was->kind == KIND_VM) : was->kind;
		fn.flags |= FRAME_INLINED;
		fn.address = 0;
	}
	if (err)
		return err;
	show_line(s, f, text, sizeof(text), fn.name);
	fn.name = text;
	if (f->file) {
		fn.file = f->file;
		fn.line = s->options.lines && f->line ? f->line : f->definition;
		fn.definition = f->definition;
	}
	return profile_function(to, function_identity(s, &fn, f), &fn, false, ret);
}

/* Glue of the view's own runtime: what it is inlined into stays, it stands for the place. */
static bool is_hidden(const struct inline_sites *s, const struct site *site, const struct inline_frame *f)
{
	const struct loaded *loaded = s->images[site->image].loaded;

	if (!s->options.view || !f->name)
		return false;
	if (translated_is_glue(f->name))
		return true;
	for (const struct runtime_ops *const *r = runtimes; *r; r++) {
		if (!view_has(s->options.view, (*r)->id) || !loaded->runtime[(*r)->id])
			continue;
		if ((*r)->is_runtime_internal && (*r)->is_runtime_internal(NULL, f->name))
			return true;
		if (s->options.objects && (*r)->alloc && (*r)->alloc->is_runtime_internal(f->name))
			return true;
	}
	return false;
}

/* What the wrapper of a function has inlined of it: the wrapper stands for both. */
static bool is_wrapped(struct inline_sites *s, const struct inline_frame *f, const struct inline_frame *outer)
{
	const char *name = "", *wrapper = "";

	if (!s->options.view || !f->name || !outer->name || !translated_layer(f->name) ||
	        translated_layer(f->name) >= translated_layer(outer->name))
		return false;
	error_free(show(s, f, &name));
	error_free(show(s, outer, &wrapper));
	return *name && !strcmp(name, wrapper);
}

static struct error *chain(
        void *ctx, struct profile *to, const struct profile_function *fn, u32 function, const u32 **ret, u32 *n)
{
	static const struct inline_frame nothing;
	struct inline_sites *s = ctx;
	struct site *site = find_site(s, function);
	struct error *err = NULL;
	u32 left = site ? site->n : 0;

	*ret = site ? s->chain : NULL;
	*n = 0;
	if (!left && site && site->part != SITE_INLINED)
		return add_function(s, to, fn, &nothing, site, &s->chain[(*n)++]);
	for (; left && !err; left--) {
		const struct inline_frame *f = &s->frames[site->first + left - 1];
		bool outermost = left == site->n;

		if (site->part == (outermost ? SITE_INLINED : SITE_OUTERMOST))
			continue;
		if (outermost || (!is_hidden(s, site, f) && !is_wrapped(s, f, f + 1)))
			err = add_function(s, to, fn, f, outermost ? site : NULL, &s->chain[(*n)++]);
	}
	return err;
}

static void complain(const struct inline_sites *s, struct error *err)
{
	const struct modules *m = s->options.modules;

	if (err && m && m->complain)
		m->complain(m->complain_ctx, err);
	else
		error_free(err);
}

static struct error *ask_server(
        struct inline_sites *s, struct debuginfod *d, struct debug_image *image, volatile sig_atomic_t *stop)
{
	struct image *img = image->loaded->image, *debug;
	struct error *err = debuginfod_find(d, img, stop, &debug);

	if (err == &error_no_memory)
		return err;
	complain(s, err);
	if (!debug)
		return NULL;
	image->renamed = !symbols_own(img);
	symbols_use_debug(img, debug);
	err = inlines_open_debug(debug, "", &image->inlines);
	image_put(debug);
	return err;
}

static struct error *ask_servers(struct inline_sites *s, volatile sig_atomic_t *stop)
{
	struct debuginfod *d;
	struct error *err = debuginfod_create(&d);

	if (err)
		return err;
	for (u32 i = 0; i < s->nimages && !err; i++)
		if (s->images[i].served)
			err = ask_server(s, d, &s->images[i], stop);
	debuginfod_destroy(d);
	return err;
}

struct error *inline_sites_expand(struct inline_sites *s, struct profile **p, volatile sig_atomic_t *stop)
{
	struct error *err = ask_servers(s, stop);
	struct profile *expanded;

	for (u32 i = 0; i < s->nimages && !err; i++)
		if (s->images[i].inlines)
			err = look_up_image(s, i);
	if (!err)
		err = expand_profile(*p, chain, s, &expanded);
	if (err)
		return err;
	profile_destroy(*p);
	*p = expanded;
	return NULL;
}
