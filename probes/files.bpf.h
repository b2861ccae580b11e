/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What a file descriptor of a thread stands for. */
#ifndef YRT_FILES_BPF_H
#define YRT_FILES_BPF_H

#define MODE_PIPE      1 /* S_IFMT >> 12 */
#define MODE_DEVICE    2
#define MODE_DIRECTORY 4
#define MODE_BLOCK     6
#define MODE_FILE      8
#define MODE_SOCKET    12

/*
 * NULL: it is not open. Another thread may close it at any time, so it must be read by probe reads only; so is the way
 * to it, see tgid_of_typed().
 */
static inline struct file *file_of(struct task_struct *task, u64 fd)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file *file = NULL;

	if (fd >= BPF_CORE_READ(table, max_fds) ||
	        bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(table, fd) + fd))
		return NULL;
	return file;
}

/* One of MODE_…, or another number. */
static inline u32 file_mode(struct file *file)
{
	return BPF_CORE_READ(file, f_inode, i_mode) >> 12 & 15;
}

#endif
