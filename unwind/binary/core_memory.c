/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "cleanup.h"
#include "core_file.h"
#include "hex_text.h"
#include "mtime.h"
#include "search.h"

#define PAGE 4096u

struct memory_core {
	struct memory mem;
	struct core_file *core;
};

static const struct core_segment *segment_at(const struct core_file *core, u64 addr)
{
	u32 at = SEARCH(core->nsegments, k, addr >= core->segments[k].end);

	return at < core->nsegments && addr >= core->segments[at].start ? &core->segments[at] : NULL;
}

static bool read_kept(const struct core_file *core, const struct core_segment *s, void *dst, size_t size, u64 addr)
{
	u64 at = addr - s->start;

	return at < s->kept && size <= s->kept - at &&
	       pread(core->fd, dst, size, (off_t)(s->offset + at)) == (ssize_t)size;
}

/* What the dynamic linker writes to, if patchelf has moved it into the first page: DT_DEBUG. */
static void ignore_dynamic(const u8 *here, u8 *there, size_t size)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph;

	if (size < sizeof(eh))
		return;
	memcpy(&eh, here, sizeof(eh));
	for (u64 i = 0; i < eh.e_phnum && eh.e_phoff < size && (i + 1) * sizeof(ph) <= size - eh.e_phoff; i++) {
		memcpy(&ph, here + eh.e_phoff + i * sizeof(ph), sizeof(ph));
		if (ph.p_type == PT_DYNAMIC && ph.p_offset < size)
			memcpy(there + ph.p_offset, here + ph.p_offset,
			        ph.p_filesz < size - ph.p_offset ? ph.p_filesz : size - ph.p_offset);
	}
}

/* The first page holds the program headers and, but for rare builds, the build-id. */
static bool has_first_page(const struct core_file *core, const struct core_mapped *f, int fd, bool *known)
{
	const struct core_segment *s = f->start ? segment_at(core, f->start) : NULL;
	u8 here[PAGE], there[PAGE];
	ssize_t n = pread(fd, here, sizeof(here), 0);

	*known = n > 0 && s && s->start == f->start && read_kept(core, s, there, (size_t)n, f->start);
	if (*known)
		ignore_dynamic(here, there, (size_t)n);
	return *known && !memcmp(here, there, (size_t)n);
}

static enum core_match compare(const struct core_file *core, struct core_mapped *f)
{
	int fd = open(f->here, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	bool known, same;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		cleanup_close(&fd);
		return CORE_MISSING;
	}
	same = has_first_page(core, f, fd, &known);
	if (!known)
		same = mtime_ns(&st) <= core->mtime_ns;
	if (!same) {
		close(fd);
		return CORE_OTHER;
	}
	f->fd = fd;
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	return CORE_SAME;
}

/* NULL: it is not the one that was mapped. */
static const struct core_mapped *same_file(struct core_file *core, u32 number)
{
	struct core_mapped *f = number ? &core->files[number - 1] : NULL;

	if (f && f->match == CORE_UNSEEN)
		f->match = compare(core, f);
	return f && f->match == CORE_SAME ? f : NULL;
}

static bool read_segment(struct core_file *core, const struct core_segment *s, void *dst, size_t size, u64 addr)
{
	const struct core_mapped *f;

	if (addr - s->start < s->kept)
		return read_kept(core, s, dst, size, addr);
	f = same_file(core, s->file);
	return f && pread(f->fd, dst, size, (off_t)(s->file_offset + (addr - s->start))) == (ssize_t)size;
}

static bool core_read(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	struct core_file *core = ((struct memory_core *)mem)->core;

	while (size) {
		const struct core_segment *s = segment_at(core, addr);
		u64 end = !s ? 0 : addr - s->start < s->kept ? s->start + s->kept : s->end, n;

		if (!s)
			return false;
		n = end - addr < size ? end - addr : size;
		if (!read_segment(core, s, dst, n, addr))
			return false;
		dst = (char *)dst + n;
		addr += n;
		size -= n;
	}
	return true;
}

static void core_memory_destroy(struct memory *mem)
{
	free(mem);
}

struct memory *core_memory(struct core_file *core)
{
	struct memory_core *m = malloc(sizeof(*m));

	if (!m)
		return NULL;
	*m = (struct memory_core){.mem = {.read = core_read, .destroy = core_memory_destroy}, .core = core};
	return &m->mem;
}

static u64 page_of(u64 offset)
{
	return offset & ~(PAGE - 1ull);
}

/* What the file asks for there: the core does not say. */
static u32 prot_of(const struct core_mapped *f, u64 offset)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph;

	if (!f || pread(f->fd, &eh, sizeof(eh), 0) != sizeof(eh) || memcmp(eh.e_ident, ELFMAG, SELFMAG))
		return PROT_READ;
	for (u32 i = 0; i < eh.e_phnum; i++)
		if (pread(f->fd, &ph, sizeof(ph), (off_t)(eh.e_phoff + i * sizeof(ph))) == sizeof(ph) &&
		        ph.p_type == PT_LOAD && offset >= page_of(ph.p_offset) &&
		        offset < page_of(ph.p_offset + ph.p_filesz + PAGE - 1))
			return PROT_READ | (ph.p_flags & PF_X ? PROT_EXEC : 0);
	return PROT_READ;
}

struct error *core_maps(struct core_file *core, struct maps *ret)
{
	struct map_line *lines = calloc(core->nsegments + 1, sizeof(*lines));

