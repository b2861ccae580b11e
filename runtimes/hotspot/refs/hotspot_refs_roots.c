/* SPDX-License-Identifier: Apache-2.0 */
/* Roots: classes of loaders that stay, threads with their stacks, JNI references. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "hotspot_refs_internal.h"
#include "search.h"

#define LOADERS_MAX   (1u << 20)
#define KLASSES_MAX   (1u << 20) /* of a loader */
#define HANDLES       32         /* of a JNIHandleBlock */
#define BLOCKS_MAX    (1u << 16)
#define STACK_MAX     (1ull << 30)
#define STORAGE_BITS  64 /* oops of a block of an OopStorage */
#define STORAGE_MAX   (1u << 20)
#define THREAD_FAMILY 136 /* bytes of a name */

/* --- class loaders --- */

void hotspot_refs_each_class(
        struct hotspot_refs *r, u64 loader, bool (*each)(void *ctx, struct refs_class *c), void *ctx)
{
	u64 klass = hotspot_refs_word(r, loader + r->at.klasses);

	for (u32 i = 0; i < KLASSES_MAX && klass && !(klass & 7); i++) {
		struct refs_class *c = hotspot_refs_class(r, klass);

		if (c && !each(ctx, c))
			return;
		klass = hotspot_refs_word(r, klass + r->at.link);
	}
}

struct class_roots {
	struct hotspot_refs *r;
	u32 above, arrays;
};

static bool class_root(void *ctx, struct refs_class *c)
{
	struct class_roots *k = ctx;
	bool array = c->kind == REFS_OBJECTS || c->kind == REFS_NONE;
	u32 root;

	root = array ? k->arrays : heap_root(k->r->h, k->above, HEAP_LASTING, heap_type_name(k->r->h, c->type));
	heap_root_ref(k->r->h, root, HEAP_PART, c->mirror);
	return true;
}

static bool mortal_class(void *ctx, struct refs_class *c)
{
	hotspot_refs_name_thread_locals(ctx, c);
	return true;
}

/* Is it that of the application, whose classes are of most interest? */
static bool is_of_application(struct hotspot_refs *r, u64 loader)
{
	const struct hotspot_class *c = hotspot_class_of(r->view, r->m, hotspot_object_class(r->view, r->m, loader));
	char name[128];

	return c && hotspot_symbol(r->view, r->m, c->symbol, name, sizeof(name)) && strstr(name, "$AppClassLoader");
}

static struct error *one_loader(struct hotspot_refs *r, u64 data)
{
	u64 loader = hotspot_refs_handle(r, data + r->at.loader, r->at.loader_handle);
	u32 jdk = heap_root(r->h, 0, HEAP_LASTING, "(JDK)");
	struct class_roots k = {.r = r, .above = loader && is_of_application(r, loader) ? 0 : jdk};
	struct error *err = loader ? table_put(&r->loader_at, hotspot_refs_key(loader), data) : NULL;

	if (err)
		return err;
	if (hotspot_refs_is_mortal(r, data)) {
		hotspot_refs_each_class(r, data, mortal_class, r); /* for stacks: they are known from now on */
		return NULL;
	}
	k.arrays = heap_root(r->h, jdk, HEAP_LASTING, "(classes of arrays)");
	hotspot_refs_each_class(r, data, class_root, &k);
	heap_root_ref(r->h, heap_root(r->h, 0, HEAP_LASTING, "(class loaders)"), HEAP_ANY, loader);
	return NULL;
}

static struct error *loaders(struct hotspot_refs *r)
{
	u64 data = hotspot_refs_word(r, r->at.loaders);
	struct error *err = NULL;

	for (u32 i = 0; !err && i < LOADERS_MAX && data && !(data & 7); i++) {
		err = one_loader(r, data);
		data = hotspot_refs_word(r, data + r->at.next);
	}
	return err;
}

/* --- threads --- */

struct stack_root {
	struct hotspot_refs *r;
	u32 root;
};

static void stack_ref(void *ctx, u64 object)
{
	struct stack_root *s = ctx;

	heap_root_ref(s->r->h, s->root, HEAP_MAYBE, object);
}

/* From where the thread was last known to be; else all of it. */
static void stack(struct hotspot_refs *r, const struct hotspot_anchor *anchor, u64 thread, u32 root)
{
	u64 base = r->at.stack_base ? hotspot_refs_word(r, thread + r->at.stack_base) : 0,
	    size = base ? hotspot_refs_word(r, thread + r->at.stack_size) : 0,
	    sp = anchor->list ? hotspot_refs_word(r, thread + anchor->sp) : 0;
	struct stack_root s = {r, root};

	if (!size || size > STACK_MAX || size > base || base & 7)
		return;
	if (sp < base - size || sp >= base || sp & 7)
		sp = base - size;
	hotspot_refs_scan(r, sp, base - sp, stack_ref, &s);
}

