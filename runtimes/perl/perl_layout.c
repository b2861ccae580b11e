/* SPDX-License-Identifier: Apache-2.0 */
#include "perl_layout.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define LAYOUT perl_layout
static const struct layout_field fields[] = {PERL_MEMBERS(LAYOUT_MEMBER, LAYOUT_OPTIONAL)};

const struct layout_schema perl_layout_schema = {.runtime = "perl", LAYOUT_FIELDS(fields)};

/* 5.24 separated loops over an array from those over a list, and gave blocks that C code calls a type of stack. */
#define REWORKED 24

struct perl_vm perl_vm_of(const struct perl_layout *l, u32 version)
{
	u8 more = version >= REWORKED;

	return (struct perl_vm){
	        .op = l->i_op.at,
	        .curcop = l->i_curcop.at,
	        .curstackinfo = l->i_curstackinfo.at,
	        .cop_seqmax = l->i_cop_seqmax.size == 4 ? l->i_cop_seqmax.at : 0,
	        .compiling_size = l->i_size.at ? l->i_size.at : 1,
	        .multiple = l->i_curstackinfo.size == 8,
	        /* cop.h of 5.16 to 5.44 */
	        .kind_block = 2,
	        .kind_sub = 8 + more,
	        .kind_format = 9 + more,
	        .kind_eval = 10 + more,
	        .multicall = more ? PERL_STACK_MULTICALL : PERL_STACK_SORT,
	        .si_cxstack = l->si_cxstack.at,
	        .si_prev = l->si_prev.at,
	        .si_cxix = l->si_cxix.at,
	        .si_type = l->si_type.at,
	        .cx_size = l->cx_size.at,
	        .cx_oldcop = l->cx_oldcop.at,
	        .cx_retop = l->cx_retop.at,
	        .cx_cv = l->cx_cv.at,
	        .cx_format_cv = l->cx_format_cv.at,
	        .cx_eval_retop = l->cx_eval_retop.at,
	        .cx_namesv = l->cx_namesv.at,
	        .sv_any = l->sv_any.at,
	        .sv_flags = l->sv_flags.at,
	        .cop_line = l->cop_line.at,
	        .cv_words = l->cv_start.at,
	        .cv_flags = (u16)(l->cv_flags.at - l->cv_start.at),
	};
}

static bool in_context(const struct perl_layout *l, struct layout_member m)
{
	return m.size == 8 && m.at % 8 == 0 && m.at + 8u <= l->cx_size.at;
}

static bool contexts_fit(const struct perl_layout *l)
{
	const struct layout_member words[] = {
	        l->cx_oldcop, l->cx_retop, l->cx_cv, l->cx_format_cv, l->cx_eval_retop, l->cx_namesv};
	bool fits =
	        l->cx_size.at % 8 == 0 && l->cx_size.at <= PERL_CX_BYTES_MAX && !l->cx_type.at && l->cx_type.size == 1;

	for (u32 i = 0; i < sizeof(words) / sizeof(*words); i++)
		fits &= in_context(l, words[i]);
	return fits;
}

static bool interpreter_fits(const struct perl_layout *l, const struct perl_build *build)
{
	bool multiple = strstr(build->options, "MULTIPLICITY");

	if (!multiple)
		return !l->i_curstackinfo.size && l->cop_filegv.size == 8;
	return l->i_curstackinfo.size == 8 && l->i_curcop.size == 8 && l->i_op.size == 8 && l->i_runops.size == 8;
}

/* What the walker reads at once must be there, and what the build's options need. */
static struct error *check(const struct perl_layout *l, const struct perl_build *build, const char *origin)
{
	const char *wrong = NULL;

	if (!contexts_fit(l))
		wrong = "a context";
	else if (!interpreter_fits(l, build))
		wrong = "the interpreter";
	else if (l->cv_root.at != l->cv_start.at + 8u || perl_cv_gv(l).at != l->cv_start.at + 16u ||
	         l->cv_flags.at < l->cv_start.at || l->cv_flags.at + 4u > l->cv_start.at + 8u * PERL_CV_WORDS ||
	         (l->cv_flags.size != 4 && l->cv_flags.size != 2))
		wrong = "a CV";
	else if (!l->cop_file.size == !l->cop_filegv.size)
		wrong = "a COP";
	if (!wrong)
		return NULL;
	return error_new(ERROR_UNSUPPORTED, "%s: the layout of %s is not supported", origin, wrong);
}

static struct error *find(struct image *img, const struct perl_build *build, struct layout **ret)
{
	char version[sizeof(build->options) + 32];
	struct error *err = layout_whole_from_debug(&perl_layout_schema, img, "", ret);

	snprintf(version, sizeof(version), "%u.%u %s", build->revision, build->version, build->options);
	if (!err && !*ret)
		err = layout_library_find(&perl_layout_schema, img, NULL, "build-id", ret);
	if (!err && !*ret)
		err = layout_library_find(&perl_layout_schema, img, version, "version and options", ret);
	if (err || *ret)
		return err;
	return error_hint(
	        error_new(ERROR_UNSUPPORTED,
	                "%s holds Perl %u.%u.%u (%s), whose layout is not known: it has no debug information, and the "
	                "library has neither its build-id nor its version with these options",
	                img->path, build->revision, build->version, build->subversion, build->options),
	        "its Perl frames are left out; install its debug package, or run `yrt layout` on a build of it with -g "
	        "and name the folder of the result in YRT_LAYOUTS");
}

struct error *perl_layout_find(struct image *img, const struct perl_build *build, struct layout **ret)
{
	char origin[256];
	struct error *err;

	*ret = NULL;
	err = find(img, build, ret);
	if (!err)
		err = check((*ret)->values, build, layout_origin(*ret, 0, origin, sizeof(origin)));
	if (err) {
		layout_destroy(*ret);
		*ret = NULL;
		return err == &error_no_memory ? err : error_hint(err, "Perl frames of %s are left out", img->path);
	}
	return NULL;
}
