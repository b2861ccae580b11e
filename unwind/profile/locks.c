/* SPDX-License-Identifier: Apache-2.0 */
#include "locks.h"

#include <stdio.h>
#include <string.h>

#include "cleanup.h"
#include "rules.h"
#include "symbols/symbols.h"

static const struct {
	const char *one, *many;
	const char *awaited; /* NULL: as one */
} words[LOCK_KINDS] = {
        [LOCK_FUTEX] = {"futex", "futexes of unknown use"},
        [LOCK_MUTEX] = {"mutex", "mutexes"},
        [LOCK_RWLOCK] = {"rwlock", "rwlocks"},
        [LOCK_MONITOR] = {"monitor", "monitors"},
        [LOCK_OBJECT] = {"lock", "lock objects"},
        [LOCK_VM] = {"VM lock", "the VM's lock"},
        [LOCK_CONDITION] = {"condition", "conditions", "notification"},
        [LOCK_SEMAPHORE] = {"semaphore", "semaphores"},
        [LOCK_JOIN] = {"join", "ends of threads", "end"},
        [LOCK_PARK] = {"parked", "work", "permit"},
};

const char *lock_kind_words(enum lock_kind kind)
{
	return words[kind].many;
}

const char *lock_kind_awaited(enum lock_kind kind)
{
	return words[kind].awaited ? words[kind].awaited : words[kind].one;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The file whose variables without initial value (.bss) this anonymous mapping may hold. */
static const struct mapping *file_before(const struct process *p, const struct mapping *m)
{
	for (u32 k = (u32)(m - p->mappings); k-- > 0 && p->mappings[k].end == p->mappings[k + 1].start;)
		if (p->mappings[k].image)
			return &p->mappings[k];
	return NULL;
}

static void name_memory(const struct mapping *m, u64 addr, char *text)
{
	const char *name = m && m->name ? m->name : "";

	if (m && !m->anonymous && *name == '/')
		snprintf(text, LOCK_TEXT, "%s+0x%lx", base_name(name), addr - m->start + m->offset);
	else if (!strcmp(name, "[heap]") || !strcmp(name, "[stack]"))
		snprintf(text, LOCK_TEXT, "%.*s 0x%lx", (int)strlen(name) - 2, name + 1, addr);
	else
		snprintf(text, LOCK_TEXT, "0x%lx", addr);
}

void locks_name_address(const struct process *p, u64 addr, char *text)
{
	const struct mapping *m = mapping_find(p->mappings, p->maps.nlines, addr), *file;
	cleanup(free) char *shown = NULL;
	char name[LOCK_TEXT];
	u64 offset;

	file = !m ? NULL : m->image ? m : m->anonymous ? file_before(p, m) : NULL;
	if (!file || !symbols_object(file->image, addr - file->bias, name, sizeof(name), &offset)) {
		name_memory(m, addr, text);
		return;
	}
	shown = symbol_demangle(name);
	if (offset)
		snprintf(text, LOCK_TEXT, "%.400s+0x%lx", shown ? shown : name, offset);
	else
		snprintf(text, LOCK_TEXT, "%.400s", shown ? shown : name);
}

/* What the runtime says that is waited for: "com.example.Account". */
static struct error *find_awaited(const struct rule_stack *s, char *text)
{
	struct error *err = NULL;
	struct named named;

	for (u32 i = 0; !err && !*text && i < s->n; i++) {
		if (!(frame_flags(&s->frames[i]) & FRAME_AWAITED))
			continue;
		err = names_frame(s->names, s->p, s->frames, i, s->n, &named);
		if (!err && !named.unresolved)
			snprintf(text, LOCK_TEXT, "%s", s->profile->functions[named.function].name);
	}
	return err;
}

static struct error *describe(
        const struct rule_stack *s, const struct stack_rule *rule, u64 addr, struct lock_found *ret)
{
	const char *word = rule && rule->shown ? rule->shown : words[ret->kind].one;
	char place[LOCK_TEXT] = "";
	struct error *err = NULL;

	if (rule && rule->own && rule->kind != LOCK_VM)
		err = find_awaited(s, place);
	else if (addr && s->p && ret->kind < LOCK_OTHERS && !(rule && rule->own))
		locks_name_address(s->p, rule && rule->back ? (addr & ~7ull) - rule->back : addr, place);
	if (rule && rule->type && !*place)
		snprintf(place, sizeof(place), "%s", rule->type);
	snprintf(ret->text, sizeof(ret->text), "%s%s%.480s", word, *place ? " " : "", place);
	return err;
}

/* Is it no thread that waits? Its reason says what for, unless a rule knows more. */
static bool is_task(const struct rule_stack *s)
{
	return s->n && frame_kind(&s->frames[0]) == FRAME_REASON && frame_runtime(&s->frames[0]) != RUNTIME_NATIVE;
}

struct error *locks_find(struct names *names, const struct profile *profile, const struct process *p,
        const struct frame *frames, u32 n, struct lock_found *ret)
{
	struct rule_stack s = {.names = names, .profile = profile, .p = p, .frames = frames, .n = n, .comm = ""};
	struct rule_found found;
	struct error *err = rule_find_of_languages(&s, RULE_LOCK, &found);

	ret->begun = false;
	if (!err && !found.rule && p)
		err = rule_find(&s, native_rules, NULL, RULE_LOCK, &found);
	if (!err && found.rule && (found.table != native_rules || !p->ninstances))
		err = rule_has_begun(&s, &found, &ret->begun);
	if (err)
		return err;
	ret->kind = found.rule ? found.rule->kind : is_task(&s) ? LOCK_PARK : LOCK_FUTEX;
	*ret->text = 0;
	return !found.rule && is_task(&s) ? NULL : describe(&s, found.rule, n ? frame_addr(&frames[0]) : 0, ret);
}
