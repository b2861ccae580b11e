/* SPDX-License-Identifier: Apache-2.0 */
#include "select.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unwind/binary/proc_path.h"
#include "unwind/binary/proc_stat.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/read_text.h"

#define CONTAINER_DIGITS 64
#define POD_LEAST        32      /* characters in a UID: static pods have a hash of 32, others 36 */
#define COMM_LONGEST     15      /* bytes: TASK_COMM_LEN - 1 of Linux's include/linux/sched.h */
#define WILD             "*?[\\" /* what fnmatch() takes for more than itself */

static const char *const key_names[SELECT_KEYS] = {"exe", "comm", "cgroup", "pod", "container", "unit"};

const char *select_key_name(enum select_key key)
{
	return key_names[key];
}

static struct error *bad_rule(const char *text, const char *why)
{
	return error_hint(error_new(ERROR_USAGE, "--select %s: %s", text, why),
	        "give exe=NAME, comm=NAME, cgroup=PATH, pod=UID, container=ID or unit=NAME; rules joined by commas "
	        "must all match");
}

/* "containerd://ID" is how Kubernetes gives it, "nginx" how systemctl takes it. */
static char *plain_value(enum select_key key, const char *value)
{
	const char *scheme = key == SELECT_CONTAINER ? strstr(value, "://") : NULL;
	char *ret = NULL;

	if (key == SELECT_UNIT && !strchr(value, '.'))
		return asprintf(&ret, "%s.service", value) < 0 ? NULL : ret;
	ret = strdup(scheme ? scheme + 3 : value);
	for (char *c = ret; c && key == SELECT_POD && *c; c++)
		*c = *c == '_' ? '-' : *c;
	return ret;
}

/* Letters of a pattern that stand one behind the other, where there are most of them. */
static size_t longest_literal(const char *pattern)
{
	size_t longest = 0;

	while (*pattern) {
		size_t n = strcspn(pattern, WILD);

		longest = n > longest ? n : longest;
		pattern += n;
		if (*pattern == '[' && strchr(pattern, ']'))
			pattern = strchr(pattern, ']');
		pattern += !!*pattern;
	}
	return longest;
}

static struct error *check_value(const char *text, enum select_key key, const char *value)
{
	if (!*value)
		return bad_rule(text, "there is nothing behind '='");
	if (key == SELECT_COMM && strpbrk(value, WILD) && longest_literal(value) > COMM_LONGEST)
		return error_hint(error_new(ERROR_USAGE, "--select %s: no comm has more than 15 bytes", text),
		        "shorten it, or select by exe=");
	if (key == SELECT_POD && (strlen(value) < POD_LEAST || value[strspn(value, "0123456789abcdef-")]))
		return error_hint(error_new(ERROR_USAGE, "--select %s: %s is no UID of a pod", text, value),
		        "`kubectl get pod NAME -o jsonpath={.metadata.uid}` prints it");
	if (key != SELECT_CONTAINER)
		return NULL;
	if (strlen(value) < SELECT_ID_LEAST || value[strspn(value, "0123456789abcdef")])
		return bad_rule(text, "a container's id is 12 to 64 digits of 0-9 and a-f");
	return NULL;
}

static struct error *add_term(struct select_rule *r, const char *text, char *term)
{
	char *value = strchr(term, '=');
	u32 key = 0;

	if (!value)
		return bad_rule(text, "there is no '='");
	*value++ = '\0';
	while (key < SELECT_KEYS && strcmp(term, key_names[key]))
		key++;
	if (key == SELECT_KEYS)
		return bad_rule(text, "it selects by something unknown");
	if (r->nterms == SELECT_TERMS)
		return bad_rule(text, "it has too many terms");
	r->term[r->nterms].key = key;
	r->term[r->nterms].value = plain_value(key, value);
	if (!r->term[r->nterms].value)
		return &error_no_memory;
	return check_value(text, key, r->term[r->nterms++].value);
}

static void rule_free(struct select_rule *r)
{
	for (u32 i = 0; i < r->nterms; i++)
		free(r->term[i].value);
	free(r->text);
}

static struct error *parse_rule(const char *text, struct select_rule *ret)
{
	cleanup(free) char *copy = strdup(text);
	char *rest = copy, *term;
	struct error *err = copy ? NULL : &error_no_memory;

