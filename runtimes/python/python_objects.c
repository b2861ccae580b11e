/* SPDX-License-Identifier: Apache-2.0 */
#include "python_objects.h"

#include <string.h>

#define V3_11 0x030b0000
#define V3_12 0x030c0000
#define V3_13 0x030d0000

enum { KEYS_GENERAL, KEYS_UNICODE, KEYS_SPLIT }; /* dk_kind, 3.11 */

#define TYPE_BASICSIZE  32 /* PyTypeObject, in a build with the GIL: from the end of its head on the same in any */
#define TYPE_DICTOFFSET 288
#define TYPE_KEYS_SEARCH                                                                                               \
	832 /* PyHeapTypeObject.ht_cached_keys lies somewhere in these words (0x368 in 3.11, 0x370 in 3.13) */
#define TYPE_KEYS_WORDS 16
#define SHARED_KEYS_MAX 64
#define NAME_BYTES      64

bool python_read(const struct python_reader *r, void *dst, size_t size, u64 addr)
{
	if (!*r->left)
		return false;
	--*r->left;
	return memory_read(r->mem, dst, size, addr);
}

static bool read_word(const struct python_reader *r, u64 *ret, u64 addr)
{
	return python_read(r, ret, sizeof(*ret), addr);
}

u64 python_word(const struct python_reader *r, u64 addr)
{
	u64 word;

	return read_word(r, &word, addr) ? word : 0;
}

u32 python_head(const struct python_reader *r)
{
	return r->l->ob_type.at + 8u;
}

struct keys {
	u64 entries;
	u32 n, kind;
};

/* Bytes of one index into a table of size places. */
static u32 index_bytes(u64 size)
{
	return size <= 0xff ? 1 : size <= 0xffff ? 2 : 4;
}

/* dk_refcnt, dk_size, dk_lookup, dk_usable, dk_nentries, dk_indices: up to 3.10 */
static bool read_keys_old(const struct python_reader *r, u64 addr, struct keys *ret)
{
	u64 words[5];

	if (!python_read(r, words, sizeof(words), addr) || !words[1] || words[1] > 2 * PYTHON_DICT_MAX ||
	        (words[1] & (words[1] - 1)) || words[4] > words[1])
		return false;
	*ret = (struct keys){
	        .entries = addr + 40 + words[1] * index_bytes(words[1]), .n = (u32)words[4], .kind = KEYS_GENERAL};
	return true;
}

/* dk_refcnt; dk_log2_size, dk_log2_index_bytes, dk_kind, a byte; dk_version; dk_usable; dk_nentries; dk_indices */
static bool read_keys(const struct python_reader *r, u64 addr, struct keys *ret)
{
	u64 words[4];
	u8 log_size, log_bytes;

	if (r->version < V3_11)
		return read_keys_old(r, addr, ret);
	if (!python_read(r, words, sizeof(words), addr))
		return false;
	log_size = (u8)words[1];
	log_bytes = (u8)(words[1] >> 8);
	if (log_size > 17 || log_bytes < log_size || log_bytes > log_size + 3 || words[3] > 1u << log_size)
		return false;
	*ret = (struct keys){
	        .entries = addr + 32 + (1u << log_bytes), .n = (u32)words[3], .kind = (u8)(words[1] >> 16)};
	return ret->kind <= KEYS_SPLIT;
}

static void use_keys(const struct keys *keys, u64 values, struct python_dict *ret)
{
	ret->entries = keys->entries;
	ret->n = keys->n < PYTHON_DICT_MAX ? keys->n : PYTHON_DICT_MAX;
	ret->words = keys->kind == KEYS_GENERAL ? 3 : 2;
	ret->values = values;
	ret->chunk_at = ret->chunk_n = 0;
}

/* Where a struct _dictvalues has its values: 3.13 put four bytes before them. */
static u64 values_of(const struct python_reader *r, u64 dictvalues)
{
	return r->version >= V3_13 ? dictvalues + 8 : dictvalues;
}

