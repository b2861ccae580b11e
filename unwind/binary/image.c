/* SPDX-License-Identifier: Apache-2.0 */
#include "image.h"

#include <elf.h>
#include <gelf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "cleanup.h"
#include "elf_table.h"
#include "hex_text.h"
#include "mtime.h"
#include "report.h"

#define SEGMENTS_MAX      4096
#define NOTES_MAX         (64u << 10) /* bytes of a PT_NOTE that are searched */
#define UNPACKED_MAX      (1ull << 30)
#define DATA_SECTIONS_MAX 256
#define NOTE_GO_ID        4 /* ELF_NOTE_GOBUILDID_TAG of cmd/link */

static const char *machine_name(u16 machine)
{
	static const struct {
		u16 machine;
		const char *name;
	} names[] = {
	        {EM_386, "i386"},
	        {EM_ARM, "arm"},
	        {EM_AARCH64, "aarch64"},
	        {EM_RISCV, "riscv"},
	        {EM_PPC64, "ppc64"},
	        {EM_S390, "s390x"},
	        {EM_MIPS, "mips"},
	        {EM_X86_64, "x86-64"},
	        {EM_LOONGARCH, "loongarch"},
	        {EM_PPC, "ppc"},
	        {EM_BPF, "bpf"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].machine == machine)
			return names[i].name;
	return "unknown";
}

static const char *type_name(u16 type)
{
	switch (type) {
	case ET_REL:
		return "a relocatable object";
	case ET_CORE:
		return "a core file";
	default:
		return "of an unknown ELF type";
	}
}

static struct error *check_header(struct image *img)
{
	Elf64_Ehdr eh;

	if (!elf_read(img, &eh, EI_NIDENT, 0) || memcmp(eh.e_ident, ELFMAG, SELFMAG))
		return error_new(ERROR_INPUT, "%s: not an ELF file", img->path);
	if (eh.e_ident[EI_CLASS] == ELFCLASS32)
		return error_new(ERROR_UNSUPPORTED, "%s: a 32-bit ELF file; only x86-64 is supported", img->path);
	if (eh.e_ident[EI_CLASS] != ELFCLASS64)
		return error_new(ERROR_INPUT, "%s: ELF class %u does not exist", img->path, eh.e_ident[EI_CLASS]);
	if (eh.e_ident[EI_DATA] != ELFDATA2LSB)
		return error_new(ERROR_UNSUPPORTED, "%s: a big-endian ELF file; only x86-64 is supported", img->path);
	if (!elf_read(img, &eh, sizeof(eh), 0))
		return error_new(ERROR_INPUT, "%s: ELF header is cut off at %llu bytes", img->path,
		        (unsigned long long)img->size);
	if (eh.e_machine != EM_X86_64)
		return error_new(ERROR_UNSUPPORTED, "%s: code for %s (ELF machine %u); only x86-64 is supported",
		        img->path, machine_name(eh.e_machine), eh.e_machine);
	if (eh.e_type != ET_EXEC && eh.e_type != ET_DYN && !(img->sections_only && eh.e_type == ET_REL))
		return error_new(ERROR_UNSUPPORTED, "%s: %s, not a program or a shared library", img->path,
		        type_name(eh.e_type));
	img->machine = eh.e_machine;
	img->type = eh.e_type;
	img->entry = eh.e_entry;
	return NULL;
}

