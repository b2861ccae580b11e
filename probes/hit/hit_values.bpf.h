/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Reads the arguments of a call as it begins. Each slot takes up to four reads, of at most 128 bytes. */
#ifndef YRT_HIT_VALUES_BPF_H
#define YRT_HIT_VALUES_BPF_H

#include "hit/hit_values.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct values_record);
} values_scratch SEC(".maps");

struct { /* sized where arguments are wanted, as the next: by number of the function */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct value_places);
} values_functions SEC(".maps");

struct { /* keys that user space was told, and how many calls had them */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, u64);
} values_known SEC(".maps");

struct { /* sized where arguments of slow calls are wanted */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct values_call);
	__type(value, struct values_record);
} values_calls SEC(".maps");

static inline struct values_record *values_here(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&values_scratch, &zero);
}

static inline struct value_places *values_places(u32 function)
{
	u32 number = function - 1;

	return bpf_map_lookup_elem(&values_functions, &number);
}

/* How much of a text is read: all of it, or as much as there is room for. */
static inline u32 values_extent(const struct values_record *r, const struct value_shape *s, u32 i)
{
	const u64 *words = (const u64 *)r->bytes[i];
	u32 to, length = (u32)(words[s->length_at >> 3 & (VALUE_BYTES / 8 - 1)] >> 8 * (s->length_at & 7));

	length &= s->length_bits;
	if (length > VALUE_BYTES)
		length = VALUE_BYTES;
	if (s->narrow && !(r->bytes[i][s->narrow_at & (VALUE_BYTES - 1)] & s->narrow))
		length = 4 * length + VALUE_WIDE_HEAD;
	to = s->data_at + length;
	return to < VALUE_BYTES ? to : VALUE_BYTES;
}

/* A text in another object, to which the one at `at` leads. */
static __attribute__((always_inline)) inline void values_behind(
        struct values_record *r, const struct value_shape *s, u32 i, u64 at)
{
	struct value_text *t = (struct value_text *)r->bytes[i];
	u64 ref = 0, n = s->behind_bytes, room;
	u32 length = 0;

	WALK_BARRIER(n);
	if (n > sizeof(ref) || bpf_probe_read_user(&ref, (u32)n, (const void *)(at + s->behind_at)) || !ref)
		return;
	ref = s->behind_base + (ref << (s->behind_shift & 63));
	if (s->narrow_at)
		bpf_probe_read_user(&t->kind, 1, (const void *)(at + s->narrow_at));
	if (bpf_probe_read_user(&length, sizeof(length), (const void *)(ref + s->length_at)))
		return;
	length <<= s->behind_unit & 3;
	t->length = length;
	room = length < sizeof(t->text) ? length : sizeof(t->text);
	WALK_BARRIER(room);
	if (room <= sizeof(t->text) && !bpf_probe_read_user(t->text, (u32)room, (const void *)(ref + s->data_at)))
		r->size[i] = sizeof(*t) - sizeof(t->text) + (u32)room;
}

/* The object of slot i, at `at`. */
static __attribute__((always_inline)) inline void values_object(
        struct values_record *r, const struct value_shape *s, u32 i, u64 at)
{
	u32 to = s->to;

	if (s->behind_bytes) {
		values_behind(r, s, i, at);
		return;
	}
	WALK_BARRIER(to);
	if (!to || to > VALUE_BYTES || bpf_probe_read_user(r->bytes[i], to, (const void *)at))
		return;
	r->size[i] = to;
	if (!s->data_at)
		return;
	to = values_extent(r, s, i);
	WALK_BARRIER(to);
	if (to <= VALUE_BYTES && !bpf_probe_read_user(r->bytes[i], to, (const void *)at))
		r->size[i] = to;
}

/* Of all bytes: behind what was read there are zeros. Without a branch, each of which the verifier would follow. */
static __attribute__((always_inline)) inline u64 values_mix(const struct values_record *r, u32 i, u64 hash)
{
	const u64 *words = (const u64 *)r->bytes[i];

	for (u32 k = 0; k < VALUE_BYTES / 8; k++)
		hash = walk_mix(hash, words[k]);
	return hash;
}

