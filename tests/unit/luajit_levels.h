/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of a stopped LuaJIT (luajit_target.h) compared with what Lua itself said of them, level by level, names and
 * lines.
 *
 * All below the base of a trace is exact. The function at the base, which a tail call in the trace may replace, and
 * what the trace has inlined above it are counted: right (the function that Lua noted there), wrong, missing.
 */
#ifndef YRT_LUAJIT_LEVELS_H
#define YRT_LUAJIT_LEVELS_H

#include "luajit_target.h"

#include "runtimes/luajit/luajit.h"

#define LINE 1024

struct level { /* as Lua reports it */
	char what[8], name[128], source[64];
	char own[128]; /* of builtins, "name|other name" */
	int definition, line;
};

struct tally {
	u32 stops, levels, deepest;
	u32 bad; /* stops whose exact part is wrong */
	u32 in_traces, wrong_bases;
	u32 right, wrong, missing; /* inlined */
	u32 lines, right_lines;    /* of those that are right */
};

/* The stack that is compared: what Lua said, and the frames that stand for functions of Lua. Innermost first. */
static struct level levels[TARGET_FRAMES];
static u32 nlevels, functions[TARGET_FRAMES], nfunctions;

static inline bool read_level(struct target *t, struct level *ret)
{
	char line[LINE], *field = line;
	const char *part[6];

	if (!fgets(line, sizeof(line), t->expectation) || line[0] == '\n')
		return false;
	line[strcspn(line, "\n")] = '\0';
	for (int i = 0; i < 6; i++)
		part[i] = strsep(&field, "\t");
	assert_non_null(part[5]);
	snprintf(ret->what, sizeof(ret->what), "%s", part[0]);
	ret->definition = atoi(part[1]) < 0 ? 0 : atoi(part[1]); /* -1: builtins in Lua */
	ret->line = atoi(part[2]);
	snprintf(ret->name, sizeof(ret->name), "%s", part[3]);
	snprintf(ret->source, sizeof(ret->source), "%s", part[4]);
	snprintf(ret->own, sizeof(ret->own), "%s", part[5]);
	return true;
}

static inline void read_levels(struct target *t)
{
	nlevels = 0;
	while (nlevels < TARGET_FRAMES && read_level(t, &levels[nlevels]))
		nlevels++;
}

/* A function of Lua's, and not what the walker says of a trace, nor the VM's own work. */
static inline bool is_function(const struct frame *f)
{
	if (frame_kind(f) != FRAME_SCRIPT || luajit_function(f) == LUAJIT_MCODE)
		return false;
	return luajit_function(f) != LUAJIT_FAST || (!(f->detail & LUAJIT_JIT) && frame_addr(f) < LUAJIT_WORK);
}

static inline void find_functions(const struct target *t)
{
	nfunctions = 0;
	for (u32 i = 0; i < t->nframes; i++)
		if (is_function(&t->frames[i]))
			functions[nfunctions++] = i;
}

static inline bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && !strcmp(text + n - m, end);
}

/* Lua shortens the paths of files to 60 bytes, with "..." in front; control characters are not written. */
static inline bool same_source(const char *full, const char *shown)
{
	/* of text that begins with a blank line the first one that is not is shown */
	if (!strcmp(shown, "[string \"...\"]"))
		return !strncmp(full, "[string \"", 9);
	return !strcmp(full, shown) || (!strncmp(shown, "...", 3) && ends_with(full, shown + 3));
}

/* Is name one of "name|other name"? */
static inline bool among(const char *names, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = names; n && (at = strstr(at, name)); at++)
		if ((at == names || at[-1] == '|') && (!at[n] || at[n] == '|'))
			return true;
	return false;
}

/* Builtins are shown by their own names. Those that no library holds have others. */
static inline bool same_builtin(const struct level *level, const char *shown)
{
	static const char *const hidden[] = {
	        "coroutine.wrap_aux", "cdata.__call", "string.gmatch_aux", "ipairs_aux", "next"};

	if (level->own[0])
		return among(level->own, shown);
	for (u32 i = 0; i < sizeof(hidden) / sizeof(*hidden); i++)
		if (!strcmp(hidden[i], shown))
			return true;
	return false;
}

