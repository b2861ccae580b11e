/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of code that is no method: codelets of the interpreter by their description, stubs by their StubCodeDesc
 * (runtime/stubCodeGenerator.hpp), or by the addresses in StubRoutines if no symbol shows where the list of
 * descriptions is, others by their blob. Read once, and again when there are more of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hotspot_names_state.h"
#include "search.h"

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

bool hotspot_names_stub(struct hotspot_names *n, struct memory *m, u64 pc, char *ret, size_t size)
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

void hotspot_stub_names_destroy(struct hotspot_stub_names *s)
{
	if (!s)
		return;
	free(s->ranges);
	free(s);
}