/* What changes without changing the value: a count of references, links of the collector. */
static inline void values_clear_head(struct values_record *r, const struct value_shape *s, u32 i)
{
	u64 *words = (u64 *)r->bytes[i];

	for (u32 k = 0; k < VALUE_HEAD_MAX / 8; k++)
		if (8 * k < s->from)
			words[k] = 0;
}

static inline u64 values_type(const struct value_places *p, u32 i, u64 at, u64 word)
{
	u64 type = 0;

	if (p->typing == VALUE_TYPE_DECLARED)
		return p->shape[i & (VALUES_MAX - 1)].type;
	if (p->typing == VALUE_TYPE_IN_WORD)
		return word >> (p->type_at & 63);
	if (p->typing == VALUE_TYPE_BESIDE)
		return bpf_probe_read_user(&type, 1, (const void *)(at + 8)) ? 0
		                                                             : (type & ~(u64)p->type_at) | VALUE_BESIDE;
	if (word & p->mask)
		bpf_probe_read_user(&type, sizeof(type), (const void *)((word & p->mask) + p->type_at));
	return type;
}

/* VALUE_SHAPES: there is none. */
WALK_GLOBAL u32 values_shape(const struct value_places *p, u64 type)
{
	if (!p || !type)
		return VALUE_SHAPES;
	for (u32 i = 0; i < VALUE_SHAPES; i++)
		if (p->shape[i].type == type)
			return i;
	return VALUE_SHAPES;
}

/* number: 1 + a word of struct pt_regs. */
static __attribute__((always_inline)) inline u64 values_register(u32 number)
{
	const u64 *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), regs + number - 1);
	return word;
}

/* How many slots there are. */
static inline u32 values_given(const struct value_places *p)
{
	return p->given ? (u32)values_register(p->given) - 1 : VALUES_MAX;
}

/* Argument i of a call whose first slot is at `at`. False: it is not where it can be read. */
static __attribute__((always_inline)) inline bool values_word(const struct value_places *p, u32 i, u64 *at, u64 *ret)
{
	u32 slot = p->slot[i & (VALUES_MAX - 1)];

	if (p->base == VALUE_REGISTERS) {
		*ret = values_register(slot);
		return slot != 0;
	}
	*at += (u64)((s64)p->step * slot);
	return !bpf_probe_read_user(ret, sizeof(*ret), (const void *)*at);
}

/* The word and the type of argument i. at: of the first slot. */
WALK_GLOBAL int values_fetch(u32 function, u32 i, u64 at)
{
	struct values_record *r = values_here();
	struct value_places *p = values_places(function);
	bool known = true;
	u64 word = ~0ull;

	if (!r || !p || i >= VALUES_MAX)
		return 0;
	if ((p->given ? p->slot[i] : i) < r->given)
		known = values_word(p, i, &at, &word);
	r->unread |= (known ? 0u : 1u) << i;
	r->word[i] = word;
	r->kind[i] = known ? values_type(p, i, at, word) : 0;
	return 0;
}

/* What the word of argument i stands for, and goes on with the hash. */
static __attribute__((always_inline)) inline u64 values_content(
        struct values_record *r, const struct value_places *p, u32 i, u64 hash)
{
	const struct value_shape *s;
	u64 word = r->word[i];
	u32 shape;

	r->size[i] = 0;
	hash = walk_mix(hash, r->kind[i]);
	shape = p->typing == VALUE_TYPE_DECLARED ? i : values_shape(p, r->kind[i]);
	if (!r->kind[i])
		shape = VALUE_SHAPES;
	WALK_BARRIER(shape);
	if (shape >= VALUE_SHAPES)
		return p->others_plain ? walk_mix(hash, word) : hash;
	s = &p->shape[shape];
	if (s->plain)
		return walk_mix(hash, word << ((64 - 8 * s->plain) & 63));
	__builtin_memset(r->bytes[i], 0, VALUE_BYTES);
	values_object(r, s, i, word & p->mask);
	values_clear_head(r, s, i);
	return values_mix(r, i, walk_mix(hash, r->size[i]));
}

/* Takes argument i, if there is one, and goes on with the hash. at: of the first slot. */
WALK_GLOBAL u64 values_slot(u32 function, u32 i, u64 at, u64 hash)
{
	struct values_record *r = values_here();
	struct value_places *p = values_places(function);

	if (!r || !p || i >= VALUES_MAX || i >= r->n)
		return hash;
	values_fetch(function, i, at);
	return values_content(r, p, i, hash);
}

