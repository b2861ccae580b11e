/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unwind tables of an image, compiled from .eh_frame, .debug_frame (own or the separate debug file's) into the form
 * of shared/cfi.h, cached on disk by build-id.
 */
#ifndef YRT_CFI_H
#define YRT_CFI_H

#include <types.h>

#include "error.h"
#include "binary/image.h"
#include "shared/cfi.h"

/* One row before it is laid out: rule holds from addr (file address) until the next row. */
struct cfi_entry {
	u64 addr;
	struct cfi_rule rule;
};

/* A table as it goes into the arena: covers [start, end) of the image's addresses; start is a multiple of
 * CFI_PAGE_SIZE. */
struct cfi_piece {
	u64 start, end;
	u32 size;
	const void *bytes; /* struct cfi_table and what follows it */
};

/* A function's extent as .eh_frame gives it, for naming code without symbols; sorted by start. */
struct cfi_fde {
	u64 start, end;
};

struct cfi {
	u32 npieces;
	struct cfi_piece *pieces; /* sorted, not overlapping */
	u32 nfdes;
	const struct cfi_fde *fdes;
	u64 ncorrupt; /* FDEs and CIEs that were skipped because they do not make sense */
	bool from_cache;
	void *private;
};

/*
 * Functions whose rows a file has in a language's own form instead of CFI. They take the place of the CFI of the same
 * code, and are compiled, cached and shared as it is.
 */
struct cfi_provider {
	/* *ret is NULL if the file has none; *n: how many functions, in order of their addresses. Only fails for
	 * memory. */
	struct error *(*open)(struct image *img, void **ret, u32 *n);
	void (*close)(void *functions);
	bool (*extent)(void *functions, u32 i, u64 *start, u64 *end);
	/* Calls add for each row, in order. False: corrupt, or add said so. */
	bool (*rows)(void *functions, u32 i, bool (*add)(void *ctx, u64 addr, const struct cfi_rule *rule), void *ctx);
};
#define CFI_PROVIDERS_MAX 4

/*
 * For providers: rows of one function, [start, end), which changes the stack pointer in ways of its own, made from what
 * its code does to the stack. The walker checks that these rows lead to a call. False: no memory, not code, or add()
 * returned false.
 */
bool cfi_code_rows(struct image *img, u64 start, u64 end, bool (*add)(void *ctx, u64 addr, const struct cfi_rule *rule),
        void *ctx);

struct cfi_options {
	const char *cache_dir; /* NULL: no cache */
	const struct cfi_provider
	        *providers[CFI_PROVIDERS_MAX + 1]; /* up to the first NULL; the first that has functions is used */
	struct image *debug; /* separate debug file, whose .debug_frame serves if the image has none; may be NULL */
};

/* The default cache: $YRT_CACHE_DIR, $XDG_CACHE_HOME/yrt, /var/cache/yrt for root, ~/.cache/yrt (cfi_cache_dir.h).
 * Static string or NULL. */
const char *cfi_default_cache(void);

/*
 * Compiles (or loads) the tables. Corrupt entries are skipped and counted; an error is only for out of memory. An image
 * without any CFI gives npieces 0. An entry point without CFI gets a CFI_ROOT row. The cache file is named by
 * image_identity() and file size (copies in containers share it) and checked: magic, format version, checksum,
 * identity, every offset; rebuilt if anything is off.
 */
struct error *cfi_load(struct image *img, const struct cfi_options *options, struct cfi **ret);
void cfi_destroy(struct cfi *cfi);
/* Is there a file of its tables in the cache? It may turn out to be old or corrupt. */
bool cfi_is_cached(const struct image *img, const char *cache_dir);
/* Releases the memory of tables that came from the cache. They stay usable: pages that are read are loaded again. */
void cfi_rest(struct cfi *cfi);
/* The FDE that has this address. NULL: none, or cfi is NULL. */
const struct cfi_fde *cfi_fde_at(const struct cfi *cfi, u64 addr);
/* Does the file describe less than half of its code? The rest has rows made from the code, or none. */
bool cfi_is_sparse(const struct image *img, const struct cfi *cfi);

/*
 * Lays out rows (sorted by addr, covering [start, end), each to the next) into pieces. For runtimes that make rows of
 * their own. Free with cfi_destroy().
 */
struct error *cfi_from_entries(const struct cfi_entry *entries, size_t n, u64 start, u64 end, struct cfi **ret);

/* Bytes of an .eh_frame section, at addr of a process. */
struct cfi_section {
	const void *data;
	size_t size;
	u64 addr;
};

/* Code of a process. Of a segment vaddr is a process address, offset the place in bytes; beyond them: not read. */
struct cfi_memory_code {
	const struct image_segment *segments;
	u32 n;
	const void *bytes;
	u64 size;
};

/*
 * Compiles sections that are in a process's memory: rows of functions in `code`, and of the gaps between them, as far
 * as the code itself shows them. Corrupt entries are skipped and counted. Free with cfi_destroy().
 */
struct error *cfi_from_memory(
        const struct cfi_section *sections, u32 n, const struct cfi_memory_code *code, struct cfi **ret);

/* Are there rows in [start, end)? cfi may be NULL. */
bool cfi_has_any(const struct cfi *cfi, u64 start, u64 end);
/* The rule at addr of the compiled tables, for tests and tools. False: none. */
bool cfi_find(const struct cfi *cfi, u64 addr, struct cfi_rule *ret);

#endif
