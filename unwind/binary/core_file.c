/* SPDX-License-Identifier: Apache-2.0 */
/* Notes: include/uapi/linux/elf.h and fs/binfmt_elf.c of Linux 6.12; the same since 3.7 (NT_FILE, NT_SIGINFO). */
#include "core_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <lzma.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <types.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "cleanup.h"
#include "error.h"
#include "grow.h"
#include "mtime.h"

/* Cores that are packed (gzip, xz, zstd), or come through a pipe: as a file without a name, in $TMPDIR or /var/tmp. */

#define PART      (1u << 20)
#define SIZE_MOST (1ull << 40)

enum packing { PLAIN, GZIP, XZ, ZSTD };

struct unpack {
	const char *path;
	int from, to;
	u64 size; /* written */
	bool cut;
	u8 in[PART], out[PART];
	size_t have; /* in in[] */
};

static enum packing packing_of(const u8 *magic, size_t n)
{
	if (n >= 2 && magic[0] == 0x1f && magic[1] == 0x8b)
		return GZIP;
	if (n >= 6 && !memcmp(magic,
	                      "\xfd"
	                      "7zXZ",
	                      6))
		return XZ;
	return n >= 4 && !memcmp(magic, "\x28\xb5\x2f\xfd", 4) ? ZSTD : PLAIN;
}

/* Are these the first bytes of something packed that core_unpack() knows? */
static bool core_is_packed(const u8 *magic, size_t n)
{
	return packing_of(magic, n) != PLAIN;
}

static struct error *cannot_write(void)
{
	return error_hint(error_errno(errno, "cannot unpack the core"), "TMPDIR names a directory with more room");
}

static struct error *put(struct unpack *u, size_t n)
{
	size_t at = 0;

	while (at < n && !u->out[at])
		at++;
	if (n > SIZE_MOST - u->size)
		return error_new(ERROR_INPUT, "%s unpacks to more than 1 TiB", u->path);
	for (; at < n;) {
		ssize_t done = pwrite(u->to, u->out + at, n - at, (off_t)(u->size + at));

		if (done < 0 && errno != EINTR)
			return cannot_write();
		at += done > 0 ? (size_t)done : 0;
	}
	u->size += n;
	return NULL;
}

/* Reads more input. have is 0 at its end. */
static struct error *take(struct unpack *u)
{
	ssize_t n;

	do
		n = read(u->from, u->in, sizeof(u->in));
	while (n < 0 && errno == EINTR);
	u->have = n > 0 ? (size_t)n : 0;
	return n < 0 ? error_new(ERROR_INPUT, "cannot read %s: %s", u->path, strerror(errno)) : NULL;
}

static struct error *copy(struct unpack *u)
{
	struct error *err = NULL;

	while (!err && u->have) {
		memcpy(u->out, u->in, u->have);
		err = put(u, u->have);
		if (!err)
			err = take(u);
	}
	return err;
}

static struct error *corrupt(const struct unpack *u)
{
	return error_new(ERROR_INPUT, "%s is compressed, but its data is corrupt", u->path);
}

static struct error *unpack_gzip(struct unpack *u)
{
	struct error *err = NULL;
	z_stream z = {0};
	int code = Z_OK;

	if (inflateInit2(&z, 15 + 16) != Z_OK)
		return &error_no_memory;
	while (!err && u->have && code != Z_STREAM_END) {
		z.next_in = u->in;
		z.avail_in = (uInt)u->have;
		do {
			z.next_out = u->out;
			z.avail_out = PART;
			code = inflate(&z, Z_NO_FLUSH);
			err = code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR ? put(u, PART - z.avail_out)
			                                                                  : corrupt(u);
		} while (!err && code == Z_OK && (z.avail_in || !z.avail_out));
		if (!err && code != Z_STREAM_END)
			err = take(u);
	}
	u->cut = code != Z_STREAM_END;
	inflateEnd(&z);
	return err;
}

static struct error *unpack_xz(struct unpack *u)
{
	lzma_stream z = LZMA_STREAM_INIT;
	lzma_ret code = lzma_stream_decoder(&z, 1ull << 30, 0);
	struct error *err = code == LZMA_OK ? NULL : &error_no_memory;