/* PyDictObject: its head, ma_used, ma_version_tag, ma_keys, ma_values */
bool python_dict_open(const struct python_reader *r, u64 dict, struct python_dict *ret)
{
	struct keys keys;
	u64 words[4];

	if (!dict || !python_read(r, words, sizeof(words), dict + python_head(r)) || !read_keys(r, words[2], &keys))
		return false;
	use_keys(&keys, words[3] ? values_of(r, words[3]) : 0, ret);
	return true;
}

static bool read_chunk(const struct python_reader *r, struct python_dict *d, u32 i)
{
	u32 at = i / PYTHON_DICT_CHUNK * PYTHON_DICT_CHUNK, n = d->n - at;

	if (d->chunk_n && d->chunk_at == at)
		return true;
	n = n < PYTHON_DICT_CHUNK ? n : PYTHON_DICT_CHUNK;
	d->chunk_at = at;
	d->chunk_n = 0;
	if (!python_read(r, d->chunk, (size_t)n * d->words * 8, d->entries + (u64)at * d->words * 8))
		return false;
	d->chunk_n = n;
	return true;
}

bool python_dict_entry(const struct python_reader *r, struct python_dict *d, u32 i, struct python_entry *ret)
{
	const u64 *entry;

	if (i >= d->n || !read_chunk(r, d, i))
		return false;
	entry = d->chunk + (size_t)(i - d->chunk_at) * d->words;
	ret->hash = d->words == 3 ? entry[0] : 0;
	ret->key = entry[d->words - 2];
	ret->value = d->values ? 0 : entry[d->words - 1];
	return !d->values || read_word(r, &ret->value, d->values + 8ull * i);
}

/* Is this a str of these ASCII characters? */
static bool is_str(const struct python_reader *r, u64 object, const char *name, size_t n)
{
	u8 bytes[128 + NAME_BYTES];
	u64 length;

	if (n > NAME_BYTES || r->l->str_ascii.at > 128 || r->l->str_length.at + 8u > r->l->str_ascii.at ||
	        !python_read(r, bytes, r->l->str_ascii.at + n, object))
		return false;
	memcpy(&length, bytes + r->l->str_length.at, sizeof(length));
	return length == n && !memcmp(bytes + r->l->str_ascii.at, name, n);
}

static u64 find(const struct python_reader *r, struct python_dict *d, const char *name)
{
	struct python_entry entry;
	size_t n = strlen(name);

	for (u32 i = 0; i < d->n; i++) {
		if (!python_dict_entry(r, d, i, &entry))
			return 0;
		if (entry.key && entry.value && is_str(r, entry.key, name, n))
			return entry.value;
	}
	return 0;
}

u64 python_dict_find(const struct python_reader *r, u64 dict, const char *name)
{
	struct python_dict d;

	return python_dict_open(r, dict, &d) ? find(r, &d, name) : 0;
}

/* The keys that instances of a class share, found by what they look like. */
static bool cached_keys(const struct python_reader *r, u64 type, struct keys *ret)
{
	u64 words[TYPE_KEYS_WORDS];

	if (!python_read(r, words, sizeof(words), type + TYPE_KEYS_SEARCH + python_head(r) - 16))
		return false;
	for (u32 i = 0; i < TYPE_KEYS_WORDS; i++)
		if (words[i] && !(words[i] & 7) && read_keys(r, words[i], ret) && ret->kind == KEYS_SPLIT &&
		        ret->n <= SHARED_KEYS_MAX)
			return true;
	return false;
}

/* The dict of an instance up to 3.10: where the type says. */
static u64 dict_by_offset(const struct python_reader *r, u64 object, u64 type)
{
	u64 offset = python_word(r, type + TYPE_DICTOFFSET + python_head(r) - 16);

	return offset >= python_head(r) && offset < 4096 ? python_word(r, object + offset) : 0;
}

