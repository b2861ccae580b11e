/* SPDX-License-Identifier: Apache-2.0 */
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "probes/y/y_kernel_types.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/process/comm.h"
#include "unwind/process/process.h"
#include "unwind/symbols/symbols.h"

/* --- modules --- */

/* The load bias of an image whose file is mapped from offset on at start. False: no segment of it begins there. */
static bool bias_of(const struct image *img, const struct map_line *line, u64 *ret)
{
	for (u32 i = 0; i < img->nsegments; i++) {
		const struct image_segment *s = &img->segments[i];

		if (line->offset + 4096 > s->offset && line->offset < s->offset + s->filesz) {
			*ret = line->start - (s->vaddr + line->offset - s->offset);
			return true;
		}
	}
	return false;
}

static int open_line(const struct y_target *t, const struct map_line *line)
{
	if (!t->core)
		return map_open(t->pid, line);
	return line->dev || line->ino ? open(line->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
}

static bool is_known(const struct y_target *t, const struct map_line *line)
{
	for (u32 i = 0; i < t->nmodules; i++)
		if (t->modules[i].image->dev == line->dev && t->modules[i].image->ino == line->ino)
			return true;
	for (const struct map_line *l = t->maps.lines; l < line; l++)
		if (l->dev == line->dev && l->ino == line->ino)
			return true;
	return false;
}

static struct error *add_module(struct y_target *t, struct image *img, u64 bias)
{
	if (grow(&t->modules, t->nmodules, sizeof(*t->modules))) {
		image_put(img);
		return &error_no_memory;
	}
	t->modules[t->nmodules++] = (struct y_target_module){.image = img, .path = img->path, .bias = bias};
	return NULL;
}

/* Files that are no programs, or cannot be opened, are not asked. */
static struct error *add_line(struct y_target *t, const struct map_line *line)
{
	struct image *img;
	struct error *err;
	u64 bias;
	int fd;

	if (!line->ino || !line->path || *line->path != '/' || is_known(t, line))
		return NULL;
	fd = open_line(t, line);
	if (fd < 0)
		return NULL;
	err = image_open(fd, line->path, &img);
	if (err == &error_no_memory)
		return err;
	error_free(err);
	if (err)
		return NULL;
	if (!bias_of(img, line, &bias)) {
		image_put(img);
		return NULL;
	}
	return add_module(t, img, bias);
}

static struct error *add_modules(struct y_target *t)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < t->maps.nlines; i++)
		err = add_line(t, &t->maps.lines[i]);
	return err;
}

/* --- opening --- */

static struct error *open_core(struct y_target *t, const struct y_target_options *o)
{
	struct error *err = core_open(o->core, o->root, &t->core);

	if (err)
		return err;
	memcpy(t->comm, t->core->comm, sizeof(t->core->comm));
	t->root = strdup(o->root ? o->root : "");
	t->memory = core_memory(t->core);
	if (!t->root || !t->memory)
		return &error_no_memory;
	return core_maps(t->core, &t->maps);
}

static struct error *open_live(struct y_target *t, const struct y_target_options *o)
{
	char comm[COMM_TEXT] = "";
	struct error *err;
	u8 byte;

	t->pid = o->pid;
	comm_read(o->pid, comm);
	snprintf(t->comm, sizeof(t->comm), "%s", comm);
	err = maps_read(o->pid, &t->maps);
	if (err)
		return err;
	t->memory = memory_live(o->pid);
	if (!t->memory || asprintf(&t->root, "/proc/%d/root", (int)o->pid) < 0)
		return &error_no_memory;
	for (u32 i = 0; i < t->maps.nlines; i++)
		if (t->maps.lines[i].prot & PROT_READ && memory_read(t->memory, &byte, 1, t->maps.lines[i].start))
			return NULL;
	return error_hint(error_new(ERROR_PERMISSION, "the memory of process %d cannot be read", (int)o->pid), "%s",
	        process_remedy() ? process_remedy() : "run yrt as root");
}

