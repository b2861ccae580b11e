/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the target: their size, as sys.getsizeof() says it, and what they refer to. */
#include <stdio.h>
#include <string.h>

#include "python_heap_internal.h"
#include "python_names.h"

#define CHUNK_WORDS   1024
#define CHUNK         128 /* entries of a dict or a set read at once */
#define NAMED_KEYS    64  /* a larger dict's keys are data, unless it holds attributes */
#define NAME_BYTES    64  /* a longer key is data */
#define DEQUE_ITEMS   64  /* of a block */
#define ELEMENT_EXTRA 40
#define ELEMENT_ROOM  4 /* in an element itself */
#define BLOCKS_MAX    (1u << 24)
#define LOG_SIZE_MAX  40
#define ITEMS_MAX     (1ull << 26) /* of one object */
#define SHARED_MAX    64
#define NPY_MAXDIMS   64
#define NPY_OWNDATA   4  /* NPY_ARRAY_OWNDATA of flags */
#define NPY_OBJECT    17 /* a number of a type */
#define ALIGNMENT_MAX 64
#define BYTES_HEAD    33 /* of a bytes object, which bytearrays have from 3.15 on */

#define STATE_MAX             4096 /* words of a module's state */
#define OWNED_BY_FRAME_OBJECT 2    /* _PyInterpreterFrame.owner */

static u64 word_at(const u8 *bytes, u32 at)
{
	u64 ret;

	memcpy(&ret, bytes + at, sizeof(ret));
	return ret;
}

static void give(struct python_heap *p, u32 label, u64 addr)
{
	if (p->root)
		heap_root_ref(p->h, p->root, label, addr);
	else
		heap_ref(p->h, label, addr);
}

static bool is_name(const char *text)
{
	u32 n = 0;

	for (; text[n]; n++) {
		bool letter =
		        (text[n] >= 'a' && text[n] <= 'z') || (text[n] >= 'A' && text[n] <= 'Z') || text[n] == '_';

		if (!letter && !(n && (text[n] == '.' || (text[n] >= '0' && text[n] <= '9'))))
			return false;
	}
	return n;
}

/* The label of a str, behind prefix ("." of attributes); other: what is not a name. */
static u32 label_of(struct python_heap *p, u64 str, const char *prefix, u32 other)
{
	u64 key = (str + (u8)*prefix) * 0x9e3779b97f4a7c15ull >> 2, *known = table_get(&p->key_label, key);
	char text[NAME_BYTES + 8];
	size_t n = strlen(prefix);
	u32 label;

	if (known)
		return (u32)*known == HEAP_ANY ? other : (u32)*known;
	memcpy(text, prefix, n + 1);
	python_heap_text(p, str, text + n, NAME_BYTES);
	label = is_name(text + n) && strlen(text + n) < NAME_BYTES - 4 ? heap_label(p->h, text) : HEAP_ANY;
	error_free(table_put(&p->key_label, key, label));
	return label == HEAP_ANY ? other : label;
}

/* --- arrays --- */

static bool give_words(struct python_heap *p, u32 label, u64 at, u64 n)
{
	if (n > ITEMS_MAX)
		return false;
	while (n) {
		u64 some = n < CHUNK_WORDS ? n : CHUNK_WORDS;
		const u8 *words = heap_bytes(p->h, at, (u32)some * 8);

		if (!words)
			return false;
		for (u64 i = 0; i < some; i++)
			give(p, label, word_at(words, (u32)i * 8));
		at += 8 * some;
		n -= some;
	}
	return true;
}

static bool sane_count(u64 n)
{
	return n < 1ull << LOG_SIZE_MAX;
}

static bool list(struct python_heap *p, u64 addr, u64 *size)
{
	const u8 *bytes = heap_bytes(p->h, python_heap_at(p, addr), 40);
	u64 n, items, allocated;

	if (!bytes)
		return false;
	n = word_at(bytes, 16);
	items = word_at(bytes, 24);
	allocated = word_at(bytes, 32);
	if (!sane_count(allocated) || n > allocated)
		return false;
	*size += 8 * allocated;
	return give_words(p, HEAP_ITEM, items, n);
}

static bool tuple(struct python_heap *p, const struct python_type *t, u64 addr)
{
	const u8 *bytes = heap_bytes(p->h, python_heap_at(p, addr), PYTHON_VAR_HEAD);
	u64 n = bytes ? word_at(bytes, 16) : ~0ull;

	return sane_count(n) && give_words(p, HEAP_ITEM, addr + t->items, n);
}

