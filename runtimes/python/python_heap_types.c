/* SPDX-License-Identifier: Apache-2.0 */
/* Types of the target: what they say of their instances. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "grow.h"
#include "python_heap_internal.h"
#include "python_names.h"

/* PyTypeObject */
#define TP_BYTES      408
#define LOWEST_HEAP   (1u << 22) /* where a program that is not moved begins */
#define TP_NAME       24
#define TP_BASICSIZE  32
#define TP_ITEMSIZE   40
#define TP_FLAGS      168
#define TP_WEAKLIST   208
#define TP_MEMBERS    240
#define TP_BASE       256
#define TP_DICT       264
#define TP_DICTOFFSET 288

#define SIZE_LIMIT       (1u << 20) /* bytes of an instance, without items */
#define DEPTH_MAX        64         /* of bases */
#define MEMBERS_MAX      1024
#define MEMBER_BYTES     40 /* PyMemberDef: name, type, offset, flags, doc */
#define MEMBER_OBJECT    6  /* T_OBJECT */
#define MEMBER_OBJECT_EX 16
#define MEMBER_NONE      20 /* those below, but the two above, are numbers and texts */
#define WEAK_CALLBACK    24 /* PyWeakReference.wr_callback: the only word that is no weak reference */
#define MODULE_STATE     32 /* PyModuleObject.md_state: a structure of the module's own */
#define NAME_BYTES       256
#define TYPES_MAX        (1u << 20)
#define LOCK_STATES      3 /* PyMutex: locked, with others that wait */

/* Types of C whose instances keep more than their words show. */
static const struct {
	const char *name;
	enum python_kind kind;
} known[] = {
        {"set", PYTHON_SET},
        {"frozenset", PYTHON_SET},
        {"bytearray", PYTHON_BYTEARRAY},
        {"array.array", PYTHON_ARRAY},
        {"collections.OrderedDict", PYTHON_ORDERED_DICT},
        {"collections.deque", PYTHON_DEQUE},
        {"numpy.ndarray", PYTHON_NDARRAY},
        {"xml.etree.ElementTree.Element", PYTHON_ELEMENT},
        {"frame", PYTHON_FRAME},
        {"module", PYTHON_MODULE},
        {"generator", PYTHON_GENERATOR},
        {"coroutine", PYTHON_GENERATOR},
        {"async_generator", PYTHON_GENERATOR},
};

/* Those whose words are borrowed, or weak, or no objects. */
static const char *const no_words[] = {"object", "int", "str", "list", "tuple", "dict", "set", "frozenset", "type",
        "bytes", "bytearray", "float", "collections.deque", "complex", "bool", "moduledef", "NoneType", "PyCapsule",
        "capsule"};

struct python_heap_type python_heap_type_layout(u32 version)
{
	u32 name = version < PYTHON_V3_9    ? 848
	           : version < PYTHON_V3_10 ? 840
	           : version < PYTHON_V3_12 ? 848
	           : version < PYTHON_V3_15 ? 856
	                                    : 864;

	return (struct python_heap_type){name, name + 8, name + 16, name + 24, version < PYTHON_V3_9 ? 0 : name + 32};
}

static u64 word_at(const u8 *bytes, u32 at)
{
	u64 ret;

	memcpy(&ret, bytes + at, sizeof(ret));
	return ret;
}

u64 python_heap_word(struct python_heap *p, u64 addr)
{
	const void *bytes = heap_bytes(p->h, addr, 8);

	return bytes ? word_at(bytes, 0) : 0;
}

void python_heap_text(struct python_heap *p, u64 str, char *ret, size_t size)
{
	ret[0] = '\0';
	if (str && !(str & 7) && !python_str(p->r.mem, p->r.l, str, ret, size))
		ret[0] = '\0';
}

