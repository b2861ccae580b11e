/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A live JVM that runs fixtures/java/many_methods.java and waits: as yrt sees it, and all that it has compiled. The JVM
 * is that of the system, or what the words in YRT_JAVA run.
 */
#ifndef YRT_HOTSPOT_JVM_H
#define YRT_HOTSPOT_JVM_H

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "look.h"

#include "runtime.h"
#include "runtimes/hotspot/hotspot_instance.h"

#define JVM_WORDS    24
#define JVM_NMETHODS 65536

struct jvm {
	pid_t pid;
	struct arena *arena;
	struct modules *modules;
	struct process *process;
	struct hotspot_instance *instance;
	u64 nmethods[JVM_NMETHODS];
	u32 n;
};

static inline u32 jvm_split(char *text, const char **argv, u32 n)
{
	char *word;

	while ((word = strsep(&text, " ")) && n < JVM_WORDS)
		if (*word)
			argv[n++] = word;
	return n;
}

/* Becomes the JVM. Only returns if that fails. */
static inline void jvm_exec(int out, const char *options)
{
	const char *java = getenv("YRT_JAVA"), *build = getenv("YRT_BUILD"), *argv[JVM_WORDS + 4];
	char words[1024], flags[1024], classes[4096];
	u32 n;

	snprintf(words, sizeof(words), "%s", java ? java : "/usr/lib/jvm/java-17-openjdk-amd64/bin/java");
	snprintf(flags, sizeof(flags), "%s", options);
	snprintf(classes, sizeof(classes), "%s/fixtures/java", build ? build : ".");
	n = jvm_split(words, argv, 0);
	n = jvm_split(flags, argv, n);
	argv[n++] = "-cp";
	argv[n++] = classes;
	argv[n++] = "many_methods";
	argv[n] = NULL;
	dup2(out, 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execvp(argv[0], (char *const *)argv);
}

/* Until it has called all its methods. */
static inline void jvm_wait(struct jvm *j, int out)
{
	FILE *f = fdopen(out, "r");
	char line[256] = "";

	while (strncmp(line, "ready", 5))
		if (!fgets(line, sizeof(line), f))
			fail_msg("the JVM did not start");
	fclose(f);
}

static inline struct jvm *jvm_start(const char *options)
{
	struct jvm *j = calloc(1, sizeof(*j));
	int pipes[2];

	assert_non_null(j);
	assert_int_equal(pipe(pipes), 0);
	j->pid = fork();
	if (!j->pid) {
		jvm_exec(pipes[1], options);
		_exit(127);
	}
	close(pipes[1]);
	jvm_wait(j, pipes[0]);
	look_begin(&j->arena, &j->modules);
	must(process_create(j->modules, j->pid, 1, &j->process));
	for (u32 i = 0; i < j->process->ninstances; i++)
		if (j->process->instances[i].ops == &hotspot_runtime)
			j->instance = j->process->instances[i].data;
	assert_non_null(j->instance);
	assert_non_null(j->instance->code);
	return j;
}

static inline void jvm_end(struct jvm *j)
{
	int status;

	kill(j->pid, SIGKILL);
	waitpid(j->pid, &status, 0);
	look_end(j->arena, j->modules, j->process);
	free(j);
}

static inline bool jvm_each(void *ctx, const struct hotspot_blob *blob)
{
	struct jvm *j = ctx;

	if (blob->kind == BLOB_NMETHOD && j->n < JVM_NMETHODS)
		j->nmethods[j->n++] = blob->at;
	return true;
}

/* All nmethods that there are now. */
static inline void jvm_nmethods(struct jvm *j)
{
	struct hotspot_heap heaps[HOTSPOT_HEAPS_MAX];
	u32 n = hotspot_heaps(j->instance->code, j->process->memory, heaps);

	j->n = 0;
	for (u32 i = 0; i < n; i++)
		hotspot_each_blob(j->instance->code, j->process->memory, &heaps[i], jvm_each, j);
}

#endif
