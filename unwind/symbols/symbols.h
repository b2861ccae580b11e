/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of native and kernel code: from .symtab, .dynsym, .gnu_debugdata (minidebuginfo), separate debug files
 * (build-id, debuginfod's cache, .gnu_debuglink), and stubs of the PLT ("puts@plt"). Code without a symbol is named by
 * the caller, by the start of the function's FDE.
 */
#ifndef YRT_SYMBOLS_H
#define YRT_SYMBOLS_H

#include <sys/types.h>
#include <types.h>

#include "error.h"
#include "binary/image.h"

struct frame;
struct mapping;

struct symbol {
	u64 start, end;
	const char *name; /* as in the file (mangled) without the version, owned by the table */
	bool unsized;     /* end is where the next symbol begins: of symbols_find() */
	bool exported;    /* other files see it, so it is the file's only one of its name: of symbols_lookup() */
};

/*
 * root: where to look for separate debug files, "/proc/PID/root" or "". Opens what holds names, so that the target may
 * go; the table itself is made by the first symbols_find(). Never fails but for memory: a corrupt table is left out.
 * The result is owned by the image (img->symbols); a second call does nothing.
 */
struct error *symbols_load(struct image *img, const char *root);
/* The same, and makes the table. */
struct error *symbols_read(struct image *img, const char *root);
/* Was it? */
bool symbols_are_read(const struct image *img);
/* Moves what was read from `from`, the same file opened separately, to `to`, unless that has its own table. */
void symbols_move(struct image *to, struct image *from);
/* Names from debug, a separate debug file that symbols_load() could not find, unless img has a .symtab itself. */
void symbols_use_debug(struct image *img, struct image *debug);
/*
 * The function that covers addr (file address). Of several: one with a size before one without (that reaches to the
 * next symbol or its section's end), the innermost, global or weak before local, then without underscores in front,
 * then the shorter. A weak symbol counts as a global one because libc's public names (write, puts) are weak aliases of
 * __write and _IO_puts. False without symbols_load().
 */
bool symbols_find(struct image *img, u64 addr, struct symbol *ret);
/* The function that a native frame returns into. Returns its mapping; NULL: not known, or not a native frame. */
const struct mapping *symbols_of_frame(
        const struct mapping *mappings, u32 n, const struct frame *f, struct symbol *ret);
/* Does the file itself have a .symtab? Then its names are the linker's, with those of clones (".cold"). */
bool symbols_own(const struct image *img);
/*
 * The source file of a local function of the file's own .symtab, by its symbol of type STT_FILE ("crtstuff.c"); NULL:
 * unknown. Owned by the table. For functions without debug information.
 */
const char *symbols_file(struct image *img, u64 addr);
/* Is name the name of a function that starts where the one of symbols_find() does? */
bool symbols_has_alias(struct image *img, u64 addr, const char *name);
/*
 * By exact name (without version): functions and data, defined symbols only, .dynsym, then .symtab, then, after
 * symbols_load(), the separate debug file's. ret->name is name.
 */
bool symbols_lookup(struct image *img, const char *name, struct symbol *ret);
/* The same in .dynsym alone, which has tens of KiB where .symtab has tens of MiB: what the file defines for others. */
bool symbols_lookup_exported(struct image *img, const char *name, struct symbol *ret);
/* The same of a thread-local variable: start is its offset in what each thread has for the file. */
bool symbols_thread_local(struct image *img, const char *name, struct symbol *ret);
/*
 * The variable that addr (file address) lies in, the smallest of several, and how far inside: its name as in the file,
 * cut at size, and terminated. A look at the whole table: not for samples.
 */
bool symbols_object(struct image *img, u64 addr, char *name, size_t size, u64 *offset);
/*
 * Calls is() with each string that contains `part`, of the .symtab of the file, or after symbols_load() of its separate
 * debug file, until it returns true; returns that. A string may be no symbol by itself, because linkers share tails. At
 * most 512 bytes of a string.
 */
bool symbols_search(struct image *img, const char *part, bool (*is)(void *ctx, const char *string), void *ctx);

/*
 * Calls each() with each function of the file's symbol tables and, after symbols_load(), its debug file's, until it
 * returns true. One function may come several times. name is without the version, and valid during the call.
 */
struct symbol_function {
	u64 addr;
	const char *name;
	bool indirect; /* the code there only chooses the function (STT_GNU_IFUNC) */
};
void symbols_each(struct image *img, bool (*each)(void *ctx, const struct symbol_function *f), void *ctx);

/*
 * From now on all of these also find the functions that a language's own tables list (runtime_ops.functions), for
 * look-ups by name. Does nothing without symbols_load().
 */
struct error *symbols_use_languages(struct image *img);

/*
 * The separate debug file, found by build-id in <root>/usr/lib/debug and the host's, then among what debuginfod's
 * client has got before (DEBUGINFOD_CACHE_PATH, else below HOME and XDG_CACHE_HOME; nobody is asked), then by
 * .gnu_debuglink beside the file, in .debug, in /usr/lib/debug. Its build-id must be the image's; where one of them has
 * none, the CRC of .gnu_debuglink must hold. *ret is NULL if there is none.
 */
struct error *symbols_debug_file(struct image *img, const char *root, struct image **ret);
/* The path of a file that lies where the debug file is looked for, but is of another build; malloc'd. NULL: none, or
 * one fits. */
char *symbols_debug_misfit(struct image *img, const char *root);
/* The ELF file that is packed in .gnu_debugdata. *ret is NULL if there is none. */
struct error *symbols_minidebug(struct image *img, struct image **ret);

/* C++, Rust and what translated.h knows; a copy of name if it is not mangled. NULL: out of memory. Cut at 1 KB, with
 * "…" at the end. */
char *symbol_demangle(const char *name);
/* The same, cut at 16 KB. */
char *symbol_demangle_whole(const char *name);
/* Might it be mangled? */
bool symbol_is_mangled(const char *name);

#endif
