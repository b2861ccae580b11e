/* SPDX-License-Identifier: Apache-2.0 */
#include <gelf.h>
#include <string.h>

#include "hotspot_alloc.h"
#include "hotspot_alloc_code.h"
#include "binary/endbr64.h"
#include "symbols/symbols.h"

/* Parameters in registers, by the System V ABI of x86-64, in the numbers of DWARF. */
enum { RDX = 1, RCX = 2, RSI = 4, RDI = 5, R8 = 8, NONE = ALLOC_NO_REG };

/* A function: how its mangled name begins, and by what its parameters are distinguished from those of its overloads. */
struct tracer {
	const char *name, *parameters;
	enum alloc_site_kind kind;
	bool early;
	u8 reg[ALLOC_VALUES]; /* thread, class, object, its size, buffer's size */
};

#define NEW_TLAB       "_ZN11AllocTracer27send_allocation_in_new_tlabE"
#define NEW_TLAB_EVENT "_ZN11AllocTracer33send_allocation_in_new_tlab_eventE"
#define OUTSIDE        "_ZN11AllocTracer28send_allocation_outside_tlabE"
#define OUTSIDE_EVENT  "_ZN11AllocTracer34send_allocation_outside_tlab_eventE"

/* Of Serial, Parallel, G1, when all threads stand; 8 and later (gc/shared/gcTrace.cpp). */
#define GC_START "_ZN8GCTracer15report_gc_startE"

/*
 * Since 11 the tracer is called when the object is whole (MemAllocator), and so it is in 8u262 and later (the five
 * parameters of …_event); else when there is only room for it.
 */
#define MEM_ALLOCATOR "_ZNK12MemAllocator"

/* After the class (Klass* or KlassHandle) come "HeapWord*" in two spellings, or sizes at once ("m"). */
static const struct tracer tracers[] = {
        {NEW_TLAB, "HeapWord", ALLOC_REFILL, true, {R8, RDI, RSI, RCX, RDX}},
        {NEW_TLAB_EVENT, "HeapWord", ALLOC_REFILL, false, {R8, RDI, RSI, RCX, RDX}},
        {NEW_TLAB_EVENT, "", ALLOC_REFILL, true, {NONE, RDI, NONE, RDX, RSI}},
        {OUTSIDE, "HeapWord", ALLOC_OUTSIDE, false, {RCX, RDI, RSI, RDX, NONE}},
        {OUTSIDE_EVENT, "HeapWord", ALLOC_OUTSIDE, false, {RCX, RDI, RSI, RDX, NONE}},
        {OUTSIDE_EVENT, "", ALLOC_OUTSIDE, false, {NONE, RDI, NONE, RSI, NONE}},
        {GC_START, "", ALLOC_COLLECTION, false, {NONE, NONE, NONE, NONE, NONE}},
};

/* Clones of the compiler (".isra.0", ".cold") take their parameters as they like. */
static const struct tracer *tracer_of(const char *symbol)
{
	if (strchr(symbol, '.'))
		return NULL;
	for (u32 i = 0; i < sizeof(tracers) / sizeof(*tracers); i++) {
		const struct tracer *t = &tracers[i];
		size_t n = strlen(t->name);

		if (strncmp(symbol, t->name, n) == 0 && strstr(symbol + n, t->parameters))
			return t;
	}
	return NULL;
}

static bool file_offset(const struct image *img, u64 addr, u64 *ret)
{
	for (u32 i = 0; i < img->nsegments; i++) {
		const struct image_segment *s = &img->segments[i];

		if (!(s->flags & PF_X) || addr < s->vaddr || addr - s->vaddr >= s->filesz)
			continue;
		*ret = addr - s->vaddr + s->offset;
		return true;
	}
	return false;
}

static void add_site(struct image *img, const struct tracer *t, u64 addr, struct runtime_alloc *ret)
{
	struct alloc_site *site = &ret->site[ret->nsites];

	if (ret->nsites == ALLOC_SITES_MAX || !file_offset(img, probed_entry(img, addr), &site->offset))
		return;
	site->kind = t->kind;
	memcpy(site->reg, t->reg, sizeof(site->reg));
	ret->nsites++;
}

