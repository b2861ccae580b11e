/* SPDX-License-Identifier: Apache-2.0 */
#include "rule.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "expression.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"

#define FILE_MAX_BYTES (1u << 20)

struct parser {
	struct rules *rules;
	struct rule *rule; /* that keys belong to; NULL: none has begun */
	const char *file;
	u32 line;
	const char *name; /* of the builtin or the file; rules of an earlier one are replaced */
	u32 first;        /* rules of this file begin here */
};

static struct error *wrong(const struct parser *p, const char *expected, const char *got)
{
	return error_hint(error_new(ERROR_INPUT, "%s:%u: expected %s, not \"%.60s\"", p->file, p->line, expected, got),
	        "docs/report-rules.md describes rules; `yrt report --explain RULE` shows one");
}

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " \t");
}

/* --- patterns --- */

static const char *const kind_words[] = {
#define X(id, word) [id] = word,
        PROFILE_KINDS(X)
#undef X
};

static const struct {
	const char *word;
	u32 kinds;
} kind_groups[] = {
        {"language", 1u << KIND_SCRIPT | 1u << KIND_SCRIPT_BASELINE | 1u << KIND_SCRIPT_JIT | 1u << KIND_SCRIPT_NATIVE},
        {"code", 1u << KIND_SCRIPT | 1u << KIND_SCRIPT_BASELINE | 1u << KIND_SCRIPT_JIT},
        {"program", 1u << KIND_SCRIPT | 1u << KIND_SCRIPT_BASELINE | 1u << KIND_SCRIPT_JIT | 1u << KIND_NATIVE |
                            1u << KIND_CXX | 1u << KIND_RUST},
        {"compiled", 1u << KIND_NATIVE | 1u << KIND_CXX | 1u << KIND_RUST},
        {"state", 1u << KIND_RUNNING | 1u << KIND_RUNNABLE | 1u << KIND_WAITING},
};

static bool find_kinds(const char *word, size_t n, u32 *ret)
{
	for (u32 i = 0; i < KIND_MAX; i++)
		if (strlen(kind_words[i]) == n && !strncmp(kind_words[i], word, n)) {
			*ret = 1u << i;
			return true;
		}
	for (size_t i = 0; i < sizeof(kind_groups) / sizeof(*kind_groups); i++)
		if (strlen(kind_groups[i].word) == n && !strncmp(kind_groups[i].word, word, n)) {
			*ret = kind_groups[i].kinds;
			return true;
		}
	return false;
}

/* "REGEX" at *at, which begins with a quote. Empty: any. */
static struct error *parse_string(const struct parser *p, const char **at, struct pattern *ret)
{
	char text[RULE_LINE_MAX];
	const char *s = *at + 1;
	struct error *err;
	size_t n = 0;

	while (*s && *s != '"' && n + 2 < sizeof(text)) {
		if (*s == '\\' && s[1] == '"')
			s++;
		else if (*s == '\\' && s[1])
			text[n++] = *s++;
		text[n++] = *s++;
	}
	text[n] = '\0';
	if (*s != '"')
		return wrong(p, "a closing quote", *at);
	*at = s + 1;
	err = n ? pattern_compile(text, ret) : NULL;
	if (err) {
		struct error *mine = wrong(p, "a POSIX extended regular expression", text);

		error_free(err);
		return mine;
	}
	return NULL;
}

/* kind"REGEX"@"REGEX" */
static struct error *parse_term(const struct parser *p, const char **at, struct term *ret)
{
	size_t n = strcspn(*at, "\" \t@");
	struct error *err;

	ret->own = n == 3 && !strncmp(*at, "own", n);
	if (n && !ret->own && !find_kinds(*at, n, &ret->kinds))
		return wrong(p, "a kind of frames, or a quoted regular expression", *at);
	*at += n;
	if (**at != '"' && **at != '@')
		return n ? NULL : wrong(p, "a quoted regular expression", *at);
	err = **at == '"' ? parse_string(p, at, &ret->name) : NULL;
	if (err || **at != '@')
		return err;
	(*at)++;
	return **at == '"' ? parse_string(p, at, &ret->place) : wrong(p, "a quoted regular expression behind @", *at);
}