static bool set(struct python_heap *p, u64 addr, u64 *size)
{
	const u8 *bytes = heap_bytes(p->h, python_heap_at(p, addr), 64);
	u64 mask, table, n;

	if (!bytes)
		return false;
	mask = word_at(bytes, 32);
	table = word_at(bytes, 40);
	if (mask >= ITEMS_MAX || (mask & (mask + 1)))
		return false;
	n = mask + 1;
	if (table != python_heap_at(p, addr) + 64) /* else in the object */
		*size += 16 * n;
	for (u64 i = 0; i < n; i += CHUNK) {
		u64 some = n - i < CHUNK ? n - i : CHUNK;

		bytes = heap_bytes(p->h, table + 16 * i, (u32)some * 16);
		if (!bytes)
			return false;
		for (u32 k = 0; k < some; k++)
			if (word_at(bytes, 16 * k) && word_at(bytes, 16 * k + 8) != ~0ull)
				give(p, HEAP_ITEM, word_at(bytes, 16 * k));
	}
	return true;
}

static bool deque(struct python_heap *p, u64 addr, u64 *size)
{
	u64 words[6], block, index, left;

	if (!memory_read(p->r.mem, words, sizeof(words), python_heap_at(p, addr)) || !sane_count(words[2]))
		return false;
	left = words[2];
	block = words[3];
	index = word_at((u8 *)words, 40);
	*size += 8 * (DEQUE_ITEMS + 2);
	for (u32 i = 0; left && i < BLOCKS_MAX; i++) {
		u64 n = DEQUE_ITEMS - index < left ? DEQUE_ITEMS - index : left;

		if (index >= DEQUE_ITEMS || !give_words(p, HEAP_ITEM, block + 8 + 8 * index, n))
			return false;
		left -= n;
		index = 0;
		block = python_heap_word(p, block + 8 + 8 * DEQUE_ITEMS);
		*size += left ? 8 * (DEQUE_ITEMS + 2) : 0;
	}
	return true;
}

/* arrayobject (arraymodule.c): items, how many there is room for, and of what they are: a type code and a size. */
static bool array(struct python_heap *p, u64 addr, u64 *size)
{
	u64 words[3], each;

	if (!memory_read(p->r.mem, words, sizeof(words), python_heap_at(p, addr) + PYTHON_VAR_HEAD) ||
	        !sane_count(words[1]))
		return false;
	each = python_heap_word(p, words[2]) >> 32;
	*size += each <= 8 ? words[1] * each : 0;
	return true;
}

/*
 * PyArrayObject_fields of NumPy 1 and 2: data, dimensions, dtype, flags. Of a dtype the number of its type and the size
 * of an element: in NumPy 2 (npy_intp elsize, alignment) behind 64 bits of flags, where NumPy 1 has no number.
 */
static u64 element_size(struct python_heap *p, u64 dtype, bool *objects)
{
	const u8 *bytes = heap_bytes(p->h, python_heap_at(p, dtype), 56);
	u64 size, alignment;

	if (!bytes)
		return 0;
	size = word_at(bytes, 40);
	alignment = word_at(bytes, 48);
	*objects = (u32)word_at(bytes, 28) == NPY_OBJECT;
	return size && size < 1u << 31 && alignment && alignment <= ALIGNMENT_MAX ? size : (u32)word_at(bytes, 32);
}

/* Data of its own: size is what sys.getsizeof() says, and it may hold objects. Else its base has it. */
static bool ndarray(struct python_heap *p, u64 addr, u64 *size)
{
	u64 words[9], dims[NPY_MAXDIMS], n, each;
	bool objects = false;

	if (!memory_read(p->r.mem, words, sizeof(words), python_heap_at(p, addr)))
		return false;
	n = (u32)words[3];
	*size += 16 * n; /* dimensions and strides */
	if (!((u32)words[8] & NPY_OWNDATA))
		return n <= NPY_MAXDIMS;
	each = element_size(p, words[7], &objects);
	if (n > NPY_MAXDIMS || (n && !memory_read(p->r.mem, dims, n * 8, words[4])))
		return false;
	for (u64 i = 0, count = each; i < n; i++) {
		if (!sane_count(dims[i]) || (count && dims[i] > (1ull << LOG_SIZE_MAX) / count))
			return false;
		each = count *= dims[i];
	}
	*size += each;
	return !objects || give_words(p, HEAP_ITEM, words[2], each / 8);
}

/*
 * ElementObject (_elementtree.c, 3.3 to 3.14): behind tag, text and tail a structure: attributes, how many children,
 * for how many there is room, and where they are; up to four are in the structure itself.
 */