/* All of them, from the first slot on. Returns their key; never 0. */
static __attribute__((always_inline)) inline u64 values_take(u32 function, u64 first)
{
	struct values_record *r = values_here();
	struct value_places *p = values_places(function);
	u64 hash = function;

	if (!r || !p)
		return 1;
	if (p->ahead) /* values_ahead() */
		return r->key;
	r->type = RECORD_EVENT;
	r->function = function;
	r->n = first ? p->n : 0;
	r->given = values_given(p);
	r->unread = 0;
	for (u32 i = 0; i < VALUES_MAX; i++)
		hash = values_slot(function, i, first, hash);
	r->key = walk_mix(hash, first != 0) | 1;
	return r->key;
}

/* --- along fields of objects, in the programs before and behind the one that walks, which has no room for it --- */

/* Where the reference at this address leads; 0: nowhere. */
static __attribute__((always_inline)) inline u64 values_follow(const struct value_places *p, u64 addr)
{
	u64 ref = 0;

	if (p->reference_bytes == 4)
		bpf_probe_read_user(&ref, 4, (const void *)addr);
	else
		bpf_probe_read_user(&ref, 8, (const void *)addr);
	return ref ? p->reference_base + (ref << (p->reference_shift & 63)) : 0;
}

#define VALUES_CHAIN   8u /* entries of a bucket that are looked at: hent_next, hent_hek, hent_val (hv.h) */
#define VALUES_BUCKETS 256u

/* The value under the key of entry i in this bucket's chain; 0: the key is not in it. */
WALK_GLOBAL u64 values_chain(u32 function, u32 i, u64 he)
{
	const struct value_places *p = values_places(function);
	u64 words[3], letters[VALUE_KEY / 8], other;
	const struct value_entry *e;
	u32 length;

	if (!p)
		return 0;
	WALK_BARRIER(i);
	e = &p->entry[i & (VALUES_MAX - 1)];
	for (u32 k = 0; k < VALUES_CHAIN && he; k++, he = words[0]) {
		if (bpf_probe_read_user(words, sizeof(words), (const void *)he))
			return 0;
		if (bpf_probe_read_user(&length, sizeof(length), (const void *)(words[1] + p->hash.key_length)) ||
		        length != e->length ||
		        bpf_probe_read_user(letters, sizeof(letters), (const void *)(words[1] + p->hash.key_text)))
			continue;
		other = 0;
		for (u32 w = 0; w < VALUE_KEY / 8; w++)
			other |= (letters[w] ^ e->key[w]) & e->mask[w];
		if (!other)
			return words[2];
	}
	return 0;
}

WALK_GLOBAL u64 values_keyed(u32 function, u32 i, u64 hash)
{
	const struct value_places *p = values_places(function);
	u64 array, max, found;

	if (!p)
		return 0;
	array = user_word(hash + p->hash.own);
	max = user_word(user_word(hash + p->hash.body) + p->hash.max);
	for (u32 k = 0; k < VALUES_BUCKETS && k <= max; k++) {
		found = values_chain(function, i, user_word(array + 8 * k));
		if (found)
			return found;
	}
	return 0;
}

/* --- CPython's dicts and attributes --- */

#define VALUES_TOGETHER 8   /* entries of a dict that one function looks at: the verifier follows each */
#define VALUES_ENTRIES  96u /* of a dict that are looked at, the oldest */

/* Of PyTypeObject, with the GIL: tp_basicsize, tp_flags, tp_dictoffset; PyHeapTypeObject.ht_cached_keys */
#define TYPE_SIZE        32
#define TYPE_FLAGS       168
#define TYPE_DICT        288
#define TYPE_KEYS_311    872
#define TYPE_KEYS        880
#define TYPE_IS_DICT     (1u << 29) /* or of a subclass */
#define TYPE_HAS_MANAGED (1u << 4)  /* the dict is before the instance */
#define TYPE_HAS_INLINE  (1u << 2)
#define DICT_KEYS        32
#define DICT_VALUES      40

