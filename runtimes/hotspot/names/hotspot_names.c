/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "frame_code.h"
#include "hotspot_lines.h"
#include "hotspot_names_state.h"
#include "hotspot_text.h"
#include "search.h"

/*
 * Names of code that is no method: codelets of the interpreter by their description, stubs by their StubCodeDesc
 * (runtime/stubCodeGenerator.hpp), or by the addresses in StubRoutines if no symbol shows where the list of
 * descriptions is, others by their blob. Read once, and again when there are more of them.
 */

#define RANGES_MAX   8192
#define CODELETS_MAX 4096
#define TEXT_MAX     96         /* bytes of a name */
#define STUB_MAX     (1u << 20) /* bytes of a stub */

struct range {
	u64 start, end;
	char name[TEXT_MAX + 2];
};

struct hotspot_stub_names {
	struct range *ranges; /* by start */
	u32 n, capacity;
	u64 first; /* of the list of StubCodeDesc, when it was read */
};

/* The stubs that do the work of Java's methods: fields of StubRoutines (8 to 22). */
static const char *const fields[] = {"_call_stub_entry", "_forward_exception_entry", "_catch_exception_entry",
        "_aescrypt_encryptBlock", "_aescrypt_decryptBlock", "_cipherBlockChaining_encryptAESCrypt",
        "_cipherBlockChaining_decryptAESCrypt", "_electronicCodeBook_encryptAESCrypt",
        "_electronicCodeBook_decryptAESCrypt", "_counterMode_AESCrypt", "_ghash_processBlocks", "_base64_encodeBlock",
        "_base64_decodeBlock", "_sha1_implCompress", "_sha1_implCompressMB", "_sha256_implCompress",
        "_sha256_implCompressMB", "_sha512_implCompress", "_sha512_implCompressMB", "_updateBytesCRC32",
        "_updateBytesCRC32C", "_updateBytesAdler32", "_multiplyToLen", "_squareToLen", "_mulAdd", "_montgomeryMultiply",
        "_montgomerySquare", "_bigIntegerRightShiftWorker", "_bigIntegerLeftShiftWorker", "_vectorizedMismatch",
        "_dexp", "_dlog", "_dlog10", "_dpow", "_dsin", "_dcos", "_dtan", "_jbyte_arraycopy", "_jshort_arraycopy",
        "_jint_arraycopy", "_jlong_arraycopy", "_oop_arraycopy", "_oop_arraycopy_uninit", "_jbyte_disjoint_arraycopy",
        "_jshort_disjoint_arraycopy", "_jint_disjoint_arraycopy", "_jlong_disjoint_arraycopy",
        "_oop_disjoint_arraycopy", "_oop_disjoint_arraycopy_uninit", "_arrayof_jbyte_arraycopy",
        "_arrayof_jshort_arraycopy", "_arrayof_jint_arraycopy", "_arrayof_jlong_arraycopy", "_arrayof_oop_arraycopy",
        "_arrayof_jbyte_disjoint_arraycopy", "_arrayof_jshort_disjoint_arraycopy", "_arrayof_jint_disjoint_arraycopy",
        "_arrayof_jlong_disjoint_arraycopy", "_arrayof_oop_disjoint_arraycopy", "_checkcast_arraycopy",
        "_unsafe_arraycopy", "_generic_arraycopy"};

static struct range *add(struct hotspot_stub_names *s, u64 start, u64 end)
{
	if (s->n == s->capacity) {
		u32 capacity = s->capacity ? s->capacity * 2 : 512;
		struct range *grown = capacity > RANGES_MAX ? NULL : reallocarray(s->ranges, capacity, sizeof(*grown));

		if (!grown)
			return NULL;
		s->ranges = grown;
		s->capacity = capacity;
	}
	s->ranges[s->n] = (struct range){.start = start, .end = end};
	return &s->ranges[s->n++];
}

static void read_codelets(const struct hotspot_names *n, struct memory *m, struct hotspot_stub_names *s)
{
	u64 size_at, description_at, start, end, at, size, text;
	struct range *r;

	if (!vmstructs_field(n->v, "InterpreterCodelet", "_size", &size_at, NULL) ||
	        !vmstructs_field(n->v, "InterpreterCodelet", "_description", &description_at, NULL) ||
	        !hotspot_interpreter(n->code, m, &start, &end))
		return;
	at = start;
	for (u32 i = 0; i < CODELETS_MAX && at < end; i++, at += size) {
		size = 0;
		if (!memory_read(m, &size, 4, at + size_at) || !size || size > end - at)
			return;
		if (!memory_read(m, &text, 8, at + description_at) || !text)
			continue;
		r = add(s, at, at + size);
		if (!r || !memory_string(m, r->name, sizeof(r->name), text))
			return;
	}
}

