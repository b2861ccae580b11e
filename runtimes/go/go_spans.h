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

struct go_spans;

struct error *go_spans_take(const struct go_view *v, struct go_spans **ret);
void go_spans_drop(struct go_spans *s); /* NULL is fine */
/* before: NULL, or what there was then: only what has grown is shown. */
struct error *go_spans_print(const struct go_spans *before, const struct go_spans *s, FILE *out);
struct error *go_spans_draw(const struct go_spans *before, const struct go_spans *s, struct profile *ret);

#endif
