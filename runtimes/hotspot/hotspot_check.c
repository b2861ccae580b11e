/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_check.h"

#include <string.h>

#include "runtimes/hotspot/layout/hotspot_flags.h"
#include "runtimes/hotspot/memory/hotspot_blocks.h"

#define BLOBS_MAX    64   /* of a heap: looked at closely */
#define SCAN_MAX     1024 /* of a heap: where the heap is not split, many blobs come before the first nmethod */
#define NMETHODS_MAX 32
#define PCS_MAX      256
#define FEW          8
#define METADATA_MAX 256
#define THREADS_MAX  32
#define NAME_BYTES   64
#define PC_LOWER     (-1) /* PcDesc::lower_offset_limit */
#define IN_USE       0    /* nmethod::in_use */

struct subject {
	const struct vmstructs *v;
	const struct hotspot_layout *l;
	const struct hotspot_code *code;
	struct memory *live, *m; /* m: by the page, read anew for each check */
	struct hotspot_blocks *blocks;
	struct hotspot_heap heaps[HOTSPOT_HEAPS_MAX];
	u32 nheaps;
	u64 nmethods[NMETHODS_MAX];
	u32 nnmethods, nblobs;
	u32 scanned; /* blobs of this heap */
	bool bad_blob, bad_segment;
	bool no_tlabs; /* -XX:-UseTLAB: what JDK 8 to 11 have in the fields was never set */
};

/* The JVM goes on: what was read before is not compared with what is read now. */
static struct subject *anew(void *subject)
{
	struct subject *s = subject;

	if (s->blocks)
		s->m = hotspot_blocks_renew(s->blocks, s->live);
	return s;
}

static bool read_number(struct subject *s, u64 at, struct layout_member m, u64 *ret)
{
	*ret = 0;
	return memory_read(s->m, ret, m.size < 8 ? m.size : 8, at + m.at);
}

static bool read_pointer(struct subject *s, u64 at, struct layout_member m, u64 *ret)
{
	return memory_read(s->m, ret, 8, at + m.at) && *ret;
}

static bool is_text(const char *text)
{
	const char *p = text;

	while (*p >= ' ' && *p < 0x7f)
		p++;
	return p > text && !*p;
}

/* A Symbol's text may be any UTF-8, but no control characters at its beginning. */
static bool is_symbol(struct subject *s, u64 at)
{
	u64 length;
	u8 first;

	return at && !(at & 1) && read_number(s, at, s->l->symbol_length, &length) && length && length < UINT16_MAX &&
	       memory_read(s->m, &first, 1, at + s->l->symbol_body.at) && first >= ' ';
}

static int check_heaps(void *subject)
{
	struct subject *s = anew(subject);
	u64 low_at, high_at, low = 0, high = UINT64_MAX;

	if (vmstructs_static(s->v, "CodeCache", "_low_bound", &low_at) &&
	        vmstructs_static(s->v, "CodeCache", "_high_bound", &high_at) &&
	        (!memory_read(s->m, &low, 8, low_at) || !memory_read(s->m, &high, 8, high_at)))
		return CHECK_FAILS;
	for (u32 i = 0; i < s->nheaps; i++) {
		const struct hotspot_heap *h = &s->heaps[i];

		if (h->low < low || h->high > high)
			return CHECK_FAILS;
		for (u32 k = 0; k < i; k++)
			if (h->low < s->heaps[k].reserved_high && s->heaps[k].low < h->reserved_high)
				return CHECK_FAILS;
	}
	return s->nheaps;
}

static bool segment_leads_to(struct subject *s, u64 pc, u64 blob)
{
	struct hotspot_blob found;

	return hotspot_blob_at(s->code, s->m, pc, &found) && found.at == blob;
}

static void look_at_blob(struct subject *s, const struct hotspot_blob *b)
{
	s->bad_blob |= !is_text(b->name) || b->frame_complete < -1 || b->frame_size > 1 << 20;
	s->bad_segment |= !segment_leads_to(s, b->at, b->at) || !segment_leads_to(s, b->code_end - 1, b->at);
	s->nblobs++;
}