static struct error *open_types(struct y_target *t, const struct y_target_options *o)
{
	cleanup(free) char *full = realpath(o->types, NULL);
	int fd = full ? open(full, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1;
	char id[IMAGE_ID_TEXT] = "none";
	struct error *err;

	if (fd < 0)
		return error_errno(errno, "%s", o->types);
	err = image_open_sections(fd, full, &t->types);
	if (err)
		return err;
	if (o->only_types)
		return add_module(t, image_get(t->types), 0);
	for (u32 i = 0; i < t->nmodules; i++) {
		struct image *img = t->modules[i].image;

		if (img->build_id_len && img->build_id_len == t->types->build_id_len &&
		        !memcmp(img->build_id, t->types->build_id, img->build_id_len)) {
			t->modules[i].debug = image_get(t->types);
			return NULL;
		}
	}
	if (t->types->build_id_len)
		image_id_text(t->types, id);
	return error_hint(
	        error_new(ERROR_UNSUPPORTED, "%s is of another build than all files of the target: its build-id is %s",
	                o->types, id),
	        "--types needs the debug information of the same build; `readelf -n FILE` prints a build-id");
}

struct error *y_target_open(const struct y_target_options *o, struct y_target **ret)
{
	struct y_target *t = calloc(1, sizeof(*t));
	struct error *err = NULL;

	*ret = NULL;
	if (!t)
		return &error_no_memory;
	t->machine = o->machine;
	if (!o->only_types && !o->machine)
		err = o->core ? open_core(t, o) : open_live(t, o);
	if (!err)
		err = add_modules(t);
	if (!err && o->types)
		err = open_types(t, o);
	if (err) {
		y_target_close(t);
		return err;
	}
	*ret = t;
	return NULL;
}

void y_target_close(struct y_target *t)
{
	if (!t)
		return;
	y_runtimes_free(t->runtimes);
	for (u32 i = 0; i < t->nmodules; i++) {
		types_close(t->modules[i].types);
		image_put(t->modules[i].debug);
		image_put(t->modules[i].image);
	}
	free(t->modules);
	image_put(t->types);
	maps_free(&t->maps);
	memory_destroy(t->memory);
	core_close(t->core);
	free(t->root);
	y_kernel_types_close(t->kernel);
	error_free(t->failed);
	free(t);
}

/* --- types --- */

static void note(struct y_target *t, struct error *err)
{
	if (!t->failed)
		t->failed = err;
	else
		error_free(err);
}

struct types *y_target_types(struct y_target *t, u32 module)
{
	struct y_target_module *m = &t->modules[module];
	struct error *err = NULL;

	if (m->asked)
		return m->types;
	m->asked = true;
	if (m->debug)
		err = types_open(m->debug, &m->types);
	if (!err && !m->types)
		err = types_open(m->image, &m->types);
	if (!err && !m->types && !m->debug) {
		err = symbols_debug_file(m->image, t->root ? t->root : "", &m->debug);
		if (!err && m->debug)
			err = types_open(m->debug, &m->types);
	}
	if (err)
		note(t, err);
	return m->types;
}

/* --- what is missing --- */

#define PACKAGES "/var/lib/dpkg/info"

static bool lists(const char *list, const char *path)
{
	cleanup(fclose) FILE *f = fopen(list, "re");
	char line[PATH_MAX];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		found = !strcmp(line, path) || (!strncmp(path, "/usr/", 5) && !strcmp(line, path + 4));
	}
	return found;
}

/* Debian's package that has the file: "nginx-core". */
static bool package_of(const char *root, const char *path, char *ret, size_t size)
{
	char directory[PATH_MAX], list[PATH_MAX + 256];
	DIR *d;
	bool found = false;

	snprintf(directory, sizeof(directory), "%s" PACKAGES, root);
	d = opendir(directory);
	for (const struct dirent *e; d && !found && (e = readdir(d));) {
		size_t len = strcspn(e->d_name, ":.");

		if (!strstr(e->d_name, ".list"))
			continue;
		snprintf(list, sizeof(list), "%s/%s", directory, e->d_name);
		if (strstr(e->d_name, ":") == NULL)
			len = (size_t)(strstr(e->d_name, ".list") - e->d_name);
		found = lists(list, path);
		if (found)
			snprintf(ret, size, "%.*s", (int)len, e->d_name);
	}
	if (d)
		closedir(d);
	return found;
}

const char *y_target_lacks(struct y_target *t, u32 module, char ret[Y_LACKS])
{
	const struct image *img;
	char package[128], hex[IMAGE_ID_TEXT];
	bool known;

	*ret = '\0';
	for (u32 i = 0; module == Y_MODULES && i < t->nmodules; i++)
		if (!y_target_types(t, i))
			module = i;
	if (module >= t->nmodules || y_target_types(t, module))
		return ret;
	img = t->modules[module].image;
	known = package_of(t->root ? t->root : "", t->modules[module].path, package, sizeof(package));
	image_id_text(img, hex);
	if (img->build_id_len > 1)
		snprintf(ret, Y_LACKS,
		        "; %s has no debug information: /usr/lib/debug/.build-id/%.2s/%s.debug is where it would be "
		        "found%s%s%s, or --types FILE names a file of the same build that has it",
		        t->modules[module].path, hex, hex + 2, known ? " (package " : "", known ? package : "",
		        known ? "-dbgsym or -dbg)" : "");
	else
		snprintf(ret, Y_LACKS,
		        "; %s has no debug information, and no build-id by which to find it: build it with -g",
		        t->modules[module].path);
	return ret;
}