	*ret = (struct select_rule){.text = strdup(text)};
	while (!err && (term = strsep(&rest, ",")))
		err = add_term(ret, text, term);
	if (!err && !ret->text)
		err = &error_no_memory;
	if (err)
		rule_free(ret);
	return err;
}

struct error *selection_add(struct selection *s, const char *text)
{
	struct select_rule rule;
	struct error *err = parse_rule(text, &rule);
	char *joined;

	if (err)
		return err;
	err = grow(&s->rules, s->nrules, sizeof(*s->rules));
	if (err || asprintf(&joined, "%s%s%s", s->text ? s->text : "", s->text ? " or " : "", text) < 0) {
		rule_free(&rule);
		return &error_no_memory;
	}
	free(s->text);
	s->text = joined;
	s->rules[s->nrules++] = rule;
	return NULL;
}

void selection_free(struct selection *s)
{
	for (u32 i = 0; i < s->nrules; i++)
		rule_free(&s->rules[i]);
	free(s->rules);
	free(s->text);
	*s = (struct selection){0};
}

/* What a small file of /proc holds, without the last newline. False: it is not there. */
static bool read_proc(const char *proc, const char *place, const char *name, char *ret, size_t size)
{
	cleanup(free) char *path = NULL;
	cleanup(close) int fd =
	        asprintf(&path, "%s/%s/%s", proc, place, name) < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	size_t n;

	read_text(fd, ret, size);
	n = strlen(ret);
	if (n && ret[n - 1] == '\n')
		ret[n - 1] = '\0';
	return fd >= 0;
}

/* Of such nobody may read exe without the right to trace them, whereas stat is for all. */
static bool is_zombie_or_kernel_thread(const char *proc, const char *place)
{
	char stat[512], state;
	u32 flags;

	return read_proc(proc, place, "stat", stat, sizeof(stat)) && proc_stat_flags(stat, &state, &flags) &&
	       (state == 'Z' || state == 'X' || flags & PF_KTHREAD);
}

/* 0, or an errno. */
static int read_link(const char *proc, struct process_facts *f)
{
	cleanup(free) char *path = NULL;
	ssize_t n = asprintf(&path, "%s/%s/exe", proc, f->place) < 0 ? -1 : readlink(path, f->exe, sizeof(f->exe) - 1);

	f->exe[n < 0 ? 0 : n] = '\0';
	return n < 0 ? errno : 0;
}

/* Most processes without an exe are kernel threads: of these no more is read. */
static bool is_seen_elsewhere(const char *proc, struct process_facts *f)
{
	cleanup(free) char *path = NULL;
	struct stat st;
	pid_t tid;

	if (asprintf(&path, "%s/%d/task", proc, f->pid) < 0 || stat(path, &st) || st.st_nlink <= 2 + 1)
		return false;
	tid = living_thread_in(proc, f->pid);
	if (!tid || tid == f->pid)
		return false;
	snprintf(f->place, sizeof(f->place), "%d/task/%d", f->pid, tid);
	return true;
}

static bool read_exe(const char *proc, struct process_facts *ret)
{
	char *gone;
	int code;

	snprintf(ret->place, sizeof(ret->place), "%d", ret->pid);
	code = read_link(proc, ret);
	if (code && is_seen_elsewhere(proc, ret))
		code = read_link(proc, ret);
	if (code == ENOENT || (code && is_zombie_or_kernel_thread(proc, ret->place)))
		return false;
	gone = strstr(ret->exe, " (deleted)");
	if (gone && !gone[sizeof(" (deleted)") - 1])
		*gone = '\0';
	return true;
}

/* exe first: kernel threads, half of a node's processes, have none, and nothing else of them is read. */
bool facts_read(const char *proc, pid_t pid, struct process_facts *ret)
{
	char first[16];

	snprintf(first, sizeof(first), "%d", pid);
	ret->pid = pid;
	if (!read_exe(proc, ret) || !read_proc(proc, first, "comm", ret->comm, sizeof(ret->comm)))
		return false;
	read_proc(proc, ret->place, "cgroup", ret->cgroup, sizeof(ret->cgroup));
	return true;
}

const char *facts_name(const struct process_facts *facts)
{
	const char *slash = strrchr(facts->exe, '/');

	return slash && slash[1] ? slash + 1 : facts->comm;
}

bool facts_pod(const struct process_facts *facts, char ret[SELECT_ID])
{
	return cgroup_pod(facts->cgroup, ret);
}

