/* SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <types.h>
#include <unistd.h>

#include "binary/core_file.h"
#include "binary/maps.h"
#include "binary/memory.h"
#include "cfi/jit_code.h"
#include "cleanup.h"
#include "comm.h"
#include "now.h"
#include "process_refused.h"
#include "search.h"

/*
 * Programs move their text to anonymous memory at the same addresses, to get huge pages for it (node --use-largepages,
 * MySQL, HHVM, Chrome OS, liblppreload). Where all bytes are still those of the file, the mapping is treated as one of
 * the file: its rows and names hold.
 */

struct memory;

#define MOVED_TEXTS_MAX 64 /* of one process whose answer is kept */
struct moved_texts {
	struct moved_text {
		u64 start, end, offset, ino;
		bool same;
	} known[MOVED_TEXTS_MAX];
	u32 n; /* so far: the last ones are kept */
};

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

/*
 * Makes lines of moved text lines of their files. Candidates are compared with the file once, whole; bytes that a
 * breakpoint replaced do not count. *texts: NULL at first; free it.
 */
static void moved_text_restore(struct moved_texts **texts, pid_t pid, struct memory *memory, struct maps *maps)
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

#define VDSO_MAX (1u << 20)

struct runtime_process process_view(const struct process *p)
{
	return (struct runtime_process){
	        .pid = p->pid,
	        .first = p->core ? (pid_t)p->core->pid : p->pid,
	        .features = p->modules->features,
	        .memory = p->memory,
	        .arena = p->modules->arena,
	        .mappings = p->mappings,
	        .nmappings = p->maps.nlines,
	        .entry = &p->entry,
	};
}

const struct mapping *process_mapping(const struct process *p, u64 addr)
{
	return mapping_find(p->mappings, p->maps.nlines, addr);
}

struct error *process_create(struct modules *modules, pid_t pid, u32 number, struct process **ret)
{
	return process_create_program(modules, pid, number, 0, ret);
}

struct error *process_create_program(struct modules *modules, pid_t pid, u32 number, u64 stack, struct process **ret)
{
	struct process *p;
	struct error *err = process_check(pid);
	bool changed;

	if (err)
		return err;
	p = calloc(1, sizeof(*p));
	if (!p)
		return &error_no_memory;
	p->pid = pid;
	p->number = number;
	p->stack = stack;
	p->modules = modules;
	p->memory = memory_live(pid);
	p->entry.instance = number;
	err = p->memory ? process_rescan(p, &changed) : &error_no_memory;
	if (!err && !p->maps.nlines)
		err = process_explain_empty(pid);
	if (err) {
		process_destroy(p);
		return process_explain(pid, err);
	}
	*ret = p;
	return NULL;
}

struct error *process_create_gone(struct modules *modules, pid_t pid, u32 number, struct process **ret)
{
	struct process *p = calloc(1, sizeof(*p));

	if (!p)
		return &error_no_memory;
	p->pid = pid;
	p->number = number;
	p->modules = modules;
	p->dead = true;
	comm_read(p->pid, p->comm);
	*ret = p;
	return NULL;
}

void process_destroy(struct process *p)
{
	struct runtime_process view;

	if (!p)
		return;
	view = process_view(p);
	for (u32 i = 0; i < p->ninstances; i++)
		if (p->instances[i].data)
			p->instances[i].ops->detach(p->instances[i].data, &view);
	regions_free(p);
	memory_destroy(p->memory);
	maps_free(&p->maps);
	free(p->mappings);
	free(p->instances);
	free(p->moved);
	free(p);
}

static struct error *load_vdso(struct process *p, const struct map_line *line, struct loaded **ret)
{
	size_t size = line->end - line->start;
	void *bytes = size <= VDSO_MAX ? malloc(size) : NULL;

	*ret = NULL;
	if (!bytes || !memory_read(p->memory, bytes, size, line->start)) {
		free(bytes);
		return NULL;
	}
	return modules_load_vdso(p->modules, p->pid, bytes, size, ret);
}

