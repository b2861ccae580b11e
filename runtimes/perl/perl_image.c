/* SPDX-License-Identifier: Apache-2.0 */
#include "perl_image.h"

#include <stdlib.h>
#include <string.h>

#include "process/copies.h"
#include "symbols/symbols.h"

#define OLDEST       16
#define NEWEST       44
#define OPTIONS_MAX  2048
#define RUNOPS_CALLS 2 /* of call_sv(), eval_sv() and others that must agree */

void perl_image_destroy(void *data)
{
	struct perl_image *image = data;

	layout_destroy(image->origins);
	free(image);
}

static bool read_byte(struct image *img, const char *name, u32 *ret)
{
	struct symbol s;
	u8 byte;

	if (!symbols_lookup(img, name, &s) || !image_read(img, &byte, sizeof(byte), s.start))
		return false;
	*ret = byte;
	return true;
}

/* Those that change where members are (perl.h, intrpvar.h, sv.h, op.h), in alphabetical order as PL_bincompat_options
 * has them. */
static const char *const options[] = {"DEBUGGING", "DEBUG_LEAKING_SCALARS", "MULTIPLICITY", "NO_TAINT_SUPPORT",
        "PERL_OP_PARENT", "PERL_POISON", "PERL_RC_STACK", "PERL_TRACK_MEMPOOL", "USE_ITHREADS", "USE_LONG_DOUBLE",
        "USE_QUADMATH"};

static bool has_option(const char *text, const char *option)
{
	size_t n = strlen(option);

	for (const char *at = text; (at = strstr(at, option)); at += n)
		if ((at == text || at[-1] == ' ') && (!at[n] || at[n] == ' '))
			return true;
	return false;
}

/* 5.22 made op_sibparent unconditional where PERL_OP_PARENT was; from 5.26 on all have it. */
static bool is_constant(const char *option)
{
	return !strcmp(option, "PERL_OP_PARENT");
}

static bool read_options(struct image *img, char *ret, size_t size)
{
	char text[OPTIONS_MAX];
	struct symbol s;
	size_t n = 0, len;

	if (!symbols_lookup(img, "PL_bincompat_options", &s))
		return false;
	len = s.end - s.start < sizeof(text) ? s.end - s.start : sizeof(text) - 1;
	if (!image_read(img, text, len, s.start))
		return false;
	text[len] = 0;
	*ret = 0;
	for (u32 i = 0; i < sizeof(options) / sizeof(*options); i++)
		if (!is_constant(options[i]) && has_option(text, options[i]) && n < size)
			n += (size_t)snprintf(ret + n, size - n, "%s%s", n ? " " : "", options[i]);
	if (!n)
		snprintf(ret, size, "plain");
	return true;
}

static bool read_build(struct image *img, struct perl_build *ret)
{
	struct symbol s;
	u16 size;

	if (!read_byte(img, "PL_revision", &ret->revision) || !read_byte(img, "PL_version", &ret->version) ||
	        !read_byte(img, "PL_subversion", &ret->subversion) ||
	        !read_options(img, ret->options, sizeof(ret->options)))
		return false;
	if (symbols_lookup(img, "PL_interp_size", &s) && image_read(img, &size, sizeof(size), s.start))
		ret->interpreter_size = size;
	return true;
}

static struct error *unsupported(const struct image *img, const struct perl_build *build)
{
	struct error *err;

	if (!build->revision)
		err = error_new(ERROR_UNSUPPORTED, "%s holds a Perl of unknown version", img->path);
	else
		err = error_new(ERROR_UNSUPPORTED, "%s holds Perl %u.%u.%u", img->path, build->revision, build->version,
		        build->subversion);
	return error_hint(err, "its Perl frames are left out: yrt knows 5.%u to 5.%u", OLDEST, NEWEST);
}