/* Values behind an object: capacity, size, "embedded", "valid", then from the next word on the values. */
static u64 values_behind(const struct python_reader *r, u64 object, u64 type)
{
	u64 size = python_word(r, type + TYPE_BASICSIZE + python_head(r) - 16), at = object + size;
	u8 about[4];

	if (size > 1u << 16 || !python_read(r, about, sizeof(about), at))
		return 0;
	return about[0] <= SHARED_KEYS_MAX && about[1] <= about[0] && about[2] == 1 && about[3] == 1 ? values_of(r, at)
	                                                                                             : 0;
}

/*
 * From 3.11 the dict of an instance is before it, or there is none yet, but values in the order of the class's
 * keys: 3.11 has both words, 3.12 one for either, 3.13 has the values behind the object.
 */
static u64 dict_before(const struct python_reader *r, u64 object, u64 type, u64 *values)
{
	bool free_threaded = python_head(r) > 16;
	u64 words[4], dict;

	*values = 0;
	if (!python_read(r, words, sizeof(words), object - sizeof(words)))
		return 0;
	dict = words[free_threaded ? 3 : 1];
	if (r->version >= V3_13 && !dict)
		*values = values_behind(r, object, type);
	else if (r->version >= V3_12 && r->version < V3_13 && (dict & 1))
		*values = dict + 1;
	else if (r->version < V3_12)
		*values = words[0];
	return *values ? 0 : dict;
}

static bool open_instance(const struct python_reader *r, u64 object, struct python_dict *ret)
{
	u64 type = python_word(r, object + r->l->ob_type.at), values = 0, dict;
	struct keys keys;

	if (!type)
		return false;
	dict = r->version < V3_11 ? dict_by_offset(r, object, type) : dict_before(r, object, type, &values);
	if (!values)
		return python_dict_open(r, dict, ret);
	if (!cached_keys(r, type, &keys))
		return false;
	use_keys(&keys, values, ret);
	return true;
}

u64 python_attribute(const struct python_reader *r, u64 object, const char *name)
{
	struct python_dict d;

	return object && open_instance(r, object, &d) ? find(r, &d, name) : 0;
}

/* Digits of 30 bits. Up to 3.11 behind their number; from 3.12 on behind a tag: sign in two bits, one reserved, their
 * number. */
bool python_int(const struct python_reader *r, u64 object, u64 *ret)
{
	u64 tag, ndigits;
	u32 digits[2];

	if (!object || !read_word(r, &tag, object + python_head(r)) ||
	        !python_read(r, digits, sizeof(digits), object + python_head(r) + 8))
		return false;
	ndigits = r->version >= V3_12 ? tag >> 3 : tag;
	if (ndigits > 2 || (r->version >= V3_12 && (tag & 3) == 2))
		return false;
	*ret = (ndigits > 0 ? digits[0] & 0x3fffffffu : 0) | (ndigits > 1 ? (u64)(digits[1] & 0x3fffffffu) << 30 : 0);
	return true;
}

u64 python_module(const struct python_reader *r, u64 interp, const char *name)
{
	const struct python_layout *l = r->l;
	struct layout_member modules = l->interp_modules.size ? l->interp_modules : l->interp_modules_old;
	u64 module = modules.size ? python_dict_find(r, python_word(r, interp + modules.at), name) : 0;

	return module ? python_word(r, module + python_head(r)) : 0;
}

u32 python_interpreters(const struct python_reader *r, u64 runtime, u64 ret[PYTHON_INTERPRETERS_MAX])
{
	u64 interp;
	u32 n = 0;

	if (!memory_read(r->mem, &interp, sizeof(interp), runtime + r->l->runtime_interpreters.at))
		return 0;
	for (; interp && n < PYTHON_INTERPRETERS_MAX; n++) {
		ret[n] = interp;
		if (!memory_read(r->mem, &interp, sizeof(interp), interp + r->l->interp_next.at))
			interp = 0;
	}
	for (u32 i = 0; i < n / 2; i++) {
		interp = ret[i];
		ret[i] = ret[n - 1 - i];
		ret[n - 1 - i] = interp;
	}
	return n;
}
