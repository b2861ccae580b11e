/* SPDX-License-Identifier: Apache-2.0 */
#include "uprobe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unwind/binary/proc_path.h"
#include "unwind/cleanup.h"
#include "unwind/code/insn.h"

#define TRACE_UPROBE_MULTI UPROBE_MULTI

struct uprobe {
	struct bpf_link *perf; /* NULL: of a multi link, or raw */
	int multi;             /* or of a perf event's link */
	int event;             /* that perf event; 0: none */
	struct uprobe *next;   /* of the same uprobe_place_all() */
};

/* What BPF_LINK_CREATE takes for a multi link (include/uapi/linux/bpf.h of Linux 6.6). */
struct multi_attr {
	u32 program, target;
	u32 attach_type, flags;
	u64 path, offsets, counters, cookies;
	u32 n, multi_flags, pid, reserved;
};

static int multi_links(
        int program, pid_t pid, const char *path, const u64 *offsets, const u64 *counters, const u64 *cookies, u32 n)
{
	struct multi_attr attr = {.program = (u32)program,
	        .attach_type = TRACE_UPROBE_MULTI,
	        .path = (u64)path,
	        .offsets = (u64)offsets,
	        .counters = (u64)counters,
	        .cookies = (u64)cookies,
	        .n = n,
	        .pid = (u32)pid};

	return (int)syscall(__NR_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
}

static int multi_link(int program, pid_t pid, const char *path, u64 offset, u64 counter, u64 cookie)
{
	return multi_links(program, pid, path, &offset, counter ? &counter : NULL, &cookie, 1);
}

/*
 * A directory is refused as such (EBADF) by kernels that have such links; pid -1 is refused first (EINVAL) by those
 * that know a process from a thread.
 */
static bool has_multi(void)
{
	const struct bpf_insn nothing[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K}, {.code = BPF_JMP | BPF_EXIT}};
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = TRACE_UPROBE_MULTI);
	int program = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "yrt_multi", "GPL", nothing, 2, &options);
	bool ret;

	if (program < 0)
		return false;
	ret = multi_link(program, 0, "/", 1, 0, 0) < 0 && errno == EBADF && multi_link(program, -1, "/", 1, 0, 0) < 0 &&
	      errno == EINVAL;
	close(program);
	return ret;
}

bool uprobe_has_multi(void)
{
	return !getenv("YRT_NO_MULTI") && has_multi(); /* for tests */
}

void uprobe_prepare(struct bpf_program *program)
{
	if (uprobe_has_multi())
		bpf_program__set_expected_attach_type(program, TRACE_UPROBE_MULTI);
}

static bool is_multi(const struct bpf_program *program)
{
	return bpf_program__expected_attach_type(program) == TRACE_UPROBE_MULTI;
}

/* Has its first thread ended, and another one not? The kernel has no way to name such a process alone. */
static bool has_lost_its_first(pid_t pid)
{
	pid_t living = pid ? living_thread(pid) : 0;

	return living && living != pid;
}

/* As the kernel wants it; 0: for all processes. */
static pid_t process_of_link(pid_t pid)
{
	return has_lost_its_first(pid) ? 0 : pid ? pid : getpid();
}

static bool is_prefix(u8 byte)
{
	static const u8 prefixes[] = {0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf2, 0xf3};

	return (byte & 0xf0) == 0x40 /* REX */ || memchr(prefixes, byte, sizeof(prefixes));
}

bool uprobe_is_safe(const u8 *code, size_t size)
{
	size_t at = 0;

	while (at < size && is_prefix(code[at]))
		at++;
	return at + 1 >= size || code[at] != 0x0f || code[at + 1] != 0x05;
}

/* Of what can not be read the kernel says why. */
static struct error *check_places(const char *path, const u64 *offsets, u32 n)
{
	cleanup(close) int fd = open(path, O_RDONLY | O_CLOEXEC);

	for (u32 i = 0; fd >= 0 && i < n; i++) {
		u8 code[INSN_MAX];
		ssize_t got = pread(fd, code, sizeof(code), (off_t)offsets[i]);

		if (got <= 0 || uprobe_is_safe(code, (size_t)got))
			continue;
		return error_hint(error_new(ERROR_UNSUPPORTED,
		                          "the instruction at offset 0x%lx is a system call: a probe there would end "
		                          "the process",
		                          offsets[i]),
		        "probe the function that contains it, or the tracepoint of the system call");
	}
	return NULL;
}