struct values_keys { /* from where on they are looked for, where they end, how large one is */
	u64 at, end, bytes;
};

/* Where the first of these entries has the key of entry e; 0: none has. */
WALK_GLOBAL u64 values_find(u32 function, u32 e, const struct values_keys *keys)
{
	const struct value_places *p = values_places(function);
	u64 length, letters[VALUE_KEY / 8], text, at, other;
	const struct value_entry *entry;

	if (!p || !keys)
		return 0;
	WALK_BARRIER(e);
	entry = &p->entry[e & (VALUES_MAX - 1)];
	at = keys->at;
	for (u32 k = 0; k < VALUES_TOGETHER && at < keys->end; k++, at += keys->bytes) {
		text = user_word(at);
		if (bpf_probe_read_user(&length, sizeof(length), (const void *)(text + 16)) ||
		        length != entry->length ||
		        bpf_probe_read_user(letters, sizeof(letters), (const void *)(text + p->table_text)))
			continue;
		other = 0;
		for (u32 w = 0; w < VALUE_KEY / 8; w++)
			other |= (letters[w] ^ entry->key[w]) & entry->mask[w];
		if (!other)
			return at;
	}
	return 0;
}

/* What is under the key of entry e in a PyDictKeysObject; values: where these are, if they are not in it. */
WALK_GLOBAL u64 values_under(u32 function, u32 e, u64 table, u64 values)
{
	const struct value_places *p = values_places(function);
	struct values_keys keys = {.bytes = 24};
	u64 words[5], first, found = 0;

	if (!p || bpf_probe_read_user(words, sizeof(words), (const void *)table))
		return 0;
	if (p->table == VALUE_TABLE_SIZE) {
		first = table + 40 + words[1] * (words[1] <= 0xff ? 1 : words[1] <= 0xffff ? 2 : 4);
		keys.end = first + keys.bytes * words[4];
	} else {
		first = table + 32 + (1ull << (words[1] >> 8 & 31));
		keys.bytes = words[1] >> 16 & 0xff ? 16 : 24;
		keys.end = first + keys.bytes * words[3];
	}
	first += keys.bytes - 16;
	keys.at = first;
	for (u32 k = 0; k < VALUES_ENTRIES / VALUES_TOGETHER && !found; k++) {
		found = values_find(function, e, &keys);
		keys.at += VALUES_TOGETHER * keys.bytes;
	}
	if (!found)
		return 0;
	return user_word(values ? values + 8 * ((found - first) / keys.bytes) : found + 8);
}

WALK_GLOBAL u64 values_in_dict(u32 function, u32 e, u64 dict)
{
	const struct value_places *p = values_places(function);
	u64 values = user_word(dict + DICT_VALUES);

	if (!p || !(user_word(user_word(dict + p->type_at) + TYPE_FLAGS) & TYPE_IS_DICT))
		return 0;
	if (values && p->table == VALUE_TABLE_INLINE)
		values += 8;
	return values_under(function, e, user_word(dict + DICT_KEYS), values);
}

/* The attribute of an instance that is named as entry e; 0: it has none, or it is a property, or in a slot. */
WALK_GLOBAL u64 values_attribute(u32 function, u32 e, u64 object)
{
	const struct value_places *p = values_places(function);
	u64 type, flags, at, dict = 0, values = 0;

	if (!p)
		return 0;
	type = user_word(object + p->type_at);
	flags = user_word(type + TYPE_FLAGS);
	at = user_word(type + TYPE_DICT);
	if (at >= 16 && at < 4096) {
		dict = user_word(object + at);
	} else if (flags & TYPE_HAS_MANAGED) {
		dict = user_word(object - 24);
		if (p->table == VALUE_TABLE_LOG)
			values = user_word(object - 32);
		else if (p->table == VALUE_TABLE_TAGGED && dict & 1)
			values = dict + 1;
		else if (p->table == VALUE_TABLE_INLINE && !dict && flags & TYPE_HAS_INLINE)
			values = object + user_word(type + TYPE_SIZE) + 8;
	}
	if (values)
		return values_under(function, e,
		        user_word(type + (p->table == VALUE_TABLE_LOG ? TYPE_KEYS_311 : TYPE_KEYS)), values);
	return dict ? values_in_dict(function, e, dict) : 0;
}