const char *y_target_bare(struct y_target *t, char ret[Y_LACKS])
{
	u32 n = 0, most = 5;
	size_t len = 0;

	*ret = '\0';
	for (u32 i = 0; i < t->nmodules; i++) {
		const char *name = strrchr(t->modules[i].path, '/');

		if (*t->modules[i].path == '[' || y_target_types(t, i) || n++ >= most || len > Y_LACKS / 2)
			continue;
		len += (size_t)snprintf(ret + len, Y_LACKS - len, "%s%s",
		        len ? ", " : "; without debug information are ", name ? name + 1 : t->modules[i].path);
	}
	if (n > most)
		snprintf(ret + len, Y_LACKS - len, " and %u others", n - most);
	return ret;
}

struct y_kernel_types *y_target_kernel(struct y_target *t)
{
	if (!t->kernel)
		error_free(y_kernel_types_open(&t->kernel));
	return t->kernel;
}

static bool asks_kernel(struct y_target *t)
{
	return (t->asks_kernel || t->machine) && y_target_kernel(t);
}

const struct type *y_target_type(struct y_target *t, enum type_space space, const char *name, u32 *module, int *other)
{
	const struct type *type;

	*other = -1;
	for (u32 i = 0; i < t->nmodules; i++) {
		struct types *types = y_target_types(t, i);

		type = types ? types_find(types, space, name) : NULL;
		if (!type || type->is_declared)
			continue;
		*module = i;
		if (types_disagree(types, space, name))
			*other = (int)i;
		return type;
	}
	*module = 0;
	type = y_runtimes_type(t, space, name);
	return type || !asks_kernel(t) ? type : y_kernel_type(t->kernel, space, name);
}

bool y_target_enumerator(struct y_target *t, u32 nmodules, const char *name, s64 *value, const struct type **type)
{
	for (u32 i = 0; i < nmodules && i < t->nmodules; i++)
		if (y_target_types(t, i) && types_enumerator(y_target_types(t, i), name, value, type))
			return true;
	return asks_kernel(t) && y_kernel_enumerator(t->kernel, name, value, type);
}

/* --- variables and functions --- */

/* "libfoo" is also /usr/lib/libfoo-1.so.2. */
static bool is_module(const struct y_target_module *m, const char *name)
{
	const char *slash = strrchr(m->path, '/'), *base = slash ? slash + 1 : m->path;
	size_t len = strlen(name);

	return !strcmp(m->path, name) || !strcmp(base, name) ||
	       (!strncmp(base, name, len) && (base[len] == '.' || base[len] == '-'));
}

static bool symbol_of(struct y_target *t, u32 module, const char *name, struct y_target_object *o)
{
	struct image *img = t->modules[module].image;
	struct symbol symbol;
	struct error *err = symbols_load(img, t->root ? t->root : "");

	if (err) {
		note(t, err);
		return false;
	}
	if (t->modules[module].debug && t->modules[module].debug != img)
		symbols_use_debug(img, t->modules[module].debug);
	if (!symbols_lookup(img, name, &symbol))
		return false;
	o->addr = symbol.start;
	o->exported = symbol.exported;
	return true;
}

/* Its type by any module that at least declares it. */
static void type_object(struct y_target *t, u32 module, const char *name, struct y_target_object *o)
{
	for (u32 k = 0; k < t->nmodules && !o->type; k++) {
		struct types *types = y_target_types(t, (module + k) % t->nmodules);
		struct type_variable v;
		struct type_function f;

		if (types && types_variable(types, name, &v)) {
			o->type = v.type;
			o->thread |= v.thread;
			o->several = v.several && !k;
		} else if (types && types_function(types, name, &f)) {
			o->type = f.type;
			o->function = true;
			o->several = f.several && !k;
		}
	}
}