static enum python_kind kind_by_flags(u64 flags)
{
	return flags & PYTHON_TYPE_SUBCLASS    ? PYTHON_TYPE
	       : flags & PYTHON_DICT_SUBCLASS  ? PYTHON_DICT
	       : flags & PYTHON_LIST_SUBCLASS  ? PYTHON_LIST
	       : flags & PYTHON_TUPLE_SUBCLASS ? PYTHON_TUPLE
	       : flags & PYTHON_STR_SUBCLASS   ? PYTHON_STR
	       : flags & PYTHON_LONG_SUBCLASS  ? PYTHON_INT
	                                       : PYTHON_PLAIN;
}

/* "module.qualname" of a class, else tp_name. False: it has none, so it is no type. */
static bool name_of(struct python_heap *p, u64 addr, const u8 *type, char *ret)
{
	char module[NAME_BYTES / 2] = "", name[NAME_BYTES / 2] = "";
	struct python_heap_type heap = python_heap_type_layout(p->r.version);

	if (!memory_string(p->r.mem, ret, NAME_BYTES, word_at(type, TP_NAME)))
		return false;
	if (!(word_at(type, TP_FLAGS) & PYTHON_HEAP_TYPE))
		return isalpha((u8)*ret) || *ret == '_';
	python_heap_text(p, python_heap_word(p, python_heap_at(p, addr) + heap.qualname), name, sizeof(name));
	python_heap_text(p, python_dict_find(&p->r, word_at(type, TP_DICT), "__module__"), module, sizeof(module));
	if (*name)
		snprintf(ret, NAME_BYTES, "%s%s%s", *module && strcmp(module, "builtins") ? module : "",
		        *module && strcmp(module, "builtins") ? "." : "", name);
	return true;
}

static bool is_type_object(struct python_heap *p, const u8 *type)
{
	const u8 *meta;
	u64 addr = word_at(type, 8);

	meta = addr && !(addr & 7) ? heap_bytes(p->h, python_heap_at(p, addr) + TP_FLAGS, 8) : NULL;
	return meta && (word_at(meta, 0) & PYTHON_TYPE_SUBCLASS);
}

static bool plausible(const u8 *type)
{
	return word_at(type, TP_BASICSIZE) >= PYTHON_HEAD && word_at(type, TP_BASICSIZE) < SIZE_LIMIT &&
	       word_at(type, TP_ITEMSIZE) < SIZE_LIMIT && word_at(type, TP_NAME) && word_at(type, TP_FLAGS) &&
	       !(word_at(type, TP_BASE) & 7);
}

static struct error *add_slot(struct python_type *t, u64 at, bool sure, u32 label)
{
	struct error *err;

	for (u32 i = 0; i < t->nslots; i++)
		if (t->slots[i].at == at) {
			if (sure)
				t->slots[i] = (struct python_slot){(u16)at, sure, label};
			return NULL;
		}
	if (t->nslots >= PYTHON_SLOTS_MAX || at > UINT16_MAX)
		return NULL;
	err = grow(&t->slots, t->nslots, sizeof(*t->slots));
	if (!err)
		t->slots[t->nslots++] = (struct python_slot){(u16)at, sure, label};
	return err;
}

/*
 * Members that the type declares as objects: __slots__, and what C types show of themselves. *numbers: words, from
 * `from` on, of which it declares a part as a number (gi_running): the rest is what was there before the object.
 */
static struct error *add_members(
        struct python_heap *p, struct python_type *t, u64 members, u32 from, u32 to, u64 *numbers)
{
	struct error *err = NULL;
	char name[64] = ".";

	*numbers = 0;
	for (u32 i = 0; !err && members && i < MEMBERS_MAX; i++, members += MEMBER_BYTES) {
		u64 words[3];

		if (!memory_read(p->r.mem, words, sizeof(words), members) || !words[0])
			break;
		if (words[2] < from || words[2] >= to)
			continue;
		if ((u32)words[1] != MEMBER_OBJECT && (u32)words[1] != MEMBER_OBJECT_EX) {
			if ((u32)words[1] < MEMBER_NONE && (words[2] - from) / 8 < 64)
				*numbers |= 1ull << (words[2] - from) / 8;
		} else if (words[2] + 8 <= to && !(words[2] & 7) &&
		           memory_string(p->r.mem, name + 1, sizeof(name) - 1, words[0])) {
			err = add_slot(t, words[2], true, heap_label(p->h, name));
		}
	}
	return err;
}