/* What a field leads to that is the number of an entry. */
static __attribute__((always_inline)) inline u64 values_named(
        const struct value_places *p, u32 function, u32 field, u64 at, bool dicts)
{
	if (!p->table)
		return values_keyed(function, field, at);
	if (!dicts)
		return 0;
	return field & VALUE_NAMED ? values_attribute(function, field, at) : values_in_dict(function, field, at);
}

static __attribute__((always_inline)) inline u64 values_along(
        const struct value_places *p, u32 function, u32 i, u64 at, bool dicts)
{
	if (!p || i >= VALUES_MAX)
		return 0;
	for (u32 k = 0; k < VALUE_HOPS && at; k++) {
		u32 last = p->path[i].bytes || p->path[i].string; /* that field's object is the holder */

		if (k + last >= p->path[i].n)
			break;
		if (p->path[i].at[k] & VALUE_KEYED)
			at = values_named(p, function, p->path[i].at[k], at, dicts);
		else
			at = values_follow(p, at + p->path[i].at[k]);
	}
	return at;
}

/* The object behind all fields of slot i. Of bytes and strings: the one that has them. */
WALK_GLOBAL u64 values_walk(u32 function, u32 i, u64 at)
{
	return values_along(values_places(function), function, i, at, false);
}

/* The same through dicts and attributes, for which those that walk or keep have no stack. */
WALK_GLOBAL u64 values_walk_dicts(u32 function, u32 i, u64 at)
{
	return values_along(values_places(function), function, i, at, true);
}

/* The text of slot i: length bytes at `at`. */
static __attribute__((always_inline)) inline int values_text(struct values_record *r, u32 i, u64 at, u64 length)
{
	struct value_text *t = (struct value_text *)r->bytes[i];
	u64 room = length < sizeof(t->text) ? length : sizeof(t->text);

	t->length = (u32)length;
	WALK_BARRIER(room);
	if (room <= sizeof(t->text) && !bpf_probe_read_user(t->text, (u32)room, (const void *)at))
		r->size[i] = sizeof(*t) - sizeof(t->text) + (u32)room;
	return 0;
}

WALK_GLOBAL int values_pv(u32 function, u32 i, u64 sv)
{
	struct values_record *r = values_here();
	const struct value_places *p = values_places(function);
	u32 flags;

	if (!r || !p || i >= VALUES_MAX ||
	        bpf_probe_read_user(&flags, sizeof(flags), (const void *)(sv + p->hash.flags)) ||
	        !(flags & p->hash.is_text))
		return 0;
	return values_text(r, i, user_word(sv + p->hash.own), user_word(user_word(sv + p->hash.body) + p->hash.length));
}

/* The text of an array of bytes between two fields of its holder. */
WALK_GLOBAL int values_bytes(u32 function, u32 i, u64 holder)
{
	struct values_record *r = values_here();
	const struct value_places *p = values_places(function);
	u32 from = 0, to = 0, last;
	u64 array;

	if (!r || !p || i >= VALUES_MAX)
		return 0;
	last = p->path[i].n - 1;
	WALK_BARRIER(last);
	array = last < VALUE_HOPS ? values_follow(p, holder + p->path[i].at[last]) : 0;
	if (!array || bpf_probe_read_user(&from, sizeof(from), (const void *)(holder + p->path[i].from)) ||
	        bpf_probe_read_user(&to, sizeof(to), (const void *)(holder + p->path[i].to)) || to <= from)
		return 0;
	return values_text(r, i, array + p->path[i].bytes + from, to - from);
}

/* The string whose pointer is the last field of its holder. */
WALK_GLOBAL int values_string(u32 function, u32 i, u64 holder)
{
	struct values_record *r = values_here();
	const struct value_places *p = values_places(function);
	struct value_text *t;
	u32 last;
	u64 at;
	long n;

	if (!r || !p || i >= VALUES_MAX)
		return 0;
	last = p->path[i].n - 1;
	WALK_BARRIER(last);
	if (last >= VALUE_HOPS)
		return 0;
	at = holder + p->path[i].at[last];
	if (p->path[i].string == VALUE_STRING_SIZED)
		return values_text(r, i, user_word(at), user_word(at + 8));
	t = (struct value_text *)r->bytes[i];
	n = bpf_probe_read_user_str(t->text, sizeof(t->text), (const void *)user_word(at));
	if (n <= 0)
		return 0;
	t->length = (u32)n - 1;
	r->size[i] = sizeof(*t) - sizeof(t->text) + (u32)n - 1;
	return 0;
}