/* Where in the image a mapping starts: its bias, by the segment that holds the mapped offset. */
static bool find_bias(const struct image *img, const struct map_line *line, u64 *ret)
{
	const u64 page = 4096;

	for (u32 i = 0; i < img->nsegments; i++) {
		const struct image_segment *s = &img->segments[i];
		u64 begin = s->offset & ~(page - 1), end = (s->offset + s->filesz + page - 1) & ~(page - 1);

		if (line->offset < begin || line->offset >= end)
			continue;
		if ((line->prot & PROT_EXEC) && !(s->flags & PF_X))
			continue;
		*ret = line->start - (s->vaddr - (s->offset - line->offset));
		return true;
	}
	return false;
}

static struct error *load_file(struct process *p, const struct map_line *line, struct mapping *m, struct loaded **ret)
{
	struct error *err = modules_load(p->modules, p->dead ? 0 : p->pid, line, ret); /* by now the pid is another's */

	m->unfinished = !*ret && modules_are_making(p->modules, line);
	p->unfinished |= m->unfinished;
	return err;
}

static struct error *fill_mapping(struct process *p, const struct map_line *line, struct mapping *m)
{
	struct loaded *loaded = NULL;
	struct error *err = NULL;
	bool vdso = !strcmp(line->path, "[vdso]");

	*m = (struct mapping){.start = line->start,
	        .end = line->end,
	        .offset = line->offset,
	        .prot = line->prot,
	        .anonymous = !line->ino,
	        .name = line->path};
	if (vdso && p->memory)
		err = load_vdso(p, line, &loaded);
	else if (line->ino && (line->prot & PROT_EXEC))
		err = load_file(p, line, m, &loaded);
	if (err || !loaded || !loaded->image || !find_bias(loaded->image, line, &m->bias))
		return err;
	m->image = loaded->image;
	return modules_number(p->modules, loaded, m->bias, p->pid, &m->module);
}

/* The data of a module belongs to it too: a mapping of the same file next to its code. */
static void fill_data(struct process *p)
{
	const struct map_line *line = p->maps.lines;

	for (u32 i = 0; i < p->maps.nlines; i++)
		for (u32 j = 0; !p->mappings[i].image && line[i].ino && j < p->maps.nlines; j++)
			if (p->mappings[j].module && line[j].ino == line[i].ino && line[j].dev == line[i].dev) {
				p->mappings[i].image = p->mappings[j].image;
				p->mappings[i].bias = p->mappings[j].bias;
				p->mappings[i].module = p->mappings[j].module;
			}
}

static struct error *fill_mappings(struct process *p)
{
	struct error *err = NULL;

	free(p->mappings);
	p->mappings = calloc(p->maps.nlines + 1, sizeof(*p->mappings));
	if (!p->mappings)
		return &error_no_memory;
	p->unfinished = false;
	p->made_files = modules_made(p->modules);
	p->modules->filling = &p->maps;
	for (u32 i = 0; !err && i < p->maps.nlines; i++)
		err = fill_mapping(p, &p->maps.lines[i], &p->mappings[i]);
	p->modules->filling = NULL;
	if (!err)
		fill_data(p);
	return err;
}

static bool has_instance(const struct process *p, const struct runtime_ops *ops, const struct module *m)
{
	for (u32 i = 0; i < p->ninstances; i++)
		if (p->instances[i].ops == ops && p->instances[i].loaded == m->loaded &&
		        p->instances[i].bias == m->bias)
			return true;
	return false;
}

static struct error *attach_runtime(struct process *p, const struct runtime_ops *ops, const struct module *m)
{
	struct runtime_process view = process_view(p);
	struct instance *grown = realloc(p->instances, (p->ninstances + 1) * sizeof(*grown));
	struct instance *instance;
	struct error *err;

	if (!grown)
		return &error_no_memory;
	p->instances = grown;
	instance = &grown[p->ninstances++];
	*instance = (struct instance){.ops = ops, .loaded = m->loaded, .bias = m->bias};
	err = ops->attach(&view, m->loaded->runtime[ops->id], m->bias, &instance->data);
	if (err == &error_no_memory)
		return err;
	if (err)
		p->modules->complain(p->modules->complain_ctx, err);
	return NULL;
}