	*ret = (struct maps){.lines = lines};
	for (u32 i = 0; lines && i < core->nsegments; i++) {
		const struct core_segment *s = &core->segments[i];
		const struct core_mapped *f = same_file(core, s->file);
		bool vdso = core->vdso && s->start == core->vdso;

		lines[i] = (struct map_line){.start = s->start,
		        .end = s->end,
		        .offset = s->file ? s->file_offset : 0,
		        .prot = s->prot == CORE_PROT_UNKNOWN ? prot_of(f, s->file_offset) : s->prot,
		        .dev = f ? f->dev : 0,
		        .ino = f ? f->ino : s->file};
		lines[i].path = strdup(vdso ? "[vdso]" : f ? f->here : s->file ? core->files[s->file - 1].path : "");
		if (s->file && ((f ? lines[i].prot : s->prot) & PROT_EXEC))
			core->files[s->file - 1].code = true;
		ret->nlines = i + 1;
		if (!lines[i].path)
			break;
	}
	if (lines && (!ret->nlines || lines[ret->nlines - 1].path))
		return NULL;
	maps_free(ret);
	return &error_no_memory;
}

#define NOTES_MOST 4096u
#define FILES_TOLD 4u

/* Notes of a file: <elf.h>'s Elf64_Nhdr, then name and contents, each filled up to 4 bytes. */
static void take_build_id(const u8 *notes, size_t size, char ret[CORE_BUILD_ID])
{
	Elf64_Nhdr nh;

	for (size_t at = 0; at + sizeof(nh) <= size;) {
		size_t desc;

		memcpy(&nh, notes + at, sizeof(nh));
		desc = at + sizeof(nh) + (((size_t)nh.n_namesz + 3) & ~3ul);
		if (desc > size || nh.n_descsz > size - desc)
			return;
		if (nh.n_type == NT_GNU_BUILD_ID && nh.n_namesz == 4 && !memcmp(notes + at + sizeof(nh), "GNU", 4)) {
			hex_text(notes + desc, nh.n_descsz < CORE_BUILD_ID / 2 ? nh.n_descsz : CORE_BUILD_ID / 2, ret);
			return;
		}
		at = desc + (((size_t)nh.n_descsz + 3) & ~3ul);
	}
}

void core_build_id(const struct core_file *core, const struct core_mapped *f, char ret[CORE_BUILD_ID])
{
	const struct core_segment *s = f->start ? segment_at(core, f->start) : NULL;
	u8 page[PAGE], notes[NOTES_MOST];
	Elf64_Ehdr eh;
	Elf64_Phdr ph;

	*ret = '\0';
	if (!s || s->start != f->start || !read_kept(core, s, page, sizeof(page), f->start))
		return;
	memcpy(&eh, page, sizeof(eh));
	if (memcmp(eh.e_ident, ELFMAG, SELFMAG) || eh.e_phentsize != sizeof(ph))
		return;
	for (u32 i = 0; i < eh.e_phnum && !*ret; i++) {
		if (eh.e_phoff > PAGE || (i + 1) * sizeof(ph) > PAGE - eh.e_phoff)
			return;
		memcpy(&ph, page + eh.e_phoff + i * sizeof(ph), sizeof(ph));
		if (ph.p_type == PT_NOTE && ph.p_filesz <= NOTES_MOST && /* of the file's first segment */
		        read_kept(core, s, notes, ph.p_filesz, f->start + ph.p_offset))
			take_build_id(notes, ph.p_filesz, ret);
	}
}

/* Of code: what else is missing is not read by a walk. */
static u32 list_unlike(const struct core_file *core, FILE *out)
{
	char build_id[CORE_BUILD_ID];
	u32 n = 0;

	for (u32 i = 0; i < core->nfiles; i++) {
		const struct core_mapped *f = &core->files[i];

		if (f->match == CORE_SAME || !f->code || n++ >= FILES_TOLD)
			continue;
		core_build_id(core, f, build_id);
		fprintf(out, "%s%s%s%s", n > 1 ? ", " : "", f->here, *build_id ? " of build-id " : "", build_id);
	}
	if (n > FILES_TOLD)
		fprintf(out, " and %u more", n - FILES_TOLD);
	return n;
}

/* NULL: none. */
static struct error *complain_of_files(const struct core_file *core)
{
	cleanup(free) char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	u32 n;

	if (!out)
		return &error_no_memory;
	n = list_unlike(core, out);
	if (fclose(out))
		return &error_no_memory;
	if (!n)
		return NULL;
	return error_new(ERROR_INPUT,
	        "%u file%s of code that %s maps %s not here, or another one here (%s): "
	        "frames in it are guessed, or stacks end there; "
	        "--root DIR names a directory with the files of its machine or container",
	        n, n == 1 ? "" : "s", core->path, n == 1 ? "is" : "are", text);
}

struct error *core_complaint(const struct core_file *core)
{
	if (core->unpacked_cut)
		return error_new(ERROR_INPUT, "%s is cut: its packed data ends early, so stacks may, too", core->path);
	if (core->missing)
		return error_new(ERROR_INPUT,
		        "%s is cut: %lu bytes are missing behind its %lu, so stacks may be, too "
		        "(see `ulimit -c`, and the disk that it was written to)",
		        core->path, core->missing, core->size);
	return complain_of_files(core);
}
