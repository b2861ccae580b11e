/* SPDX-License-Identifier: Apache-2.0 */
#include "seen_files.h"

#include "unwind/binary/proc_path.h"
#include "unwind/grow.h"

bool seen_files_has(const struct seen_files *s, pid_t pid, const void *file)
{
	for (u32 i = 0; i < s->n; i++)
		if (s->of[i].pid == pid && s->of[i].file == file)
			return true;
	return false;
}

struct error *seen_files_add(struct seen_files *s, pid_t pid, const void *file)
{
	struct error *err = grow(&s->of, s->n, sizeof(*s->of));

	if (!err)
		s->of[s->n++] = (struct seen_file){.pid = pid, .file = file};
	return err;
}

void seen_files_forget_ended(struct seen_files *s)
{
	pid_t living = 0;
	u32 n = 0;

	for (u32 i = 0; i < s->n; i++) {
		pid_t pid = s->of[i].pid;

		if (pid != living && process_is_gone(pid))
			continue;
		living = pid;
		s->of[n++] = s->of[i];
	}
	s->n = n;
}