/*
 * Whether new calls may enter it. The code that an agent's redefinition of a class took out of force may fill the
 * beginning of a heap, until it is swept: in a JVM that an agent was loaded into later, that is all code of then.
 */
static bool is_in_use(struct subject *s, u64 nmethod)
{
	u64 state;

	return s->l->nm_state.size == 0 || (read_number(s, nmethod, s->l->nm_state, &state) && state == IN_USE);
}

static bool see_blob(void *ctx, const struct hotspot_blob *b)
{
	struct subject *s = ctx;

	if (s->scanned < BLOBS_MAX)
		look_at_blob(s, b);
	if (b->kind == BLOB_NMETHOD && s->nnmethods < NMETHODS_MAX && is_in_use(s, b->at))
		s->nmethods[s->nnmethods++] = b->at;
	return ++s->scanned < SCAN_MAX && !s->bad_blob && !s->bad_segment &&
	       (s->scanned < BLOBS_MAX || s->nnmethods < NMETHODS_MAX);
}

/* Blocks that are in use and hold no blob are skipped, so a wrong size shows as none, or by their names. */
static int check_blobs(void *subject)
{
	struct subject *s = anew(subject);

	for (u32 i = 0; i < s->nheaps; i++) {
		s->scanned = 0;
		hotspot_each_blob(s->code, s->m, &s->heaps[i], see_blob, s);
	}
	return s->bad_blob || (s->nheaps && !s->nblobs) ? CHECK_FAILS : (int)s->nblobs;
}

static int check_segments(void *subject)
{
	struct subject *s = anew(subject);

	return s->bad_segment ? CHECK_FAILS : (int)s->nblobs;
}

static int check_interpreter(void *subject)
{
	struct subject *s = anew(subject);
	struct hotspot_blob first, last;
	u64 start, end;

	if (!s->nheaps)
		return 0;
	if (!hotspot_interpreter(s->code, s->m, &start, &end))
		return s->nnmethods ? CHECK_FAILS : 0;
	if (!hotspot_blob_at(s->code, s->m, start, &first) || !hotspot_blob_at(s->code, s->m, end - 1, &last))
		return CHECK_FAILS;
	return first.at == last.at && !strcmp(first.name, "Interpreter") ? 1 : CHECK_FAILS;
}

/* Method → ConstMethod → ConstantPool → its class, and the symbols of both names. */
static bool is_method(struct subject *s, u64 method)
{
	const struct hotspot_layout *l = s->l;
	u64 constant, pool, holder, name, index, length, symbol;

	return read_pointer(s, method, l->method_const, &constant) && read_pointer(s, constant, l->const_pool, &pool) &&
	       read_number(s, constant, l->const_name, &index) && read_number(s, pool, l->pool_length, &length) &&
	       index && index < length && memory_read(s->m, &symbol, 8, pool + l->pool_size.at + 8 * index) &&
	       is_symbol(s, symbol) && read_number(s, constant, l->const_signature, &index) && index &&
	       index < length && memory_read(s->m, &symbol, 8, pool + l->pool_size.at + 8 * index) &&
	       is_symbol(s, symbol) && read_pointer(s, pool, l->pool_holder, &holder) &&
	       read_pointer(s, holder, l->klass_name, &name) && is_symbol(s, name);
}

/*
 * Of those that are in use, most are what their method runs; some are for OSR, some are replaced or unloaded just now.
 * Few may all be such.
 */
static int check_methods(void *subject)
{
	struct subject *s = anew(subject);
	u32 back = 0, good = 0, read = 0;

	for (u32 i = 0; i < s->nnmethods; i++) {
		struct hotspot_nmethod n;
		u64 code;

		if (!hotspot_nmethod_read(s->code, s->m, s->nmethods[i], 0, &n))
			continue;
		read++;
		if (n.level > 4 || n.compile_id > INT32_MAX || !is_method(s, n.method))
			continue;
		good++;
		back += memory_read(s->m, &code, 8, n.method + s->l->method_code.at) && code == n.at;
	}
	if (2 * good < read || (s->nnmethods && !read))
		return CHECK_FAILS;
	return back ? (int)good : s->nnmethods < FEW ? 0 : CHECK_FAILS;
}

