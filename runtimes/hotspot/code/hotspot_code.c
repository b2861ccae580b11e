/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_code.h"

#include <stdlib.h>
#include <string.h>

#define HEAP_BYTES       512  /* of struct CodeHeap that are looked at; it has 336 in 25 */
#define OBJECT_BYTES     1024 /* of a CodeBlob or nmethod */
#define SEGMENT_FREE     0xff
#define LOG2_SEGMENT_MAX 16
#define HOPS_MAX         64
#define BLOCKS_MAX       (1u << 20)
#define CODE_MAX         (1ull << 32)

struct hotspot_code {
	const struct hotspot_layout *l;
	u64 heaps;       /* static: GrowableArray<CodeHeap*>*, or the only CodeHeap* */
	bool single;     /* JDK 8 */
	u64 interpreter; /* static: StubQueue* */
	u32 array_len, array_data;
	u32 blob_bytes, nmethod_bytes; /* how far their members reach */
};

static u64 number(const u8 *bytes, struct layout_member m)
{
	u64 value = 0;

	memcpy(&value, bytes + m.at, m.size < 8 ? m.size : 8);
	return value;
}

static s64 signed_number(const u8 *bytes, struct layout_member m)
{
	u32 bits = 64 - 8 * (m.size && m.size < 8 ? m.size : 8);

	return (s64)(number(bytes, m) << bits) >> bits;
}

static u64 pointer(const u8 *bytes, u32 at)
{
	return number(bytes, (struct layout_member){at, 8});
}

static void reach(u32 *bytes, struct layout_member m)
{
	u32 end = m.at + (m.size < 8 ? m.size : 8);

	if (m.size && end > *bytes)
		*bytes = end;
}

static u32 blob_bytes(const struct hotspot_layout *l)
{
	u32 n = 0;

	reach(&n, l->blob_name);
	reach(&n, l->blob_size);
	reach(&n, l->blob_frame_size);
	reach(&n, l->blob_frame_complete);
	reach(&n, l->blob_data_offset);
	reach(&n, l->blob_kind);
	reach(&n, l->blob_code_begin);
	reach(&n, l->blob_code_offset);
	reach(&n, l->blob_mutable_data);
	reach(&n, l->blob_mutable_data_size);
	reach(&n, l->blob_relocation_size);
	return n;
}

static u32 nmethod_bytes(const struct hotspot_layout *l)
{
	u32 n = blob_bytes(l);

	reach(&n, l->nm_method);
	reach(&n, l->nm_compile_id);
	reach(&n, l->nm_level);
	reach(&n, l->nm_orig_pc_offset);
	reach(&n, l->nm_entry_bci);
	reach(&n, l->nm_scopes_pcs_offset);
	reach(&n, l->nm_scopes_data_begin);
	reach(&n, l->nm_scopes_data_offset);
	reach(&n, l->nm_dependencies_offset);
	reach(&n, l->nm_metadata_offset);
	reach(&n, l->nm_immutable_data);
	reach(&n, l->nm_immutable_data_size);
	return n;
}

/* The offsets of an array's members: GrowableArrayBase, GenericGrowableArray before 16. */
static bool find_array(const struct vmstructs *v, struct hotspot_code *c)
{
	u64 len, data;

	if (!vmstructs_field(v, "GrowableArrayBase", "_len", &len, NULL) &&
	        !vmstructs_field(v, "GenericGrowableArray", "_len", &len, NULL))
		return false;
	if (!vmstructs_field(v, "GrowableArray<int>", "_data", &data, NULL) || len > 256 || data > 256)
		return false;
	c->array_len = len;
	c->array_data = data;
	return true;
}

static struct error *missing(const char *what)
{
	return error_new(ERROR_UNSUPPORTED, "its vmStructs lack %s", what);
}

static bool in_heap(const struct hotspot_layout *l, struct layout_member outer, struct layout_member m, u32 size)
{
	return (u64)outer.at + m.at + size <= l->heap_size.at;
}

static bool heap_has_members(const struct hotspot_layout *l)
{
	const struct layout_member whole = {0}, memory = l->heap_memory;

	return in_heap(l, memory, l->space_low, 8) && in_heap(l, memory, l->space_high, 8) &&
	       in_heap(l, memory, l->space_low_boundary, 8) && in_heap(l, memory, l->space_high_boundary, 8) &&
	       in_heap(l, l->heap_segmap, l->space_low, 8) &&
	       in_heap(l, whole, l->heap_log2_segment, l->heap_log2_segment.size < 8 ? l->heap_log2_segment.size : 8);
}

