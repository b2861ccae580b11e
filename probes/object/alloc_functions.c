/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc_functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "alloc_code.h"
#include "alloc_nameless.h"
#include "probes/hit/hit_find.h"
#include "unwind/allocators/allocator_names.h"
#include "unwind/binary/image_scan.h"
#include "unwind/cleanup.h"
#include "unwind/symbols/symbols.h"

/* clang-format off */
#define PREFIXED_JEMALLOC(prefix) \
	{prefix "malloc", ALLOC_SIZE_1}, {prefix "calloc", ALLOC_SIZE_PRODUCT}, {prefix "realloc", ALLOC_RESIZE}, \
	{prefix "aligned_alloc", ALLOC_SIZE_2}, {prefix "memalign", ALLOC_SIZE_2}, \
	{prefix "posix_memalign", ALLOC_SIZE_3}, {prefix "mallocx", ALLOC_SIZE_1}, {prefix "rallocx", ALLOC_RESIZE}, \
	{prefix "free", ALLOC_FREE}, {prefix "dallocx", ALLOC_FREE}, {prefix "sdallocx", ALLOC_FREE}
/* clang-format on */

static const struct {
	const char *name;
	enum alloc_shape shape;
} known[] = {
        {"malloc", ALLOC_SIZE_1},
        {"calloc", ALLOC_SIZE_PRODUCT},
        {"realloc", ALLOC_RESIZE},
        {"memalign", ALLOC_SIZE_2},
        {"aligned_alloc", ALLOC_SIZE_2},
        {"posix_memalign", ALLOC_SIZE_3},
        {"valloc", ALLOC_SIZE_1},
        {"pvalloc", ALLOC_SIZE_1},
        {"mmap", ALLOC_MAP},
        {"mmap64", ALLOC_MAP},
        {"sbrk", ALLOC_MOVE_END},
        /* jemalloc's own interface */
        {"mallocx", ALLOC_SIZE_1},
        {"rallocx", ALLOC_RESIZE},
        {"free", ALLOC_FREE},
        {"cfree", ALLOC_FREE},
        {"munmap", ALLOC_FREE},
        {"dallocx", ALLOC_FREE},
        {"sdallocx", ALLOC_FREE},
        /* operator new, and new[], plain, nothrow, aligned, aligned and nothrow: only those of an allocator */
        {"_Znwm", ALLOC_SIZE_1},
        {"_Znam", ALLOC_SIZE_1},
        {"_ZnwmRKSt9nothrow_t", ALLOC_SIZE_1},
        {"_ZnamRKSt9nothrow_t", ALLOC_SIZE_1},
        {"_ZnwmSt11align_val_t", ALLOC_SIZE_1},
        {"_ZnamSt11align_val_t", ALLOC_SIZE_1},
        {"_ZnwmSt11align_val_tRKSt9nothrow_t", ALLOC_SIZE_1},
        {"_ZnamSt11align_val_tRKSt9nothrow_t", ALLOC_SIZE_1},
        /* delete, delete[], of a size, aligned */
        {"_ZdlPv", ALLOC_FREE},
        {"_ZdaPv", ALLOC_FREE},
        {"_ZdlPvm", ALLOC_FREE},
        {"_ZdaPvm", ALLOC_FREE},
        {"_ZdlPvRKSt9nothrow_t", ALLOC_FREE},
        {"_ZdaPvRKSt9nothrow_t", ALLOC_FREE},
        {"_ZdlPvSt11align_val_t", ALLOC_FREE},
        {"_ZdaPvSt11align_val_t", ALLOC_FREE},
        {"_ZdlPvmSt11align_val_t", ALLOC_FREE},
        {"_ZdaPvmSt11align_val_t", ALLOC_FREE},
        /* mimalloc's own (mimalloc.h): a Rust program has only these */
        {"mi_malloc", ALLOC_SIZE_1},
        {"mi_malloc_small", ALLOC_SIZE_1},
        {"mi_malloc_aligned", ALLOC_SIZE_1},
        {"mi_malloc_aligned_at", ALLOC_SIZE_1},
        {"mi_zalloc", ALLOC_SIZE_1},
        {"mi_zalloc_small", ALLOC_SIZE_1},
        {"mi_zalloc_aligned", ALLOC_SIZE_1},
        {"mi_calloc", ALLOC_SIZE_PRODUCT},
        {"mi_mallocn", ALLOC_SIZE_PRODUCT},
        {"mi_calloc_aligned", ALLOC_SIZE_PRODUCT},
        {"mi_realloc", ALLOC_RESIZE},
        {"mi_realloc_aligned", ALLOC_RESIZE},
        {"mi_rezalloc", ALLOC_RESIZE},
        {"mi_memalign", ALLOC_SIZE_2},
        {"mi_aligned_alloc", ALLOC_SIZE_2},
        {"mi_posix_memalign", ALLOC_SIZE_3},
        {"mi_new", ALLOC_SIZE_1},
        {"mi_new_nothrow", ALLOC_SIZE_1},
        {"mi_new_aligned", ALLOC_SIZE_1},
        {"mi_free", ALLOC_FREE},
        {"mi_free_size", ALLOC_FREE},
        {"mi_free_aligned", ALLOC_FREE},
        {"mi_free_size_aligned", ALLOC_FREE},
        /* jemalloc with a prefix (configure --with-jemalloc-prefix): Redis has je_, Rust _rjem_ */
        PREFIXED_JEMALLOC("je_"),
        PREFIXED_JEMALLOC("_rjem_"),
};

