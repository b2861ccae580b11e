/* SPDX-License-Identifier: Apache-2.0 */
#include "code_watch.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdlib.h>
#include <types.h>

#include "code_watch_programs.skel.h"
#include "sample.skel.h"

struct code_watch {
	struct code_watch_programs *skel;
};

static int load(struct code_watch_programs *to, const struct sample *from)
{
	int code = bpf_map__reuse_fd(to->maps.processes, bpf_map__fd(from->maps.processes));

	if (!code)
		code = bpf_map__reuse_fd(to->maps.code_changes, bpf_map__fd(from->maps.code_changes));
	if (!code)
		code = code_watch_programs__load(to);
	if (code)
		return code;
	to->bss->pid_level = from->bss->pid_level;
	to->bss->pid_namespace = from->bss->pid_namespace;
	return code_watch_programs__attach(to);
}

struct code_watch *code_watch_create(struct sample *skel)
{
	struct code_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->skel = code_watch_programs__open();
	if (!w->skel || load(w->skel, skel)) {
		code_watch_destroy(w);
		return NULL;
	}
	skel->bss->code_watched = 1;
	return w;
}

void code_watch_set(struct code_watch *w, pid_t tgid, const struct code_ranges *code)
{
	u32 key = (u32)tgid;

	bpf_map_update_elem(bpf_map__fd(w->skel->maps.made_code), &key, code, BPF_ANY);
}

void code_watch_destroy(struct code_watch *w)
{
	if (!w)
		return;
	code_watch_programs__destroy(w->skel);
	free(w);
}
