/* SPDX-License-Identifier: Apache-2.0 */
#include "capabilities.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "object.h"
#include "skeleton.h"
#include "unwind/cleanup.h"
#include "unwind/open_files.h"

static bool read_line(const char *path, char *text, size_t size)
{
	cleanup(fclose) FILE *file = fopen(path, "re");

	if (!file || !fgets(text, size, file))
		return false;
	text[strcspn(text, "\n")] = '\0';
	return true;
}

static void check_kernel(struct capability_check *c)
{
	u32 major = 0, minor = 0;
	struct utsname name;

	*c = (struct capability_check){.what = "kernel", .remedy = "yrt needs Linux 5.15 or later on x86-64"};
	uname(&name);
	snprintf(c->found, sizeof(c->found), "%.60s, %.20s, %ld CPUs", name.release, name.machine,
	        sysconf(_SC_NPROCESSORS_ONLN));
	sscanf(name.release, "%u.%u", &major, &minor);
	c->state = major < 5 || (major == 5 && minor < 15) || strcmp(name.machine, "x86_64") ? CAPABILITY_MISSING
	                                                                                     : CAPABILITY_OK;
}

/* The value of a line of /proc/self/status, base 16; 0: it is not there. */
static u64 own_status(const char *name)
{
	cleanup(fclose) FILE *file = fopen("/proc/self/status", "re");
	size_t n = strlen(name);
	char line[128] = "";

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, n) && line[n] == ':')
			return strtoul(line + n + 1, NULL, 16);
	return 0;
}

static u64 capabilities(void)
{
	u64 caps = own_status("CapEff");

	if (caps & CAPABILITY_BIT(SYS_ADMIN))
		caps |= CAPABILITY_BIT(BPF) | CAPABILITY_BIT(PERFMON) | CAPABILITY_BIT(CHECKPOINT_RESTORE);
	return caps;
}

static bool in_user_namespace(void)
{
	char line[128];
	u32 inside, outside, count;

	return read_line("/proc/self/uid_map", line, sizeof(line)) &&
	       sscanf(line, "%u %u %u", &inside, &outside, &count) == 3 && count != UINT32_MAX;
}

/*
 * Why the kernel refuses a call that needs these capabilities (bits), with the line of a Kubernetes manifest that
 * allows it: the missing ones, by name; else a user namespace, in which they do not count; else a seccomp profile.
 * Returns text.
 */
static const char *capabilities_remedy(u64 wanted, char text[CAPABILITY_REMEDY])
{
	static const struct {
		u32 number;
		const char *name;
	} names[] = {{CAPABILITY_BPF, "BPF"}, {CAPABILITY_PERFMON, "PERFMON"}};
	char missing[64] = "", line[64] = "";
	u64 caps = capabilities();

	for (u32 i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *comma = *line ? ", " : "";

		if (!(wanted & ~caps & 1UL << names[i].number))
			continue;
		snprintf(
		        missing + strlen(missing), sizeof(missing) - strlen(missing), "%sCAP_%s", comma, names[i].name);
		snprintf(line + strlen(line), sizeof(line) - strlen(line), "%s%s", comma, names[i].name);
	}
	if (*missing)
		snprintf(text, CAPABILITY_REMEDY,
		        "missing: %s; run as root, or give it (in Kubernetes \"add: [%s]\"); `yrt doctor` lists all",
		        missing, line);
	else
		snprintf(text, CAPABILITY_REMEDY, "%s",
		        in_user_namespace()
		                ? "capabilities of a user namespace do not count: run outside of it (in Kubernetes "
		                  "\"hostUsers: true\")"
		        : own_status("Seccomp")
		                ? "a seccomp profile refuses it (in Kubernetes \"seccompProfile: {type: Unconfined}\", "
		                  "in Docker --security-opt seccomp=unconfined)"
		                : "the capabilities are there: a security module refuses it; `yrt doctor` lists what "
		                  "works");
	return text;
}

struct error *capabilities_no_bpf(int code)
{
	char text[CAPABILITY_REMEDY];

	return error_hint(error_errno(code, "the kernel refuses bpf(): to load BPF programs"), "%s",
	        capabilities_remedy(CAPABILITY_BIT(BPF) | CAPABILITY_BIT(PERFMON), text));
}