static void term_free(struct term *t)
{
	pattern_free(&t->name);
	pattern_free(&t->place);
}

void stack_pattern_free(struct stack_pattern *p)
{
	for (u32 i = 0; i < p->n; i++)
		term_free(&p->term[i]);
	for (u32 i = 0; i < p->nwithout; i++)
		term_free(&p->without[i]);
	*p = (struct stack_pattern){0};
}

/* What may follow the frames; *more: something did. */
static struct error *parse_tail(const struct parser *p, const char **at, struct stack_pattern *ret, bool *more)
{
	char *end;

	*more = true;
	if (!strncmp(*at, "leaf", 4) && !isalpha((unsigned char)(*at)[4])) {
		*at = skip_blanks(*at + 4);
		ret->leaf = isdigit((unsigned char)**at) ? (u32)strtoul(*at, &end, 10) : 1;
		if (isdigit((unsigned char)**at))
			*at = end;
		return ret->leaf ? NULL : wrong(p, "a number from 1 on", *at);
	}
	if (!strncmp(*at, "without", 7)) {
		*at = skip_blanks(*at + 7);
		if (ret->nwithout == RULE_TERMS_MAX)
			return wrong(p, "at most 8 frames behind without", *at);
		return parse_term(p, at, &ret->without[ret->nwithout++]);
	}
	*more = false;
	return NULL;
}

static struct error *parse_pattern(const struct parser *p, const char *at, struct stack_pattern *ret)
{
	struct error *err = parse_term(p, &at, &ret->term[ret->n++]);
	bool more = true;

	for (at = skip_blanks(at); !err && *at == '>'; at = skip_blanks(at)) {
		char *end;
		struct term *t;

		at++;
		if (ret->n == RULE_TERMS_MAX)
			return wrong(p, "at most 8 frames", at);
		t = &ret->term[ret->n++];
		if (isdigit((unsigned char)*at)) {
			t->within = (u32)strtoul(at, &end, 10);
			at = end;
			if (!t->within)
				return wrong(p, "a number from 1 on behind >", at);
		}
		at = skip_blanks(at);
		err = parse_term(p, &at, t);
	}
	while (!err && more && *at) {
		err = parse_tail(p, &at, ret, &more);
		at = skip_blanks(at);
	}
	return err || !*at ? err : wrong(p, ">, leaf, without, or the end of the pattern", at);
}

struct error *stack_pattern_parse(const char *text, const char *where, struct stack_pattern *ret)
{
	struct parser p = {.file = where};
	struct error *err;

	*ret = (struct stack_pattern){0};
	err = parse_pattern(&p, skip_blanks(text), ret);
	if (err)
		stack_pattern_free(ret);
	return err;
}

/* --- keys --- */

static struct error *set_text(const struct parser *p, char **to, const char *value)
{
	if (*to)
		return wrong(p, "this key only once", value);
	if (!*value)
		return wrong(p, "a text", value);
	*to = strdup(value);
	return *to ? NULL : &error_no_memory;
}

static struct error *add_words(const struct parser *p, char **list, u32 max, const char *value)
{
	u32 n = 0;

	while (list[n])
		n++;
	while (*value) {
		size_t length = strcspn(value, " \t");

		if (n == max)
			return wrong(p, "fewer words", value);
		list[n] = strndup(value, length);
		if (!list[n++])
			return &error_no_memory;
		value = skip_blanks(value + length);
	}
	return n ? NULL : wrong(p, "a name", value);
}

static struct error *add_expression(const struct parser *p, char **list, const char *value)
{
	struct error *err = expression_check(value), *mine;
	u32 n = 0;

	if (err) {
		mine = wrong(p, err->message, value);
		error_free(err);
		return mine;
	}
	while (list[n])
		n++;
	if (n == RULE_CLAUSES_MAX)
		return wrong(p, "at most 16 of them", value);
	list[n] = strdup(value);
	return list[n] ? NULL : &error_no_memory;
}

static struct error *set_expression(const struct parser *p, char **to, const char *value)
{
	char *list[RULE_CLAUSES_MAX + 1] = {0};
	struct error *err = *to ? wrong(p, "this key only once", value) : add_expression(p, list, value);