/* As values_slot(), along the slot's path. */
WALK_GLOBAL u64 values_field(u32 function, u32 i, u64 at, u64 hash)
{
	struct values_record *r = values_here();
	const struct value_places *p = values_places(function);
	u64 word = 0;

	if (!r || !p || i >= VALUES_MAX || i >= p->n)
		return hash;
	if (p->base == VALUE_ABSOLUTE)
		word = p->absolute;
	else if (!values_word(p, i, &at, &word))
		word = 0;
	word = values_walk(function, i, word);
	r->size[i] = 0;
	__builtin_memset(r->bytes[i], 0, VALUE_BYTES);
	if (word && p->path[i].pv)
		values_pv(function, i, word);
	else if (word && p->path[i].bytes)
		values_bytes(function, i, word);
	else if (word && p->path[i].string)
		values_string(function, i, word);
	else if (word)
		values_object(r, &p->shape[i], i, word);
	r->word[i] = word;
	r->kind[i] = p->shape[i].type;
	r->unread |= (r->size[i] ? 0u : 1u) << i;
	return values_mix(r, i, walk_mix(hash, r->size[i]));
}

/* All arguments of a call that is about to be looked at, into the record that values_take() leaves as it is then. */
static __attribute__((always_inline)) inline int values_ahead(u32 function)
{
	struct values_record *r = values_here();
	const struct value_places *p = function ? values_places(function) : NULL;
	u64 hash = function, first = 0;

	if (!r || !p || !p->ahead)
		return 0;
	if (p->base == VALUE_POINTER)
		first = values_register(p->pointer) + (u64)(s64)p->at;
	r->type = RECORD_EVENT;
	r->function = function;
	r->n = p->n;
	r->given = VALUES_MAX;
	r->unread = 0;
	for (u32 i = 0; i < VALUES_MAX; i++)
		hash = values_field(function, i, first, hash);
	r->key = hash | 1;
	return 0;
}

/* As values_slot(), of an argument whose slot was taken, from there on along its path. */
WALK_GLOBAL u64 values_further(u32 function, u32 i, u64 hash)
{
	struct values_record *r = values_here();
	const struct value_places *p = values_places(function);
	u64 word;

	if (!r || !p || i >= VALUES_MAX || i >= r->n)
		return hash;
	if (p->path[i].n) {
		word = values_walk_dicts(function, i, r->word[i] & p->mask);
		r->word[i] = word;
		r->kind[i] = word ? values_type(p, i, 0, word) : 0;
		r->unread |= (word ? 0u : 1u) << i;
	}
	return values_content(r, p, i, hash);
}

/* Behind values_take(), with the same record. */
static __attribute__((always_inline)) inline int values_later(void)
{
	struct values_record *r = values_here();
	const struct value_places *p = r ? values_places(r->function) : NULL;
	u64 hash;

	if (!r || !p || !p->later)
		return 0;
	hash = r->function;
	for (u32 i = 0; i < VALUES_MAX; i++)
		hash = values_further(r->function, i, hash);
	r->key = hash | 1;
	return 0;
}

/* Counts calls with what was taken. User space is told of the first. 0: there is no room for more. */
static inline u64 values_count(u32 tgid, u64 calls)
{
	struct values_record *r = values_here();
	u64 key = r ? r->key : 0, *known = bpf_map_lookup_elem(&values_known, &key);

	if (!known && r) {
		u64 none = 0;

		r->tgid = tgid;
		if (!bpf_map_update_elem(&values_known, &key, &none, BPF_NOEXIST) &&
		        bpf_ringbuf_output(&ring, r, sizeof(*r), wake_flags())) {
			bpf_map_delete_elem(&values_known, &key);
			return 0;
		}
		known = bpf_map_lookup_elem(&values_known, &key);
	}
	if (!known)
		return 0;
	__sync_fetch_and_add(known, calls);
	return key;
}

#endif
