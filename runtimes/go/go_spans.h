/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is in the spans of a Go program's heap: objects by size class, and by type where an object begins with its type
 * (malloc headers: more than 512 bytes, with pointers). For go-heap --types.
 *
 * Sources: runtime/mheap.go (mheap, mspan), mbitmap.go (isFree), malloc.go, internal/abi/type.go of Go 1.22 to 1.26.
 * mheap_ is what runtime.mallocinit() names; allspans the slice in it that leads to spans.
 */
#ifndef YRT_GO_SPANS_H
#define YRT_GO_SPANS_H

#include <stdio.h>

#include "go_view.h"
#include "profile/profile.h"

#define GO_HEADER_FROM 512 /* larger objects with pointers begin with their type: minSizeForMallocHeader */

/* Of the program's first module: where descriptions of types are, and variables that may hold pointers. */
struct go_module {
	u64 types, etypes;
	u64 data[2], bss[2];
};

struct go_span {
	u64 start, size; /* of each object */
	u64 bits;        /* address: which objects behind the free-th are allocated */
	u64 type;        /* of a large object with pointers */
	u16 n, free;     /* n 0: it holds no objects now */
	bool plain;      /* without pointers */
	bool large;      /* one object */
};

/* The slice of all spans: addresses of struct mspan. */
bool go_spans_find(const struct go_view *v, u64 slice[3]);
/* False: it is none. */
bool go_span_read(const struct go_view *v, u64 at, struct go_span *ret);
bool go_module_read(const struct go_view *v, struct go_module *ret);
/* The name of the type that is described there. */
bool go_type_name(const struct go_view *v, const struct go_module *m, u64 type, char *ret, size_t size);
/* A name of internal/abi; star: without its first byte. */
bool go_type_text(const struct go_view *v, u64 addr, bool star, char *ret, size_t size);

struct go_spans;

struct error *go_spans_take(const struct go_view *v, struct go_spans **ret);
void go_spans_drop(struct go_spans *s); /* NULL is fine */
/* before: NULL, or what there was then: only what has grown is shown. */
struct error *go_spans_print(const struct go_spans *before, const struct go_spans *s, FILE *out);
struct error *go_spans_draw(const struct go_spans *before, const struct go_spans *s, struct profile *ret);

#endif