	if (!err)
		*to = list[0];
	return err;
}

static struct error *add_stack(const struct parser *p, struct stack_pattern **all, u32 *n, const char *value)
{
	struct error *err = grow(all, *n, sizeof(**all));

	if (err)
		return err;
	(*all)[*n] = (struct stack_pattern){0};
	return parse_pattern(p, value, &(*all)[(*n)++]);
}

/* NAME VIEW PATTERN */
static struct error *add_let(const struct parser *p, const char *value)
{
	struct rule *r = p->rule;
	size_t name = strcspn(value, " \t"), view;
	const char *at = skip_blanks(value + name);
	struct error *err = grow(&r->lets, r->nlets, sizeof(*r->lets));

	if (err)
		return err;
	view = strcspn(at, " \t");
	r->lets[r->nlets] = (struct rule_let){.name = strndup(value, name), .view = strndup(at, view)};
	return parse_pattern(p, skip_blanks(at + view), &r->lets[r->nlets++].pattern);
}

/* VIEW PATTERN */
static struct error *add_blame(const struct parser *p, const char *value)
{
	struct rule *r = p->rule;
	size_t view = strcspn(value, " \t");
	struct error *err = grow(&r->blames, r->nblames, sizeof(*r->blames));

	if (err)
		return err;
	r->blames[r->nblames] = (struct rule_let){.view = strndup(value, view)};
	return parse_pattern(p, skip_blanks(value + view), &r->blames[r->nblames++].pattern);
}

/* EXPRESSION : TEXT */
static struct error *add_when(const struct parser *p, struct rule_when *all, u32 *n, const char *value)
{
	const char *colon = strstr(value, " : ");
	cleanup(free) char *when = colon ? strndup(value, (size_t)(colon - value)) : NULL;
	char *list[RULE_CLAUSES_MAX + 1] = {0};
	struct error *err;

	if (!colon || *n == RULE_CLAUSES_MAX)
		return wrong(p, "EXPRESSION : TEXT", value);
	err = when ? add_expression(p, list, when) : &error_no_memory;
	if (err)
		return err;
	all[*n].when = list[0];
	all[*n].text = strdup(skip_blanks(colon + 3));
	return all[(*n)++].text ? NULL : &error_no_memory;
}

/* NAME TERM : TEXT */
static struct error *add_word(const struct parser *p, const char *value)
{
	struct rule *r = p->rule;
	size_t name = strcspn(value, " \t");
	struct error *err = grow(&r->words, r->nwords, sizeof(*r->words));
	struct rule_word *word;

	if (err)
		return err;
	word = &r->words[r->nwords++];
	*word = (struct rule_word){.name = strndup(value, name)};
	value = skip_blanks(value + name);
	err = word->name ? parse_term(p, &value, &word->term) : &error_no_memory;
	if (!err && strncmp(value, " : ", 3) != 0)
		err = wrong(p, "NAME TERM : TEXT", value);
	if (!err)
		word->text = strdup(value + 3);
	return err || word->text ? err : &error_no_memory;
}

static struct error *set_severity(const struct parser *p, const char *value)
{
	static const char *const words[] = {"problem", "waste", "remark"};

	for (u32 i = 0; i < 3; i++)
		if (!strcmp(value, words[i])) {
			p->rule->severity = i;
			return NULL;
		}
	return wrong(p, "problem, waste or remark", value);
}

static struct error *set_site(const struct parser *p, const char *value)
{
	if (p->rule->has_site)
		return wrong(p, "this key only once", value);
	p->rule->deepest = !strcmp(value, "deepest");
	p->rule->placeless = !strcmp(value, "none");
	if (p->rule->deepest || p->rule->placeless)
		return NULL;
	p->rule->has_site = true;
	return parse_term(p, &value, &p->rule->site);
}

static struct error *add_skip(const struct parser *p, const char *value)
{
	struct rule *r = p->rule;
	struct error *err = grow(&r->skip, r->nskip, sizeof(*r->skip));