/* A file with one of these is an allocator. */
static const char *const roots[] = {"malloc", "mi_malloc", "mi_malloc_aligned", "je_malloc", "_rjem_malloc"};

static bool has(struct image *img, const char *name)
{
	struct symbol sym;

	return symbols_lookup(img, name, &sym);
}

const char *alloc_functions_refused(struct image *img)
{
	static const struct {
		const char *symbol, *name;
	} tools[] = {{"__asan_init", "AddressSanitizer"}, {"__hwasan_init", "HWAddressSanitizer"},
	        {"__msan_init", "MemorySanitizer"}, {"__tsan_init", "ThreadSanitizer"},
	        {"__lsan_init", "LeakSanitizer"}};
	const char *base = strrchr(img->path, '/');

	if (!strncmp(base ? base + 1 : img->path, "vgpreload_", 10))
		return "valgrind";
	for (size_t i = 0; i < sizeof(tools) / sizeof(*tools); i++)
		if (has(img, tools[i].symbol))
			return tools[i].name;
	return NULL;
}

/* PHP's Zend/zend_alloc.h, PostgreSQL's utils/palloc.h, nginx's core/ngx_palloc.h, APR's apr_pools.h. */
const char *alloc_functions_own_heap(struct image *img)
{
	static const struct {
		const char *symbol, *shown_by;
	} heaps[] = {{"_emalloc", "yrt probe -e '_emalloc*' -e '_erealloc*'"},
	        {"MemoryContextAlloc", "yrt probe -e palloc -e 'MemoryContextAlloc*'"}, {"ngx_palloc", "yrt pools"},
	        {"apr_palloc", "yrt pools"}};
	struct symbol sym;

	for (size_t i = 0; i < sizeof(heaps) / sizeof(*heaps); i++)
		if (symbols_lookup(img, heaps[i].symbol, &sym) && image_has_code(img, sym.start, sym.start + 1))
			return heaps[i].shown_by;
	return NULL;
}

const char *alloc_functions_kind(struct image *img)
{
	const struct allocator_name *a = allocator_of_image(img);

	return a ? a->name : alloc_functions_nameless(img);
}

static bool is_allocator(struct image *img)
{
	bool ret = false;

	for (size_t i = 0; !ret && i < sizeof(roots) / sizeof(*roots); i++)
		ret = has(img, roots[i]);
	return ret;
}

/* By the begin of its messages: jemalloc's malloc_io.c, mimalloc's options.c, gperftools' malloc_extension.cc. */
static const struct {
	const char *message, *name;
} nameless[] = {[ALLOC_NAMELESS_JEMALLOC] = {"<jemalloc>: ", "jemalloc"},
        [ALLOC_NAMELESS_MIMALLOC] = {"mimalloc: error: ", "mimalloc"},
        [ALLOC_NAMELESS_KINDS] = {"MALLOC: + ", "tcmalloc"}};

#define NAMELESS     (sizeof(nameless) / sizeof(*nameless))
#define MESSAGE_MOST 32 /* bytes of one */