	while (!err && u->have && code != LZMA_STREAM_END) {
		z.next_in = u->in;
		z.avail_in = u->have;
		do {
			z.next_out = u->out;
			z.avail_out = PART;
			code = lzma_code(&z, LZMA_RUN);
			err = code == LZMA_OK || code == LZMA_STREAM_END || code == LZMA_BUF_ERROR
			              ? put(u, PART - z.avail_out)
			              : corrupt(u);
		} while (!err && code == LZMA_OK && (z.avail_in || !z.avail_out));
		if (!err && code != LZMA_STREAM_END)
			err = take(u);
	}
	u->cut = code != LZMA_STREAM_END;
	lzma_end(&z);
	return err;
}

static struct error *unpack_zstd(struct unpack *u)
{
	ZSTD_DStream *z = ZSTD_createDStream();
	struct error *err = z ? NULL : &error_no_memory;
	size_t left = 1;

	while (!err && u->have) {
		ZSTD_inBuffer in = {u->in, u->have, 0};

		do {
			ZSTD_outBuffer out = {u->out, PART, 0};

			left = ZSTD_decompressStream(z, &out, &in);
			err = ZSTD_isError(left) ? corrupt(u) : put(u, out.pos);
			if (out.pos < PART && in.pos == in.size)
				break;
		} while (!err);
		if (!err)
			err = take(u);
	}
	u->cut = left != 0;
	ZSTD_freeDStream(z);
	return err;
}