static size_t note_align(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

/* Text of four parts, often longer than BUILD_ID_MAX. */
static void take_go_id(struct image *img, const char *text, size_t size)
{
	XXH128_hash_t hash = XXH3_128bits(text, size);

	img->go_id[0] = hash.low64;
	img->go_id[1] = hash.high64;
}

static void find_build_id(struct image *img, const char *notes, size_t size)
{
	Elf64_Nhdr nh;

	while (size >= sizeof(nh)) {
		size_t name, desc;

		memcpy(&nh, notes, sizeof(nh));
		name = note_align(nh.n_namesz);
		desc = note_align(nh.n_descsz);
		notes += sizeof(nh);
		size -= sizeof(nh);
		if (name > size || nh.n_descsz > size - name)
			return;
		if (nh.n_type == NT_GNU_BUILD_ID && nh.n_namesz == 4 && !memcmp(notes, "GNU", 4) && nh.n_descsz &&
		        nh.n_descsz <= BUILD_ID_MAX) {
			memcpy(img->build_id, notes + name, nh.n_descsz);
			img->build_id_len = nh.n_descsz;
			return;
		}
		if (nh.n_type == NOTE_GO_ID && nh.n_namesz == 4 && !memcmp(notes, "Go\0", 4) && nh.n_descsz)
			take_go_id(img, notes + name, nh.n_descsz);
		if (desc > size - name)
			return;
		notes += name + desc;
		size -= name + desc;
	}
}

static void read_notes(struct image *img, const Elf64_Phdr *ph)
{
	size_t size = MIN(ph->p_filesz, NOTES_MAX);
	cleanup(free) char *notes = malloc(size ? size : 1);

	if (notes && !img->build_id_len && elf_read(img, notes, size, ph->p_offset))
		find_build_id(img, notes, size);
}

static void add_segment(struct image *img, const Elf64_Phdr *ph)
{
	struct image_segment *seg = &img->segments[img->nsegments];

	if (ph->p_vaddr + ph->p_memsz < ph->p_vaddr || ph->p_offset > img->size)
		return;
	*seg = (struct image_segment){
	        .vaddr = ph->p_vaddr,
	        .memsz = ph->p_memsz,
	        .offset = ph->p_offset,
	        .filesz = MIN(MIN(ph->p_filesz, ph->p_memsz), img->size - ph->p_offset),
	        .flags = ph->p_flags,
	};
	img->nsegments++;
}

static void read_segment(struct image *img, const Elf64_Phdr *ph)
{
	switch (ph->p_type) {
	case PT_LOAD:
		add_segment(img, ph);
		break;
	case PT_NOTE:
		read_notes(img, ph);
		break;
	case PT_GNU_EH_FRAME:
		img->eh_frame_hdr = ph->p_vaddr;
		img->eh_frame_hdr_size = ph->p_memsz;
		break;
	}
}

static struct error *read_segments(struct image *img)
{
	GElf_Phdr ph;
	size_t n;

	if (elf_getphdrnum(img->elf, &n) || !n || n > SEGMENTS_MAX)
		return error_new(ERROR_INPUT, "%s: no readable ELF program headers", img->path);
	img->segments = calloc(n, sizeof(*img->segments));
	if (!img->segments)
		return &error_no_memory;
	for (size_t i = 0; i < n; i++) {
		if (!gelf_getphdr(img->elf, (int)i, &ph))
			return error_new(ERROR_INPUT, "%s: its ELF program headers are cut off", img->path);
		read_segment(img, &ph);
	}
	return NULL;
}

static void read_id_section(struct image *img)
{
	Elf_Data *data = image_section(img, ".note.gnu.build-id", NULL);

	if (data)
		find_build_id(img, data->d_buf, data->d_size);
}

Elf *image_open_elf(const struct image *img)
{
	return img->copy ? elf_memory(img->copy, img->size) : elf_begin(img->fd, ELF_C_READ, NULL);
}

static struct error *read_image(struct image *img)
{
	struct error *err = check_header(img);

	if (err)
		return err;
	elf_version(EV_CURRENT);
	img->elf = image_open_elf(img);
	if (!img->elf || elf_kind(img->elf) != ELF_K_ELF)
		return error_new(ERROR_INPUT, "%s: a corrupt ELF file", img->path);
	if (!img->sections_only)
		return read_segments(img);
	read_id_section(img);
	return NULL;
}

static struct error *read_stat(struct image *img)
{
	struct stat st;

	if (fstat(img->fd, &st))
		return error_errno(errno, "%s", img->path);
	if (!S_ISREG(st.st_mode))
		return error_new(ERROR_INPUT, "%s: not a regular file", img->path);
	img->size = (u64)st.st_size;
	img->dev = st.st_dev;
	img->ino = st.st_ino;
	img->mtime_ns = mtime_ns(&st);
	return NULL;
}

/* Takes over fd and copy. */
static struct error *image_create(
        int fd, void *copy, u64 size, const char *path, bool sections_only, struct image **ret)
{
	struct image *img = calloc(1, sizeof(*img));
	struct error *err = NULL;

	if (!img) {
		if (fd >= 0)
			close(fd);
		free(copy);
		return &error_no_memory;
	}
	*img = (struct image){
	        .path = strdup(path), .fd = fd, .copy = copy, .size = size, .refs = 1, .sections_only = sections_only};
	if (!img->path)
		err = &error_no_memory;
	if (!err && fd >= 0)
		err = read_stat(img);
	if (!err)
		err = read_image(img);
	if (err)
		image_put(img);
	else
		*ret = img;
	return err;
}

struct error *image_open(int fd, const char *path, struct image **ret)
{
	return image_create(fd, NULL, 0, path, false, ret);
}

struct error *image_open_sections(int fd, const char *path, struct image **ret)
{
	return image_create(fd, NULL, 0, path, true, ret);
}

struct error *image_from_memory(void *bytes, size_t size, const char *path, struct image **ret)
{
	return image_create(-1, bytes, size, path, false, ret);
}

/* A change of its content changes the time of change, which nobody can set. */
static bool file_identity(const struct image *img, u64 ret[2])
{
	struct {
		u64 dev, ino, size;
		s64 mtime[2], ctime[2];
	} id = {0};
	struct stat st;
	XXH128_hash_t hash;

	if (img->fd < 0 || fstat(img->fd, &st))
		return false;
	id.dev = st.st_dev;
	id.ino = st.st_ino;
	id.size = (u64)st.st_size;
	id.mtime[0] = st.st_mtim.tv_sec;
	id.mtime[1] = st.st_mtim.tv_nsec;
	id.ctime[0] = st.st_ctim.tv_sec;
	id.ctime[1] = st.st_ctim.tv_nsec;
	hash = XXH3_128bits(&id, sizeof(id));
	ret[0] = hash.low64;
	ret[1] = hash.high64;
	return true;
}

u32 image_identity(const struct image *img, u8 *ret)
{
	u64 id[2] = {img->go_id[0], img->go_id[1]};

	if (img->build_id_len) {
		memcpy(ret, img->build_id, img->build_id_len);
		return img->build_id_len;
	}
	if (!id[0] && !file_identity(img, id))
		return 0;
	memcpy(ret, id, sizeof(id));
	return sizeof(id);
}

void image_id_text(const struct image *img, char ret[IMAGE_ID_TEXT])
{
	hex_text(img->build_id, img->build_id_len < BUILD_ID_MAX ? img->build_id_len : BUILD_ID_MAX, ret);
}

void image_report(const struct image *img, struct report *out)
{
	char id[IMAGE_ID_TEXT] = "";

	if (img)
		image_id_text(img, id);
	report_section(out, "module", NULL);
	report_text(out, "file", NULL, "%s", img ? img->path : "?");
	report_text(out, "build-id", NULL, "%s", *id ? id : "none");
}

struct image *image_get(struct image *img)
{
	img->refs++;
	return img;
}

void image_put(struct image *img)
{
	if (!img || --img->refs)
		return;
	if (img->symbols)
		img->destroy.symbols(img->symbols);
	if (img->rtti)
		img->destroy.rtti(img->rtti);
	if (img->cfi)
		img->destroy.cfi(img->cfi);
	elf_end(img->elf);
	if (img->fd >= 0)
		close(img->fd);
	free(img->copy);
	free(img->segments);
	free(img->path);
	free(img);
}

static Elf_Scn *find_section(struct image *img, const char *name, GElf_Shdr *ret)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(img->elf, &names))
		return NULL;
	while ((scn = elf_nextscn(img->elf, scn))) {
		const char *found;

		if (!gelf_getshdr(scn, ret) || ret->sh_type == SHT_NOBITS || ret->sh_type == SHT_NULL)
			continue;
		found = elf_strptr(img->elf, names, ret->sh_name);
		if (found && !strcmp(found, name))
			return scn;
	}
	return NULL;
}