struct error *uprobe_place(const struct bpf_program *program, pid_t pid, const char *path, u64 offset, u64 counter,
        u64 cookie, struct uprobe **ret)
{
	LIBBPF_OPTS(bpf_uprobe_opts, options, .bpf_cookie = cookie, .ref_ctr_offset = counter);
	cleanup(free) struct uprobe *u = calloc(1, sizeof(*u));
	bool all = has_lost_its_first(pid);
	struct error *err = check_places(path, &offset, 1);

	if (err || !u)
		return err ? err : &error_no_memory;
	if (is_multi(program))
		u->multi = multi_link(bpf_program__fd(program), process_of_link(pid), path, offset, counter, cookie);
	else
		u->perf = bpf_program__attach_uprobe_opts(program, all ? -1 : pid, path, offset, &options);
	if (u->multi < 0 || (!u->multi && !u->perf))
		return error_errno(errno, "cannot place a uprobe in process %d", pid);
	*ret = TAKE(u);
	return NULL;
}

static struct error *place_each(const struct bpf_program *program, pid_t pid, const char *path, const u64 *offsets,
        const u64 *cookies, u32 n, struct uprobe **ret)
{
	struct uprobe *all = NULL, *u;
	struct error *err = NULL;

	for (u32 i = 0; !err && i < n; i++) {
		err = uprobe_place(program, pid, path, offsets[i], 0, cookies[i], &u);
		if (err)
			break;
		u->next = all;
		all = u;
	}
	if (err)
		uprobe_take_away(all);
	else
		*ret = all;
	return err;
}

struct error *uprobe_place_all(const struct bpf_program *program, pid_t pid, const char *path, const u64 *offsets,
        const u64 *cookies, u32 n, struct uprobe **ret)
{
	cleanup(free) struct uprobe *u = NULL;
	struct error *err;

	if (!is_multi(program))
		return place_each(program, pid, path, offsets, cookies, n, ret);
	err = check_places(path, offsets, n);
	if (err)
		return err;
	u = calloc(1, sizeof(*u));
	if (!u)
		return &error_no_memory;
	u->multi = multi_links(bpf_program__fd(program), process_of_link(pid), path, offsets, NULL, cookies, n);
	if (u->multi < 0)
		return error_errno(errno, "cannot place %u uprobes in process %d", n, pid);
	*ret = TAKE(u);
	return NULL;
}

/* The number of perf's kind of events. */
static int perf_type(void)
{
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	int type = -1;

	if (f && fscanf(f, "%d", &type) != 1)
		type = -1;
	if (f)
		fclose(f);
	return type;
}

static int perf_link(struct uprobe *u, int program, pid_t pid, const char *path, u64 offset, u64 counter, u64 cookie)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
	        .type = (u32)perf_type(),
	        .config = counter << 32, /* PERF_UPROBE_REF_CTR_OFFSET_SHIFT */
	        .uprobe_path = (u64)path,
	        .probe_offset = offset};
	LIBBPF_OPTS(bpf_link_create_opts, options, .perf_event.bpf_cookie = cookie);

	u->event = (int)syscall(
	        __NR_perf_event_open, &attr, pid > 0 ? pid : -1, pid > 0 ? -1 : 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (u->event < 0)
		return -1;
	return bpf_link_create(program, u->event, BPF_PERF_EVENT, &options);
}

struct error *uprobe_place_loaded(
        int program, bool multi, pid_t pid, const char *path, u64 offset, u64 counter, u64 cookie, struct uprobe **ret)
{
	cleanup(free) struct uprobe *u = calloc(1, sizeof(*u));
	struct error *err = check_places(path, &offset, 1);

	if (err || !u)
		return err ? err : &error_no_memory;
	u->multi = multi ? multi_link(program, pid, path, offset, counter, cookie)
	                 : perf_link(u, program, pid, path, offset, counter, cookie);
	if (u->multi < 0) {
		err = error_errno(errno, "cannot place a uprobe in process %d", pid);
		if (u->event > 0)
			close(u->event);
		return err;
	}
	*ret = TAKE(u);
	return NULL;
}

bool uprobe_is_multi(const struct uprobe *u)
{
	return u->multi && !u->event;
}

void uprobe_take_away(struct uprobe *u)
{
	while (u) {
		struct uprobe *next = u->next;

		if (u->perf)
			bpf_link__destroy(u->perf);
		else
			close(u->multi);
		if (u->event > 0)
			close(u->event);
		free(u);
		u = next;
	}
}