/* Does this line of its source, any line of it if that is 0, call it so? */
static inline bool defined_at(const char *path, int definition, const char *name)
{
	static const char *const forms[] = {
	        "function %s(", "function %s (", "%s = function", "[\"%s\"] = function", "['%s'] = function"};
	char *line = NULL, form[256];
	FILE *f = fopen(path, "r");
	bool found = false;
	size_t size;

	for (int n = 1; f && !found && getline(&line, &size, f) > 0; n++)
		for (u32 i = 0; (!definition || n == definition) && i < sizeof(forms) / sizeof(*forms); i++) {
			snprintf(form, sizeof(form), forms[i], name);
			found = found || strstr(line, form);
		}
	free(line);
	if (f)
		fclose(f);
	return found;
}

/* Text that has functions with names, and was loaded from a string, is that of machines.lua. */
static inline bool defined_as(const char *source, int definition, const char *name)
{
	if (!strncmp(source, "[string", 7))
		return defined_at(YRT_SOURCE_DIR "/fixtures/lua/machines.lua", 0, name);
	return defined_at(source, definition, name);
}

static inline bool same_function(
        const struct level *level, const struct frame_name *name, const struct frame *f, bool by_lua)
{
	if (!strcmp(level->what, "C")) {
		if (luajit_function(f) == LUAJIT_FAST)
			return same_builtin(level, name->name);
		return luajit_function(f) == LUAJIT_C &&
		       (!strcmp(name->name, level->name) || among(level->own, name->name) || !by_lua);
	}
	if (luajit_function(f) != LUAJIT_LUA || (int)name->definition != level->definition ||
	        !same_source(name->file, level->source))
		return false;
	if (!strcmp(level->what, "main"))
		return !strcmp(name->name, "main chunk");
	if (name->name[0] && defined_as(name->file, level->definition, name->name))
		return true;
	/* C called it, so the bytecode below is that of whoever called C: Lua takes a name from there all the same */
	if (!by_lua)
		return !name->name[0];
	return !strcmp(name->name, level->name);
}

/* Does function number i show this level? Says what is wrong. */
static inline bool compare_level(struct target *t, u32 i, const struct level *level, bool with_line)
{
	u32 at = functions[i];
	bool by_lua = at + 1 < t->nframes && frame_kind(&t->frames[at + 1]) == FRAME_SCRIPT;
	struct frame_name name;

	if (!target_name(t, at, &name)) {
		print_error("frame %u has no name, Lua says %s '%s' %s:%d\n", at, level->what, level->name,
		        level->source, level->line);
		return false;
	}
	if (!same_function(level, &name, &t->frames[at], by_lua)) {
		print_error("frame %u is '%s' (%s:%u), Lua says %s '%s' (%s:%d) own '%s'\n", at, name.name, name.file,
		        name.definition, level->what, level->name, level->source, level->definition, level->own);
		return false;
	}
	if (with_line && level->line > 0 && (int)name.line != level->line) {
		print_error("frame %u, '%s' (%s:%u), is at line %u, Lua says %d\n", at, name.name, name.file,
		        name.definition, name.line, level->line);
		return false;
	}
	return true;
}

/* A beacon that was not compiled is called through a builtin, which was not there when the stack was noted. */
static inline void leave_out_beacon(struct target *t)
{
	struct frame_name name;

	if (!nlevels || !nfunctions || !strcmp(levels[0].what, "C") || !target_name(t, functions[0], &name) ||
	        strcmp(name.name, "cdata.__call"))
		return;
	nfunctions--;
	memmove(functions, functions + 1, nfunctions * sizeof(*functions));
}

static inline bool of_trace(const struct target *t, u32 i)
{
	const struct frame *f = &t->frames[functions[i]];

	return f->detail & LUAJIT_JIT || frame_flags(f) & (FRAME_APPROX | FRAME_INLINED);
}

/* Counts what is inlined: functions [first, base) shown, against levels [first, base). Both end at the base of the
 * trace. */