static bool has_no_words(const char *name)
{
	for (u32 i = 0; i < sizeof(no_words) / sizeof(*no_words); i++)
		if (!strcmp(no_words[i], name))
			return true;
	return false;
}

/* The words that one class adds to those of its base. Where nobody declares them, any may be a reference. */
static struct error *add_words(struct python_heap *p, struct python_type *t, const u8 *type, u32 from)
{
	u64 flags = word_at(type, TP_FLAGS), dict = word_at(type, TP_DICTOFFSET), weak = word_at(type, TP_WEAKLIST);
	u32 to = (u32)word_at(type, TP_BASICSIZE);
	char name[NAME_BYTES] = "";
	u64 numbers;
	struct error *err = add_members(p, t, word_at(type, TP_MEMBERS), from, to, &numbers);
	bool python, guess, is_weak, is_code;

	memory_string(p->r.mem, name, sizeof(name), word_at(type, TP_NAME));
	python = (flags & PYTHON_HEAP_TYPE) && !strchr(name, '.');
	is_weak = !strncmp(name, "weak", 4) && !(flags & PYTHON_HEAP_TYPE);
	is_code = !strcmp(name, "code"); /* its last words are no objects, and 3.14 leaves _co_unique_id as it was */
	guess = strchr(name, '.') || (flags & PYTHON_HEAP_TYPE);
	if (has_no_words(name))
		return err;
	for (u32 at = from; !err && at + 8 <= to; at += 8) {
		if (at == dict || at == weak || ((at - from) / 8 < 64 && numbers >> (at - from) / 8 & 1) ||
		        (at == python_heap_at(p, MODULE_STATE) && !strcmp(name, "module")) ||
		        (is_weak && at != python_heap_at(p, WEAK_CALLBACK)) ||
		        (is_code && weak && at > weak && p->r.version >= PYTHON_V3_12))
			continue;
		err = add_slot(t, at, false, guess && !python ? HEAP_MAYBE : 0);
	}
	return err;
}

/* A class that Python code has made has a name without a module here: "frame" may be anybody's. */
static void find_kind(struct python_type *t, u64 flags, const char *name)
{
	if ((t->kind != PYTHON_PLAIN && t->kind != PYTHON_DICT) || (flags & PYTHON_HEAP_TYPE && !strchr(name, '.')))
		return;
	for (u32 i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(name, known[i].name) && (t->kind == PYTHON_PLAIN || known[i].kind == PYTHON_ORDERED_DICT)) {
			t->kind = known[i].kind;
			return;
		}
}

/* From the type up to its last base: the first one whose kind is known decides it. */
static struct error *add_bases(struct python_heap *p, struct python_type *t, u64 addr)
{
	struct error *err = NULL;
	u8 type[TP_BYTES];

	for (u32 depth = 0; !err && addr && depth < DEPTH_MAX; depth++) {
		u64 base;
		u32 from = (u32)python_heap_at(p, PYTHON_HEAD);
		const void *bytes = heap_bytes(p->h, python_heap_at(p, addr), TP_BYTES);
		char name[NAME_BYTES] = "";

		if (!bytes)
			break;
		memcpy(type, bytes, sizeof(type));
		if (!plausible(type))
			break;
		base = word_at(type, TP_BASE);
		bytes = base ? heap_bytes(p->h, python_heap_at(p, base) + TP_BASICSIZE, 8) : NULL;
		if (bytes)
			from = (u32)word_at(bytes, 0);
		memory_string(p->r.mem, name, sizeof(name), word_at(type, TP_NAME));
		find_kind(t, word_at(type, TP_FLAGS), name);
		if (t->kind == PYTHON_TUPLE && !strcmp(name, "tuple"))
			t->items = (u32)word_at(type, TP_BASICSIZE);
		if (from >= PYTHON_HEAD && from <= word_at(type, TP_BASICSIZE))
			err = add_words(p, t, type, from);
		addr = base;
	}
	return err;
}