struct error *capabilities_no_event(int code, const char *to, ...)
{
	char text[CAPABILITY_REMEDY], what[64];
	va_list args;

	va_start(args, to);
	vsnprintf(what, sizeof(what), to, args);
	va_end(args);
	if (code == EACCES || code == EPERM)
		return error_hint(error_errno(code, "the kernel refuses perf_event_open(): to %s", what), "%s",
		        capabilities_remedy(CAPABILITY_BIT(PERFMON), text));
	return error_errno(code, "cannot %s", what);
}

static void check_capability(
        struct capability_check *c, const char *what, u32 wanted, enum capability_state without, const char *cost)
{
	bool has = capabilities() >> wanted & 1;

	*c = (struct capability_check){
	        .what = what, .state = has ? CAPABILITY_OK : without, .remedy = has ? NULL : cost};
	snprintf(c->found, sizeof(c->found), "%s (uid %d)", has ? "there" : "not there", geteuid());
}

static void check_cap_bpf(struct capability_check *c)
{
	check_capability(c, "CAP_BPF", CAPABILITY_BPF, CAPABILITY_MISSING,
	        "without it nothing is sampled: run as root, or give it");
}

static void check_cap_perfmon(struct capability_check *c)
{
	check_capability(c, "CAP_PERFMON", CAPABILITY_PERFMON, CAPABILITY_MISSING,
	        "without it nothing is sampled: run as root, or give it");
}

static void check_cap_ptrace(struct capability_check *c)
{
	check_capability(c, "CAP_SYS_PTRACE", CAPABILITY_SYS_PTRACE, CAPABILITY_LESS,
	        "only processes of this user can be looked into");
}

static void check_cap_read(struct capability_check *c)
{
	check_capability(c, "CAP_DAC_READ_SEARCH", CAPABILITY_DAC_READ_SEARCH, CAPABILITY_LESS,
	        "stacks end at programs and libraries that this user may not read");
}

static void check_cap_restore(struct capability_check *c)
{
	check_capability(c, "CAP_CHECKPOINT_RESTORE", CAPABILITY_CHECKPOINT_RESTORE, CAPABILITY_LESS,
	        "stacks end at files that were replaced or deleted since they were mapped");
}

static void check_btf(struct capability_check *c)
{
	*c = (struct capability_check){.what = "BTF", .remedy = "the kernel must be built with CONFIG_DEBUG_INFO_BTF"};
	c->state = access("/sys/kernel/btf/vmlinux", R_OK) ? CAPABILITY_MISSING : CAPABILITY_OK;
	snprintf(c->found, sizeof(c->found), "/sys/kernel/btf/vmlinux %s", c->state ? strerror(errno) : "is there");
}

static void check_lockdown(struct capability_check *c)
{
	char line[128];

	*c = (struct capability_check){.what = "lockdown",
	        .remedy = "in confidentiality mode BPF may not read memory: boot with lockdown=integrity"};
	if (!read_line("/sys/kernel/security/lockdown", line, sizeof(line)))
		snprintf(line, sizeof(line), "not in use");
	c->state = strstr(line, "[confidentiality]") ? CAPABILITY_MISSING : CAPABILITY_OK;
	snprintf(c->found, sizeof(c->found), "%s", line);
}

static void check_files(struct capability_check *c)
{
	struct error *err = open_files_need(OPEN_FILES_SAMPLING, OPEN_FILES_EACH_CPU);

	*c = (struct capability_check){.what = "open files", .state = err ? CAPABILITY_MISSING : CAPABILITY_OK};
	snprintf(c->found, sizeof(c->found), "%s", err ? err->message : "enough may be open");
	if (err && err->hint) {
		snprintf(c->text, sizeof(c->text), "%s", err->hint);
		c->remedy = c->text;
	}
	error_free(err);
}

