/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the places in chains of pcs, each found once. */
#ifndef YRT_GO_PLACES_H
#define YRT_GO_PLACES_H

#include "go_stacks.h"
#include "go_table.h"

struct go_place {       /* a function, inlined or not */
	u64 pc;         /* as a return address, as runtime.Callers() has it */
	u64 entry;      /* of the function that it is in or was inlined into */
	u32 name, file; /* in go_places.text */
	u32 line;
	u32 definition;
	bool wrapper; /* the compiler made it */
	bool inlined;
};

#define GO_PLACES_FILES 16

struct go_places {
	const struct runtime_process *p;
	struct {
		struct image *img;
		struct go_table *table; /* NULL: of no Go program */
	} file[GO_PLACES_FILES];        /* those that pcs were in */
	u32 nfiles;
	struct table known; /* by pc: first place << 8 | number of places */
	struct go_place *places;
	u32 n;
	char *text;
	u32 size;
};

/* All of a set of chains, and then one more pc: in the program, its plugins and libraries. */
struct error *go_places_read(struct go_places *p, const struct go_stacks *stacks);
struct error *go_places_add(struct go_places *p, u64 pc);
void go_places_free(struct go_places *p);
/* Those of a pc that was read, innermost first. */
const struct go_place *go_places_at(const struct go_places *p, u64 pc, u32 *n);
const char *go_place_name(const struct go_places *p, const struct go_place *at);
const char *go_place_file(const struct go_places *p, const struct go_place *at);
/* Is it a function of package runtime? */
bool go_is_runtime(const char *name);

#endif