	if (err)
		return err;
	r->skip[r->nskip] = (struct term){0};
	return parse_term(p, &value, &r->skip[r->nskip++]);
}

static struct error *set_module(const struct parser *p, const char *value)
{
	if (p->rule->module.set)
		return wrong(p, "this key only once", value);
	if (*value != '"')
		return wrong(p, "a quoted regular expression", value);
	return parse_string(p, &value, &p->rule->module);
}

static struct error *set_holder(const struct parser *p, const char *value)
{
	p->rule->holder_self = !strcmp(value, "self");
	p->rule->waker = !strcmp(value, "waker");
	p->rule->holder = p->rule->holder_self || p->rule->waker || !strcmp(value, "yes");
	return p->rule->holder ? NULL : wrong(p, "yes, self or waker", value);
}

/* Patterns, places, expressions. */
static struct error *take_clause(const struct parser *p, const char *key, const char *value)
{
	struct rule *r = p->rule;

	if (!strcmp(key, "stack"))
		return add_stack(p, &r->stacks, &r->nstacks, value);
	if (!strcmp(key, "except"))
		return add_stack(p, &r->excepts, &r->nexcepts, value);
	if (!strcmp(key, "let"))
		return add_let(p, value);
	if (!strcmp(key, "blame"))
		return add_blame(p, value);
	if (!strcmp(key, "site"))
		return set_site(p, value);
	if (!strcmp(key, "skip"))
		return add_skip(p, value);
	if (!strcmp(key, "when"))
		return add_expression(p, r->when, value);
	if (!strcmp(key, "unless"))
		return add_expression(p, r->unless, value);
	if (!strcmp(key, "weight"))
		return set_expression(p, &r->weight, value);
	if (!strcmp(key, "remark"))
		return set_expression(p, &r->remark, value);
	if (!strcmp(key, "computes")) {
		u32 n = r->computes.when ? RULE_CLAUSES_MAX : 0; /* once */

		return add_when(p, &r->computes, &n, value);
	}
	if (!strcmp(key, "also"))
		return add_stack(p, &r->also, &r->nalso, value);
	if (!strcmp(key, "used"))
		return add_stack(p, &r->used, &r->nused, value);
	if (!strcmp(key, "word"))
		return add_word(p, value);
	if (!strcmp(key, "doubt"))
		return add_when(p, r->doubts, &r->ndoubts, value);
	if (!strcmp(key, "advice"))
		return add_when(p, r->advices, &r->nadvices, value);
	return wrong(p, "a key of a rule (title, severity, view, stack, when, why, change, …)", key);
}

static struct error *take_key(const struct parser *p, const char *key, const char *value)
{
	struct rule *r = p->rule;
	const struct {
		const char *key;
		char **to;
	} texts[] = {{"title", &r->title}, {"why", &r->why}, {"change", &r->change}, {"against", &r->against},
	        {"show", &r->show}, {"healthy", &r->healthy}};
	const struct {
		const char *key, *value;
		bool *to;
	} flags[] = {{"consequence", "yes", &r->consequence}, {"familiar", "yes", &r->familiar},
	        {"begin", "last", &r->from_last}};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (!strcmp(key, texts[i].key))
			return set_text(p, texts[i].to, value);
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		if (!strcmp(key, flags[i].key))
			return (*flags[i].to = !strcmp(value, flags[i].value)) ? NULL : wrong(p, flags[i].value, value);
	if (!strcmp(key, "severity"))
		return set_severity(p, value);
	if (!strcmp(key, "general")) {
		r->last = !strcmp(value, "last");
		r->general = r->last || !strcmp(value, "yes");
		return r->general ? NULL : wrong(p, "yes or last", value);
	}
	if (!strcmp(key, "holder"))
		return set_holder(p, value);
	if (!strcmp(key, "runtime"))
		return add_words(p, r->runtimes, RULE_CLAUSES_MAX - 1, value);
	if (!strcmp(key, "module"))
		return set_module(p, value);
	if (!strcmp(key, "view"))
		return add_words(p, r->views, RULE_VIEWS_MAX, value);
	if (!strcmp(key, "replaces"))
		return add_words(p, r->replaces, RULE_CLAUSES_MAX, value);
	return take_clause(p, key, value);
}

