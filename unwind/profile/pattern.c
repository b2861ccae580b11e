/* SPDX-License-Identifier: Apache-2.0 */
#include "pattern.h"

struct error *pattern_compile(const char *text, struct pattern *ret)
{
	char why[256];
	int code;

	if (!text)
		return NULL;
	code = regcomp(&ret->regex, text, REG_EXTENDED | REG_NOSUB);
	if (code) {
		regerror(code, &ret->regex, why, sizeof(why));
		return error_hint(error_new(ERROR_USAGE, "cannot read the pattern \"%s\": %s", text, why),
		        "-I and -X take POSIX extended regular expressions");
	}
	ret->set = true;
	return NULL;
}

bool pattern_matches(const struct pattern *p, const char *name)
{
	return p->set && regexec(&p->regex, name, 0, NULL, 0) == 0;
}

void pattern_free(struct pattern *p)
{
	if (p->set)
		regfree(&p->regex);
	p->set = false;
}