struct error *hotspot_code_create(const struct vmstructs *v, const struct hotspot_layout *l, struct hotspot_code **ret)
{
	struct hotspot_code c = {.l = l, .blob_bytes = blob_bytes(l), .nmethod_bytes = nmethod_bytes(l)};

	*ret = NULL;
	c.single = !vmstructs_static(v, "CodeCache", "_heaps", &c.heaps);
	if (c.single && !vmstructs_static(v, "CodeCache", "_heap", &c.heaps))
		return missing("CodeCache::_heaps");
	if (!c.single && !find_array(v, &c))
		return missing("GrowableArray::_len and _data");
	if (!vmstructs_static(v, "AbstractInterpreter", "_code", &c.interpreter))
		return missing("AbstractInterpreter::_code");
	if (c.nmethod_bytes > OBJECT_BYTES || l->heap_size.at > HEAP_BYTES ||
	        (l->block_size.at != 8 && l->block_size.at != 16))
		return error_new(ERROR_UNSUPPORTED, "its vmStructs have a code cache of no known form");
	if (!heap_has_members(l))
		return error_new(ERROR_UNSUPPORTED, "its vmStructs have a CodeHeap of no known form");
	*ret = malloc(sizeof(c));
	if (!*ret)
		return &error_no_memory;
	**ret = c;
	return NULL;
}

void hotspot_code_destroy(struct hotspot_code *c)
{
	free(c);
}

/* vmStructs do not give CodeHeap::_name (9 to 27): the member that points to such a text. */
static void find_heap_name(const u8 *bytes, u32 size, struct memory *m, struct hotspot_heap *ret)
{
	for (u32 at = 0; at + 8 <= size; at += 8) {
		u64 addr = pointer(bytes, at);

		if (addr < 1 << 16 || (addr >= ret->low && addr < ret->reserved_high))
			continue;
		if (memory_string(m, ret->name, sizeof(ret->name), addr) && !strncmp(ret->name, "Code", 4))
			return;
	}
	strcpy(ret->name, "CodeCache");
}

static bool read_heap(const struct hotspot_code *c, struct memory *m, u64 at, bool named, struct hotspot_heap *ret)
{
	const struct hotspot_layout *l = c->l;
	u8 bytes[HEAP_BYTES];
	u64 low_boundary;

	if (!at || !memory_read(m, bytes, l->heap_size.at, at))
		return false;
	low_boundary = pointer(bytes, l->heap_memory.at + l->space_low_boundary.at);
	ret->low = pointer(bytes, l->heap_memory.at + l->space_low.at);
	ret->high = pointer(bytes, l->heap_memory.at + l->space_high.at);
	ret->reserved_high = pointer(bytes, l->heap_memory.at + l->space_high_boundary.at);
	ret->segmap = pointer(bytes, l->heap_segmap.at + l->space_low.at);
	ret->log2_segment = number(bytes, l->heap_log2_segment);
	if (!ret->low || ret->low != low_boundary || ret->high <= ret->low || ret->reserved_high < ret->high ||
	        ret->reserved_high - ret->low > CODE_MAX || !ret->segmap || ret->log2_segment < 3 ||
	        ret->log2_segment > LOG2_SEGMENT_MAX)
		return false;
	if (named)
		find_heap_name(bytes, l->heap_size.at, m, ret);
	return true;
}

static u32 read_heaps(
        const struct hotspot_code *c, struct memory *m, bool named, struct hotspot_heap heaps[HOTSPOT_HEAPS_MAX])
{
	u64 array, data, at[HOTSPOT_HEAPS_MAX];
	u32 len, n = 0;

	if (!memory_read(m, &array, 8, c->heaps) || !array)
		return 0;
	if (c->single)
		return read_heap(c, m, array, named, &heaps[0]);
	if (!memory_read(m, &len, 4, array + c->array_len) || !memory_read(m, &data, 8, array + c->array_data))
		return 0;
	len = len < HOTSPOT_HEAPS_MAX ? len : HOTSPOT_HEAPS_MAX;
	if (!memory_read(m, at, 8 * len, data))
		return 0;
	for (u32 i = 0; i < len; i++)
		n += read_heap(c, m, at[i], named, &heaps[n]);
	return n;
}

u32 hotspot_heaps(const struct hotspot_code *c, struct memory *m, struct hotspot_heap heaps[HOTSPOT_HEAPS_MAX])
{
	return read_heaps(c, m, true, heaps);
}

