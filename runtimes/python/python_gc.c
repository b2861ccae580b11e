/* SPDX-License-Identifier: Apache-2.0 */
#include "python_gc.h"

#include <stdio.h>
#include <string.h>

#include "frame_code.h"
#include "binary/image_scan.h"
#include "cfi/cfi.h"
#include "cfi/cfi_search_cache.h"
#include "python.h"
#include "symbols/symbols.h"

#define WORDS  "gc: collecting generation %d..."
#define SEARCH "python collector 1" /* values: start and end of each function */

#define OP_LEA    0x8d /* lea disp32(%rip), register: modrm 00 xxx 101 */
#define OP_MOV    0xb8 /* to 0xbf: mov $imm32, register, of a program that is not position-independent */
#define OP_JCC    0x80 /* to 0x8f, behind 0x0f */
#define OP_JMP    0xe9
#define JCC_BYTES 2 /* before the distance */

/* BOLT (python-build-standalone) moves code: what it left behind comes last, and counts only if nothing was found
 * before. */
static const char *const sections[] = {".text", ".text.warm", ".text.cold", ".bolt.org.text"};
#define SECTIONS (sizeof(sections) / sizeof(*sections))
static const char *const constants[] = {".rodata", ".bolt.org.rodata"};

/* What begins the collector's work, where it is not inlined. */
static const char *const names[] = {"_PyGC_Collect", "PyGC_Collect", "_PyGC_CollectIfEnabled", "_PyGC_CollectNoFail",
        "_Py_RunGC", "collect_generations", "collect_with_callback", "gc_collect_full", "gc_collect_generations",
        "gc_collect_increment", "gc_collect_internal", "gc_collect_main", "gc_collect_with_callback",
        "gc_collect_young"};
static const char *const clones[] = {"", ".isra.0", ".constprop.0", ".part.0"};

struct code {
	const u8 *bytes;
	u64 addr, size;
};

static bool read_code(struct image *img, const char *section, struct code *ret)
{
	Elf_Data *data = image_section(img, section, &ret->addr);

	ret->bytes = data ? data->d_buf : NULL;
	ret->size = data ? data->d_size : 0;
	return ret->bytes;
}

static void add(struct python_gc *gc, u64 start, u64 end)
{
	for (u32 i = 0; i < gc->n; i++)
		if (gc->start[i] == start)
			return;
	if (gc->n == PYTHON_GC_FUNCTIONS)
		return;
	gc->start[gc->n] = start;
	gc->end[gc->n++] = end;
}

static void add_at(struct image *img, struct python_gc *gc, u64 addr)
{
	const struct cfi_fde *fde = cfi_fde_at(img->cfi, addr);

	if (fde)
		add(gc, fde->start, fde->end);
}

static u64 find_words(struct image *img)
{
	u64 addr = 0;

	for (u32 i = 0; !addr && i < sizeof(constants) / sizeof(*constants); i++)
		addr = image_scan_find(img, constants[i], WORDS, strlen(WORDS));
	return addr;
}

static u32 word_at(const u8 *p)
{
	u32 ret;

	memcpy(&ret, p, sizeof(ret));
	return ret;
}

/* The functions that take the address of these words. */
static void add_users(struct image *img, const struct code *c, u64 words, struct python_gc *gc)
{
	for (u64 i = 2; i + 4 <= c->size; i++) {
		const u8 *p = c->bytes + i;
		u64 word = word_at(p);

		if ((c->addr + i + 4 + (u64)(s64)(s32)word == words && p[-2] == OP_LEA && (p[-1] & 0xc7) == 5) ||
		        (word == words && (p[-1] & 0xf8) == OP_MOV))
			add_at(img, gc, c->addr + i);
	}
}

/* What is unlikely lies apart: those who jump there are the same function. A jump to where a function starts may be a
 * call of it instead. */
static bool leads_there(const struct python_gc *gc, u32 n, u64 target, bool conditional)
{
	for (u32 i = 0; i < n; i++)
		if (target >= gc->start[i] + !conditional && target < gc->end[i])
			return true;
	return false;
}

static void add_jumpers(struct image *img, const struct code *c, struct python_gc *gc)
{
	u32 n = gc->n;

	for (u64 i = JCC_BYTES; n && i + 4 <= c->size; i++) {
		const u8 *p = c->bytes + i;
		bool conditional = p[-2] == 0x0f && (p[-1] & 0xf0) == OP_JCC;

		if ((conditional || p[-1] == OP_JMP) &&
		        leads_there(gc, n, c->addr + i + 4 + (u64)(s64)(s32)word_at(p), conditional))
			add_at(img, gc, c->addr + i);
	}
}

static void add_named(struct image *img, struct python_gc *gc)
{
	char name[64];
	struct symbol sym;

	for (u32 i = 0; i < sizeof(names) / sizeof(*names); i++)
		for (u32 k = 0; k < sizeof(clones) / sizeof(*clones); k++) {
			snprintf(name, sizeof(name), "%s%s", names[i], clones[k]);
			if (symbols_lookup(img, name, &sym))
				add(gc, sym.start, sym.end);
		}
}

static void find(struct image *img, struct python_gc *ret)
{
	u64 words = find_words(img);
	struct code code;

	for (u32 i = 0; words && i < SECTIONS && !(ret->n && i + 1 == SECTIONS); i++)
		if (read_code(img, sections[i], &code))
			add_users(img, &code, words, ret);
	for (u32 i = 0; ret->n && i < SECTIONS; i++)
		if (read_code(img, sections[i], &code))
			add_jumpers(img, &code, ret);
	image_rest(img);
}

/* What an earlier run has found. */
static bool load(struct image *img, struct python_gc *ret)
{
	struct search_result found;

	if (!search_cache_load(img, SEARCH, &found) || found.n % 2 || found.n / 2 > PYTHON_GC_FUNCTIONS)
		return false;
	for (u32 i = 0; i < found.n; i += 2)
		add(ret, found.values[i], found.values[i + 1]);
	return true;
}

static void store(struct image *img, const struct python_gc *gc)
{
	struct search_result found = {.n = gc->n * 2};

	for (u32 i = 0; i < gc->n; i++) {
		found.values[i * 2] = gc->start[i];
		found.values[i * 2 + 1] = gc->end[i];
	}
	search_cache_store(img, SEARCH, &found);
}

static void look(struct image *img, struct python_gc *ret)
{
	ret->looked = true;
	if (load(img, ret))
		return;
	find(img, ret);
	if (ret->n)
		store(img, ret);
}

u32 python_gc_put(struct python_gc *gc, struct image *img, u64 bias, const struct frame *frames, u32 i, u32 n,
        struct frame *ret, u32 max, u32 *eaten)
{
	u32 behind;

	*eaten = 0;
	if (frame_kind(&frames[i]) != FRAME_NATIVE ||
	        (i && frame_kind(&frames[i - 1]) == FRAME_NATIVE)) /* its run was looked at already */
		return 0;
	if (!gc->looked)
		look(img, gc);
	behind = frame_behind(gc->start, gc->end, gc->n, bias, frames, i, n);
	if (behind == i)
		return 0;
	if (!gc->named)
		add_named(img, gc);
	gc->named = true;
	behind = frame_behind(gc->start, gc->end, gc->n, bias, frames, i, n);
	if (behind - i >= max)
		return 0;
	memcpy(ret, &frames[i], (behind - i) * sizeof(*ret));
	ret[behind - i] = (struct frame){.where = frame_where(FRAME_SCRIPT, RUNTIME_PYTHON, 0, PYTHON_COLLECTS)};
	*eaten = behind - i;
	return behind - i + 1;
}
