/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image: one ELF file (or the vDSO, copied from memory), opened once however many processes map it, and what is
 * derived from it: build-id, segments, unwind tables, symbols. Everything in it is untrusted.
 *
 * Addresses here are the file's own (p_vaddr, st_value): subtract the load bias of a mapping from a process's.
 */
#ifndef YRT_IMAGE_H
#define YRT_IMAGE_H

#include <libelf.h>
#include <sys/types.h>
#include <types.h>

#include "error.h"

struct report; /* report.h */

#define BUILD_ID_MAX 64

struct image_segment { /* PT_LOAD */
	u64 vaddr, memsz, offset;
	u64 filesz; /* clipped to memsz and to what the file has */
	u32 flags;  /* PF_X … */
};

struct image {
	char *path; /* as the target knows it; for people */
	int fd;     /* -1 for the vDSO */
	Elf *elf;   /* of fd or of the copy; read-only */
	void *copy; /* vDSO: the bytes */
	u64 size;
	dev_t dev;
	ino_t ino;
	u64 mtime_ns;
	u16 machine; /* e_machine */
	u16 type;    /* ET_EXEC, ET_DYN */
	u64 entry;
	u8 build_id[BUILD_ID_MAX];
	u32 build_id_len; /* 0: none */
	u64 go_id[2];     /* of the note of Go's linker (cmd/link: .note.go.buildid); 0: none */
	u32 nsegments;
	struct image_segment *segments;
	u64 eh_frame_hdr; /* PT_GNU_EH_FRAME: address and size; size 0: none */
	u64 eh_frame_hdr_size;
	bool sections_only; /* no program: without segments, of type ET_REL or any other */
	u32 refs;
	const char *cache_dir;   /* where what is derived from it may be kept; NULL: nowhere. Not owned */
	struct symbols *symbols; /* symbols.h */
	struct rtti *rtti;       /* rtti.h */
	struct cfi *cfi;         /* cfi.h */
	u32 tsd;                 /* tsd_values() + 1; 0: not yet asked for (tsd.h) */
	u32 nameless;            /* the allocator in it + 1; 0: not yet asked for (alloc_functions_nameless()) */
	struct {                 /* set by who makes them, on demand: they lie above this room */
		void (*symbols)(struct symbols *);
		void (*rtti)(struct rtti *);
		void (*cfi)(struct cfi *);
	} destroy;
};

/* Takes over fd, also on failure. path is copied. */
struct error *image_open(int fd, const char *path, struct image **ret);
/* The file once more, for who changes what libelf has of it; elf_end() it. NULL: it cannot be. */
Elf *image_open_elf(const struct image *img);
/* The same for a file that is no program, such as one made by dwz: sections and a build-id. */
struct error *image_open_sections(int fd, const char *path, struct image **ret);
/* From a copy of an ELF file's bytes. Takes ownership of the bytes, also on failure. */
struct error *image_from_memory(void *bytes, size_t size, const char *path, struct image **ret);
/*
 * An identity of the content, up to BUILD_ID_MAX bytes: its build-id, else Go's, else file and modification time.
 * Returns the number of bytes.
 */
u32 image_identity(const struct image *img, u8 *ret);
#define IMAGE_ID_TEXT (2 * BUILD_ID_MAX + 1)
/* Its build-id in hexadecimal digits; "" if it has none. */
void image_id_text(const struct image *img, char ret[IMAGE_ID_TEXT]);
/* Begins a section "module" with the file and its build-id. img may be NULL: unknown. */
void image_report(const struct image *img, struct report *out);
struct image *image_get(struct image *img);
void image_put(struct image *img);

/* A section by name: its header and data (NULL if absent, NOBITS, or corrupt). Decompressed if it was compressed. */
Elf_Data *image_section(struct image *img, const char *name, u64 *ret_addr);
/* Where a section of a segment lies, without reading it. False: absent, or not loaded with the file's content. */
bool image_section_range(struct image *img, const char *name, u64 *ret_addr, u64 *ret_size);
/* Calls each() with the first 256 loaded sections that are not code, whatever their segments' permissions are. */
void image_data_sections(struct image *img, void (*each)(void *arg, u64 addr, u64 size), void *arg);
/* Gives back what image_section() has read: its results are gone. */
void image_rest(struct image *img);
/* size bytes of a segment's file content at address vaddr; false if not within a segment's file part. */
bool image_read(struct image *img, void *dst, size_t size, u64 vaddr);
/* Does the file's part of a segment of code hold all of [start, end)? */
bool image_has_code(const struct image *img, u64 start, u64 end);

#endif