static void check_bpf(struct capability_check *c)
{
	struct object_options options = {.depth = 128, .event = events[0]};
	struct object *object = NULL;
	struct error *err = object_create(&options, &object);

	if (!err)
		err = object_begin(object, WALKERS_ALL);
	if (!err)
		err = object_load(object);
	*c = (struct capability_check){.what = "BPF programs"};
	if (err)
		c->remedy = err->hint && strstr(err->hint, "ulimit") ? "see open files above"
		            : err->kind == ERROR_PERMISSION
		                    ? capabilities_remedy(CAPABILITY_BIT(BPF) | CAPABILITY_BIT(PERFMON), c->text)
		                    : "see BTF and lockdown above; YRT_DEBUG=1 prints the verifier's words";
	c->state = err ? CAPABILITY_MISSING : CAPABILITY_OK;
	snprintf(c->found, sizeof(c->found), "%s", err ? err->message : "load and verify");
	error_free(err);
	object_destroy(object);
}

static void check_loop(struct capability_check *c)
{
	bool loop = libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_loop, NULL) == 1;

	*c = (struct capability_check){.what = "bpf_loop",
	        .state = loop ? CAPABILITY_OK : CAPABILITY_LESS,
	        .remedy = loop ? NULL : "stacks are cut at 1,100 frames before Linux 5.17"};
	snprintf(c->found, sizeof(c->found), "%s", loop ? "there" : "not there");
}

static bool has_member(const struct btf *btf, const char *structure, const char *member)
{
	s32 id = btf__find_by_name_kind(btf, structure, BTF_KIND_STRUCT);
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (u32)id) : NULL;
	const struct btf_member *m = t ? btf_members(t) : NULL;

	for (u32 i = 0; t && i < btf_vlen(t); i++)
		if (!strcmp(btf__str_by_offset(btf, m[i].name_off), member))
			return true;
	return false;
}

/* What probes/wait needs to tell the time on the run queue after a wake-up. */
static void check_queue(struct capability_check *c)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool counted = btf && has_member(btf, "sched_info", "run_delay") && has_member(btf, "cfs_rq", "rq");

	*c = (struct capability_check){.what = "run queue",
	        .state = counted ? CAPABILITY_OK : CAPABILITY_LESS,
	        .remedy = counted ? NULL
	                          : "after a wake-up it counts as waiting; kernels with CONFIG_SCHED_INFO and "
	                            "CONFIG_FAIR_GROUP_SCHED tell it"};
	snprintf(c->found, sizeof(c->found), "the time on it is %s", counted ? "the kernel's own" : "not known");
	btf__free(btf);
}

static int open_event(u32 type, u64 config, pid_t pid, int cpu)
{
	struct perf_event_attr attr = {
	        .size = sizeof(attr), .type = type, .config = config, .disabled = 1, .sample_period = 10000000};

	return (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static void check_clock(struct capability_check *c)
{
	int fd = open_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, -1, 0), error = errno;

	*c = (struct capability_check){.what = "clock", .state = fd < 0 ? CAPABILITY_MISSING : CAPABILITY_OK};
	if (fd >= 0) {
		snprintf(c->found, sizeof(c->found), "a timer of each CPU");
		close(fd);
		return;
	}
	snprintf(c->found, sizeof(c->found), "the kernel refuses perf_event_open(): %s", strerror(error));
	c->remedy = capabilities_remedy(CAPABILITY_BIT(PERFMON), c->text);
}

static void check_watch(struct capability_check *c)
{
	int fd = open_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, -1, 0);

	*c = (struct capability_check){.what = "new code",
	        .state = fd < 0 ? CAPABILITY_LESS : CAPABILITY_OK,
	        .remedy = fd < 0 ? "dlopen is noticed by the first sample in it, which is lost" : NULL};
	snprintf(c->found, sizeof(c->found), "%s", fd < 0 ? strerror(errno) : "mappings are watched");
	if (fd >= 0)
		close(fd);
}

u32 capabilities_find(struct capability_check *checks)
{
	static void (*const all[])(struct capability_check * c) = {check_kernel, check_cap_bpf, check_cap_perfmon,
	        check_cap_ptrace, check_cap_read, check_cap_restore, check_btf, check_lockdown, check_files, check_bpf,
	        check_loop, check_queue, check_clock, check_watch};
	u32 n = sizeof(all) / sizeof(*all);

	for (u32 i = 0; i < n; i++)
		all[i](&checks[i]);
	return n;
}