static inline void tally_inlined(struct target *t, u32 first, u32 base, u32 base_level, struct tally *tally)
{
	u32 shown = base - first, noted = base_level - first;
	struct frame_name name;

	for (u32 k = 1; k <= shown && k <= noted; k++) {
		const struct level *level = &levels[base_level - k];
		u32 at = functions[base - k];

		name = (struct frame_name){.name = "no name"};
		if (!target_name(t, at, &name) || !same_function(level, &name, &t->frames[at], true)) {
			print_message("inlined frame %u is '%s' (:%u), Lua noted '%s' (:%d)\n", at, name.name,
			        name.definition, level->name, level->definition);
			tally->wrong++;
			continue;
		}
		tally->right++;
		tally->lines += level->line > 0;
		tally->right_lines += level->line > 0 && (int)name.line == level->line;
	}
	if (shown > noted)
		tally->wrong += shown - noted;
	else
		tally->missing += noted - shown;
	if (shown != noted)
		print_message("%u of %u inlined functions are shown, above '%s' (:%d)\n", shown, noted,
		        levels[base_level].name, levels[base_level].definition);
	for (u32 i = first; i < base_level && shown != noted; i++)
		print_message("\t'%s' (:%d) line %d\n", levels[i].name, levels[i].definition, levels[i].line);
}

/* Functions [0, first) and [below, ...) are exact. */
static inline bool compare_exact(struct target *t, u32 first, u32 below)
{
	u32 behind = nfunctions - below;

	if (nlevels < first + behind) {
		print_error("%u functions are shown, Lua knows %u levels\n", nfunctions, nlevels);
		return false;
	}
	for (u32 i = 0; i < first; i++)
		if (!compare_level(t, i, &levels[i], true))
			return false;
	for (u32 k = behind; k > 0; k--)
		if (!compare_level(t, nfunctions - k, &levels[nlevels - k], true))
			return false;
	return true;
}

static inline bool compare_functions(struct target *t, struct tally *tally)
{
	u32 first = 0, base = 0;

	for (u32 i = nfunctions; i-- > 0;)
		if (of_trace(t, i)) {
			base = base ? base : i + 1;
			first = i;
		}
	if (!base) {
		if (nfunctions < nlevels)
			print_error("%u levels are not shown, the last %u of %u\n", nlevels - nfunctions, nfunctions,
			        nlevels);
		return compare_exact(t, 0, 0) && nfunctions == nlevels;
	}
	tally->in_traces++;
	if (!compare_exact(t, first, base))
		return false;
	if (nlevels <= first + nfunctions - base)
		return false;
	base--;
	tally->wrong_bases += !compare_level(t, base, &levels[nlevels - (nfunctions - base)], false);
	tally_inlined(t, first, base, nlevels - (nfunctions - base), tally);
	return true;
}

static inline void show_stack(struct target *t)
{
	struct frame_name name;

	for (u32 i = 0; i < t->nframes && i < 40; i++) {
		name = (struct frame_name){.name = "-"};
		if (frame_kind(&t->frames[i]) == FRAME_SCRIPT)
			target_name(t, i, &name);
		print_error("\t%3u kind %d flags %2u %lx %s (%s:%u) line %u\n", i, frame_kind(&t->frames[i]),
		        frame_flags(&t->frames[i]), frame_addr(&t->frames[i]), name.name, name.file, name.definition,
		        name.line);
	}
	for (u32 i = 0; i < nlevels && i < 40; i++)
		print_error("\tLua %3u %s '%s' %s:%d line %d\n", i, levels[i].what, levels[i].name, levels[i].source,
		        levels[i].definition, levels[i].line);
}

/* Compares the stack of a target that has stopped itself. */
static inline bool compare_stack(struct target *t, struct tally *tally)
{
	int stop = target_walk(t);
	bool ok = stop_is_complete(stop);

	read_levels(t);
	find_functions(t);
	leave_out_beacon(t);
	tally->stops++;
	tally->levels += nlevels;
	tally->deepest = nlevels > tally->deepest ? nlevels : tally->deepest;
	if (!ok)
		print_error("the walk ended after %u frames for reason %d\n", t->nframes, stop);
	ok = ok && compare_functions(t, tally);
	if (!ok && tally->bad++ < 3)
		show_stack(t);
	return ok;
}

static inline struct tally compare_script(const char *script, const char *argument)
{
	struct target *t = target_start(script, argument, NULL);
	struct tally tally = {0};

	while (target_continue(t, 0))
		compare_stack(t, &tally);
	target_end(t);
	if (tally.bad)
		fail_msg("%s: %u of %u stacks are wrong", script, tally.bad, tally.stops);
	return tally;
}

#endif
