/* SPDX-License-Identifier: Apache-2.0 */
#include "perl_glue.h"

#include <string.h>

/* Callers of the loop, and what lies between it and main() (perl.c, pp_ctl.c, pp_hot.c, gv.c, mg.c, sv.c of 5.24
 * to 5.42). */
static const char *const exact[] = {"Perl_amagic_call", "Perl_call_list", "Perl_call_method", "Perl_call_pv",
        "Perl_call_sv", "Perl_despatch_signals", "Perl_eval_pv", "Perl_eval_sv", "Perl_magic_methcall",
        "Perl_pp_entereval", "Perl_pp_entersub", "Perl_pp_entertry", "Perl_pp_entertrycatch", "Perl_pp_require",
        "Perl_runops_debug", "Perl_runops_standard", "S_docatch", "S_run_body", "S_sortcv", "S_sortcv_stacked",
        "S_sortcv_xsub", "docatch", "main", "perl_parse", "perl_run"};

/* A compiler's clones are "name.isra.0" and the like. */
static bool is_name(const char *symbol, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(symbol, name, n) && (!symbol[n] || symbol[n] == '.');
}

bool perl_is_glue(const char *symbol)
{
	for (unsigned i = 0; i < sizeof(exact) / sizeof(*exact); i++)
		if (is_name(symbol, exact[i]))
			return true;
	return false;
}