static struct error *read_type(struct python_heap *p, u64 addr, struct python_type **ret)
{
	const void *bytes = python_heap_alive(p, addr) ? heap_bytes(p->h, python_heap_at(p, addr), TP_BYTES) : NULL;
	struct python_type *t;
	char name[NAME_BYTES];
	struct error *err;
	u8 type[TP_BYTES];

	*ret = NULL;
	if (!bytes)
		return NULL;
	memcpy(type, bytes, sizeof(type));
	if (!plausible(type) || !is_type_object(p, type))
		return NULL;
	if (!name_of(p, addr, type, name))
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return &error_no_memory;
	*t = (struct python_type){.addr = addr,
	        .kind = kind_by_flags(word_at(type, TP_FLAGS)),
	        .basicsize = (u32)word_at(type, TP_BASICSIZE),
	        .itemsize = (u32)word_at(type, TP_ITEMSIZE),
	        .flags = word_at(type, TP_FLAGS),
	        .dictoffset = (s32)word_at(type, TP_DICTOFFSET),
	        .items = PYTHON_VAR_HEAD};
	t->number = heap_type(p->h, addr, name);
	err = add_bases(p, t, addr);
	if (!err)
		err = grow(&p->types, p->ntypes, sizeof(*p->types));
	if (err) {
		free(t->slots);
		free(t);
		return err;
	}
	p->types[p->ntypes++] = t;
	*ret = t;
	return NULL;
}

const struct python_type *python_heap_type(struct python_heap *p, u64 addr)
{
	u64 key = addr * 0x9e3779b97f4a7c15ull >> 3, *at;
	struct python_type *t;
	struct error *err;

	if (!addr || (addr & 7))
		return NULL;
	at = table_get(&p->type_at, key);
	if (at)
		return *at ? p->types[*at - 1] : NULL;
	err = p->ntypes < TYPES_MAX ? read_type(p, addr, &t) : &error_no_memory;
	if (!err)
		err = table_put(&p->type_at, key, t ? p->ntypes : 0);
	if (err) {
		error_free(err);
		return NULL;
	}
	return t;
}

/* What is no object often begins with an address, and a freed one with that of another. */
static bool is_count(const struct python_heap *p, u64 count)
{
	return (u32)count && !(p->r.version >= PYTHON_V3_14 ? count >> 32 & 0xffff : count >> 32);
}

/* Behind the thread's number: 16 bits of flags, the lock's byte, the collector's, and both counts. */
static bool is_shared_count(const u8 *head)
{
	u64 bits = word_at(head, 8);

	return (bits >> 16 & 0xff) <= LOCK_STATES && (bits >> 32 || (s64)word_at(head, 16) >> 2 > 0);
}

const u8 *python_heap_alive(struct python_heap *p, u64 addr)
{
	const u8 *head = addr && !(addr & 7) ? heap_bytes(p->h, addr, PYTHON_HEAD + p->longer) : NULL;

	return head && (p->longer ? is_shared_count(head) : is_count(p, word_at(head, 0))) ? head : NULL;
}

/* Freed objects are linked by their first word, and a program at a fixed address has them below 2^31. */
static bool is_link(struct python_heap *p, u64 count)
{
	return count >= LOWEST_HEAP && (s32)count > 0 && !(count & 15) && heap_bytes(p->h, count, 8);
}

bool python_heap_is_object(struct python_heap *p, u64 addr)
{
	const u8 *head = addr < 1ull << 47 ? python_heap_alive(p, addr) : NULL;
	u64 count = head ? word_at(head, 0) : 0, type = head ? python_heap_type_of(p, head) : 0;

	return head && (p->longer || !is_link(p, count)) && python_heap_type(p, type);
}
