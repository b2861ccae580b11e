/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "arch.h"
#include "hotspot_lines.h"
#include "hotspot_names_state.h"
#include "hotspot_text.h"

#define TABLES_BYTES  (4u << 20)
#define SITES_BYTES   (3u << 20)
#define METHODS_BYTES (6u << 20)
#define CLASSES_BYTES (2u << 20)
#define NO_ZERO_SINCE 20

struct error *hotspot_names_create(const struct vmstructs *v, const struct hotspot_layout *l,
        const struct hotspot_code *code, struct hotspot_names **ret)
{
	struct hotspot_names *n = calloc(1, sizeof(*n));
	u64 heaps;

	*ret = NULL;
	if (!n)
		return &error_no_memory;
	if (!vmstructs_static(v, "Abstract_VM_Version", "_vm_major_version", &n->version_at)) {
		free(n);
		return error_new(ERROR_UNSUPPORTED, "its vmStructs lack Abstract_VM_Version::_vm_major_version");
	}
	n->blocks = hotspot_blocks_create();
	n->fresh = hotspot_blocks_create();
	if (!n->blocks || !n->fresh) {
		hotspot_blocks_destroy(n->blocks);
		hotspot_blocks_destroy(n->fresh);
		free(n);
		return &error_no_memory;
	}
	n->v = v;
	n->l = l;
	n->code = code;
	n->old = !vmstructs_static(v, "CodeCache", "_heaps", &heaps);
	n->tables.max = TABLES_BYTES;
	n->sites.max = SITES_BYTES;
	n->methods.max = METHODS_BYTES;
	n->classes.max = CLASSES_BYTES;
	*ret = n;
	return NULL;
}

void hotspot_names_stub_list(struct hotspot_names *n, u64 address)
{
	n->stub_list = address;
}

void hotspot_names_stack(struct hotspot_names *n, u64 stack)
{
	n->stale = n->stale || stack != n->stack;
	n->stack = stack;
}

void hotspot_names_destroy(struct hotspot_names *n)
{
	if (!n)
		return;
	hotspot_cache_clear(&n->tables);
	hotspot_cache_clear(&n->sites);
	hotspot_cache_clear(&n->methods);
	hotspot_cache_clear(&n->classes);
	table_free(&n->verified);
	hotspot_stub_names_destroy(n->stubs);
	hotspot_blocks_destroy(n->blocks);
	hotspot_blocks_destroy(n->fresh);
	free(n);
}

bool hotspot_names_ready(struct hotspot_names *n, struct memory *m)
{
	s32 version;

	if (n->ready)
		return true;
	if (!memory_read(m, &version, sizeof(version), n->version_at) || version <= 0)
		return false;
	n->no_zero = !n->old && version >= NO_ZERO_SINCE;
	n->ready = true;
	return true;
}

static enum frame_form form_of(const struct hotspot_method_name *method, u32 tier)
{
	if (method->native)
		return FORM_NATIVE;
	return !tier ? FORM_INTERPRETED : tier < 4 ? FORM_BASELINE : FORM_JIT;
}

static bool name_method(struct hotspot_names *n, struct memory *m, const struct frame *f, struct frame_name *ret)
{
	const struct hotspot_method_name *name =
	        hotspot_names_method(n, m, frame_addr(f), hotspot_cookie(f), f->detail & HOTSPOT_CLASSED);
	u32 bci = hotspot_bci(f);

	if (!name)
		return false;
	snprintf(ret->name, sizeof(ret->name), "%s", name->name);
	snprintf(ret->signature, sizeof(ret->signature), "%s", name->signature);
	snprintf(ret->file, sizeof(ret->file), "%s", name->file);
	ret->qualified = true;
	ret->definition = name->definition;
	if (bci != HOTSPOT_NO_BCI && name->nlines)
		ret->line = hotspot_line(name->lines, name->nlines, n->no_zero, bci);
	ret->identity = name->identity;
	ret->form = form_of(name, hotspot_tier(f));
	ret->entry = hotspot_is_handle(name->name);
	return true;
}

