/* SPDX-License-Identifier: Apache-2.0 */
#include "perl_inspect.h"

#include "perl_check.h"

static void report_module(const struct perl_image *image, u64 bias, const struct runtime_process *p, struct report *out)
{
	const struct mapping *m = mapping_find(p->mappings, p->nmappings, image->start + bias);
	const struct perl_build *b = &image->build;

	image_report(m ? m->image : NULL, out);
	report_text(out, "version", NULL, "%u.%u.%u", b->revision, b->version, b->subversion);
	report_text(out, "options", "those that change the layout", "%s", b->options);
	report_text(out, "load bias", NULL, "0x%lx", bias);
}

static void report_code(const struct perl_image *image, u64 bias, struct report *out)
{
	static const char *const parts[] = {[PERL_RUNOPS] = "loop",
	        [PERL_RUN] = "perl_run",
	        [PERL_CATCH] = "docatch",
	        [PERL_SORT] = "pp_sort",
	        [PERL_REGEXEC] = "regexec",
	        [PERL_ENTER] = "calls from C",
	        [PERL_COMPILE] = "parser",
	        [PERL_SCOPE] = "eval made by C",
	        [PERL_UNWIND] = "die_unwind",
	        [PERL_PUSHING] = "context incomplete",
	        [PERL_POPPED] = "context popped",
	        [PERL_DONE] = "docatch returns",
	        [PERL_NEXT] = "op returned"};
	const struct perl_code *code = &image->code;

	report_section(out, "code", NULL);
	for (u32 i = 0; i < code->n; i++) {
		const struct perl_site *s = &code->sites[i];

		report_text(out, s->part < PERL_XS ? parts[s->part] : "function in C called", NULL, "0x%lx-0x%lx",
		        s->start + bias, s->end + bias);
	}
}

static void report_interpreter(const struct perl_image *image, u64 bias, const struct perl_vm *vm,
        const struct runtime_process *p, struct report *out)
{
	u64 interpreter = 0;

	report_section(out, "interpreter", NULL);
	if (!vm->multiple) {
		report_text(out, "found by", "built without MULTIPLICITY", "symbols");
		return;
	}
	if (memory_read(p->memory, &interpreter, sizeof(interpreter), bias + image->interpreter))
		report_text(out, "PL_curinterp", NULL, "0x%lx", interpreter);
	if (vm->via)
		report_text(out, "found by", "PL_thr_key's value, as the C library says", "%u, %d bytes", vm->via,
		        vm->slot);
	else
		report_text(out, "found by", NULL, "not known yet");
}

static void report_checks(const struct perl_image *image, u64 bias, const struct runtime_process *p, struct report *out)
{
	struct perl_checked subject = perl_checked_of(image, bias, p->memory);
	int found[RUNTIME_CHECKS_MAX];

	runtime_check(&perl_checks, &subject, found);
	runtime_check_report(&perl_checks, found, NULL, out);
}

struct error *perl_inspect(const struct perl_image *image, u64 bias, const struct perl_vm *vm,
        const struct runtime_process *p, struct report *out)
{
	report_module(image, bias, p, out);
	report_code(image, bias, out);
	report_interpreter(image, bias, vm, p, out);
	report_checks(image, bias, p, out);
	layout_report(image->origins, out);
	return NULL;
}
