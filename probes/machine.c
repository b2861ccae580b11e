/* SPDX-License-Identifier: Apache-2.0 */
#include "machine.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "object.h"
#include "unwind/cleanup.h"

static bool read_line(const char *path, char *text, size_t size)
{
	cleanup(fclose) FILE *file = fopen(path, "re");

	if (!file || !fgets(text, size, file))
		return false;
	text[strcspn(text, "\n")] = '\0';
	return true;
}

static void check_kernel(struct machine_check *c)
{
	u32 major = 0, minor = 0;
	struct utsname name;

	*c = (struct machine_check){ .what = "kernel", .remedy = "yrt needs Linux 5.15 or later on x86-64" };
	uname(&name);
	snprintf(c->found, sizeof(c->found), "%.60s, %.20s, %ld CPUs", name.release, name.machine,
		sysconf(_SC_NPROCESSORS_ONLN));
	sscanf(name.release, "%u.%u", &major, &minor);
	c->state = major < 5 || (major == 5 && minor < 15) || strcmp(name.machine, "x86_64") ? MACHINE_MISSING : MACHINE_OK;
}

static void check_privilege(struct machine_check *c)
{
	char line[128] = "";
	unsigned long caps = 0;
	cleanup(fclose) FILE *file = fopen("/proc/self/status", "re");
	/* <linux/capability.h>: SYS_PTRACE 19, SYS_ADMIN 21, PERFMON 38, BPF 39 */
	const unsigned long wanted = 1ul << 19 | 1ul << 38 | 1ul << 39;

	*c = (struct machine_check){ .what = "privilege", .remedy = "run as root, or give CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE" };
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "CapEff: %lx", &caps) == 1)
			break;
	snprintf(c->found, sizeof(c->found), "uid %d, capabilities %lx", getuid(), caps);
	c->state = (caps & wanted) == wanted || (caps & 1ul << 21) ? MACHINE_OK : MACHINE_MISSING;
}

static void check_btf(struct machine_check *c)
{
	*c = (struct machine_check){ .what = "BTF", .remedy = "the kernel must be built with CONFIG_DEBUG_INFO_BTF" };
	c->state = access("/sys/kernel/btf/vmlinux", R_OK) ? MACHINE_MISSING : MACHINE_OK;
	snprintf(c->found, sizeof(c->found), "/sys/kernel/btf/vmlinux %s", c->state ? strerror(errno) : "is there");
}

static void check_lockdown(struct machine_check *c)
{
	char line[128];

	*c = (struct machine_check){ .what = "lockdown",
		.remedy = "in confidentiality mode BPF may not read memory: boot with lockdown=integrity" };
	if (!read_line("/sys/kernel/security/lockdown", line, sizeof(line)))
		snprintf(line, sizeof(line), "not in use");
	c->state = strstr(line, "[confidentiality]") ? MACHINE_MISSING : MACHINE_OK;
	snprintf(c->found, sizeof(c->found), "%s", line);
}

static void check_bpf(struct machine_check *c)
{
	struct object_options options = { .depth = 128, .period_ns = 1000000 };
	struct object *object = NULL;
	struct error *err = object_create(&options, &object);

	*c = (struct machine_check){ .what = "BPF programs",
		.remedy = err ? "see privilege, BTF and lockdown above; YRT_DEBUG=1 prints the verifier's words" : NULL };
	c->state = err ? MACHINE_MISSING : MACHINE_OK;
	snprintf(c->found, sizeof(c->found), "%s", err ? err->message : "load and verify");
	error_free(err);
	object_destroy(object);
}

static void check_loop(struct machine_check *c)
{
	bool loop = libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_loop, NULL) == 1;

	*c = (struct machine_check){ .what = "bpf_loop", .state = loop ? MACHINE_OK : MACHINE_LESS,
		.remedy = loop ? NULL : "stacks are cut at 1,100 frames before Linux 5.17" };
	snprintf(c->found, sizeof(c->found), "%s", loop ? "there" : "not there");
}

static int open_event(u32 type, u64 config, pid_t pid, int cpu)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .type = type, .config = config, .disabled = 1,
		.sample_period = 10000000 };

	return (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static void check_clock(struct machine_check *c)
{
	int fd = open_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, -1);
	bool cycles = fd >= 0;

	*c = (struct machine_check){ .what = "clock", .remedy = "lower kernel.perf_event_paranoid, or allow perf_event_open" };
	if (fd < 0)
		fd = open_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 0, -1);
	c->state = fd < 0 ? MACHINE_MISSING : cycles ? MACHINE_OK : MACHINE_LESS;
	snprintf(c->found, sizeof(c->found), "%s", fd < 0 ? strerror(errno) : cycles ? "hardware cycles" : "software clock (no PMU)");
	if (fd >= 0) {
		c->remedy = cycles ? NULL : "code that runs with interrupts off is charged to what follows it";
		close(fd);
	}
}

static void check_watch(struct machine_check *c)
{
	int fd = open_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, -1, 0);

	*c = (struct machine_check){ .what = "new code", .state = fd < 0 ? MACHINE_LESS : MACHINE_OK,
		.remedy = fd < 0 ? "dlopen is noticed by the first sample in it, which is lost" : NULL };
	snprintf(c->found, sizeof(c->found), "%s", fd < 0 ? strerror(errno) : "mappings are watched");
	if (fd >= 0)
		close(fd);
}

static void check_kallsyms(struct machine_check *c)
{
	cleanup(fclose) FILE *file = fopen("/proc/kallsyms", "re");
	char line[256];
	unsigned long addr = 0;

	while (file && !addr && fgets(line, sizeof(line), file))
		sscanf(line, "%lx", &addr);
	*c = (struct machine_check){ .what = "kernel symbols", .state = addr ? MACHINE_OK : MACHINE_LESS,
		.remedy = addr ? NULL : "kernel frames stay without names: CAP_SYSLOG, or kernel.kptr_restrict=0" };
	snprintf(c->found, sizeof(c->found), "%s", addr ? "readable" : "hidden");
}

u32 machine_check(struct machine_check *checks)
{
	static void (*const all[])(struct machine_check *c) = { check_kernel, check_privilege, check_btf, check_lockdown,
		check_bpf, check_loop, check_clock, check_watch, check_kallsyms };
	u32 n = sizeof(all) / sizeof(*all);

	for (u32 i = 0; i < n; i++)
		all[i](&checks[i]);
	return n;
}