static bool element(struct python_heap *p, u64 addr, u64 *size)
{
	u64 words[4], extra = python_heap_word(p, python_heap_at(p, addr) + ELEMENT_EXTRA);

	if (!extra)
		return true;
	if (!memory_read(p->r.mem, words, sizeof(words), extra) || !sane_count(words[2]) || words[1] > words[2])
		return false;
	*size += sizeof(words) + ELEMENT_ROOM * 8;
	*size += words[3] == extra + sizeof(words) ? 0 : words[2] * 8;
	give(p, heap_label(p->h, ".attrib"), words[0]);
	return give_words(p, HEAP_ITEM, words[3], words[1]);
}

/* --- dicts --- */

struct keys {
	u64 entries, bytes; /* bytes: with its head */
	u64 n, usable;      /* entries that were made, and that may follow */
	u32 words;          /* of an entry */
	bool alone;         /* nobody else uses it */
};

static u32 index_bytes(u64 size)
{
	return size <= 0xff ? 1 : size <= 0xffff ? 2 : size <= 0xffffffff ? 4 : 8;
}

/* PyDictKeysObject: up to 3.10 its places, a function, usable, entries; then in powers of 2. */
static bool read_keys(struct python_heap *p, u64 addr, struct keys *ret)
{
	const u8 *head = addr && !(addr & 7) ? heap_bytes(p->h, addr, 40) : NULL;
	u64 places, index;
	u8 log_size, log_bytes;

	if (!head)
		return false;
	*ret = (struct keys){.alone = word_at(head, 0) == 1, .words = 3};
	if (p->r.version < PYTHON_V3_11) {
		places = word_at(head, 8);
		ret->usable = word_at(head, 24);
		ret->n = word_at(head, 32);
		index = 40 + places * index_bytes(places);
	} else {
		log_size = head[8];
		log_bytes = head[9];
		if (log_size > LOG_SIZE_MAX || log_bytes < log_size || log_bytes > log_size + 3 || head[10] > 2)
			return false;
		places = 1ull << log_size;
		ret->words = head[10] ? 2 : 3;
		ret->usable = word_at(head, 16);
		ret->n = word_at(head, 24);
		index = 32 + (1ull << log_bytes);
	}
	if (!sane_count(places) || (places & (places - 1)) || ret->n > places || ret->usable > places)
		return false;
	ret->entries = addr + index;
	ret->bytes = index + (places * 2 / 3) * ret->words * 8;
	return true;
}

/* What a dict holds, to people. */
struct naming {
	const char *prefix;
	bool names; /* its keys are names, however many */
	bool keys;  /* they are told */
};

static void give_entry(struct python_heap *p, const struct naming *as, u64 key, u64 value)
{
	u32 label = as->names ? label_of(p, key, as->prefix, HEAP_ENTRY) : HEAP_ENTRY;

	if (!key || !value)
		return;
	if (as->keys)
		give(p, HEAP_KEY, key);
	give(p, label, value);
}

/* values: of a table that shares its keys; 0: they are in the entries. */
static bool give_entries(struct python_heap *p, const struct keys *k, u64 values, const struct naming *as)
{
	u64 entries[CHUNK * 3], own[CHUNK];

	if (k->n > ITEMS_MAX)
		return false;
	for (u64 i = 0; i < k->n; i += CHUNK) {
		u64 n = k->n - i < CHUNK ? k->n - i : CHUNK;

		if (!memory_read(p->r.mem, entries, n * k->words * 8, k->entries + i * k->words * 8) ||
		        (values && !memory_read(p->r.mem, own, n * 8, values + 8 * i)))
			return false;
		for (u64 j = 0; j < n; j++) {
			const u64 *e = &entries[j * k->words + k->words - 2];

			give_entry(p, as, e[0], values ? own[j] : e[1]);
		}
	}
	return true;
}

static u64 values_at(const struct python_heap *p, u64 values)
{
	return p->r.version >= PYTHON_V3_13 ? values + 8 : values;
}

static bool dict(struct python_heap *p, u64 addr, u32 label, u64 *size)
{
	const u8 *bytes = heap_bytes(p->h, python_heap_at(p, addr), 48);
	struct naming as = {.prefix = "", .keys = true};
	struct keys k;
	u64 keys, values;

	if (!bytes)
		return false;
	keys = word_at(bytes, 32);
	values = word_at(bytes, 40);
	if (!read_keys(p, keys, &k))
		return false;
	if (k.alone && !values)
		*size += k.bytes;
	if (values)
		*size += 8 * (k.n + k.usable);
	label &= ~HEAP_PART;
	as.names = k.n <= NAMED_KEYS || label == p->labels.dict || label == p->labels.globals;
	as.prefix = label == p->labels.dict ? "." : "";
	return give_entries(p, &k, values ? values_at(p, values) : 0, &as);
}