bool facts_container(const struct process_facts *facts, char ret[SELECT_ID])
{
	return cgroup_container(facts->cgroup, ret);
}

bool facts_unit(const struct process_facts *facts, char ret[SELECT_ID])
{
	return cgroup_unit(facts->cgroup, ret);
}

static bool same_part(const char *part, void *ctx)
{
	return !strcmp(part, ctx);
}

/* --- matching --- */

static bool under(const char *cgroup, const char *wanted)
{
	size_t length, n = strlen(wanted);
	const char *path;

	while (n > 1 && wanted[n - 1] == '/')
		n--;
	while ((path = cgroup_next_path(&cgroup, &length))) {
		cleanup(free) char *copy = strndup(path, length);

		if (copy && (!strncmp(copy, wanted, n) && (!copy[n] || copy[n] == '/' || wanted[n - 1] == '/')))
			return true;
		if (copy && (!fnmatch(wanted, copy, 0) ||
		                    (*copy == '/' && *wanted != '/' && !fnmatch(wanted, copy + 1, 0))))
			return true;
	}
	return false;
}

/* The kernel keeps the first bytes of a long name. */
static bool is_comm(const char *wanted, const char *comm)
{
	return !fnmatch(wanted, comm, 0) ||
	       (!strpbrk(wanted, WILD) && strlen(comm) == COMM_LONGEST && !strncmp(wanted, comm, COMM_LONGEST));
}

static bool matches(enum select_key key, const char *value, const struct process_facts *f)
{
	char id[SELECT_ID];

	switch (key) {
	case SELECT_EXE:
		return *f->exe && !fnmatch(value, strchr(value, '/') ? f->exe : facts_name(f), 0);
	case SELECT_COMM:
		return is_comm(value, f->comm);
	case SELECT_CGROUP_PATH:
		return under(f->cgroup, value);
	case SELECT_POD:
		return facts_pod(f, id) && !strcmp(id, value);
	case SELECT_CONTAINER:
		return facts_container(f, id) && !strncmp(id, value, strlen(value));
	case SELECT_UNIT:
		return cgroup_any_part(f->cgroup, same_part, (void *)value);
	default:
		return false;
	}
}

static bool may_match(enum select_key key, const char *value, const struct process_facts *f)
{
	const char *slash = strrchr(value, '/');

	return key == SELECT_EXE ? is_comm(slash ? slash + 1 : value, f->comm) : matches(key, value, f);
}

typedef bool term_matches(enum select_key key, const char *value, const struct process_facts *f);

static bool terms_match(
        const struct select_rule *rule, u32 first, const struct process_facts *facts, term_matches *term)
{
	for (u32 i = first; i < rule->nterms; i++)
		if (!term(rule->term[i].key, rule->term[i].value, facts))
			return false;
	return true;
}

static bool any_rule(const struct selection *s, const struct process_facts *facts, term_matches *term)
{
	for (u32 i = 0; i < s->nrules; i++)
		if (terms_match(&s->rules[i], 0, facts, term))
			return true;
	return false;
}

static bool selection_matches(const struct selection *s, const struct process_facts *facts)
{
	return any_rule(s, facts, matches);
}

/* Of all others only exe is read: a node has thousands of processes, and they are looked at each second. */
static bool may_be_of_exe(const struct selection *s, const struct process_facts *f)
{
	for (u32 i = 0; i < s->nrules; i++) {
		const struct select_rule *rule = &s->rules[i];
		bool may = true;

		for (u32 j = 0; j < rule->nterms; j++)
			may = may && (rule->term[j].key != SELECT_EXE || matches(SELECT_EXE, rule->term[j].value, f));
		if (may)
			return true;
	}
	return false;
}

bool selection_matches_pid(const struct selection *s, const char *proc, pid_t pid)
{
	struct process_facts f;

	f.pid = pid;
	*f.comm = *f.cgroup = '\0';
	return read_exe(proc, &f) && may_be_of_exe(s, &f) && facts_read(proc, pid, &f) && selection_matches(s, &f);
}

bool rule_rest_matches(const struct select_rule *rule, const struct process_facts *facts)
{
	return terms_match(rule, 1, facts, matches);
}

bool rule_begin_matches(const struct select_rule *rule, const struct process_facts *facts)
{
	return matches(rule->term[0].key, rule->term[0].value, facts);
}

bool selection_hides(const struct selection *s, const struct process_facts *facts)
{
	return !*facts->exe && any_rule(s, facts, may_match);
}