/* NAMELESS: none. One way through the section for all of them: it may have tens of MiB. */
static size_t scan_for_nameless(struct image *img)
{
	struct image_scan s;
	size_t ret = NAMELESS;

	if (!image_scan_start(&s, img, ".rodata", MESSAGE_MOST))
		return NAMELESS;
	while (ret == NAMELESS && image_scan_next(&s))
		for (size_t i = NAMELESS; i-- > 0;)
			if (memmem(s.bytes, s.size, nameless[i].message, strlen(nameless[i].message)))
				ret = i;
	image_scan_end(&s);
	return ret;
}

static size_t nameless_kind(struct image *img)
{
	if (!img->nameless)
		img->nameless = (u32)(is_allocator(img) ? NAMELESS : scan_for_nameless(img)) + 1;
	return img->nameless - 1;
}

const char *alloc_functions_nameless(struct image *img)
{
	size_t i = nameless_kind(img);

	return i < NAMELESS ? nameless[i].name : NULL;
}

static void add_text(struct image *img, const char *kind, char *text, size_t size)
{
	const char *base = strrchr(img->path, '/');
	size_t n = strlen(text);

	snprintf(text + n, size - n, "%s%s%s%s%s", n ? ", " : "", base ? base + 1 : img->path, kind ? " (" : "",
	        kind ? kind : "", kind ? ")" : "");
}

/* With the name of the allocator, and whether `yrt alloc` sees its blocks. */
static void add_nameless(struct image *img, char *text, size_t size)
{
	cleanup(free) struct alloc_functions *f = calloc(1, sizeof(*f));
	size_t kind = nameless_kind(img);
	char what[64];

	if (f && kind < ALLOC_NAMELESS_KINDS)
		alloc_nameless_find(img, (enum alloc_nameless)kind, f);
	snprintf(what, sizeof(what), "%s, %s", nameless[kind].name,
	        f && f->n ? "found by its code" : "without names, blocks are not seen");
	add_text(img, what, text, size);
}

void alloc_functions_text(const struct process *p, char *text, size_t size)
{
	const struct image *last = NULL;

	*text = 0;
	for (u32 i = 0; i < p->maps.nlines; i++) {
		struct image *img = p->mappings[i].prot & PROT_EXEC ? p->mappings[i].image : NULL;

		if (img && img != last && is_allocator(img))
			add_text(img, alloc_functions_kind(img), text, size);
		else if (img && img != last && alloc_functions_own_heap(img))
			add_text(img, "a heap of its own", text, size);
		else if (img && img != last && alloc_functions_nameless(img))
			add_nameless(img, text, size);
		last = img ? img : last;
	}
}

bool alloc_functions_are_all(struct image *img)
{
	const struct allocator_name *a = allocator_of_file(img->path);

	return a && strcmp(a->name, "musl") != 0;
}

/* Versions and aliases of a symbol are one function. */
void alloc_functions_add(struct alloc_functions *f, const char *name, enum alloc_shape shape, u64 addr)
{
	for (u32 i = 0; i < f->n; i++)
		if (f->of[i].addr == addr)
			return;
	if (f->n < ALLOC_FUNCTIONS_MAX)
		f->of[f->n++] = (struct alloc_function){.name = name, .shape = shape, .addr = addr};
}

struct error *alloc_functions_read(struct image *img, struct alloc_functions *f)
{
	struct error *err = alloc_code_read(img, f);

	for (u32 i = 0; !err && i < f->n; i++) {
		if (!hit_offset(img, f->of[i].place, true, &f->of[i].offset))
			err = error_new(ERROR_UNSUPPORTED, "%s: %s at 0x%lx is not in its code", img->path,
			        f->of[i].name, f->of[i].place);
		if (f->of[i].pair && !hit_offset(img, f->of[i].pair, true, &f->of[i].pair))
			f->of[i].pair = 0;
	}
	return err;
}

struct error *alloc_functions_find(struct image *img, struct alloc_functions *ret)
{
	size_t kind = nameless_kind(img);
	bool named = is_allocator(img);
	struct symbol sym;

	ret->n = ret->ninner = ret->noutside = ret->nreturns = ret->ncode = 0;
	if (kind < ALLOC_NAMELESS_KINDS)
		alloc_nameless_find(img, (enum alloc_nameless)kind, ret);
	for (size_t i = 0; named && i < sizeof(known) / sizeof(*known); i++)
		if (symbols_lookup(img, known[i].name, &sym) && image_has_code(img, sym.start, sym.start + 1))
			alloc_functions_add(ret, known[i].name, known[i].shape, sym.start);
	return alloc_functions_read(img, ret);
}
