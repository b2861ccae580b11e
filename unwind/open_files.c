/* SPDX-License-Identifier: Apache-2.0 */
#include "open_files.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static struct rlimit given; /* rlim_max 0: not raised */

struct error *open_files_need(u32 fixed, u32 per_cpu)
{
	long ncpus = sysconf(_SC_NPROCESSORS_CONF);
	u64 least = fixed + (u64)(ncpus > 0 ? ncpus : 1) * per_cpu;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return error_errno(errno, "cannot read the limit of open files");
	if (!given.rlim_max)
		given = limit;
	limit.rlim_cur = limit.rlim_max;
	if (limit.rlim_max < least)
		return error_hint(error_new(ERROR_PERMISSION, "only %lu files may be open here, yrt needs %lu",
		                          (u64)limit.rlim_max, least),
		        "raise the hard limit: ulimit -Hn %lu (systemd: LimitNOFILE=)", least);
	setrlimit(RLIMIT_NOFILE, &limit);
	return NULL;
}

void open_files_restore(void)
{
	if (given.rlim_max)
		setrlimit(RLIMIT_NOFILE, &given);
}

const char *open_files_hint(int errnum)
{
	static _Thread_local char text[128];
	struct rlimit limit;

	if (errnum != EMFILE || getrlimit(RLIMIT_NOFILE, &limit))
		return NULL;
	snprintf(text, sizeof(text),
	        "at most %lu files may be open here: raise the limit, ulimit -Hn (systemd: LimitNOFILE=)",
	        (u64)limit.rlim_cur);
	return text;
}
