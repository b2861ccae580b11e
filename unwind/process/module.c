/* SPDX-License-Identifier: Apache-2.0 */
#include "module.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "binary/proc_path.h"
#include "cleanup.h"
#include "comm.h"
#include "table_maker.h"

#define LATER_SIZE (256u << 10) /* tables of smaller files are made in some milliseconds */

struct error *modules_create(struct arena *arena, const char *cache_dir, struct modules **ret)
{
	struct modules *m = calloc(1, sizeof(*m));
	u32 n = 0;

	if (!m)
		return &error_no_memory;
	m->arena = arena;
	m->order = TABLES_LARGEST_FIRST;
	m->cfi_options.cache_dir = cache_dir;
	for (const struct runtime_ops *const *r = runtimes; *r && n < CFI_PROVIDERS_MAX; r++)
		if ((*r)->cfi_provider)
			m->cfi_options.providers[n++] = (*r)->cfi_provider;
	m->nmodules = 1;
	m->modules = calloc(1, sizeof(*m->modules));
	if (!m->modules) {
		free(m);
		return &error_no_memory;
	}
	*ret = m;
	return NULL;
}

static void loaded_destroy(struct loaded *l)
{
	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		if (l->runtime[(*r)->id])
			(*r)->image_destroy(l->runtime[(*r)->id]);
	image_put(l->image);
	free(l->tables);
	free(l->path);
	free(l->link);
	free(l);
}

void modules_destroy(struct modules *m)
{
	if (!m)
		return;
	table_maker_destroy(m->maker);
	for (u32 i = 0; i < m->nloaded; i++)
		loaded_destroy(m->loaded[i]);
	free(m->loaded);
	free(m->modules);
	free(m->caches);
	free(m);
}

struct error *modules_place(struct arena *arena, const struct cfi *cfi, u32 **ret)
{
	u32 *tables = calloc(cfi->npieces + 1, sizeof(*tables));
	struct error *err;

	if (!tables)
		return &error_no_memory;
	for (u32 i = 0; i < cfi->npieces; i++) {
		err = arena_alloc(arena, cfi->pieces[i].size, &tables[i]);
		if (err) {
			free(tables);
			return err;
		}
		memcpy(arena_at(arena, tables[i], cfi->pieces[i].size), cfi->pieces[i].bytes, cfi->pieces[i].size);
	}
	*ret = tables;
	return NULL;
}

static void complain(struct modules *m, struct error *err)
{
	if (err && m->complain)
		m->complain(m->complain_ctx, err);
	else
		error_free(err);
}

/* Tables and runtimes of a fresh image. Only running out of memory is fatal: what else fails leaves fewer names. */
static struct error *prepare(struct modules *m, struct loaded *l, pid_t pid)
{
	struct error *err;
	char root[64];

	proc_path(root, sizeof(root), pid, "root");
	err = l->image->cfi ? NULL : tables_load(l->image, &m->cfi_options, root);
	if (!err)
		err = modules_place(m->arena, l->image->cfi, &l->tables);
	if (err)
		return err;
	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		complain(m, (*r)->image_probe(l->image, &l->runtime[(*r)->id]));
	cfi_rest(l->image->cfi);
	image_rest(l->image);
	return NULL;
}

static char *link_of(pid_t pid, const struct map_line *line)
{
	const char *slash = strrchr(line->path, '/');
	char comm[COMM_TEXT] = "", path[64];
	cleanup(free) char *beside = NULL;
	struct stat program, link;

	comm_read(pid, comm);
	proc_path(path, sizeof(path), pid, "exe");
	if (!slash || !*comm || strchr(comm, '/') || !strncmp(slash + 1, comm, strlen(comm)) || stat(path, &program) ||
	        program.st_ino != line->ino)
		return NULL;
	proc_path(path, sizeof(path), pid, "root");
	if (asprintf(&beside, "%s%.*s/%s", path, (int)(slash - line->path), line->path, comm) < 0)
		beside = NULL;
	if (!beside || stat(beside, &link) || link.st_ino != program.st_ino || link.st_dev != program.st_dev)
		return NULL;
	return strdup(comm);
}

const char *loaded_name(const struct loaded *loaded)
{
	const char *slash = strrchr(loaded->path, '/');

	return loaded->link ? loaded->link : slash ? slash + 1 : loaded->path;
}

static struct error *add_loaded(
        struct modules *m, pid_t pid, const struct map_line *line, struct image *img, struct loaded **ret)
{
	struct loaded **grown = realloc(m->loaded, (m->nloaded + 1) * sizeof(*grown));
	struct loaded *l = calloc(1, sizeof(*l));
	struct error *err = NULL;

	if (grown)
		m->loaded = grown;
	if (!grown || !l || !(l->path = strdup(line->path))) {
		free(l);
		image_put(img);
		return &error_no_memory;
	}
	l->link = link_of(pid, line);
	l->dev = line->dev;
	l->ino = line->ino;
	l->image = img;
	if (img)
		img->cache_dir = m->cfi_options.cache_dir;
	if (img)
		err = prepare(m, l, pid);
	if (err) {
		loaded_destroy(l);
		return err;
	}
	m->loaded[m->nloaded++] = l;
	*ret = l;
	return NULL;
}

static struct loaded *find_loaded(const struct modules *m, const struct map_line *line)
{
	for (u32 i = 0; i < m->nloaded; i++)
		if (m->loaded[i]->ino == line->ino && m->loaded[i]->dev == line->dev &&
		        !strcmp(m->loaded[i]->path, line->path))
			return m->loaded[i];
	return NULL;
}

