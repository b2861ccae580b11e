/* SPDX-License-Identifier: Apache-2.0 */
#include "wait_list.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define SINGLE_MAX 8 /* more processes are looked for among all */

static struct error *cannot_list(void)
{
	return error_errno(errno, "cannot list threads by BPF");
}

struct error *wait_list_open(struct wait_list *l, const struct bpf_program *program)
{
	l->program = program;
	l->all = bpf_program__attach_iter(program, NULL);
	return l->all ? NULL : cannot_list();
}

void wait_list_close(struct wait_list *l)
{
	bpf_link__destroy(l->all);
}

static struct error *read_threads(const struct bpf_link *link, wait_each *each, void *ctx)
{
	static struct wait_thread buffer[32];
	int fd = bpf_iter_create(bpf_link__fd(link));
	struct error *err = NULL;
	size_t have = 0, i;
	ssize_t got = 1;

	if (fd < 0)
		return cannot_list();
	while (!err && got) {
		got = read(fd, (char *)buffer + have, sizeof(buffer) - have);
		if (got < 0 && errno != EAGAIN && errno != EINTR)
			break;
		have += got > 0 ? (size_t)got : 0;
		for (i = 0; !err && (i + 1) * sizeof(*buffer) <= have; i++) {
			buffer[i].comm[sizeof(buffer[i].comm) - 1] = '\0';
			err = each(ctx, &buffer[i]);
		}
		have -= i * sizeof(*buffer);
		memmove(buffer, &buffer[i], have);
	}
	if (!err && got < 0)
		err = cannot_list();
	close(fd);
	return err;
}

struct error *wait_list_all(const struct wait_list *l, wait_each *each, void *ctx)
{
	return read_threads(l->all, each, ctx);
}

static struct bpf_link *link_process(const struct wait_list *l, pid_t pid)
{
	union bpf_iter_link_info info = {.task.pid = (u32)pid};
	LIBBPF_OPTS(bpf_iter_attach_opts, options, .link_info = &info, .link_info_len = sizeof(info));

	return bpf_program__attach_iter(l->program, &options);
}

struct error *wait_list_some(struct wait_list *l, const struct targets *targets, wait_each *each, void *ctx)
{
	struct error *err = NULL;

	if (l->whole_only || targets->alive > SINGLE_MAX)
		return wait_list_all(l, each, ctx);
	for (u32 i = 0; !err && i < targets->nprocesses; i++) {
		const struct process *p = targets->processes[i];
		struct bpf_link *link;

		if (p->dead)
			continue;
		link = link_process(l, p->pid);
		if (!link) {
			l->whole_only = true;
			return wait_list_all(l, each, ctx);
		}
		err = read_threads(link, each, ctx);
		bpf_link__destroy(link);
	}
	return err;
}