/* struct _odictobject (odictobject.c): behind the dict a table of nodes of four words, one for each entry. */
static bool ordered_dict(struct python_heap *p, u64 addr, u32 label, u64 *size)
{
	u64 words[10]; /* 6: first, last, table, its places */

	if (!memory_read(p->r.mem, words, sizeof(words), python_heap_at(p, addr)) || !sane_count(words[2]))
		return false;
	*size += 32 * words[2] + (sane_count(words[9]) ? 8 * words[9] : 0);
	return dict(p, addr, label, size);
}

/* The attributes of an instance that has no dict yet: in the order of its class's keys. */
static bool values(struct python_heap *p, const struct python_type *t, u64 at, u64 *size)
{
	u64 addr = python_heap_word(p, python_heap_at(p, t->addr) + python_heap_type_layout(p->r.version).keys);
	struct naming as = {.prefix = ".", .names = true};
	const u8 *bytes;
	struct keys k;
	u64 n;

	if (!read_keys(p, addr, &k) || k.n > SHARED_MAX)
		return false;
	if (p->r.version < PYTHON_V3_13) {
		bytes = heap_bytes(p->h, at - 1, 1); /* bytes before the values */
		if (!bytes)
			return false;
		n = bytes[0] >= 9 && k.n + k.usable < bytes[0] - 9u ? bytes[0] - 9u : k.n + k.usable;
		*size += bytes[0] + 8 * n;
	}
	return give_entries(p, &k, values_at(p, at), &as);
}

/* Values behind an object, 3.13 on: capacity, size, "embedded", "valid". *size: what they take. */
static u64 values_behind(struct python_heap *p, const struct python_type *t, u64 addr, u64 *size)
{
	const u8 *about = t->flags & PYTHON_INLINE_VALUES ? heap_bytes(p->h, addr + t->basicsize, 4) : NULL;

	if (!about || about[0] > SHARED_MAX)
		return 0;
	*size += (about[0] + 7u) / 8 * 8 + (about[0] + 1u) * 8;
	return about[3] == 1 ? addr + t->basicsize : 0;
}

static bool managed_dict(struct python_heap *p, const struct python_type *t, u64 addr, u64 *size)
{
	const u8 *before = heap_bytes(p->h, addr - 32, 32);
	u64 words[2], behind;

	if (!before)
		return false;
	words[0] = word_at(before, 0);
	words[1] = word_at(before, p->longer ? 24 : 8); /* no links of the collector lie between */
	if (p->r.version >= PYTHON_V3_13) {
		behind = values_behind(p, t, addr, size);
		if (!words[1])
			return !behind || values(p, t, behind, size);
	} else if (p->r.version >= PYTHON_V3_12) {
		if (words[1] & 1)
			return values(p, t, words[1] + 1, size);
	} else if (words[0]) {
		return values(p, t, words[0], size);
	}
	give(p, p->labels.dict | HEAP_PART, words[1]);
	return true;
}

/* Where a type says: counted from the end if it has items. */
static bool dict_by_offset(struct python_heap *p, const struct python_type *t, u64 addr)
{
	s64 at = t->dictoffset;
	const u8 *head;
	s64 n;

	if (at < 0) {
		head = heap_bytes(p->h, python_heap_at(p, addr), PYTHON_VAR_HEAD);
		n = head ? (s64)word_at(head, 16) : 0;
		n = n < 0 ? -n : n;
		if (!head || !sane_count((u64)n))
			return false;
		at += (s64)((t->basicsize + (u64)n * t->itemsize + 7) & ~7ull);
	}
	if (at >= (s64)python_heap_at(p, PYTHON_HEAD))
		give(p, p->labels.dict | HEAP_PART, python_heap_word(p, addr + (u64)at));
	return true;
}

static bool attributes(struct python_heap *p, const struct python_type *t, u64 addr, u64 *size)
{
	if (t->kind == PYTHON_TYPE)
		return true;
	if (p->r.version >= PYTHON_V3_11 && (t->flags & PYTHON_MANAGED_DICT))
		return managed_dict(p, t, addr, size);
	return !t->dictoffset || dict_by_offset(p, t, addr);
}

/* --- types, frames, generators --- */

