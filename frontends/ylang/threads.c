/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread-local variables, and the C library's own list of threads, found in memory. Facts: "ELF Handling For
 * Thread-Local Storage" (Drepper), 3.4.6: the program's block ends at the thread pointer, rounded up to its alignment;
 * that of a library is below, too, or, loaded late, found by the vector behind the thread pointer. glibc says its
 * offsets for debuggers, in words of _thread_db_* (nptl_db/structs.def, db_info.c: bits, elements, offset); the thread
 * pointer is the address of its struct pthread (sysdeps/x86_64/nptl/tls.h: tcbhead_t, dtv is its second word, a pair
 * of words for each file). The lists are in _rtld_global since 2.34.
 */
#include <elf.h>
#include <string.h>

#include "probes/y/y_kernel_types.h"
#include "target.h"
#include "unwind/binary/elf_table.h"

#define FILES_MOST   65536u /* that are loaded */
#define HEADERS_MOST 256u
#define DTV_PAIR     16u
#define NO_GLIBC     "the C library is not glibc 2.34 or later, which says where"

static bool read_word(struct y_target *t, u64 addr, u64 *ret)
{
	return t->memory && memory_read(t->memory, ret, sizeof(*ret), addr);
}

/* An offset that glibc says. */
static bool said(struct y_target *t, const char *name, u32 *ret)
{
	struct y_target_object o;
	u32 words[3];

	if (!t->memory || !y_target_place(t, NULL, name, &o) ||
	        !memory_read(t->memory, words, sizeof(words), t->modules[o.module].bias + o.addr))
		return false;
	*ret = words[2];
	return *ret < 1u << 20;
}

static bool find_header(const struct image *img, u32 type, Elf64_Phdr *ret)
{
	Elf64_Ehdr eh;

	if (!elf_read(img, &eh, sizeof(eh), 0) || eh.e_phentsize != sizeof(*ret))
		return false;
	for (u32 i = 0; i < eh.e_phnum && i < HEADERS_MOST; i++)
		if (elf_read(img, ret, sizeof(*ret), eh.e_phoff + i * sizeof(*ret)) && ret->p_type == type)
			return true;
	return false;
}

/* The dynamic linker's struct link_map of a module. */
static bool find_link_map(struct y_target *t, u32 module, u64 *ret)
{
	struct y_target_object o;
	u64 words[4]; /* struct r_debug: r_version, r_map; struct link_map: l_addr, l_name, l_ld, l_next */

	if (!t->memory || !y_target_place(t, NULL, "_r_debug", &o) ||
	        !memory_read(t->memory, words, 16, t->modules[o.module].bias + o.addr))
		return false;
	*ret = words[1];
	for (u32 i = 0; i < FILES_MOST && *ret; i++) {
		if (!memory_read(t->memory, words, sizeof(words), *ret))
			return false;
		if (*words == t->modules[module].bias && i) /* the first is the program */
			return true;
		*ret = words[3];
	}
	return false;
}

const char *y_target_thread_local(struct y_target *t, const struct y_target_object *o, struct y_thread_local *ret)
{
	Elf64_Phdr block;
	u32 at, number;
	u64 map, below;

	if (!find_header(t->modules[o->module].image, PT_TLS, &block) || o->addr >= block.p_memsz)
		return "its file has no place for such";
	*ret = (struct y_thread_local){.offset = o->addr};
	if (!o->module) {
		u64 align = block.p_align ? block.p_align : 1;

		ret->offset -= (block.p_memsz + align - 1) / align * align;
		return NULL;
	}
	if (!said(t, "_thread_db_link_map_l_tls_offset", &at) || !said(t, "_thread_db_link_map_l_tls_modid", &number) ||
	        !find_link_map(t, o->module, &map) || !read_word(t, map + at, &below))
		return NO_GLIBC;
	if (below && below < 1ul << 32) { /* NO_TLS_OFFSET is 0, FORCED_DYNAMIC_TLS_OFFSET -1 (include/link.h) */
		ret->offset -= below;
		return NULL;
	}
	if (!read_word(t, map + number, &ret->vector) || !ret->vector || ret->vector > FILES_MOST)
		return NO_GLIBC;
	ret->vector *= DTV_PAIR;
	return NULL;
}

const char *y_target_threads(struct y_target *t, struct y_thread_lists *ret)
{
	static const char *const heads[] = {
	        "_thread_db_rtld_global__dl_stack_used", "_thread_db_rtld_global__dl_stack_user"};
	struct y_target_object o;
	u32 at;

	if (!y_target_place(t, NULL, "_rtld_global", &o) || !said(t, "_thread_db_pthread_list", &ret->link) ||
	        !said(t, "_thread_db_pthread_tid", &ret->tid))
		return NO_GLIBC;
	for (u32 i = 0; i < 2; i++) {
		if (!said(t, heads[i], &at))
			return NO_GLIBC;
		ret->heads[i] = t->modules[o.module].bias + o.addr + at;
	}
	return NULL;
}

static const struct type *kernel_member(const struct type *type, const char *name, u64 *offset)
{
	struct type_member m;

	if (!type || !type_member(type, name, &m))
		return NULL;
	*offset += m.offset;
	return m.type;
}

u64 y_target_thread_pointer(struct y_target *t)
{
	struct y_kernel_types *k = y_target_kernel(t);
	const struct type *task = k ? y_kernel_type(k, TYPES_STRUCT, "task_struct") : NULL;
	u64 offset = 0;

	return kernel_member(kernel_member(task, "thread", &offset), "fsbase", &offset) ? offset : 0;
}