/* A freed handle leads to the next one that is free: it may be a reference. */
static void handle_blocks(struct hotspot_refs *r, u64 block, u32 root)
{
	u64 oops[HANDLES];
	u32 top;

	for (u32 i = 0; i < BLOCKS_MAX && block && !(block & 7); i++) {
		if (!memory_read(r->m, &top, 4, block + r->at.handles_top) || top > HANDLES ||
		        !memory_read(r->m, oops, top * 8ull, block))
			return;
		for (u32 k = 0; k < top; k++)
			if (!(oops[k] & 7))
				heap_root_ref(r->h, root, HEAP_MAYBE, hotspot_refs_object_at(r, oops[k]));
		block = hotspot_refs_word(r, block + r->at.handles_next);
	}
}

/* --- pools of threads --- */

struct family {
	char text[THREAD_FAMILY];
};

/* Threads of a pool are told apart by the last number in their name: "exec-17" is of "exec-*". */
static void find_family(const char *name, struct family *ret)
{
	size_t end = strlen(name), begin;

	while (end && !isdigit((u8)name[end - 1]))
		end--;
	for (begin = end; begin && isdigit((u8)name[begin - 1]);)
		begin--;
	if (end)
		snprintf(ret->text, sizeof(ret->text), "%.*s*%s", (int)begin, name, name + end);
	else
		snprintf(ret->text, sizeof(ret->text), "%s", *name ? name : "(no name)");
}

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct family *)a)->text, ((const struct family *)b)->text);
}

/* Threads of one family are one root. all: of all threads, sorted. */
static u32 root_of_thread(struct hotspot_refs *r, u32 above, const char *name, const struct family *all, u32 n)
{
	char text[THREAD_FAMILY + 24];
	struct family own;
	u32 alike;

	find_family(name, &own);
	alike = SEARCH(n, k, by_text(&all[k], &own) <= 0) - SEARCH(n, k, by_text(&all[k], &own) < 0);
	snprintf(text, sizeof(text), "%s (%u threads)", own.text, alike);
	return heap_root(r->h, above, HEAP_LASTING, alike > 1 ? text : *name ? name : "(no name)");
}

/* A thread itself keeps its thread-locals, as a static field would. */
static struct error *threads(struct hotspot_refs *r)
{
	cleanup(free) struct hotspot_thread *list = calloc(THREADS_MAX, sizeof(*list));
	u32 n = list ? hotspot_threads(r->view, r->m, list, THREADS_MAX, true) : 0;
	cleanup(free) struct family *families = calloc((size_t)n + 1, sizeof(*families));
	u32 all = heap_root(r->h, 0, HEAP_LASTING, "(threads)");
	struct hotspot_anchor anchor;

	if (!list || !families)
		return &error_no_memory;
	for (u32 i = 0; i < n; i++)
		find_family(list[i].name, &families[i]);
	qsort(families, n, sizeof(*families), by_text);
	hotspot_anchor_find(r->view, &anchor);
	for (u32 i = 0; i < n; i++) {
		u64 object = hotspot_refs_handle(r, list[i].at + r->view->l->thread_obj.at, r->view->at.thread_handle);
		u32 root = root_of_thread(r, all, list[i].name, families, n), frames;

		heap_root_ref(r->h, root, HEAP_PART, object);
		frames = heap_root(r->h, root, HEAP_STACKS, "(stack)");
		stack(r, &anchor, list[i].at, frames);
		if (r->at.thread_handles)
			handle_blocks(r, hotspot_refs_word(r, list[i].at + r->at.thread_handles),
			        heap_root(r->h, root, HEAP_STACKS, "(JNI local references)"));
	}
	return NULL;
}

/* --- JNI references --- */

/*
 * OopStorage: behind its name's address that of an ActiveArray, which begins with the room (size_t), the number of
 * blocks (size_t) and a count of references (int), and goes on with the blocks. A block: 64 oops, which of them are in
 * use, and the address of its OopStorage, by which it is known.
 */
static void storage(struct hotspot_refs *r, u64 at, u32 root)
{
	u64 array = hotspot_refs_word(r, at + 8), n = hotspot_refs_word(r, array + 8), block, words[STORAGE_BITS + 2];

	for (u64 i = 0; array && i < n && n <= STORAGE_MAX; i++) {
		block = hotspot_refs_word(r, array + 24 + 8 * i);
		if (!block || block & 7 || !memory_read(r->m, words, sizeof(words), block) ||
		        words[STORAGE_BITS + 1] != at)
			return;
		for (u32 k = 0; k < STORAGE_BITS; k++)
			if (words[STORAGE_BITS] >> k & 1)
				heap_root_ref(r->h, root, HEAP_ANY,
				        r->z ? hotspot_z_reference(r->z, r->m, words[k]) : words[k]);
	}
}

static void global_handles(struct hotspot_refs *r)
{
	u64 at = r->at.global_handles ? hotspot_refs_word(r, r->at.global_handles) : 0;

	if (at)
		(r->at.has_storages ? storage : handle_blocks)(
		        r, at, heap_root(r->h, 0, HEAP_RUNTIME, "(JNI global references)"));
}

struct error *hotspot_refs_roots(struct hotspot_refs *r)
{
	struct error *err = loaders(r);

	if (!err)
		err = threads(r);
	if (!err)
		global_handles(r);
	if (!err && !r->nclasses)
		err = error_new(ERROR_UNSUPPORTED, "this JVM has no classes yet, or its class loaders make no sense");
	return err;
}
