/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of goroutines (go.h), read from their process. */
#ifndef YRT_GO_LABELS_H
#define YRT_GO_LABELS_H

#include <stdio.h>

#include "go.h"
#include "runtime.h"
#include "table.h"

#define GO_LABELS_READ    64 /* per goroutine at most; Go 1.24 and later allow more than GO_LABELS_MAX */
#define GO_LABEL_KEY      64
#define GO_LABEL_VALUE    128
#define GO_LABELS_PACKED  (GO_LABELS_READ * (GO_LABEL_KEY + GO_LABEL_VALUE))
#define GO_LABELS_BY_LIST 24 /* minor release; before it they are a map */

/* Sorted by key: key, value, key, ..., each cut to its room, and with its 0. Hostile. */
struct go_label_set {
	u32 n; /* labels; 0: they were gone, or could not be read */
	char *packed;
};

/* Those of a moment, each once. A goroutine has the number of one + 1; 0: no labels. */
struct go_label_sets {
	struct go_label_set *sets;
	u32 n;
	struct table known;
};

/*
 * Packs those at addr, max at most, into ret, which has room for GO_LABELS_PACKED. *mix: go_label_mix() of them; may be
 * NULL. Returns how many; 0: there are more, or they are gone.
 */
u32 go_labels_read(const struct runtime_process *p, u64 addr, bool map, u32 max, char *ret, u32 *size, u64 *mix);

/* As struct frame_name has them: "labels: key=value, key=value". */
void go_labels_name(u32 n, const char *packed, char *ret, size_t room);
/* As runtime/pprof has them in its text: {"key":"value", "key":"value"}. */
void go_labels_print(const struct go_label_set *set, FILE *out);
/* As a goroutine's trace has them from Go 1.27 on: {key: value, key: value}. */
void go_labels_print_trace(const struct go_label_set *set, FILE *out);

/* *ret: its number + 1. */
struct error *go_label_sets_add(struct go_label_sets *all, u32 n, const char *packed, u32 size, u32 *ret);
void go_label_sets_free(struct go_label_sets *all);

#endif
