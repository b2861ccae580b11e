/* SPDX-License-Identifier: Apache-2.0 */
#include "moved_text.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "binary/memory.h"
#include "cleanup.h"

#define PAGE        4096ull
#define HEADERS_MAX 64
#define CHUNK       (64u << 10)
#define TEXT_MAX    (1ull << 30)
#define INT3        0xcc

static bool is_anonymous(const struct map_line *line)
{
	return !line->ino || !strcmp(line->path, "/anon_hugepage"); /* MAP_HUGETLB */
}

static bool is_candidate(const struct map_line *line)
{
	return is_anonymous(line) && line->prot == (PROT_READ | PROT_EXEC) && line->end - line->start <= TEXT_MAX &&
	       (!*line->path || *line->path == '/' || !strncmp(line->path, "[anon:", 6));
}

static bool is_of(const struct map_line *line, const struct map_line *file)
{
	return line->ino == file->ino && line->dev == file->dev;
}

/* Lines in order, and the image in which each lies: what begins before it, and goes on behind it. */
struct around {
	const struct map_line *first; /* NULL: none */
	u32 next;                     /* the next line of a file */
};

static void move_to(struct around *a, const struct maps *maps, u32 i)
{
	const struct map_line *line = &maps->lines[i];

	if (!is_anonymous(line) && !line->offset)
		a->first = a->first && is_of(line, a->first) ? a->first : line;
	else if (!is_anonymous(line) && a->first && !is_of(line, a->first))
		a->first = NULL;
	while (a->next < maps->nlines && (a->next <= i || is_anonymous(&maps->lines[a->next])))
		a->next++;
}

/* Where in the file code lies that is mapped at start, if the file's first byte is mapped at image. */
static bool find_offset(int fd, const struct map_line *line, u64 image, u64 *ret)
{
	Elf64_Ehdr header;
	Elf64_Phdr at[HEADERS_MAX];
	bool found = false;
	u64 bias = 0;

	if (pread(fd, &header, sizeof(header), 0) != sizeof(header) || memcmp(header.e_ident, ELFMAG, SELFMAG) ||
	        header.e_phentsize != sizeof(*at) || !header.e_phnum || header.e_phnum > HEADERS_MAX ||
	        pread(fd, at, header.e_phnum * sizeof(*at), (off_t)header.e_phoff) !=
	                (ssize_t)(header.e_phnum * sizeof(*at)))
		return false;
	for (u32 i = 0; i < header.e_phnum && !found; i++) {
		found = at[i].p_type == PT_LOAD && at[i].p_offset < PAGE;
		bias = image - ((at[i].p_vaddr - at[i].p_offset) & ~(PAGE - 1));
	}
	for (u32 i = 0; i < header.e_phnum && found; i++) {
		u64 start = (bias + at[i].p_vaddr) & ~(PAGE - 1);
		u64 end = (bias + at[i].p_vaddr + at[i].p_filesz + PAGE - 1) & ~(PAGE - 1);

		if (at[i].p_type != PT_LOAD || !(at[i].p_flags & PF_X) || line->start < start || line->end > end)
			continue;
		*ret = (at[i].p_offset & ~(PAGE - 1)) + (line->start - start);
		return true;
	}
	return false;
}

static bool are_same(const u8 *there, const u8 *file, size_t n)
{
	if (!memcmp(there, file, n))
		return true;
	for (size_t i = 0; i < n; i++)
		if (there[i] != file[i] && there[i] != INT3)
			return false;
	return true;
}

static bool compare(int fd, const struct map_line *line, u64 offset, struct memory *memory)
{
	cleanup(free) u8 *bytes = malloc(2 * CHUNK);
	u64 size = line->end - line->start;

	for (u64 at = 0; bytes && at < size; at += CHUNK) {
		size_t n = size - at < CHUNK ? size - at : CHUNK;
		ssize_t have = pread(fd, bytes + CHUNK, n, (off_t)(offset + at));

		/* the file may end within the last page */
		if (have <= 0 || ((size_t)have < n && at + (u64)have + PAGE <= size) ||
		        !memory_read(memory, bytes, (size_t)have, line->start + at) ||
		        !are_same(bytes, bytes + CHUNK, (size_t)have))
			return false;
	}
	return bytes != NULL;
}

static struct moved_text *find(struct moved_texts *texts, const struct map_line *line, u64 ino)
{
	for (u32 i = 0; i < texts->n && i < MOVED_TEXTS_MAX; i++)
		if (texts->known[i].start == line->start && texts->known[i].end == line->end &&
		        texts->known[i].ino == ino)
			return &texts->known[i];
	return NULL;
}

static struct moved_text look(
        pid_t pid, struct memory *memory, const struct map_line *line, const struct map_line *file)
{
	struct moved_text ret = {.start = line->start, .end = line->end, .ino = file->ino};
	cleanup(close) int fd = map_open(pid, file);

	ret.same = fd >= 0 && find_offset(fd, line, file->start, &ret.offset) && compare(fd, line, ret.offset, memory);
	return ret;
}

static void restore(struct map_line *line, const struct map_line *file, const struct moved_text *text)
{
	char *path = strdup(file->path);

	if (!path)
		return;
	free(line->path);
	line->path = path;
	line->ino = file->ino;
	line->dev = file->dev;
	line->offset = text->offset;
	line->file_start = file->start;
	line->file_end = file->end;
}

void moved_text_restore(struct moved_texts **texts, pid_t pid, struct memory *memory, struct maps *maps)
{
	struct around a = {0};

	for (u32 i = 0; i < maps->nlines; i++) {
		struct map_line *line = &maps->lines[i];
		struct moved_text *known;

		move_to(&a, maps, i);
		if (!is_candidate(line) || !a.first || a.next == maps->nlines || !is_of(&maps->lines[a.next], a.first))
			continue;
		if (!*texts && !(*texts = calloc(1, sizeof(**texts))))
			return;
		known = find(*texts, line, a.first->ino);
		if (!known) {
			known = &(*texts)->known[(*texts)->n++ % MOVED_TEXTS_MAX];
			*known = look(pid, memory, line, a.first);
		}
		if (known->same)
			restore(line, a.first, known);
	}
}