/* Of PC_LOWER, those of the code, and one that is beyond the code (nmethod::copy_pcs). */
static bool has_ascending_pcs(struct subject *s, const struct hotspot_nmethod *n)
{
	u32 size = s->l->pc_desc_size.at, count = (n->pcs_end - n->pcs) / size;
	s64 last = PC_LOWER - 1, code = n->code_end - n->code;

	for (u32 i = 0; i < count && i < PCS_MAX; i++) {
		s32 pc, scope;

		if (!memory_read(s->m, &pc, 4, n->pcs + i * size + s->l->pc_desc_pc.at) ||
		        !memory_read(s->m, &scope, 4, n->pcs + i * size + s->l->pc_desc_scope.at))
			return false;
		if (pc <= last || (i == 0 && pc != PC_LOWER) || (pc > code) != (i == count - 1))
			return false;
		if (scope < 0 || (u64)scope > n->scopes_end - n->scopes)
			return false;
		last = pc;
	}
	return true;
}

/* Native methods have no PcDescs. */
static int check_pcs(void *subject)
{
	struct subject *s = anew(subject);
	int looked_at = 0;

	for (u32 i = 0; i < s->nnmethods; i++) {
		struct hotspot_nmethod n;

		if (!hotspot_nmethod_read(s->code, s->m, s->nmethods[i], 0, &n) || n.pcs == n.pcs_end)
			continue;
		if (!has_ascending_pcs(s, &n))
			return CHECK_FAILS;
		looked_at++;
	}
	return looked_at;
}

/* Scopes name the methods by their place in it: the nmethod's own is there if it has any PcDesc but the two at the
 * ends. */
static int check_metadata(void *subject)
{
	struct subject *s = anew(subject);
	int looked_at = 0;

	for (u32 i = 0; i < s->nnmethods; i++) {
		struct hotspot_nmethod n;
		bool found = false;
		u64 value;

		if (!hotspot_nmethod_read(s->code, s->m, s->nmethods[i], 0, &n) ||
		        n.pcs_end - n.pcs <= 2 * s->l->pc_desc_size.at)
			continue;
		for (u32 k = 0; k < METADATA_MAX && !found && n.metadata + 8 * k < n.metadata_end; k++)
			found = memory_read(s->m, &value, 8, n.metadata + 8 * k) && value == n.method;
		if (!found && (n.metadata_end - n.metadata) / 8 < METADATA_MAX)
			return CHECK_FAILS;
		looked_at++;
	}
	return looked_at;
}

static bool is_thread(struct subject *s, u64 thread)
{
	const struct hotspot_layout *l = s->l;
	u64 os, id, start, top, end;

	if (!read_pointer(s, thread, l->osthread, &os)) /* it is only starting, or ends */
		return memory_read(s->m, &os, 8, thread + l->osthread.at);
	if (!read_number(s, os, l->os_thread_id, &id) || id > 1 << 22)
		return false;
	return s->no_tlabs ||
	       (read_number(s, thread + l->tlab.at, l->tlab_start, &start) &&
	               read_number(s, thread + l->tlab.at, l->tlab_top, &top) &&
	               read_number(s, thread + l->tlab.at, l->tlab_end, &end) && start <= top && top <= end);
}