static struct error *check_rule(const struct parser *p)
{
	const struct rule *r = p->rule;

	if (!r)
		return NULL;
	if (!r->title || !r->why || !r->change || !r->show)
		return wrong(p, "title, why, change and show before the rule ends", r->name);
	if (!r->when[0])
		return wrong(p, "a when before the rule ends", r->name);
	if (r->views[0] ? !r->nstacks : r->nstacks != 0)
		return wrong(p, "view and stack together", r->name);
	if (!r->nstacks && !r->weight)
		return wrong(p, "a weight, as the rule has no stack", r->name);
	return NULL;
}

static void free_list(char **list)
{
	for (; *list; list++)
		free(*list);
}

static void rule_free(struct rule *r)
{
	char **const texts[] = {&r->name, &r->title, &r->why, &r->change, &r->against, &r->show, &r->healthy,
	        &r->weight, &r->remark, &r->source, &r->text};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		free(*texts[i]);
	free_list(r->runtimes);
	free_list(r->views);
	free_list(r->when);
	free_list(r->unless);
	free_list(r->replaces);
	for (u32 i = 0; i < r->nstacks; i++)
		stack_pattern_free(&r->stacks[i]);
	for (u32 i = 0; i < r->nexcepts; i++)
		stack_pattern_free(&r->excepts[i]);
	for (u32 i = 0; i < r->nlets; i++) {
		free(r->lets[i].name);
		free(r->lets[i].view);
		stack_pattern_free(&r->lets[i].pattern);
	}
	for (u32 i = 0; i < r->nblames; i++) {
		free(r->blames[i].view);
		stack_pattern_free(&r->blames[i].pattern);
	}
	for (u32 i = 0; i < RULE_CLAUSES_MAX; i++) {
		free(r->doubts[i].when);
		free(r->doubts[i].text);
		free(r->advices[i].when);
		free(r->advices[i].text);
	}
	free(r->computes.when);
	free(r->computes.text);
	for (u32 i = 0; i < r->nwords; i++) {
		free(r->words[i].name);
		free(r->words[i].text);
		term_free(&r->words[i].term);
	}
	for (u32 i = 0; i < r->nalso; i++)
		stack_pattern_free(&r->also[i]);
	for (u32 i = 0; i < r->nused; i++)
		stack_pattern_free(&r->used[i]);
	for (u32 i = 0; i < r->nskip; i++)
		term_free(&r->skip[i]);
	term_free(&r->site);
	pattern_free(&r->module);
	free(r->stacks);
	free(r->excepts);
	free(r->also);
	free(r->used);
	free(r->words);
	free(r->lets);
	free(r->blames);
	free(r->skip);
	*r = (struct rule){0};
}

const struct rule *rules_find(const struct rules *r, const char *name)
{
	for (u32 i = 0; i < r->n; i++)
		if (!strcmp(r->all[i].name, name))
			return &r->all[i];
	return NULL;
}

/* A rule of this name from an earlier file goes; of the same file it is an error. */
static struct error *begin_rule(struct parser *p, const char *name)
{
	struct rules *rules = p->rules;
	const struct rule *known = rules_find(rules, name);
	struct rule *r;

	if (!*name || name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-")])
		return wrong(p, "a name of small letters, digits and dashes behind rule", name);
	if (rules->n == RULES_MAX)
		return wrong(p, "fewer rules", name);
	if (known && (u32)(known - rules->all) >= p->first)
		return wrong(p, "another name, as this file has this one", name);
	if (grow(&rules->all, rules->n, sizeof(*rules->all)))
		return &error_no_memory;
	if (known) {
		r = &rules->all[rules_find(rules, name) - rules->all];
		rule_free(r);
	} else {
		r = &rules->all[rules->n++];
	}
	*r = (struct rule){.severity = SEVERITY_WASTE, .name = strdup(name), .libraries = rules->libraries};
	p->rule = r;
	if (!r->name || asprintf(&r->source, "%s:%u", p->file, p->line) < 0) {
		r->source = NULL;
		return &error_no_memory;
	}
	return NULL;
}

/* It holds for all rules, also those before it. */
static struct error *add_term(struct parser *p, const char *value, struct term **terms, u32 *n)
{
	struct error *err = check_rule(p);