/* Is this the end of it? It is taken off then. */
static bool take_off(char *name, const char *end)
{
	size_t n = strlen(name), length = strlen(end);

	if (n <= length || strcmp(name + n - length, end) != 0)
		return false;
	name[n - length] = 0;
	return true;
}

/* From 26 on: "cont_returnBarrier_stub (stub gen)". */
static void trim(char *name)
{
	if (take_off(name, " (stub gen)"))
		take_off(name, "_stub");
}

/* struct StubCodeDesc: next, group, name, and where it begins and ends; 8 has a number between. */
static void read_descs(const struct hotspot_names *n, struct memory *m, struct hotspot_stub_names *s)
{
	u64 desc = s->first, words[6], begin = n->old ? 4 : 3;
	char group[TEXT_MAX / 2], name[TEXT_MAX / 2];
	struct range *r;

	for (u32 i = 0; i < RANGES_MAX && desc && !(desc & 7); i++, desc = words[0]) {
		if (!memory_read(m, words, sizeof(words), desc))
			return;
		if (words[begin + 1] <= words[begin] || words[begin + 1] - words[begin] > STUB_MAX ||
		        !memory_string(m, group, sizeof(group), words[1]) ||
		        !memory_string(m, name, sizeof(name), words[2]))
			continue;
		trim(name);
		r = add(s, words[begin], words[begin + 1]);
		if (!r)
			return;
		snprintf(r->name, sizeof(r->name), "%s::%s", group, name);
	}
}

/* Where they end is not recorded: each is taken to end where the next one begins. */
static void read_fields(const struct hotspot_names *n, struct memory *m, struct hotspot_stub_names *s)
{
	u64 address, entry;
	struct range *r;

	for (u32 i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		if (!vmstructs_static(n->v, "StubRoutines", fields[i], &address) ||
		        !memory_read(m, &entry, 8, address) || !entry)
			continue;
		r = add(s, entry, entry + STUB_MAX);
		if (!r)
			return;
		snprintf(r->name, sizeof(r->name), "StubRoutines::%s", fields[i] + 1);
	}
}

static int by_start(const void *left, const void *right)
{
	const struct range *a = left, *b = right;

	return (a->start > b->start) - (a->start < b->start);
}

/* Reads all names; where the list has not grown they stay. */
static void refresh(struct hotspot_names *n, struct memory *m)
{
	struct hotspot_stub_names *s = n->stubs;
	u64 first = 0;

	if (n->stub_list && !memory_read(m, &first, 8, n->stub_list))
		return;
	if (s && first == s->first)
		return;
	if (!s)
		s = n->stubs = calloc(1, sizeof(*s));
	if (!s)
		return;
	s->n = 0;
	s->first = first;
	read_codelets(n, m, s);
	if (first)
		read_descs(n, m, s);
	else
		read_fields(n, m, s);
	if (s->n)
		qsort(s->ranges, s->n, sizeof(*s->ranges), by_start);
}

static const struct range *find(const struct hotspot_stub_names *s, u64 pc)
{
	u32 at = SEARCH(s ? s->n : 0, k, s->ranges[k].start <= pc);

	return at && pc < s->ranges[at - 1].end ? &s->ranges[at - 1] : NULL;
}

/* "StubRoutines::call_stub", "invokevirtual", or the name of the blob. False: no code there. */
static bool hotspot_names_stub(struct hotspot_names *n, struct memory *m, u64 pc, char *ret, size_t size)
{
	const struct range *r = find(n->stubs, pc);
	struct hotspot_blob blob = {0};

	if (!r && hotspot_names_ready(n, m)) {
		refresh(n, m);
		r = find(n->stubs, pc);
	}
	if (!hotspot_blob_at(n->code, m, pc, &blob) || blob.kind == BLOB_NMETHOD)
		return false;
	if (r && r->start >= blob.at && r->start < blob.code_end)
		snprintf(ret, size, "%s", r->name);
	else
		snprintf(ret, size, "%s", blob.name);
	return *ret;
}

static void hotspot_stub_names_destroy(struct hotspot_stub_names *s)
{
	if (!s)
		return;
	free(s->ranges);
	free(s);
}

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
	u64 pc = frame_code(f);

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