static struct error *unopened(int code, const struct map_line *line, pid_t pid)
{
	if (code == ESTALE ||
	        code == ENOENT) /* the file of that name is another one or none, and /proc/PID/map_files did not open */
		return error_new(ERROR_PERMISSION,
		        "%s, mapped by process %d, was replaced or deleted: reading the old file needs "
		        "CAP_CHECKPOINT_RESTORE",
		        line->path, pid);
	return error_errno(code, "cannot open %s, mapped by process %d", line->path, pid);
}

/* A JIT's memory under the name of a file: mapped twice (Erlang, .NET), or a page by which perf finds its dump. */
static bool is_jit_memory(const char *path)
{
	return !strncmp(path, "/memfd:", 7) || strstr(path, "/jit-");
}

static bool is_cold(const struct modules *m, const struct image *img)
{
	return img->size >= LATER_SIZE && !cfi_is_cached(img, m->cfi_options.cache_dir);
}

/* Leaves a file to a thread. */
static bool hand_over(struct modules *m, pid_t pid, const struct map_line *line, struct image *img)
{
	char root[64];

	if (!m->maker)
		m->maker = table_maker_create(&m->cfi_options, m->order);
	proc_path(root, sizeof(root), pid, "root");
	img->cache_dir = m->cfi_options.cache_dir;
	return m->maker && table_maker_put(m->maker, img, line->dev, line->ino, root);
}

/* Where one file is not in the cache others are not: those of the same process, while this one is made here. */
static void get_help(struct modules *m, pid_t pid, const struct map_line *at)
{
	const struct maps *maps = m->filling;

	m->filling = NULL;
	for (u32 i = 0; maps && i < maps->nlines; i++) {
		const struct map_line *line = &maps->lines[i];
		struct image *img = NULL;
		int fd;

		if (line <= at || !line->ino || !(line->prot & PROT_EXEC) || find_loaded(m, line) ||
		        modules_are_making(m, line))
			continue;
		fd = map_open(pid, line);
		if (fd >= 0)
			error_free(image_open(fd, line->path, &img));
		if (img && !(is_cold(m, img) && hand_over(m, pid, line, img)))
			image_put(img);
	}
}

bool modules_are_making(const struct modules *m, const struct map_line *line)
{
	return m->maker && table_maker_has(m->maker, line->dev, line->ino);
}

void modules_make_later(struct modules *m, enum table_order order)
{
	table_maker_destroy(m->maker);
	m->maker = NULL;
	m->make_later = true;
	m->order = order;
}

u32 modules_made(const struct modules *m)
{
	return m->maker ? table_maker_made(m->maker) : 0;
}

struct error *modules_load(struct modules *m, pid_t pid, const struct map_line *line, struct loaded **ret)
{
	struct loaded *l = find_loaded(m, line);
	struct image *img = NULL;
	struct error *err;
	int fd, code;

	*ret = l;
	if (l)
		return NULL;
	if (m->maker && table_maker_take(m->maker, line->dev, line->ino, &img))
		return img ? add_loaded(m, pid, line, img, ret) : NULL;
	fd = map_open(pid, line);
	code = errno;
	if (fd < 0 && !living_thread(pid))
		return NULL; /* says nothing of the file */
	err = fd >= 0 ? image_open(fd, line->path, &img) : unopened(code, line, pid);
	if (err == &error_no_memory)
		return err;
	if (fd >= 0 && is_jit_memory(line->path))
		error_free(err);
	else
		complain(m, err);
	if (img && (m->make_later || m->filling) && is_cold(m, img)) {
		if (m->make_later && hand_over(m, pid, line, img))
			return NULL;
		get_help(m, pid, line);
	}
	return add_loaded(m, pid, line, img, ret);
}

struct error *modules_load_vdso(struct modules *m, pid_t pid, void *bytes, size_t size, struct loaded **ret)
{
	struct map_line line = {.path = "[vdso]"};
	struct image *img = NULL;
	struct error *err = image_from_memory(bytes, size, line.path, &img);

	if (err == &error_no_memory)
		return err;
	complain(m, err);
	if (img)
		for (u32 i = 0; i < 8 && i < img->build_id_len; i++)
			line.ino = line.ino << 8 | img->build_id[i];
	*ret = find_loaded(m, &line);
	if (*ret) {
		image_put(img);
		return NULL;
	}
	return add_loaded(m, pid, &line, img, ret);
}

struct error *modules_number(struct modules *m, struct loaded *loaded, u64 bias, pid_t pid, u32 *ret)
{
	struct module *grown;

	for (u32 i = 1; i < m->nmodules; i++)
		if (m->modules[i].loaded == loaded && m->modules[i].bias == bias) {
			*ret = i;
			return NULL;
		}
	grown = realloc(m->modules, (m->nmodules + 1) * sizeof(*grown));
	if (!grown)
		return &error_no_memory;
	m->modules = grown;
	m->modules[m->nmodules] = (struct module){.loaded = loaded, .bias = bias, .pid = pid};
	*ret = m->nmodules++;
	return NULL;
}

u32 modules_runtimes(const struct modules *m)
{
	u32 runtimes = 0;

	for (u32 i = 0; i < m->nloaded; i++)
		for (u32 id = 0; id < RUNTIMES_MAX; id++)
			runtimes |= m->loaded[i]->runtime[id] ? 1u << id : 0;
	return runtimes;
}

const struct module *module_at(const struct modules *m, u32 number)
{
	return number && number < m->nmodules ? &m->modules[number] : NULL;
}