	if (!err)
		err = grow(terms, *n, sizeof(**terms));
	if (err)
		return err;
	p->rule = NULL;
	(*terms)[*n] = (struct term){0};
	return parse_term(p, &value, &(*terms)[(*n)++]);
}

static struct error *add_about(struct parser *p, const char *value)
{
	struct libraries *l = p->rules->libraries;
	struct error *err = check_rule(p);
	const char *what, *change;
	struct about *about;

	if (!err)
		err = grow(&l->abouts, l->nabouts, sizeof(*l->abouts));
	if (err)
		return err;
	p->rule = NULL;
	about = &l->abouts[l->nabouts++];
	*about = (struct about){0};
	err = parse_term(p, &value, &about->term);
	what = err || strncmp(value, " : ", 3) != 0 ? NULL : value + 3;
	change = what ? strstr(what, " : ") : NULL;
	if (err || !change)
		return err ? err : wrong(p, "TERM : WHAT : CHANGE", value);
	about->what = strndup(what, (size_t)(change - what));
	about->change = strdup(change + 3);
	return about->what && about->change ? NULL : &error_no_memory;
}

static void libraries_free(struct libraries *l)
{
	for (u32 i = 0; l && i < l->n; i++)
		term_free(&l->all[i]);
	for (u32 i = 0; l && i < l->nwrappers; i++)
		term_free(&l->wrappers[i]);
	for (u32 i = 0; l && i < l->nloops; i++)
		term_free(&l->loops[i]);
	for (u32 i = 0; l && i < l->nabouts; i++) {
		term_free(&l->abouts[i].term);
		free(l->abouts[i].what);
		free(l->abouts[i].change);
	}
	if (l) {
		free(l->all);
		free(l->wrappers);
		free(l->loops);
		free(l->abouts);
		free(l->known);
	}
	free(l);
}

/* A whole line of a rule: its key, and its value with what continues it. */
static struct error *take_line(struct parser *p, char *line)
{
	size_t n = strcspn(line, " \t"), end = strlen(line);
	char *value;

	while (end && (line[end - 1] == ' ' || line[end - 1] == '\t'))
		line[--end] = '\0';
	value = line + n;
	if (*value)
		*value++ = '\0';
	value += strspn(value, " \t");
	if (!strcmp(line, "library"))
		return add_term(p, value, &p->rules->libraries->all, &p->rules->libraries->n);
	if (!strcmp(line, "wrapper"))
		return add_term(p, value, &p->rules->libraries->wrappers, &p->rules->libraries->nwrappers);
	if (!strcmp(line, "loop"))
		return add_term(p, value, &p->rules->libraries->loops, &p->rules->libraries->nloops);
	if (!strcmp(line, "about"))
		return add_about(p, value);
	if (strcmp(line, "rule") != 0)
		return p->rule ? take_key(p, line, value) : wrong(p, "rule NAME", line);
	return begin_rule(p, value);
}

static u32 indent_of(const char *line)
{
	u32 n = 0;

	for (; *line == ' ' || *line == '\t'; line++)
		n += *line == '\t' ? 8 : 1;
	return n;
}

/* For --explain: the text of each rule, from its line to that of the next. */
static struct error *keep_text(struct rule *r, const char *from, const char *to)
{
	while (to > from && isspace((unsigned char)to[-1]))
		to--;
	r->text = strndup(from, (size_t)(to - from));
	return r->text ? NULL : &error_no_memory;
}

/* What is indented deeper than this continues the line. */
static u32 continues(const char *line, u32 key_indent)
{
	return strncmp(line, "about", 5) != 0 ? key_indent : 0;
}

struct error *rules_parse(struct rules *r, const char *file, const char *text)
{
	struct parser p = {.rules = r, .file = file, .first = r->n};
	char line[RULE_LINE_MAX] = "";
	const char *at = text, *begin = text;
	u32 key_indent = 8, number = 0;
	struct error *err = NULL;