bool hotspot_interpreter(const struct hotspot_code *c, struct memory *m, u64 *start, u64 *end)
{
	u64 queue;
	s32 limit;

	if (!memory_read(m, &queue, 8, c->interpreter) || !queue ||
	        !memory_read(m, start, 8, queue + c->l->queue_buffer.at) ||
	        !memory_read(m, &limit, 4, queue + c->l->queue_limit.at))
		return false;
	*end = *start + limit;
	return *start && limit > 0 && *end > *start;
}

static enum hotspot_blob_kind kind_of(const struct hotspot_layout *l, const u8 *bytes, const struct hotspot_blob *b)
{
	bool nmethod = !strcmp(b->name, "nmethod") || !strcmp(b->name, "native nmethod");

	if (l->blob_kind.size && l->kind_nmethod.size)
		nmethod = number(bytes, l->blob_kind) == l->kind_nmethod.at;
	if (nmethod)
		return BLOB_NMETHOD;
	return b->frame_size > 0 ? BLOB_STUB : BLOB_BUFFER;
}

/*
 * From an AOT cache (25 on) an adapter comes with the types of its arguments as its name, none at all if it has none
 * (AdapterHandlerLibrary::lookup_aot_cache()).
 */
static bool is_adapter(const struct hotspot_layout *l, const u8 *bytes)
{
	return l->blob_kind.size && l->kind_adapter.size && number(bytes, l->blob_kind) == l->kind_adapter.at;
}

/* limit: where its memory ends at the latest. */
static bool parse_blob(
        const struct hotspot_code *c, struct memory *m, u64 at, u64 limit, const u8 *bytes, struct hotspot_blob *ret)
{
	const struct hotspot_layout *l = c->l;
	s64 size = signed_number(bytes, l->blob_size), data = signed_number(bytes, l->blob_data_offset);
	s64 frame_size = signed_number(bytes, l->blob_frame_size);

	*ret = (struct hotspot_blob){.at = at, .code_end = at + data};
	ret->frame_complete = signed_number(bytes, l->blob_frame_complete);
	ret->frame_size = frame_size > 0 ? frame_size : 0;
	if (l->blob_code_begin.size)
		ret->code = number(bytes, l->blob_code_begin);
	else if (l->blob_code_offset.size)
		ret->code = at + signed_number(bytes, l->blob_code_offset);
	if (size <= 0 || (u64)size > limit - at || data <= 0 || data > size || ret->code <= at ||
	        ret->code > ret->code_end)
		return false;
	if (is_adapter(l, bytes))
		strcpy(ret->name, "I2C/C2I adapters");
	else if (!memory_string(m, ret->name, sizeof(ret->name), number(bytes, l->blob_name)))
		ret->name[0] = '\0';
	ret->kind = kind_of(l, bytes, ret);
	return true;
}

static bool read_blob(const struct hotspot_code *c, struct memory *m, u64 at, u64 limit, struct hotspot_blob *ret)
{
	u8 bytes[OBJECT_BYTES];

	return limit > at && limit - at > c->blob_bytes && memory_read(m, bytes, c->blob_bytes, at) &&
	       parse_blob(c, m, at, limit, bytes, ret);
}

/* HeapBlock::Header: the length in segments, and a flag whether it is used; 8 bytes both, or 8 each. */
static bool read_block(
        const struct hotspot_code *c, struct memory *m, const struct hotspot_heap *heap, u64 at, u64 *size, bool *used)
{
	u8 bytes[16];
	u32 half = c->l->block_size.at / 2;
	u64 length;

	if (heap->high - at < c->l->block_size.at || !memory_read(m, bytes, c->l->block_size.at, at))
		return false;
	length = number(bytes, (struct layout_member){0, half});
	*used = bytes[half];
	if (!length || length > (heap->high - at) >> heap->log2_segment)
		return false;
	*size = length << heap->log2_segment;
	return true;
}

void hotspot_each_blob(const struct hotspot_code *c, struct memory *m, const struct hotspot_heap *heap,
        bool (*each)(void *ctx, const struct hotspot_blob *blob), void *ctx)
{
	u64 at = heap->low, size;
	struct hotspot_blob blob;
	bool used;

	for (u32 i = 0; i < BLOCKS_MAX && at < heap->high; i++, at += size) {
		if (!read_block(c, m, heap, at, &size, &used))
			return;
		if (used && read_blob(c, m, at + c->l->block_size.at, at + size, &blob) && !each(ctx, &blob))
			return;
	}
}

