/* SPDX-License-Identifier: Apache-2.0 */
#include "process_names.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "binary/proc_path.h"
#include "cleanup.h"
#include "containers.h"
#include "hash_text.h"

void process_command_line(const char *bytes, size_t size, char ret[PROCESS_NAME_MAX])
{
	size_t n = 0;

	while (size && (!bytes[size - 1] || bytes[size - 1] == ' '))
		size--;
	for (; n < size && n < PROCESS_NAME_MAX - 1; n++)
		ret[n] = bytes[n] ? bytes[n] : ' ';
	ret[n] = '\0';
}

static void read_command_line(pid_t pid, char ret[PROCESS_NAME_MAX])
{
	char path[64], bytes[PROCESS_NAME_MAX];
	cleanup(fclose) FILE *file = NULL;

	proc_path(path, sizeof(path), pid, "cmdline");
	file = fopen(path, "re");
	process_command_line(bytes, file ? fread(bytes, 1, sizeof(bytes), file) : 0, ret);
}

/* The path of the file that a process runs, as it names it. */
static bool read_program(pid_t pid, char *ret, size_t size)
{
	static const char gone[] = " (deleted)";
	char path[64];
	ssize_t n;

	proc_path(path, sizeof(path), pid, "exe");
	n = readlink(path, ret, size - 1);
	if (n <= 0)
		return false;
	ret[n] = '\0';
	if ((size_t)n > sizeof(gone) && !strcmp(ret + n - (sizeof(gone) - 1), gone))
		ret[n - (sizeof(gone) - 1)] = '\0';
	return true;
}

static struct error *set_image(struct profile *profile, const struct process *p, const char *program, u32 *ret)
{
	for (u32 i = 0; i < p->maps.nlines; i++) {
		const struct module *m = module_at(p->modules, p->mappings[i].module);
		char build_id[IMAGE_ID_TEXT];

		if (!m || !m->loaded->image || strcmp(p->maps.lines[i].path, program))
			continue;
		image_id_text(m->loaded->image, build_id);
		return profile_image(profile, program, build_id, ret);
	}
	return NULL;
}

struct facts {
	char name[PROCESS_NAME_MAX], container[CONTAINER_TEXT], program[PATH_MAX];
};

/* What is known at this moment; the kernel's name where there is no better. */
static struct error *look(struct profile *profile, const struct process *p, const struct stack_record *record,
        struct facts *f, struct profile_function *fn)
{
	const char *slash;
	bool there = p && !p->dead, known = p && *p->comm;
	struct container container;

	*f->name = *f->container = '\0';
	if (there) {
		read_command_line(p->pid, f->name);
		container_look(p->pid, &container);
		container_text(&container, f->container);
	}
	if (!there || !read_program(p->pid, f->program, sizeof(f->program)))
		snprintf(f->program, sizeof(f->program), "%.*s", known ? (int)sizeof(p->comm) : COMM_LEN,
		        known ? p->comm : record->comm);
	slash = strrchr(f->program, '/');
	*fn = (struct profile_function){.name = f->name,
	        .module = slash && slash[1] ? slash + 1 : f->program,
	        .file = f->container,
	        .line = record->tgid,
	        .kind = KIND_PROCESS};
	if (!*f->name)
		snprintf(f->name, sizeof(f->name), "%.*s", PROCESS_NAME_MAX - 1, fn->module);
	return there && slash ? set_image(profile, p, f->program, &fn->image) : NULL;
}

/* Of all processes of a program in a container that came too late to have one each. */
static struct error *rest_function(struct profile *profile, struct profile_function *fn, u32 *ret)
{
	char text[PROCESS_NAME_MAX];
	u64 key;

	snprintf(text, sizeof(text), "%.*s (more processes)", PROCESS_NAME_MAX - 32, fn->module);
	fn->name = text;
	fn->line = 0;
	key = hash_add_text(KIND_PROCESS, fn->file);
	return profile_function(profile, hash_add_text(key, fn->module) | 1, fn, false, ret);
}

/* In a table's word: how many stacks came, and from bit 32 on the function, once it can not change any more. */
struct error *process_function(struct table *known, struct profile *profile, const struct process *p,
        const struct stack_record *record, u32 *ret)
{
	const struct {
		u64 process, kind;
	} id = {record->instance, KIND_PROCESS};
	u64 key = XXH3_64bits(&id, sizeof(id)) | 1, *word = table_get(known, key);
	u32 stacks = word ? (u32)*word : 0, function = word ? (u32)(*word >> 32) : 0;
	bool deferred = !word && known->used >= PROCESSES_APART;
	struct profile_function fn;
	struct facts facts;
	struct error *err = NULL;

	if (!function || !(stacks & (stacks + 1))) { /* ever more rarely */
		err = look(profile, p, record, &facts, &fn);
		if (!err && deferred)
			return rest_function(profile, &fn, ret);
		if (!err)
			err = profile_function(profile, key, &fn, p && !p->dead, &function);
	}
	*ret = function;
	return err ? err : table_put(known, key, (stacks < UINT32_MAX ? stacks + 1 : stacks) | (u64)function << 32);
}