static Elf_Scn *symbol_table(Elf *elf, GElf_Shdr *header)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, header) && header->sh_type == SHT_SYMTAB && header->sh_entsize)
			return section;
	return NULL;
}

bool hotspot_alloc_symbols(struct image *img, struct image *names, struct runtime_alloc *ret)
{
	GElf_Shdr header;
	Elf_Scn *section = symbol_table(names->elf, &header);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	bool kinds[ALLOC_COLLECTION + 1] = {false}, whole = false, has_object = false;

	ret->nsites = 0;
	ret->early = false;
	for (u64 i = 0; data && i < data->d_size / header.sh_entsize && i < INT32_MAX; i++) {
		const struct tracer *t;
		const char *name;
		GElf_Sym sym;

		if (!gelf_getsym(data, i, &sym) || GELF_ST_TYPE(sym.st_info) != STT_FUNC || sym.st_shndx == SHN_UNDEF)
			continue;
		name = elf_strptr(names->elf, header.sh_link, sym.st_name);
		t = name ? tracer_of(name) : NULL;
		whole |= name && strncmp(name, MEM_ALLOCATOR, strlen(MEM_ALLOCATOR)) == 0;
		if (!t)
			continue;
		add_site(img, t, sym.st_value, ret);
		kinds[t->kind] = true;
		ret->early |= t->early;
		has_object |= t->kind == ALLOC_REFILL && t->reg[ALLOC_OBJECT] != NONE;
	}
	ret->early &= !whole;
	if (ret->early && !has_object)
		return false;
	return ret->nsites && kinds[ALLOC_REFILL] && kinds[ALLOC_OUTSIDE];
}

/* Takes over names unless it is img itself. */
static bool from_file(struct image *img, struct image *names, const char *origin, struct runtime_alloc *ret)
{
	bool found = names && hotspot_alloc_symbols(img, names, ret);

	ret->origin = origin;
	if (names && names != img)
		image_put(names);
	return found;
}

/* By code, of those tracers that report whole objects with all their parameters. */
static bool from_code(struct image *img, struct runtime_alloc *ret)
{
	static const struct tracer refill = {.kind = ALLOC_REFILL, .reg = {R8, RDI, RSI, RCX, RDX}};
	static const struct tracer outside = {.kind = ALLOC_OUTSIDE, .reg = {RCX, RDI, RSI, RDX, NONE}};
	static const struct tracer collection = {.kind = ALLOC_COLLECTION, .reg = {NONE, NONE, NONE, NONE, NONE}};
	u64 probes[ALLOC_SITES_MAX - 2];
	struct hotspot_alloc_code code;
	u32 n;

	ret->nsites = 0;
	ret->early = false;
	if (!hotspot_alloc_code(img, &code))
		return false;
	add_site(img, &refill, code.refill, ret);
	add_site(img, &outside, code.outside, ret);
	if (ret->nsites != 2)
		return false;
	n = hotspot_gc_probes(img, probes, sizeof(probes) / sizeof(*probes));
	for (u32 i = 0; i < n; i++)
		add_site(img, &collection, probes[i], ret);
	ret->checked = true;
	ret->origin = "disassembly";
	return true;
}

struct error *hotspot_alloc_sites(struct image *img, const char *root, struct runtime_alloc *ret)
{
	struct image *other = NULL;
	struct error *err;

	if (from_file(img, img, "symbols", ret))
		return NULL;
	err = symbols_debug_file(img, root, &other);
	if (err || from_file(img, other, "debug file", ret))
		return err;
	other = NULL;
	err = symbols_minidebug(img, &other);
	if (err || from_file(img, other, ".gnu_debugdata", ret) || from_code(img, ret))
		return err;
	return error_hint(error_new(ERROR_UNSUPPORTED,
	                          "cannot find where %s allocates: it has no symbols for it, and its code matches no "
	                          "JDK that yrt knows",
	                          img->path),
	        "install the debug symbols of the same build (Debian: openjdk-N-dbg), or get them by `debuginfod-find "
	        "debuginfo %s`; JDK 9, and 8 before 8u262, report too little in any case",
	        img->path);
}