static bool type(struct python_heap *p, u64 addr, u64 *size)
{
	static const struct {
		u16 at;
		const char *label;
	} members[] = {
	        {256, "__base__"}, {336, "__bases__"}, {344, "__mro__"}, {352, "(cache)"}, {368, "(subclasses)"}};
	struct python_heap_type l = python_heap_type_layout(p->r.version);
	const u32 own[] = {l.name, l.slots, l.qualname, l.module};
	u64 words[400 / 8];
	struct keys k;

	addr = python_heap_at(p, addr);
	if (!memory_read(p->r.mem, words, sizeof(words), addr))
		return false;
	give(p, p->labels.dict | HEAP_PART, words[264 / 8]);
	for (u32 i = 0; i < sizeof(members) / sizeof(*members); i++)
		if (words[members[i].at / 8] > 1u << 16) /* 3.12 on: numbers, of the runtime's own types */
			give(p, heap_label(p->h, members[i].label), words[members[i].at / 8]);
	if (!(words[168 / 8] & PYTHON_HEAP_TYPE)) {
		*size = p->r.version >= PYTHON_V3_15                                 ? 424
		        : p->r.version < PYTHON_V3_9 || p->r.version >= PYTHON_V3_12 ? 416
		                                                                     : 408;
		*size += p->longer;
		return true;
	}
	for (u32 i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (own[i])
			give(p, HEAP_ANY, python_heap_word(p, addr + own[i]));
	if (read_keys(p, python_heap_word(p, addr + l.keys), &k))
		*size += k.bytes;
	return true;
}

/* Offsets in _PyInterpreterFrame, 3.11 on. */
struct frame_layout {
	u8 words[6];                              /* of objects */
	u8 nwords, code, stacktop, owner, locals; /* owner: without a free-threaded build's tlbc_index, from 3.14 on */
};

static struct frame_layout frame_layout(u32 version)
{
	if (version < PYTHON_V3_12)
		return (struct frame_layout){{0, 8, 16, 24, 32, 40}, 6, 32, 64, 69, 72};
	if (version < PYTHON_V3_14)
		return (struct frame_layout){{0, 16, 24, 32, 40, 48}, 6, 0, 64, 70, 72};
	return (struct frame_layout){{0, 16, 24, 32, 40, 48}, 6, 0, 64, 74, 80};
}

static u64 owner_at(const struct python_heap *p)
{
	return frame_layout(p->r.version).owner + (p->longer && p->r.version >= PYTHON_V3_14 ? 4u : 0);
}

/* From 3.14 on words of a frame have tags: a number, or whether it counts as a reference. */
static u64 untag(const struct python_heap *p, u64 word)
{
	if (p->r.version < PYTHON_V3_14)
		return word;
	return (word & 3) == 3 ? 0 : word & ~3ull;
}

static bool is_code(struct python_heap *p, u64 addr)
{
	return addr && !(addr & 7) && python_heap_word(p, python_heap_at(p, addr) + 8) == p->bias + p->image->code_type;
}

u64 python_heap_frame_code(struct python_heap *p, u64 frame)
{
	u32 at = p->r.version < PYTHON_V3_11 ? p->r.l->fo_code.at : frame_layout(p->r.version).code;
	u64 code = untag(p, python_heap_word(p, frame + at));

	return is_code(p, code) ? code : 0;
}

void python_heap_code_name(struct python_heap *p, u64 code, char *ret, size_t size)
{
	const struct python_layout *l = p->r.l;
	char name[128], file[256];
	const char *slash;
	u32 line = 0;

	python_heap_text(p, python_heap_word(p, code + python_layout_name(l).at), name, sizeof(name));
	python_heap_text(p, python_heap_word(p, code + l->co_filename.at), file, sizeof(file));
	(void)!memory_read(p->r.mem, &line, sizeof(line), code + l->co_firstlineno.at);
	slash = strrchr(file, '/');
	snprintf(ret, size, "%s (%s:%u)", name, slash ? slash + 1 : file, line);
}

/*
 * co_nlocalsplus follows the first line, and the tuple of their names comes two words before the file's. Up to 3.10
 * co_nlocals comes three words before the first line, and co_varnames follows co_names.
 */
static u32 count_locals(struct python_heap *p, u64 code, u64 *names)
{
	const struct python_layout *l = p->r.l;
	bool old = p->r.version < PYTHON_V3_11;
	u32 n;

	*names = python_heap_word(p, code + (old ? l->co_names.at + 8u : l->co_filename.at - 16u));
	if (!memory_read(
	            p->r.mem, &n, sizeof(n), code + (old ? l->co_firstlineno.at - 12u : l->co_firstlineno.at + 4u)) ||
	        n > 1u << 16 || !*names || python_heap_word(p, python_heap_at(p, *names) + 16) != n)
		return 0;
	return n;
}

static u32 count_stack(struct python_heap *p, u64 frame, const struct frame_layout *l, u32 nlocals)
{
	u64 word = python_heap_word(p, frame + l->stacktop), n;

	if (p->r.version >= PYTHON_V3_14)
		n = word > frame + l->locals ? (word - frame - l->locals) / 8 : 0;
	else
		n = (s32)word > 0 ? (u32)word : 0;
	return n > nlocals && n < nlocals + 4096 ? (u32)n : nlocals;
}

/* PyFrameObject.f_localsplus, an array of one, up to 3.10. */
static u32 old_locals(struct python_heap *p)
{
	const struct python_type *t = python_heap_type(p, p->bias + p->image->frame_type);

	return t ? t->basicsize - 8 : 0;
}

/*
 * Up to 3.10: locals, cells and the stack, up to f_valuestack or, where that is known, f_stacktop (3.10: f_stackdepth).
 * What lies behind is left over from others.
 */
static u32 count_old(struct python_heap *p, u64 frame)
{
	u64 start = frame + old_locals(p), stack = python_heap_word(p, frame + 64), top;

	if (p->r.version < PYTHON_V3_10)
		top = python_heap_word(p, frame + 72);
	else
		top = stack + 8 * (python_heap_word(p, frame + 80) & 0x7fffffff);
	top = top > stack && top - stack < 1u << 20 ? top : stack;
	return stack >= start && top - start < 1u << 20 ? (u32)((top - start) / 8) : 0;
}

/* Locals at an address, by the names that the code has for the first of them. */
static void give_locals(struct python_heap *p, u64 at, u32 n, u32 nnamed, u64 names)
{
	const struct python_type *t =
	        names ? python_heap_type(p, python_heap_word(p, python_heap_at(p, names) + 8)) : NULL;

	p->steps += p->root ? n : 0;
	for (u32 i = 0; i < n; i++) {
		u64 value = untag(p, python_heap_word(p, at + 8ull * i));
		u32 label = HEAP_ANY;

		if (!python_heap_is_object(p, value))
			continue;
		if (i < nnamed && t && t->kind == PYTHON_TUPLE)
			label = label_of(p, python_heap_word(p, names + t->items + 8ull * i), "", HEAP_ANY);
		give(p, label, value);
	}
}

u64 python_heap_frame(struct python_heap *p, u64 frame)
{
	struct frame_layout l = frame_layout(p->r.version);
	u64 code = python_heap_frame_code(p, frame), names, value;
	u32 n;

	if (!code)
		return 0;
	n = count_locals(p, code, &names);
	if (p->r.version < PYTHON_V3_11) {
		give_locals(p, frame + old_locals(p), count_old(p, frame), n, names);
		return code;
	}
	for (u32 i = 0; i < l.nwords; i++) {
		value = untag(p, python_heap_word(p, frame + l.words[i]));
		if (python_heap_is_object(p, value))
			give(p, HEAP_ANY, value);
	}
	give_locals(p, frame + l.locals, count_stack(p, frame, &l, n), n, names);
	return code;
}

/* Bytes of the locals and the stack of a frame from 3.11 on: co_stacksize precedes the first line. */
static u64 slots_size(struct python_heap *p, u64 code)
{
	u64 names;
	u32 stack = 0;

	(void)!memory_read(p->r.mem, &stack, sizeof(stack), code + p->r.l->co_firstlineno.at - 4u);
	return stack < 1u << 16 ? 8ull * (count_locals(p, code, &names) + stack) : 0;
}

static bool frame(struct python_heap *p, u64 addr, u64 *size)
{
	u64 own = python_heap_word(p, python_heap_at(p, addr) + PYTHON_HEAD + 8), code;
	const u8 *owner;

	if (p->r.version < PYTHON_V3_11) {
		python_heap_frame(p, addr);
		return true;
	}
	code = own ? python_heap_frame_code(p, own) : 0;
	if (code)
		*size += slots_size(p, code) - 8; /* basicsize has one */
	owner = own ? heap_bytes(p->h, own + owner_at(p), 1) : NULL;
	if (owner && *owner == OWNED_BY_FRAME_OBJECT)
		python_heap_frame(p, own);
	return true;
}

/* PyGenObject.gi_iframe: 3.13 does not say, and has it where 3.12 has it. */
static u32 gen_frame(const struct python_heap *p)
{
	return p->r.l->gen_frame.size ? p->r.l->gen_frame.at : (u32)python_heap_at(p, PYTHON_HEAD + 56);
}

/* From 3.11 on its frame is in it, at its end. */
static bool generator(struct python_heap *p, u64 addr, u64 *size)
{
	u64 frame = addr + gen_frame(p), code, slots;

	if (p->r.version < PYTHON_V3_11) {
		give(p, HEAP_PART, python_heap_word(p, addr + PYTHON_HEAD)); /* gi_frame */
		return true;
	}
	code = python_heap_frame(p, frame);
	if (!code)
		return true;
	slots = slots_size(p, code);
	if (slots)
		*size = gen_frame(p) + frame_layout(p->r.version).locals + slots;
	return true;
}

/* The state of a module of C: as many words as PyModuleDef.m_size says, or from 3.15 on md_state_size. */
static bool module(struct python_heap *p, u64 addr)
{
	bool sized = p->r.version >= PYTHON_V3_15;
	u64 at = python_heap_at(p, addr), state = python_heap_word(p, at + (sized ? 24 : 32)),
	    from = sized ? addr : python_heap_word(p, at + 24);
	s64 bytes = from && state && !(state & 7) ? (s64)python_heap_word(p, python_heap_at(p, from) + 56) : 0;
	u64 n = bytes > 0 ? (u64)bytes / 8 : 0;

	for (u64 i = 0; i < n && n < STATE_MAX; i++) {
		u64 value = python_heap_word(p, state + 8 * i);

		if (python_heap_is_object(p, value))
			give(p, HEAP_ANY, value);
	}
	return true;
}

/* --- sizes --- */

static bool str_size(struct python_heap *p, u64 addr, u64 *size)
{
	const struct python_layout *l = p->r.l;
	u32 compact = l->str_compact.at, ascii = l->str_ascii.at;
	const u8 *bytes = heap_bytes(p->h, addr, compact);
	struct python_str_state state;
	u64 n, utf8;
	u32 bits;

	if (!bytes)
		return false;
	memcpy(&bits, bytes + l->str_state.at, sizeof(bits));
	state = python_str_state(bits);
	n = word_at(bytes, l->str_length.at);
	utf8 = word_at(bytes, ascii + 8u) ? word_at(bytes, ascii) : 0;
	if (!sane_count(n) || (state.kind != 1 && state.kind != 2 && state.kind != 4))
		return false;
	*size = state.compact ? (state.ascii ? ascii : compact) : compact + 8u;
	*size += (n + 1) * state.kind;
	if (!state.ascii && sane_count(utf8) && utf8)
		*size += utf8 + 1;
	return true;
}

static bool int_size(struct python_heap *p, const struct python_type *t, u64 addr, u64 *size)
{
	s64 tag = (s64)python_heap_word(p, python_heap_at(p, addr) + PYTHON_HEAD);
	u64 n = (u64)(tag < 0 ? -tag : tag);

	if (p->r.version >= PYTHON_V3_12)
		n = (u64)tag >> 3;
	if (p->r.version >= PYTHON_V3_11)
		n = n ? n : 1;
	*size = (p->r.version >= PYTHON_V3_12 ? t->basicsize : PYTHON_VAR_HEAD) + 4 * n;
	return sane_count(n);
}

/* With items in it, and what precedes it. A number of items that is torn leads out of what is mapped. */
static bool plain_size(struct python_heap *p, const struct python_type *t, u64 addr, u64 *size)
{
	s64 n = t->itemsize ? (s64)python_heap_word(p, python_heap_at(p, addr) + PYTHON_HEAD) : 0;

	n = n < 0 ? -n : n;
	*size = t->basicsize + (u64)n * t->itemsize;
	return sane_count((u64)n) && (!n || heap_bytes(p->h, addr + *size - 1, 1));
}

static u64 before(const struct python_heap *p, const struct python_type *t)
{
	u64 ret = t->flags & PYTHON_HAVE_GC && !p->longer ? PYTHON_GC_HEAD : 0;

	if (p->r.version >= PYTHON_V3_12)
		return ret + (t->flags & (PYTHON_MANAGED_DICT | PYTHON_MANAGED_WEAK) ? 16 : 0);
	return ret + (p->r.version >= PYTHON_V3_11 && (t->flags & PYTHON_MANAGED_DICT) ? 16 : 0);
}

static bool own_size(struct python_heap *p, const struct python_type *t, u64 addr, u64 *size)
{
	switch (t->kind) {
	case PYTHON_STR:
		return str_size(p, addr, size);
	case PYTHON_INT:
		return int_size(p, t, addr, size);
	case PYTHON_TYPE:
	case PYTHON_GENERATOR:
		*size = t->basicsize;
		return true;
	case PYTHON_FRAME: /* from 3.11 on it does not say how many items it has */
		*size = t->basicsize;
		return p->r.version >= PYTHON_V3_11 || plain_size(p, t, addr, size);
	default:
		return plain_size(p, t, addr, size);
	}
}

static bool contents(struct python_heap *p, const struct python_type *t, u64 addr, u32 label, u64 *size)
{
	u64 n;

	switch (t->kind) {
	case PYTHON_LIST:
		return list(p, addr, size);
	case PYTHON_TUPLE:
		return tuple(p, t, addr);
	case PYTHON_DICT:
		return dict(p, addr, label, size);
	case PYTHON_ORDERED_DICT:
		return ordered_dict(p, addr, label, size);
	case PYTHON_SET:
		return set(p, addr, size);
	case PYTHON_TYPE:
		return type(p, addr, size);
	case PYTHON_DEQUE:
		return deque(p, addr, size);
	case PYTHON_ARRAY:
		return array(p, addr, size);
	case PYTHON_NDARRAY:
		return ndarray(p, addr, size);
	case PYTHON_ELEMENT:
		return element(p, addr, size);
	case PYTHON_FRAME:
		return frame(p, addr, size);
	case PYTHON_GENERATOR:
		return generator(p, addr, size);
	case PYTHON_MODULE:
		return module(p, addr);
	case PYTHON_BYTEARRAY: /* ob_alloc */
		n = python_heap_word(p, python_heap_at(p, addr) + 24);
		*size += n + (n && p->r.version >= PYTHON_V3_15 ? BYTES_HEAD : 0);
		return sane_count(n);
	default:
		return true;
	}
}

static void slots(struct python_heap *p, const struct python_type *t, u64 addr)
{
	/* the word before a generator's frame has four flags; the rest is what was there before */
	u32 end = t->kind == PYTHON_GENERATOR && p->r.version >= PYTHON_V3_11 ? gen_frame(p) - 8 : UINT16_MAX;

	for (u32 i = 0; i < t->nslots; i++) {
		u64 value = t->slots[i].at < end ? python_heap_word(p, addr + t->slots[i].at) : 0;

		if (value && (t->slots[i].sure || python_heap_is_object(p, value)))
			give(p, t->slots[i].label, value);
	}
}

/* Frames, generators and coroutines are named by their function: who holds one wants to know which. */
static u32 type_number(struct python_heap *p, const struct python_type *t, u64 addr)
{
	u64 code = 0, frame = addr + gen_frame(p);
	char name[512], of[320];
	u32 ret;

	if (t->kind == PYTHON_FRAME)
		frame = p->r.version < PYTHON_V3_11 ? addr
		                                    : python_heap_word(p, python_heap_at(p, addr) + PYTHON_HEAD + 8);
	else if (p->r.version < PYTHON_V3_11)
		frame = python_heap_word(p, addr + PYTHON_HEAD);
	if (t->kind == PYTHON_FRAME || t->kind == PYTHON_GENERATOR)
		code = frame ? python_heap_frame_code(p, frame) : 0;
	if (!code)
		return t->number;
	code |= t->kind == PYTHON_FRAME; /* a key of its own */
	ret = heap_type(p->h, code | 2, NULL);
	if (ret)
		return ret;
	python_heap_code_name(p, code & ~1ull, of, sizeof(of));
	snprintf(name, sizeof(name), "%s of %s", heap_type_name(p->h, t->number), of);
	return heap_type(p->h, code | 2, name);
}

enum heap_seen python_heap_object(void *reader, u64 addr, u32 label, struct heap_object *ret)
{
	struct python_heap *p = reader;
	const u8 *head = python_heap_alive(p, addr);
	const struct python_type *t;
	u64 size, type;

	if (!head)
		return HEAP_TORN;
	type = python_heap_type_of(p, head);
	t = python_heap_type(p, type);
	if (!t || !own_size(p, t, addr, &size))
		return HEAP_TORN;
	if (!contents(p, t, addr, label, &size) || !attributes(p, t, addr, &size))
		return HEAP_TORN;
	slots(p, t, addr);
	if (!p->tracked && !p->longer && (t->flags & PYTHON_HAVE_GC) && python_heap_word(p, addr - PYTHON_GC_HEAD))
		p->tracked = addr;
	if (t->flags & PYTHON_HEAP_TYPE)
		give(p, p->labels.type, type);
	ret->type = type_number(p, t, addr);
	ret->size = size + before(p, t);
	return HEAP_OBJECT;
}