static const struct copies_variable variables[] = {
        {"PL_thr_key", offsetof(struct perl_image, key)},
        {"PL_curinterp", offsetof(struct perl_image, interpreter)},
        {"PL_op", offsetof(struct perl_image, op)},
        {"PL_curcop", offsetof(struct perl_image, curcop)},
        {"PL_curstackinfo", offsetof(struct perl_image, curstackinfo)},
        {"PL_compiling", offsetof(struct perl_image, compiling)},
        {"PL_runops", offsetof(struct perl_image, runops)},
        {"PL_cop_seqmax", offsetof(struct perl_image, cop_seqmax)},
        {"PL_ppaddr", offsetof(struct perl_image, ppaddr)},
};
#define NVARIABLES (sizeof(variables) / sizeof(*variables))

static bool is_needed(const struct perl_image *image, size_t at)
{
	switch (at) {
	case offsetof(struct perl_image, key):
		return image->vm.multiple;
	case offsetof(struct perl_image, op):
	case offsetof(struct perl_image, curcop):
	case offsetof(struct perl_image, curstackinfo):
	case offsetof(struct perl_image, compiling):
		return !image->vm.multiple;
	default:
		return false;
	}
}

static struct error *find_symbols(struct image *img, struct perl_image *image)
{
	struct symbol s;

	for (u32 i = 0; i < NVARIABLES; i++) {
		if (symbols_lookup(img, variables[i].name, &s))
			memcpy((u8 *)image + variables[i].at, &s.start, sizeof(s.start));
		else if (is_needed(image, variables[i].at))
			return error_new(
			        ERROR_UNSUPPORTED, "%s holds Perl without its symbol %s", img->path, variables[i].name);
	}
	return NULL;
}

struct error *perl_image_copied(
        const struct perl_image *image, u64 bias, const struct runtime_process *p, struct perl_image **ret)
{
	void *copy;
	struct error *err = copies_apply(p, bias, variables, NVARIABLES, image, sizeof(*image), &copy);

	*ret = copy;
	return err;
}

/*
 * The end of struct interpreter has buffers of the C library's reentrant functions (reentr.h), of another size with
 * musl and with another glibc. All that is read lies before it; PL_runops is the last of it that is needed, and calls
 * of it show where it is.
 */
static struct error *check_size(const struct image *img, const struct perl_image *image)
{
	u32 size = image->build.interpreter_size;

	if (!image->vm.multiple || image->layout->i_size.at == size || image->code.nentries >= RUNOPS_CALLS)
		return NULL;
	return error_hint(error_new(ERROR_UNSUPPORTED,
	                          "%s: its interpreter has %u bytes, the known layout %u, and the code does not show "
	                          "that they agree",
	                          img->path, size, image->layout->i_size.at),
	        "its Perl frames are left out; run `yrt layout` on a build of it with -g and name the folder of the "
	        "result in YRT_LAYOUTS");
}

static struct error *probe(struct image *img, struct perl_image *image)
{
	struct perl_build *build = &image->build;
	struct error *err;

	if (!read_build(img, build) || build->revision != 5 || build->version < OLDEST || build->version > NEWEST)
		return unsupported(img, build);
	err = perl_layout_find(img, build, &image->origins);
	if (err)
		return err;
	image->layout = image->origins->values;
	image->vm = perl_vm_of(image->layout, build->version);
	err = find_symbols(img, image);
	if (!err)
		err = perl_code_find(img, image);
	return err ? err : check_size(img, image);
}

struct error *perl_image_probe(struct image *img, void **ret)
{
	struct perl_image *image;
	struct symbol runops;
	struct error *err;

	*ret = NULL;
	if (img->machine != EM_X86_64 || !symbols_lookup(img, "Perl_runops_standard", &runops))
		return NULL;
	image = calloc(1, sizeof(*image));
	if (!image)
		return &error_no_memory;
	image->start = runops.start;
	image->end = runops.end;
	err = probe(img, image);
	if (err) {
		perl_image_destroy(image);
		return err;
	}
	*ret = image;
	return NULL;
}