	if (!r->libraries)
		r->libraries = calloc(1, sizeof(*r->libraries));
	if (r->libraries && !r->libraries->known)
		r->libraries->known = calloc(OWN_KNOWN, sizeof(*r->libraries->known));
	if (!r->libraries || !r->libraries->known)
		return &error_no_memory;
	while (!err) {
		size_t n = strcspn(at, "\n");
		const char *s = skip_blanks(at);
		bool end = !*at, blank = s >= at + n || *s == '#', rule = !end && !blank && s == at;

		number++;
		if (!end && !blank && !rule && *line && indent_of(at) > continues(line, key_indent) &&
		        strncmp(line, "rule", 4) != 0) {
			size_t used = strlen(line);

			if (used + n + 2 > sizeof(line))
				err = wrong(&p, "a shorter text", s);
			else
				snprintf(line + used, sizeof(line) - used, " %.*s", (int)(at + n - s), s);
		} else if (end || !blank) {
			if (*line)
				err = take_line(&p, line);
			if (!err && (end || rule))
				err = check_rule(&p);
			if (!err && (end || rule) && p.rule)
				err = keep_text(p.rule, begin, at);
			if (end)
				break;
			if (n >= sizeof(line))
				err = err ? err : wrong(&p, "a shorter line", s);
			else
				snprintf(line, sizeof(line), "%.*s", (int)(at + n - s), s);
			p.line = number;
			key_indent = rule ? key_indent : indent_of(at);
			begin = rule ? at : begin;
		}
		at += n + (at[n] == '\n');
	}
	return err;
}

bool rule_asks_for(const struct rule *r, const char *view)
{
	bool asked = false;

	for (char *const *name = r->views; *name; name++)
		asked |= !strcmp(*name, view);
	for (u32 i = 0; i < r->nlets; i++)
		asked |= !strcmp(r->lets[i].view, view);
	for (u32 i = 0; i < r->nblames; i++)
		asked |= !strcmp(r->blames[i].view, view);
	return asked;
}

struct error *rules_builtin(struct rules *r)
{
	struct error *err = NULL;

	for (const struct rules_embedded *e = rules_embedded; !err && e->file; e++)
		err = rules_parse(r, e->file, e->text);
	return err;
}

static int is_rules(const struct dirent *d)
{
	const char *dot = strrchr(d->d_name, '.');

	return dot && !strcmp(dot, ".rule") && *d->d_name != '.';
}

static struct error *load_file(struct rules *r, const char *path)
{
	cleanup(fclose) FILE *in = fopen(path, "re");
	cleanup(free) char *text = malloc(FILE_MAX_BYTES + 1);
	size_t n;

	if (!text)
		return &error_no_memory;
	n = in ? fread(text, 1, FILE_MAX_BYTES + 1, in) : 0;
	if (!in || ferror(in))
		return error_new(ERROR_INPUT, "cannot read the rules %s: %s", path, strerror(errno));
	if (n > FILE_MAX_BYTES || memchr(text, 0, n))
		return error_new(ERROR_INPUT, "%s is no file of rules: it %s", path,
		        n > FILE_MAX_BYTES ? "has more than 1 MiB" : "contains zero bytes");
	text[n] = '\0';
	return rules_parse(r, path, text);
}

struct error *rules_load(struct rules *r, const char *folder)
{
	struct dirent **files;
	int n = scandir(folder, &files, is_rules, alphasort);
	struct error *err = NULL;
	char path[PATH_MAX];

	if (n < 0)
		return error_hint(error_new(ERROR_INPUT, "cannot read the folder %s: %s", folder, strerror(errno)),
		        "--rules takes a folder of files NAME.rule");
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, files[i]->d_name);
		if (!err)
			err = load_file(r, path);
		free(files[i]);
	}
	free(files);
	return err || n ? err : error_new(ERROR_INPUT, "%s has no files NAME.rule", folder);
}

void rules_free(struct rules *r)
{
	for (u32 i = 0; i < r->n; i++)
		rule_free(&r->all[i]);
	free(r->all);
	libraries_free(r->libraries);
	*r = (struct rules){0};
}
