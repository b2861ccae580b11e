/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all processes of a run share: images with their unwind tables in the arena and with what runtimes found in them,
 * and modules. A module is an image at a load bias; frames refer to it by its number.
 */
#ifndef YRT_MODULE_H
#define YRT_MODULE_H

#include <types.h>

#include "arena.h"
#include "cfi/cfi.h"
#include "error.h"
#include "binary/image.h"
#include "binary/maps.h"
#include "runtime.h"
#include "table_maker.h"

#define RUNTIMES_MAX RUNTIME_MAX

struct loaded {    /* an image in use */
	dev_t dev; /* as in /proc/PID/maps: the key */
	u64 ino;
	char *path;
	char *link;                  /* loaded_name() */
	struct image *image;         /* NULL: no ELF file, or one we refuse */
	u32 *tables;                 /* arena offset of each piece of image->cfi */
	void *runtime[RUNTIMES_MAX]; /* of image_probe(), by enum runtime_id */
};

struct module {
	struct loaded *loaded;
	u64 bias;
	pid_t pid; /* that it was first seen in: where its separate debug files are looked for */
};

struct modules {
	struct arena *arena;
	struct cfi_options cfi_options;
	struct loaded **loaded;
	u32 nloaded;
	struct module *modules; /* 0 is unused: "no module" */
	u32 nmodules;
	bool make_later; /* modules_make_later() */
	struct table_maker *maker;
	enum table_order order;     /* of it */
	const struct maps *filling; /* a process's mappings that are all about to be loaded; NULL: not known */
	u32 features;               /* enum feature: for all processes */
	u64 nstacks;                /* that were expanded */
	struct walk_cache *caches;  /* of native walks (walk.h); NULL before the first */
	void (*complain)(void *ctx, struct error *err); /* owns err; each complaint comes once an image */
	void *complain_ctx;
	/* Runtimes of a process, bit n: id n, as soon as they are known: its regions, which take longer, come next. */
	void (*recognised)(void *ctx, u32 runtimes); /* NULL: nobody wants to know */
	void *recognised_ctx;
};

/*
 * What people call a file: its name, or that of a link beside it by which the first process that has it was started.
 * Debian's redis-server is a link to redis-check-rdb. A link that says less (python3 for python3.11) is not taken.
 */
const char *loaded_name(const struct loaded *loaded);

struct error *modules_create(struct arena *arena, const char *cache_dir, struct modules **ret);
void modules_destroy(struct modules *m);
/*
 * The image behind a mapping, opened once. *ret->image is NULL if it is not a usable ELF file, *ret if the process has
 * ended before it was opened, or if its tables are still being made.
 */
struct error *modules_load(struct modules *m, pid_t pid, const struct map_line *line, struct loaded **ret);
/* Are the tables of this file still being made? */
bool modules_are_making(const struct modules *m, const struct map_line *line);
/* From now on nobody waits for the tables of large files: a thread makes them in this order. */
void modules_make_later(struct modules *m, enum table_order order);
/* For how many files that was done so far. */
u32 modules_made(const struct modules *m);
/* The vDSO: bytes are taken over. Processes share it if it is the same (key: its build-id and size). */
struct error *modules_load_vdso(struct modules *m, pid_t pid, void *bytes, size_t size, struct loaded **ret);
struct error *modules_number(struct modules *m, struct loaded *loaded, u64 bias, pid_t pid, u32 *ret);
/* Copies the pieces of cfi into the arena; *ret is malloc'd. */
struct error *modules_place(struct arena *arena, const struct cfi *cfi, u32 **ret);
/* The runtimes that an image so far is of: bit n is id n. */
u32 modules_runtimes(const struct modules *m);
const struct module *module_at(const struct modules *m, u32 number);

#endif