Elf_Data *image_section(struct image *img, const char *name, u64 *ret_addr)
{
	GElf_Shdr sh;
	GElf_Chdr ch;
	Elf_Scn *scn = find_section(img, name, &sh);
	Elf_Data *data;

	if (!scn)
		return NULL;
	/* libelf below 0.189 does not know zstd: such a section is as good as absent */
	if (sh.sh_flags & SHF_COMPRESSED &&
	        (!gelf_getchdr(scn, &ch) || ch.ch_size > UNPACKED_MAX || elf_compress(scn, 0, 0) < 0))
		return NULL;
	data = elf_getdata(scn, NULL);
	if (!data || !data->d_buf || !data->d_size)
		return NULL;
	if (ret_addr)
		*ret_addr = sh.sh_addr;
	return data;
}

/* libelf keeps each section until its handle is closed. */
void image_rest(struct image *img)
{
	Elf *fresh = img->fd >= 0 ? elf_begin(img->fd, ELF_C_READ, NULL) : NULL;

	if (!fresh)
		return;
	elf_end(img->elf);
	img->elf = fresh;
}

bool image_section_range(struct image *img, const char *name, u64 *ret_addr, u64 *ret_size)
{
	GElf_Shdr sh;

	if (!find_section(img, name, &sh) || !(sh.sh_flags & SHF_ALLOC) || sh.sh_flags & SHF_COMPRESSED)
		return false;
	*ret_addr = sh.sh_addr;
	*ret_size = sh.sh_size;
	return true;
}

void image_data_sections(struct image *img, void (*each)(void *arg, u64 addr, u64 size), void *arg)
{
	u32 left = DATA_SECTIONS_MAX;
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	while (left && (scn = elf_nextscn(img->elf, scn)))
		if (gelf_getshdr(scn, &sh) && sh.sh_type != SHT_NOBITS && sh.sh_type != SHT_NULL &&
		        (sh.sh_flags & (SHF_ALLOC | SHF_EXECINSTR)) == SHF_ALLOC) {
			each(arg, sh.sh_addr, sh.sh_size);
			left--;
		}
}

bool image_read(struct image *img, void *dst, size_t size, u64 vaddr)
{
	for (u32 i = 0; i < img->nsegments; i++) {
		const struct image_segment *seg = &img->segments[i];
		u64 at = vaddr - seg->vaddr;

		if (vaddr >= seg->vaddr && at <= seg->filesz && size <= seg->filesz - at)
			return elf_read(img, dst, size, seg->offset + at);
	}
	return false;
}

bool image_has_code(const struct image *img, u64 start, u64 end)
{
	for (u32 i = 0; i < img->nsegments; i++) {
		const struct image_segment *seg = &img->segments[i];

		if (seg->flags & PF_X && start >= seg->vaddr && start <= end && end - seg->vaddr <= seg->filesz)
			return true;
	}
	return false;
}