/* JDK 10 on: an array that is replaced whole; before: a chain. */
static int check_thread_array(struct subject *s, u64 list_at)
{
	u64 list, threads, length_offset, threads_offset, thread;
	u32 length;

	if (!vmstructs_field(s->v, "ThreadsList", "_length", &length_offset, NULL) ||
	        !vmstructs_field(s->v, "ThreadsList", "_threads", &threads_offset, NULL))
		return CHECK_FAILS;
	if (!memory_read(s->m, &list, 8, list_at) || !list)
		return 0;
	if (!memory_read(s->m, &length, 4, list + length_offset) ||
	        !memory_read(s->m, &threads, 8, list + threads_offset))
		return CHECK_FAILS;
	length = length < THREADS_MAX ? length : THREADS_MAX;
	for (u32 i = 0; i < length; i++)
		if (!memory_read(s->m, &thread, 8, threads + 8 * i) || !is_thread(s, thread))
			return CHECK_FAILS;
	return length;
}

static int check_thread_chain(struct subject *s, u64 first_at)
{
	u64 thread, next;
	int n = 0;

	if (!vmstructs_field(s->v, "JavaThread", "_next", &next, NULL) || !memory_read(s->m, &thread, 8, first_at))
		return CHECK_FAILS;
	for (; thread && n < THREADS_MAX; n++)
		if (!is_thread(s, thread) || !memory_read(s->m, &thread, 8, thread + next))
			return CHECK_FAILS;
	return n;
}

static int check_threads(void *subject)
{
	struct subject *s = anew(subject);
	u64 at;

	if (vmstructs_static(s->v, "ThreadsSMRSupport", "_java_thread_list", &at))
		return check_thread_array(s, at);
	return vmstructs_static(s->v, "Threads", "_thread_list", &at) ? check_thread_chain(s, at) : CHECK_FAILS;
}

static const struct runtime_check checks[] = {
        {"code heaps", "they lie in the code cache and do not overlap", check_heaps},
        {"blobs", "from the beginning of a heap they follow each other, and have names", check_blobs},
        {"segment map", "it leads from the ends of a blob to its beginning", check_segments},
        {"interpreter", "its code is the blob of that name", check_interpreter},
        {"methods", "compiled code has a method, with class, name and signature, that points back", check_methods},
        {"PcDescs", "they ascend from -1 through the code to one behind it", check_pcs},
        {"metadata", "compiled code lists its own method", check_metadata},
        {"threads", "each has its system thread, and a TLAB in order", check_threads},
};

static void look(void *subject)
{
	struct subject *s = anew(subject);

	s->nnmethods = s->nblobs = 0;
	s->bad_blob = s->bad_segment = false;
	s->nheaps = hotspot_heaps(s->code, s->m, s->heaps);
}

const struct runtime_checks hotspot_checks = {
        .all = checks, .n = sizeof(checks) / sizeof(*checks), .attempts = 5, .together = true, .look = look};

void hotspot_check(const struct vmstructs *v, const struct hotspot_layout *l, const struct hotspot_code *code,
        struct memory *m, int ret[RUNTIME_CHECKS_MAX])
{
	struct subject s = {.v = v, .l = l, .code = code, .live = m, .m = m, .blocks = hotspot_blocks_create()};
	struct hotspot_flag tlabs = {"UseTLAB", 1, 0, false};

	s.no_tlabs = hotspot_flags_read(v, m, &tlabs, 1) && tlabs.found && !tlabs.value;
	runtime_check(&hotspot_checks, &s, ret);
	hotspot_blocks_destroy(s.blocks);
}

struct error *hotspot_check_process(const struct vmstructs *v, const struct hotspot_layout *l,
        const struct hotspot_code *code, struct memory *m, bool *conclusive)
{
	struct hotspot_heap heaps[HOTSPOT_HEAPS_MAX];
	int found[RUNTIME_CHECKS_MAX];

	hotspot_check(v, l, code, m, found);
	*conclusive = true;
	for (u32 i = 0; i < hotspot_checks.n; i++) {
		*conclusive &= found[i] > 0;
		if (found[i] == CHECK_FAILS && hotspot_heaps(code, m, heaps))
			return error_new(ERROR_UNSUPPORTED,
			        "this JVM's structures differ from its vmStructs: \"%s\" fails (%s)", checks[i].name,
			        checks[i].what);
	}
	return NULL;
}