/* The segment map: 0 begins a block, 255 is free, others go back by that many segments. */
static bool find_block(struct memory *m, const struct hotspot_heap *heap, u64 pc, u64 *ret)
{
	u64 i = (pc - heap->low) >> heap->log2_segment;

	for (u32 hops = 0; hops < HOPS_MAX; hops++) {
		u8 back;

		if (!memory_read(m, &back, 1, heap->segmap + i) || back == SEGMENT_FREE || back > i)
			return false;
		if (!back) {
			*ret = heap->low + (i << heap->log2_segment);
			return true;
		}
		i -= back;
	}
	return false;
}

bool hotspot_blob_at(const struct hotspot_code *c, struct memory *m, u64 pc, struct hotspot_blob *ret)
{
	struct hotspot_heap heaps[HOTSPOT_HEAPS_MAX];
	u32 n = read_heaps(c, m, false, heaps);

	for (u32 i = 0; i < n; i++) {
		u64 block, size;
		bool used;

		if (pc < heaps[i].low || pc >= heaps[i].high)
			continue;
		return find_block(m, &heaps[i], pc, &block) && read_block(c, m, &heaps[i], block, &size, &used) &&
		       used && read_blob(c, m, block + c->l->block_size.at, block + size, ret);
	}
	return false;
}

/* JDK 8 to 22: behind the code; 23 on: PcDescs and scopes in memory of their own, that is never written again. */
static void find_scopes(const struct hotspot_layout *l, const u8 *bytes, u64 at, struct hotspot_nmethod *ret)
{
	u64 base = l->nm_immutable_data.size ? number(bytes, l->nm_immutable_data) : at;

	ret->pcs = base + number(bytes, l->nm_scopes_pcs_offset);
	ret->scopes = l->nm_scopes_data_begin.size ? number(bytes, l->nm_scopes_data_begin)
	                                           : base + number(bytes, l->nm_scopes_data_offset);
	if (l->nm_immutable_data.size) {
		ret->pcs_end = ret->scopes;
		ret->scopes_end = base + number(bytes, l->nm_immutable_data_size);
	} else {
		ret->pcs_end = base + number(bytes, l->nm_dependencies_offset);
		ret->scopes_end = ret->pcs;
	}
}

/* JDK 8 to 22: before the scopes; 23 and 24: from the end of the code; 25 on: in memory of their own, behind
 * relocations. */
static void find_metadata(const struct hotspot_layout *l, const u8 *bytes, u64 at, struct hotspot_nmethod *ret)
{
	if (l->blob_mutable_data.size) {
		u64 base = number(bytes, l->blob_mutable_data);

		ret->metadata = base + number(bytes, l->blob_relocation_size);
		ret->metadata_end = base + number(bytes, l->blob_mutable_data_size);
	} else if (l->nm_immutable_data.size && l->nm_metadata_offset.size) {
		ret->metadata = ret->code_end + number(bytes, l->nm_metadata_offset);
		ret->metadata_end = at + number(bytes, l->blob_size);
	} else if (l->nm_metadata_offset.size) {
		ret->metadata = at + number(bytes, l->nm_metadata_offset);
		ret->metadata_end = ret->scopes;
	}
}

static bool is_table(u64 start, u64 end)
{
	return start && start <= end && end - start < CODE_MAX;
}

bool hotspot_nmethod_read(
        const struct hotspot_code *c, struct memory *m, u64 at, u32 compile_id, struct hotspot_nmethod *ret)
{
	const struct hotspot_layout *l = c->l;
	struct hotspot_blob blob;
	u8 bytes[OBJECT_BYTES];

	if (!memory_read(m, bytes, c->nmethod_bytes, at) || !parse_blob(c, m, at, at + CODE_MAX, bytes, &blob) ||
	        blob.kind != BLOB_NMETHOD)
		return false;
	*ret = (struct hotspot_nmethod){.at = at, .code = blob.code, .code_end = blob.code_end};
	ret->method = number(bytes, l->nm_method);
	ret->compile_id = number(bytes, l->nm_compile_id);
	ret->level = number(bytes, l->nm_level);
	ret->entry_bci = signed_number(bytes, l->nm_entry_bci);
	ret->orig_pc_offset = signed_number(bytes, l->nm_orig_pc_offset);
	if ((compile_id && ret->compile_id != compile_id) || !ret->method)
		return false;
	find_scopes(l, bytes, at, ret);
	find_metadata(l, bytes, at, ret);
	return is_table(ret->pcs, ret->pcs_end) && is_table(ret->scopes, ret->scopes_end) &&
	       is_table(ret->metadata, ret->metadata_end);
}