/* What could not be expanded: the method that was compiled. */
static bool name_nmethod(struct hotspot_names *n, struct memory *m, const struct frame *f, struct frame_name *ret)
{
	struct hotspot_nmethod nm;
	struct frame root;
	u32 cookie;

	if (!hotspot_nmethod_read(n->code, m, frame_addr(f), hotspot_cookie(f), &nm) ||
	        !hotspot_names_cookie(n, hotspot_blocks_direct(n->blocks), nm.method, &cookie) ||
	        !hotspot_names_stands(n, f, nm.method))
		return false;
	root.where = frame_where(FRAME_SCRIPT, RUNTIME_HOTSPOT, 0, nm.method);
	root.detail = hotspot_method(nm.level, HOTSPOT_NO_BCI, cookie) | HOTSPOT_CLASSED;
	return name_method(n, m, &root, ret);
}

/* Where Java code returns to what has called it; 8 gives this place, but not where the stub begins. */
static bool returns_to_call_stub(const struct hotspot_names *n, struct memory *m, const struct frame *f)
{
	u64 at, pc;

	return frame_flags(f) & FRAME_RETADDR &&
	       vmstructs_static(n->v, "StubRoutines", "_call_stub_return_address", &at) &&
	       memory_read(m, &pc, sizeof(pc), at) && pc == frame_addr(f);
}

static bool name_stub(struct hotspot_names *n, struct memory *m, const struct frame *f, struct frame_name *ret)
{
	u64 pc = frame_addr(f) - (frame_flags(f) & FRAME_RETADDR ? ARCH_CALL_BACK : 0);

	if (returns_to_call_stub(n, m, f))
		strcpy(ret->name, "StubRoutines::call_stub");
	else if (!hotspot_names_stub(n, m, pc, ret->name, sizeof(ret->name)))
		return false;
	ret->identity = XXH3_64bits(ret->name, strlen(ret->name));
	ret->form = FORM_STUB;
	ret->entry =
	        !strcmp(ret->name, "StubRoutines::call_stub") || !strcmp(ret->name, "StubRoutines::call_stub_entry");
	return true;
}

static bool name_class(struct hotspot_names *n, struct memory *m, const struct frame *f, struct frame_name *ret)
{
	u8 bytes[HOTSPOT_SYMBOL_MAX];
	bool mirror = hotspot_kind(f) == HOTSPOT_MIRROR;
	size_t size, before = 0;
	u64 symbol;

	if (!memory_read(m, &symbol, 8, frame_addr(f) + n->l->klass_name.at) ||
	        (u32)(symbol >> 3) != hotspot_cookie(f) || !hotspot_names_symbol(n, m, symbol, bytes, &size))
		return false;
	if (mirror)
		before = (size_t)snprintf(ret->name, sizeof(ret->name), "java.lang.Class for ");
	hotspot_text_class(bytes, size, ret->name + before, sizeof(ret->name) - before);
	ret->qualified = true;
	ret->identity = XXH3_64bits(ret->name, strlen(ret->name));
	ret->form = FORM_CLASS;
	return true;
}

static bool name_collector(struct frame_name *ret)
{
	strcpy(ret->name, "(gc)");
	ret->identity = XXH3_64bits(ret->name, strlen(ret->name));
	ret->form = FORM_STUB;
	return true;
}

bool hotspot_name_frame(struct hotspot_names *n, struct memory *m, const struct frame *f, struct frame_name *ret)
{
	struct memory *blocks = hotspot_blocks_of(n->blocks, m);

	memset(ret, 0, sizeof(*ret));
	switch (hotspot_kind(f)) {
	case HOTSPOT_NMETHOD:
		return name_nmethod(n, blocks, f, ret);
	case HOTSPOT_METHOD:
		return name_method(n, blocks, f, ret);
	case HOTSPOT_STUB:
		return name_stub(n, m, f, ret);
	case HOTSPOT_CLASS:
	case HOTSPOT_MIRROR:
		return name_class(n, blocks, f, ret);
	case HOTSPOT_COLLECTOR:
		return name_collector(ret);
	}
	return false;
}