/* What only debug information knows: static variables of a file whose symbols are gone. */
static bool object_of_types(struct y_target *t, u32 i, const char *name, struct y_target_object *ret)
{
	struct types *types = y_target_types(t, i);
	struct type_variable v;
	struct type_function f;

	if (types && types_variable(types, name, &v) && (v.defined || v.thread)) {
		*ret = (struct y_target_object){
		        .type = v.type, .module = i, .addr = v.addr, .thread = v.thread, .several = v.several};
		return true;
	}
	if (types && types_function(types, name, &f) && f.addr) {
		*ret = (struct y_target_object){
		        .type = f.type, .module = i, .addr = f.addr, .function = true, .several = f.several};
		return true;
	}
	return false;
}

static bool thread_local_of(struct y_target *t, u32 module, const char *name, struct y_target_object *ret)
{
	struct symbol symbol;

	if (!symbols_thread_local(t->modules[module].image, name, &symbol))
		return false;
	*ret = (struct y_target_object){.module = module, .addr = symbol.start, .thread = true};
	return true;
}

bool y_target_place(struct y_target *t, const char *module, const char *name, struct y_target_object *ret)
{
	bool found = false;

	for (u32 pass = 0; pass < 2 && !found; pass++) {
		for (u32 i = 0; i < t->nmodules; i++) {
			struct y_target_object o = {.module = i};

			if (module && !is_module(&t->modules[i], module))
				continue;
			if (!(pass ? object_of_types(t, i, name, &o) : symbol_of(t, i, name, &o)) &&
			        !(pass == !!i && thread_local_of(t, i, name, &o)))
				continue;
			if (!found) {
				*ret = o;
				ret->other = -1;
				found = true;
				if (!i)
					break; /* the program's own */
			} else if (ret->other < 0) {
				ret->other = (int)i;
			}
		}
	}
	return found;
}

bool y_target_object(struct y_target *t, const char *module, const char *name, struct y_target_object *ret)
{
	bool found = y_target_place(t, module, name, ret);

	if (found && !ret->type)
		type_object(t, ret->module, name, ret);
	return found;
}

bool y_target_function(struct y_target *t, const char *spec, struct y_target_object *ret)
{
	const char *last = strrchr(spec, ':'), *name = last ? last + 1 : spec;
	char module[256];

	snprintf(module, sizeof(module), "%.*s", last ? (int)(last - spec) : 0, spec);
	return y_target_object(t, last ? module : NULL, name, ret) && (ret->function || !ret->type);
}

/* --- literals and addresses --- */

bool y_target_literal(struct y_target *t, const char *bytes, u32 len, u32 *module, u64 *addr)
{
	for (u32 i = 0; i < t->nmodules; i++) {
		struct image *img = t->modules[i].image;
		cleanup(free) char *data = NULL;
		u64 start, size;
		const char *hit;

		if (!image_section_range(img, ".rodata", &start, &size) || size > 1u << 30)
			continue;
		data = malloc(size ? size : 1);
		if (!data || !image_read(img, data, size, start))
			continue;
		hit = memmem(data, size, bytes, len + 1);
		if (hit) {
			*module = i;
			*addr = start + (u64)(hit - data);
			return true;
		}
	}
	return false;
}

static struct y_target_module *target_module_at(struct y_target *t, u64 addr)
{
	for (u32 i = 0; i < t->nmodules; i++) {
		struct image *img = t->modules[i].image;

		for (u32 k = 0; k < img->nsegments; k++)
			if (addr - t->modules[i].bias - img->segments[k].vaddr < img->segments[k].memsz)
				return &t->modules[i];
	}
	return NULL;
}

bool y_target_symbol(struct y_target *t, u64 addr, char *ret, size_t size)
{
	struct y_target_module *m = target_module_at(t, addr);
	struct symbol symbol;
	char name[512];
	u64 offset;

	if (!m || symbols_read(m->image, t->root ? t->root : ""))
		return false;
	if (symbols_find(m->image, addr - m->bias, &symbol)) {
		offset = addr - m->bias - symbol.start;
		snprintf(name, sizeof(name), "%s", symbol.name);
	} else if (!symbols_object(m->image, addr - m->bias, name, sizeof(name), &offset)) {
		/* as stacks name it, and probe points take it */
		snprintf(name, sizeof(name), "%s", strrchr(m->path, '/') ? strrchr(m->path, '/') + 1 : m->path);
		offset = addr - m->bias;
	}
	if (offset)
		snprintf(ret, size, "%s+0x%lx", name, offset);
	else
		snprintf(ret, size, "%s", name);
	return true;
}