static struct error *attach_runtimes(struct process *p)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < p->maps.nlines; i++) {
		const struct module *m = module_at(p->modules, p->mappings[i].module);

		for (const struct runtime_ops *const *r = runtimes; !err && m && *r; r++)
			if (m->loaded->runtime[(*r)->id] && !has_instance(p, *r, m))
				err = attach_runtime(p, *r, m);
	}
	return err;
}

u32 process_runtimes(const struct process *p)
{
	u32 runtimes = 0;

	for (u32 i = 0; i < p->ninstances; i++)
		runtimes |= 1u << p->instances[i].ops->id;
	return runtimes;
}

/*
 * A JIT makes its code writable and executable by turns (LuaJIT, for each trace). Anonymous memory that held code
 * before still does, whatever its protection is at this moment. But what had rows is being replaced by other code.
 */
static void keep_jit_code(const struct process *p, struct maps *maps)
{
	for (u32 i = 0; i < maps->nlines; i++) {
		struct map_line *line = &maps->lines[i];
		const struct mapping *old = line->ino ? NULL : process_mapping(p, line->start);

		if (old && old->anonymous && (old->prot & PROT_EXEC) && line->end <= old->end &&
		        !cfi_has_any(p->jit.cfi, line->start, line->end))
			line->prot |= PROT_EXEC;
	}
}

bool process_starting(const struct process *p)
{
	for (u32 i = 0; !p->dead && i < p->ninstances; i++) {
		const struct instance *instance = &p->instances[i];

		if (instance->data && instance->ops->starting && instance->ops->starting(instance->data))
			return true;
	}
	if (!p->dead && p->code && jit_code_wants(p->code, p->memory))
		return true;
	return p->unfinished && p->made_files != modules_made(p->modules);
}

struct error *process_renew(struct process *p)
{
	struct error *err;

	p->generation++;
	err = fill_mappings(p);
	if (!err)
		err = attach_runtimes(p);
	if (err)
		return err;
	if (p->modules->recognised)
		p->modules->recognised(p->modules->recognised_ctx, process_runtimes(p));
	return regions_build(p);
}

struct error *process_rescan(struct process *p, bool *changed)
{
	bool other_program;
	struct maps maps;
	struct error *err;
	u64 hash, looked_ns = now_ns();

	*changed = p->core && process_starting(p);
	if (p->core)
		return *changed ? process_renew(p) : NULL;
	if (p->maps.nlines && !process_starting(p) && !p->jit.cfi && maps_code_is(p->pid, p->text_hash))
		return NULL;
	err = maps_read(p->pid, &maps);
	if (err && p->maps.nlines && err->kind == ERROR_NO_PROCESS) {
		error_free(err);
		p->dead = true;
		return NULL;
	}
	if (err)
		return err;
	if (p->stack && !maps_have_stack(&maps, p->stack)) { /* execve() gives a process another one */
		maps_free(&maps);
		return p->maps.nlines ? NULL
		                      : error_new(ERROR_NO_PROCESS, "process %d runs another program by now", p->pid);
	}
	keep_jit_code(p, &maps);
	moved_text_restore(&p->moved, p->pid, p->memory, &maps);
	hash = maps_hash(&maps);
	p->text_hash = maps.text_hash;
	if ((hash == p->maps_hash && !process_starting(p) && !p->jit.cfi) || (p->maps.nlines && !maps.nlines)) {
		maps_free(&maps);
		return NULL;
	}
	p->entry.looked_ns = looked_ns;
	other_program = maps.nlines && (!p->maps.nlines || p->maps.lines->ino != maps.lines->ino);
	maps_free(&p->maps);
	p->maps = maps;
	if (other_program) /* a command begins as a copy of its parent */
		comm_read(p->pid, p->comm);
	p->maps_hash = hash;
	*changed = true;
	return process_renew(p);
}

struct error *process_finish(struct process *p)
{
	struct error *err = fill_mappings(p);

	p->generation++;
	if (err)
		return err;
	return p->ninstances ? regions_add_files(p) : regions_build(p);
}
