/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "luajit_image.h"
#include "runtime.h"

#define VERSION_MAX 64
#define NEAR_BYTES  (1ull << 31) /* machine code of traces lies where a call can reach the VM */

int luajit_step(struct walk *w);

struct luajit_instance {
	const struct luajit_image *image;
	u64 bias;
	u32 config; /* struct luajit_vm in the arena */
	struct luajit_names *names;
};

/* "LuaJIT 2.1.0-beta3", as luaJIT's own version strings begin. */
static bool find_version(struct image *img, char *ret, size_t size)
{
	static const char head[] = "LuaJIT 2.";
	u64 addr;
	Elf_Data *data = image_section(img, ".rodata", &addr);
	const char *p = data ? data->d_buf : NULL, *end;
	size_t n = 0;

	p = p ? memmem(p, data->d_size, head, sizeof(head) - 1) : NULL;
	if (!p)
		return false;
	end = (const char *)data->d_buf + data->d_size;
	while (p<end && * p> ' ' && n + 1 < size) {
		ret[n++] = *p++;
		if (n == 6 && p < end && *p == ' ') /* behind "LuaJIT" */
			ret[n++] = *p++;
	}
	ret[n] = '\0';
	return true;
}

static struct error *unknown_layout(const struct image *img, const char *version)
{
	return error_hint(
	        error_new(ERROR_UNSUPPORTED, "%s holds \"%s\", whose layout is not known", img->path, version),
	        "known so far: OpenResty LuaJIT 2.1-20230119 (Debian 12); its Lua frames are left out");
}

static struct error *image_probe(struct image *img, void **ret)
{
	char version[VERSION_MAX] = "";
	struct luajit_image *image;
	struct error *err;
	u64 start, end;

	*ret = NULL;
	if (img->machine != EM_X86_64)
		return NULL;
	err = luajit_blob_find(img, &start, &end);
	if (err || !end)
		return err;
	if (!find_version(img, version, sizeof(version)))
		strcpy(version, "LuaJIT of no version");
	image = calloc(1, sizeof(*image));
	if (!image)
		return &error_no_memory;
	image->layout = luajit_layout_find(img, version, &image->origin);
	err = image->layout ? luajit_blob_analyse(img, start, end, image->layout, &image->blob)
	                    : unknown_layout(img, version);
	if (err) {
		free(image);
		if (err->kind != ERROR_UNSUPPORTED || err->hint)
			return err;
		error_free(err);
		return unknown_layout(img, version);
	}
	*ret = image;
	return NULL;
}

static void image_destroy(void *data)
{
	struct luajit_image *image = data;

	luajit_blob_free(&image->blob);
	free(image);
}

static struct error *attach(const struct runtime_process *p, void *data, u64 bias, void **ret)
{
	const struct luajit_image *image = data;
	struct luajit_instance *instance = calloc(1, sizeof(*instance));
	struct error *err;

	if (!instance)
		return &error_no_memory;
	instance->image = image;
	instance->bias = bias;
	instance->names = luajit_names_create(image->layout);
	err = instance->names ? arena_alloc(p->arena, sizeof(struct luajit_vm), &instance->config) : &error_no_memory;
	if (err) {
		luajit_names_destroy(instance->names);
		free(instance);
		return err;
	}
	memcpy(arena_at(p->arena, instance->config, sizeof(struct luajit_vm)), &image->layout->vm,
	        sizeof(struct luajit_vm));
	*ret = instance;
	return NULL;
}

static void detach(void *data, const struct runtime_process *p)
{
	struct luajit_instance *instance = data;

	arena_free(p->arena, instance->config, sizeof(struct luajit_vm));
	luajit_names_destroy(instance->names);
	free(instance);
}

/* Anonymous code within reach of the VM. While a trace is written its area is not executable: any protection will do
 * then. */
static bool is_trace_area(const struct luajit_instance *instance, const struct mapping *m)
{
	u64 vm = instance->bias + instance->image->blob.start;
	u64 distance = m->start > vm ? m->start - vm : vm - m->start;

	return m->anonymous && (m->prot & PROT_EXEC) && distance < NEAR_BYTES && m->name[0] != '[';
}

static struct error *regions(void *data, const struct runtime_process *p,
        struct error *(*add)(void *ctx, const struct runtime_region *r), void *ctx)
{
	const struct luajit_instance *instance = data;
	const struct luajit_blob *blob = &instance->image->blob;
	struct runtime_region r = {.vm = instance->config, .entries = blob->entries, .nentries = blob->nentries};
	struct error *err;

	/* all of it first: the rows of the whole make one table, which the stretches then share */
	r.part = LUAJIT_INTERP;
	r.start = blob->start + instance->bias;
	r.end = blob->end + instance->bias;
	err = add(ctx, &r);
	for (u32 i = 0; !err && i < blob->nstretches; i++) {
		r.part = blob->stretches[i].part;
		r.start = blob->stretches[i].start + instance->bias;
		r.end = blob->stretches[i].end + instance->bias;
		err = add(ctx, &r);
	}
	r.part = LUAJIT_TRACE;
	r.entries = NULL;
	r.nentries = 0;
	for (u32 i = 0; !err && i < p->nmappings; i++) {
		if (!is_trace_area(instance, &p->mappings[i]))
			continue;
		r.start = p->mappings[i].start;
		r.end = p->mappings[i].end;
		err = add(ctx, &r);
	}
	return err;
}

static bool name_frame(
        void *data, const struct runtime_process *p, const struct frame *frames, u32 i, u32 n, struct frame_name *ret)
{
	struct luajit_instance *instance = data;

	return luajit_name_frame(instance->names, p, frames, i, n, ret);
}

/* How C enters the VM and the VM enters C: the Lua frames next to them tell the same. */
static bool hides(void *data, const char *symbol)
{
	static const char *const glue[] = {
	        "lua_call", "lua_pcall", "lua_cpcall", "lua_resume", "lua_yield", "luaL_callmeta"};

	(void)data;
	for (u32 i = 0; i < sizeof(glue) / sizeof(*glue); i++)
		if (!strcmp(symbol, glue[i]))
			return true;
	return !strncmp(symbol, "lj_vm_", 6) || !strncmp(symbol, "lj_BC_", 6) || !strncmp(symbol, "lj_ff_", 6);
}

const struct runtime_ops luajit_runtime = {
        .name = "luajit",
        .view = "lua",
        .id = RUNTIME_LUAJIT,
        .supported = "LuaJIT: OpenResty 2.1-20230119 as in Debian 12 (x86-64, GC64), interpreter and traces",
        .step = luajit_step,
        .image_probe = image_probe,
        .image_destroy = image_destroy,
        .attach = attach,
        .detach = detach,
        .regions = regions,
        .name_frame = name_frame,
        .hides = hides,
};
