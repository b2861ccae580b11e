/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel_types.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <types.h>
#include <unistd.h>
#include <xxhash.h>

#include "unwind/binary/image.h"
#include "unwind/cfi/cfi_cache_dir.h"
#include "unwind/cleanup.h"
#include "unwind/hex_text.h"

#define NOTES     "/sys/kernel/notes"
#define NOTES_MAX 4096
#define DEPTH_MAX 64 /* of structures in structures; the kernel has about ten */
#define BUCKETS   4096
#define VERSION   1 /* raise it when a file has other types for the same two keys */

struct copy {
	const struct btf *from;
	struct btf *to;
	u32 *ids; /* by id in from; 0: not copied yet */
	bool failed;
};

static void cleanup_btf(struct btf **btf)
{
	btf__free(*btf);
}

/* The kernel's build-id in hex; "": unknown. */
static void read_build_id(char *hex)
{
	cleanup(close) int fd = open(NOTES, O_RDONLY | O_CLOEXEC);
	u8 notes[NOTES_MAX];
	ssize_t size = fd < 0 ? 0 : read(fd, notes, sizeof(notes));
	Elf64_Nhdr head;

	*hex = '\0';
	for (size_t at = 0; size > 0 && at + sizeof(head) <= (size_t)size;) {
		const u8 *name = notes + at + sizeof(head), *id;

		memcpy(&head, notes + at, sizeof(head));
		id = name + ((head.n_namesz + 3ull) & ~3ull);
		if (head.n_namesz > (size_t)size || head.n_descsz > (size_t)size || id + head.n_descsz > notes + size)
			return;
		if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && !memcmp(name, "GNU", 4) &&
		        head.n_descsz <= BUILD_ID_MAX) {
			hex_text(id, head.n_descsz, hex);
			return;
		}
		at = (size_t)(id - notes) + ((head.n_descsz + 3ull) & ~3ull);
	}
}

static const char *name_of(const struct btf *btf, const struct btf_type *t)
{
	return btf__str_by_offset(btf, t->name_off);
}

/* The length of a name without its flavour: "pt_regs___kernel" is the kernel's pt_regs. */
static size_t plain_length(const char *name)
{
	const char *flavour = strstr(name, "___");

	return flavour ? (size_t)(flavour - name) : strlen(name);
}

static u32 bucket_of(const char *name, size_t len)
{
	return (u32)XXH3_64bits(name, len) % BUCKETS;
}

/* In which buckets the names of our structures and unions are. */
static void fill_buckets(const struct btf *ours, bool buckets[BUCKETS])
{
	for (u32 i = 1; i < btf__type_cnt(ours); i++) {
		const struct btf_type *t = btf__type_by_id(ours, i);
		const char *name = name_of(ours, t);

		if (btf_is_composite(t))
			buckets[bucket_of(name, plain_length(name))] = true;
	}
}

static bool is_wanted(const struct btf *ours, const struct btf_type *t, const char *name)
{
	for (u32 i = 1; i < btf__type_cnt(ours); i++) {
		const struct btf_type *o = btf__type_by_id(ours, i);
		const char *other = name_of(ours, o);
		size_t len;

		if (btf_kind(o) != btf_kind(t) || *other != *name)
			continue;
		len = plain_length(other);
		if (!strncmp(name, other, len) && !name[len])
			return true;
	}
	return false;
}

static u32 copy_type(struct copy *c, u32 id, u32 depth);

static void copy_members(struct copy *c, u32 copied, u32 depth)
{
	u32 n = btf_vlen(btf__type_by_id(c->to, copied));

	for (u32 i = 0; i < n; i++) {
		u32 inner = copy_type(c, btf_members(btf__type_by_id(c->to, copied))[i].type, depth);

		btf_members(btf__type_by_id(c->to, copied))[i].type = inner; /* copying moves all types */
	}
}

static void copy_element(struct copy *c, u32 copied, u32 depth)
{
	u32 element = copy_type(c, btf_array(btf__type_by_id(c->to, copied))->type, depth);
	u32 index = copy_type(c, btf_array(btf__type_by_id(c->to, copied))->index_type, depth);

	btf_array(btf__type_by_id(c->to, copied))->type = element;
	btf_array(btf__type_by_id(c->to, copied))->index_type = index;
}

/* A type and what lies inside it by value. Returns its id in the copy. */
static u32 copy_type(struct copy *c, u32 id, u32 depth)
{
	const struct btf_type *t = btf__type_by_id(c->from, id);
	int copied;
	u32 inner;

	if (!id || !t || c->failed || btf_is_func_proto(t))
		return 0;
	if (c->ids[id])
		return c->ids[id];
	copied = depth < DEPTH_MAX ? btf__add_type(c->to, c->from, t) : -1;
	if (copied < 0) {
		c->failed = true;
		return 0;
	}
	c->ids[id] = (u32)copied;
	if (btf_is_composite(t)) {
		copy_members(c, (u32)copied, depth + 1);
	} else if (btf_is_array(t)) {
		copy_element(c, (u32)copied, depth + 1);
	} else if (btf_is_ptr(t)) {
		((struct btf_type *)btf__type_by_id(c->to, (u32)copied))->type = 0;
	} else if (btf_is_mod(t) || btf_is_typedef(t)) {
		inner = copy_type(c, t->type, depth + 1);
		((struct btf_type *)btf__type_by_id(c->to, (u32)copied))->type = inner;
	}
	return (u32)copied;
}

static void make(const char *cache_dir, const char *path, const void *bytes, size_t size)
{
	cleanup(btf) struct btf *ours = btf__new(bytes, (u32)size);
	cleanup(btf) struct btf *kernel = ours ? btf__load_vmlinux_btf() : NULL;
	cleanup(btf) struct btf *to = kernel ? btf__new_empty() : NULL;
	cleanup(free) u32 *ids = to ? calloc(btf__type_cnt(kernel), sizeof(*ids)) : NULL;
	struct copy copy = {.from = kernel, .to = to, .ids = ids};
	bool buckets[BUCKETS] = {false};
	const void *raw;
	u32 length;

	if (ids)
		fill_buckets(ours, buckets);
	for (u32 i = 1; ids && i < btf__type_cnt(kernel); i++) {
		const struct btf_type *t = btf__type_by_id(kernel, i);
		const char *name = btf_is_composite(t) ? name_of(kernel, t) : "";

		if (*name && buckets[bucket_of(name, strlen(name))] && is_wanted(ours, t, name))
			copy_type(&copy, i, 0);
	}
	raw = ids && !copy.failed ? btf__raw_data(to, &length) : NULL;
	if (raw)
		cache_put(cache_dir, path, raw, length);
}

/* Is it there, and BTF? */
static bool is_good(const char *path)
{
	size_t size;
	cleanup(close) int fd = cache_open(path, &size);
	cleanup(btf) struct btf *btf = fd < 0 ? NULL : btf__parse_raw(path);

	return btf && btf__type_cnt(btf) > 1;
}

char *kernel_types(const char *cache_dir, const void *ours, size_t size)
{
	char build_id[2 * BUILD_ID_MAX + 1], *path;

	read_build_id(build_id);
	if (!cache_dir || !*cache_dir || !*build_id ||
	        asprintf(&path, "%s/%s-%llx.btf", cache_dir, build_id,
	                (unsigned long long)XXH3_64bits_withSeed(ours, size, VERSION)) < 0)
		return NULL;
	if (is_good(path))
		return path;
	make(cache_dir, path, ours, size);
	if (is_good(path))
		return path;
	free(path);
	return NULL;
}