static int open_nameless(void)
{
	const char *dir = getenv("TMPDIR");
	int fd = open(dir && *dir ? dir : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	return fd >= 0 ? fd : open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

/*
 * Copies fd, from where it is, to such a file, unpacked if it is packed. Holes stay holes. *cut: the packed data ends
 * early, and the file has what there was. *ret is the caller's to close.
 */
static struct error *core_unpack(int fd, const char *path, int *ret, bool *cut)
{
	static struct error *(*const how[])(struct unpack * u) = {
	        [PLAIN] = copy, [GZIP] = unpack_gzip, [XZ] = unpack_xz, [ZSTD] = unpack_zstd};
	cleanup(free) struct unpack *u = calloc(1, sizeof(*u));
	struct error *err;

	*ret = -1;
	if (!u)
		return &error_no_memory;
	u->path = path;
	u->from = fd;
	u->to = open_nameless();
	if (u->to < 0)
		return cannot_write();
	err = take(u);
	if (!err)
		err = how[packing_of(u->in, u->have)](u);
	if (!err && ftruncate(u->to, (off_t)u->size))
		err = cannot_write();
	if (err) {
		close(u->to);
		return err;
	}
	*ret = u->to;
	*cut = u->cut;
	return NULL;
}

#define SEGMENTS_MAX (1u << 20)
#define NOTES_MAX    (1u << 28)
#define FILES_MAX    (1u << 20)
#define FILES_NEAR   64 /* mappings of one file lie side by side */
#define PARTS_MAX    4  /* segments of one mapping */
#define PAGE_MAX     (1u << 21)

static bool read_at(const struct core_file *core, void *dst, size_t size, u64 offset)
{
	return size <= SSIZE_MAX && offset <= core->size && size <= core->size - offset &&
	       pread(core->fd, dst, size, (off_t)offset) == (ssize_t)size;
}

static struct error *refuse(const struct core_file *core, const char *why)
{
	return error_new(ERROR_INPUT, "%s %s", core->path, why);
}

static struct error *check_header(const struct core_file *core, const Elf64_Ehdr *eh)
{
	if (!memcmp(eh->e_ident, "\x04\x22\x4d\x18", 4))
		return error_hint(refuse(core, "is compressed"), "decompress it first: lz4 -d");
	if (memcmp(eh->e_ident, ELFMAG, SELFMAG))
		return refuse(core, "is no core file: it is not ELF");
	if (eh->e_ident[EI_CLASS] != ELFCLASS64 || eh->e_machine != ARCH_CORE_MACHINE)
		return error_hint(refuse(core, "is of another architecture"),
		        "yrt reads cores of the architecture that it is built for");
	if (eh->e_type != ET_CORE)
		return error_hint(refuse(core, "is no core file but a program, a library or an object"),
		        "give the core only: it says which files it needs");
	return eh->e_phentsize == sizeof(Elf64_Phdr) ? NULL : refuse(core, "has a corrupt header");
}

/* More than 65,534 of them are counted in the first section's header. */
static u32 count_headers(const struct core_file *core, const Elf64_Ehdr *eh)
{
	Elf64_Shdr sh;

	if (eh->e_phnum != PN_XNUM)
		return eh->e_phnum;
	return read_at(core, &sh, sizeof(sh), eh->e_shoff) && sh.sh_info < SEGMENTS_MAX ? sh.sh_info : 0;
}

static struct error *read_headers(const struct core_file *core, Elf64_Phdr **ret, u32 *n)
{
	Elf64_Ehdr eh = {0};
	struct error *err;

	if (!read_at(core, &eh, sizeof(eh), 0))
		return refuse(core, "is empty, or cut in its header");
	err = check_header(core, &eh);
	if (err)
		return err;
	*n = count_headers(core, &eh);
	*ret = calloc(*n + 1, sizeof(**ret));
	if (!*ret)
		return &error_no_memory;
	if (*n && read_at(core, *ret, *n * sizeof(**ret), eh.e_phoff))
		return NULL;
	free(*ret);
	*ret = NULL;
	return refuse(core, "is cut before its table of segments ends");
}

static struct error *add_segment(struct core_file *core, const Elf64_Phdr *ph)
{
	u64 end = ph->p_vaddr + ph->p_memsz, kept = ph->p_filesz < ph->p_memsz ? ph->p_filesz : ph->p_memsz;
	u64 there = ph->p_offset < core->size ? core->size - ph->p_offset : 0;
	struct error *err;

	if (end <= ph->p_vaddr)
		return NULL; /* corrupt, or empty */
	err = grow(&core->segments, core->nsegments, sizeof(*core->segments));
	if (err)
		return err;
	core->missing += kept > there ? kept - there : 0;
	core->segments[core->nsegments++] = (struct core_segment){
	        .start = ph->p_vaddr,
	        .end = end,
	        .offset = ph->p_offset,
	        .kept = kept < there ? kept : there,
	        .prot = (ph->p_flags & PF_R ? PROT_READ : 0) | (ph->p_flags & PF_W ? PROT_WRITE : 0) |
	                (ph->p_flags & PF_X ? PROT_EXEC : 0),
	};
	return NULL;
}

static int by_start(const void *a, const void *b)
{
	const struct core_segment *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* gcore's are in no order. Of those that overlap, which is corrupt, the first stays. */
static void sort_segments(struct core_file *core)
{
	u32 n = 0;

	if (core->nsegments)
		qsort(core->segments, core->nsegments, sizeof(*core->segments), by_start);
	for (u32 i = 0; i < core->nsegments; i++)
		if (!n || core->segments[i].start >= core->segments[n - 1].end)
			core->segments[n++] = core->segments[i];
	core->nsegments = n;
}

/* The first is that of the thread that was killed. */
static struct error *add_thread(struct core_file *core, const void *desc, size_t size)
{
	struct elf_prstatus status;
	struct user_regs_struct regs;
	struct error *err;

	if (size < sizeof(status))
		return NULL;
	memcpy(&status, desc, sizeof(status));
	memcpy(&regs, &status.pr_reg, sizeof(regs));
	err = grow(&core->threads, core->nthreads, sizeof(*core->threads));
	if (err)
		return err;
	if (!core->nthreads) {
		core->killed = (u32)status.pr_pid;
		core->signal = (u32)status.pr_cursig;
	}
	core->threads[core->nthreads].tid = (u32)status.pr_pid;
	arch_core_registers(&regs, &core->threads[core->nthreads++].at);
	return NULL;
}

static void take_process(struct core_file *core, const void *desc, size_t size)
{
	struct elf_prpsinfo info;

	if (size < sizeof(info) || core->pid)
		return;
	memcpy(&info, desc, sizeof(info));
	core->pid = (u32)info.pr_pid;
	snprintf(core->comm, sizeof(core->comm), "%.*s", (int)sizeof(info.pr_fname), info.pr_fname);
}

/* A signal that a process sent has no address. Its note comes behind that of the first thread. */
static void take_signal(struct core_file *core, const void *desc, size_t size)
{
	siginfo_t info;

	if (size < sizeof(info) || core->has_address)
		return;
	memcpy(&info, desc, sizeof(info));
	core->has_address = info.si_code > 0 && info.si_code != SI_KERNEL &&
	                    (info.si_signo == SIGSEGV || info.si_signo == SIGBUS || info.si_signo == SIGFPE ||
	                            info.si_signo == SIGILL || info.si_signo == SIGTRAP);
	core->address = core->has_address ? (u64)(uintptr_t)info.si_addr : 0;
	if ((u32)info.si_signo != core->signal)
		return;
	core->signal_code = info.si_code;
	core->sent = info.si_code <= 0;
	if (info.si_code == SI_USER || info.si_code == SI_TKILL || info.si_code == SI_QUEUE)
		core->sender = (u32)info.si_pid;
}

static void take_auxv(struct core_file *core, const u8 *desc, size_t size)
{
	Elf64_auxv_t a;

	for (size_t at = 0; at + sizeof(a) <= size; at += sizeof(a)) {
		memcpy(&a, desc + at, sizeof(a));
		if (a.a_type == AT_SYSINFO_EHDR)
			core->vdso = a.a_un.a_val;
	}
}

static struct error *file_of(struct core_file *core, const char *path, const char *root, u32 *ret)
{
	size_t len = strlen(path);
	struct core_mapped *f;
	struct error *err;

	len -= len > 10 && !strcmp(path + len - 10, " (deleted)") ? 10 : 0;
	for (*ret = core->nfiles; *ret && *ret + FILES_NEAR > core->nfiles; --*ret)
		if (strlen(core->files[*ret - 1].path) == len && !strncmp(core->files[*ret - 1].path, path, len))
			return NULL;
	err = core->nfiles < FILES_MAX ? grow(&core->files, core->nfiles, sizeof(*core->files)) : NULL;
	if (err || core->nfiles == FILES_MAX)
		return err;
	f = &core->files[core->nfiles++];
	*f = (struct core_mapped){.path = strndup(path, len), .fd = -1};
	if (!f->path || asprintf(&f->here, "%s%s", root ? root : "", f->path) < 0) {
		f->here = NULL;
		return &error_no_memory;
	}
	*ret = core->nfiles;
	return NULL;
}

/* gcore leaves out what is only in files: its protection is what the file says. */
static struct error *add_unkept(struct core_file *core, const u64 *line, u64 unit, u32 file)
{
	struct error *err = line[1] > line[0] ? grow(&core->segments, core->nsegments, sizeof(*core->segments)) : NULL;

	if (!err && line[1] > line[0])
		core->segments[core->nsegments++] = (struct core_segment){
		        .start = line[0],
		        .end = line[1],
		        .prot = CORE_PROT_UNKNOWN,
		        .file = file,
		        .file_offset = line[2] * unit,
		};
	return err;
}

/* Says of the segments from *k to n which part of a file they map. Both are in order. */
static struct error *map_file(struct core_file *core, const u64 *line, u64 unit, u32 file, u32 *k, u32 n)
{
	u32 end;

	if (!line[2])
		core->files[file - 1].start = line[0];
	while (*k < n && core->segments[*k].end <= line[0])
		++*k;
	if (*k == n || core->segments[*k].start >= line[1])
		return add_unkept(core, line, unit, file);
	end = *k + PARTS_MAX < n ? *k + PARTS_MAX : n;
	for (u32 i = *k; i < end && core->segments[i].start < line[1]; i++) {
		core->segments[i].file = file;
		core->segments[i].file_offset = line[2] * unit + (core->segments[i].start - line[0]);
	}
	return NULL;
}

/* Numbers of the note: how many, the unit of offsets, then of each its start, end and offset; then the paths. */
static struct error *take_files(struct core_file *core, const char *desc, size_t size, const char *root)
{
	const char *path, *end;
	struct error *err = NULL;
	u64 head[2], line[3];
	u32 k = 0, file = 0, n = core->nsegments;

	if (size < sizeof(head))
		return NULL;
	memcpy(head, desc, sizeof(head));
	if (head[0] > (size - sizeof(head)) / sizeof(line) || !head[1] || head[1] > PAGE_MAX)
		return NULL;
	path = desc + sizeof(head) + head[0] * sizeof(line);
	for (u64 i = 0; !err && i < head[0]; i++, path = end + 1) {
		end = memchr(path, '\0', (size_t)(desc + size - path));
		if (!end)
			break;
		if (*path != '/')
			continue;
		memcpy(line, desc + sizeof(head) + i * sizeof(line), sizeof(line));
		err = file_of(core, path, root, &file);
		if (!err && file)
			err = map_file(core, line, head[1], file, &k, n);
	}
	sort_segments(core);
	return err;
}

static struct error *take_note(
        struct core_file *core, const Elf64_Nhdr *nh, const char *name, const char *desc, const char *root)
{
	if (nh->n_namesz != sizeof("CORE") || memcmp(name, "CORE", sizeof("CORE")))
		return NULL;
	switch (nh->n_type) {
	case NT_PRSTATUS:
		return add_thread(core, desc, nh->n_descsz);
	case NT_PRPSINFO:
		take_process(core, desc, nh->n_descsz);
		return NULL;
	case NT_SIGINFO:
		take_signal(core, desc, nh->n_descsz);
		return NULL;
	case NT_AUXV:
		take_auxv(core, (const u8 *)desc, nh->n_descsz);
		return NULL;
	case NT_FILE:
		return take_files(core, desc, nh->n_descsz, root);
	}
	return NULL;
}

static struct error *read_notes(struct core_file *core, const Elf64_Phdr *ph, const char *root)
{
	u64 there = ph->p_offset < core->size ? core->size - ph->p_offset : 0;
	size_t size = ph->p_filesz < there ? ph->p_filesz : there, at = 0;
	cleanup(free) char *notes = size <= NOTES_MAX ? malloc(size + 1) : NULL;
	struct error *err = NULL;

	if (!notes)
		return size <= NOTES_MAX ? &error_no_memory : refuse(core, "has too large notes");
	if (!read_at(core, notes, size, ph->p_offset))
		return NULL;
	while (!err && size - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr nh;
		size_t name = at + sizeof(nh), desc;

		memcpy(&nh, notes + at, sizeof(nh));
		desc = name + (((size_t)nh.n_namesz + 3) & ~3ul);
		if (desc > size || nh.n_descsz > size - desc)
			break;
		err = take_note(core, &nh, notes + name, notes + desc, root);
		at = desc + (((size_t)nh.n_descsz + 3) & ~3ul);
		if (at > size)
			break;
	}
	return err;
}

/* Segments come first: notes say what they are of. */
static struct error *read_core(struct core_file *core, const char *root)
{
	cleanup(free) Elf64_Phdr *ph = NULL;
	u32 n = 0;
	struct error *err = read_headers(core, &ph, &n);

	for (u32 i = 0; !err && i < n; i++)
		if (ph[i].p_type == PT_LOAD)
			err = add_segment(core, &ph[i]);
	sort_segments(core);
	for (u32 i = 0; !err && i < n; i++)
		if (ph[i].p_type == PT_NOTE)
			err = read_notes(core, &ph[i], root);
	if (!err && !core->nthreads)
		err = error_hint(refuse(core, "has no threads"),
		        "it is cut, or was written by a program that yrt does not know");
	return err;
}

/* In place of a pipe, or of a packed file: the file that it becomes. */
static struct error *unpack(struct core_file *core, bool is_file)
{
	u8 magic[8];
	ssize_t n = is_file ? pread(core->fd, magic, sizeof(magic), 0) : 0;
	struct error *err;
	struct stat st;
	int fd;

	if (is_file && (n <= 0 || !core_is_packed(magic, (size_t)n)))
		return NULL;
	err = core_unpack(core->fd, core->path, &fd, &core->unpacked_cut);
	if (err)
		return err;
	close(core->fd);
	core->fd = fd;
	if (fstat(fd, &st))
		return error_errno(errno, "cannot unpack %s", core->path);
	core->size = (u64)st.st_size;
	return NULL;
}

static struct error *open_file(struct core_file *core, const char *path)
{
	bool is_stdin = !strcmp(path, "-");
	struct stat st;

	core->path = strdup(is_stdin ? "stdin" : path);
	core->fd = is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (!core->path)
		return &error_no_memory;
	if (core->fd < 0 || fstat(core->fd, &st))
		return error_new(errno == EACCES || errno == EPERM ? ERROR_PERMISSION : ERROR_INPUT,
		        "cannot read %s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) && !is_stdin)
		return refuse(core, "is no file");
	core->size = (u64)st.st_size;
	core->mtime_ns = S_ISREG(st.st_mode) ? mtime_ns(&st) : 0; /* of a pipe: nobody knows */
	return unpack(core, S_ISREG(st.st_mode));
}

struct error *core_open(const char *path, const char *root, struct core_file **ret)
{
	struct core_file *core = calloc(1, sizeof(*core));
	struct error *err;

	if (!core)
		return &error_no_memory;
	err = open_file(core, path);
	if (!err)
		err = read_core(core, root);
	if (err) {
		core_close(core);
		return err;
	}
	*ret = core;
	return NULL;
}

void core_close(struct core_file *core)
{
	if (!core)
		return;
	for (u32 i = 0; i < core->nfiles; i++) {
		cleanup_close(&core->files[i].fd);
		free(core->files[i].path);
		free(core->files[i].here);
	}
	cleanup_close(&core->fd);
	free(core->files);
	free(core->segments);
	free(core->threads);
	free(core->path);
	free(core);
}
