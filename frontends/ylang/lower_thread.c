/* SPDX-License-Identifier: Apache-2.0 */
/* Thread-local variables, and loops over threads. */
#include "lower.h"

#include <elf.h>
#include <string.h>

#include "probes/y/y_kernel_types.h"
#include "target.h"
#include "unwind/binary/elf_table.h"

/*
 * Thread-local variables, and the C library's own list of threads, found in memory. Facts: "ELF Handling For
 * Thread-Local Storage" (Drepper), 3.4.6: the program's block ends at the thread pointer, rounded up to its alignment;
 * that of a library is below, too, or, loaded late, found by the vector behind the thread pointer. glibc says its
 * offsets for debuggers, in words of _thread_db_* (nptl_db/structs.def, db_info.c: bits, elements, offset); the thread
 * pointer is the address of its struct pthread (sysdeps/x86_64/nptl/tls.h: tcbhead_t, dtv is its second word, a pair
 * of words for each file). The lists are in _rtld_global since 2.34.
 */

#define FILES_MOST   65536u /* that are loaded */
#define HEADERS_MOST 256u
#define DTV_PAIR     16u
#define NO_GLIBC     "the C library is not glibc 2.34 or later, which says where"

static bool read_memory_word(struct y_target *t, u64 addr, u64 *ret)
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

/* NULL, or why it is not known where the variable is. */
static const char *y_target_thread_local(
        struct y_target *t, const struct y_target_object *o, struct y_thread_local *ret)
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
	        !find_link_map(t, o->module, &map) || !read_memory_word(t, map + at, &below))
		return NO_GLIBC;
	if (below && below < 1ul << 32) { /* NO_TLS_OFFSET is 0, FORCED_DYNAMIC_TLS_OFFSET -1 (include/link.h) */
		ret->offset -= below;
		return NULL;
	}
	if (!read_memory_word(t, map + number, &ret->vector) || !ret->vector || ret->vector > FILES_MOST)
		return NO_GLIBC;
	ret->vector *= DTV_PAIR;
	return NULL;
}

/* NULL, or why they are not known. */
static const char *y_target_threads(struct y_target *t, struct y_thread_lists *ret)
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

/* Where struct task_struct keeps a thread's pointer; 0: the kernel does not say. */
static u64 y_target_thread_pointer(struct y_target *t)
{
	struct y_kernel_types *k = y_target_kernel(t);
	const struct type *task = k ? y_kernel_type(k, TYPES_STRUCT, "task_struct") : NULL;
	u64 offset = 0;

	return kernel_member(kernel_member(task, "thread", &offset), "fsbase", &offset) ? offset : 0;
}

static u32 read_word(struct lower *l, const struct y_node *n, u32 base, u64 offset, enum y_type type)
{
	u32 dst = new_slot(l, type);
	struct y_insn *i = emit(l, n, Y_OP_LOAD, type);

	i->dst = dst;
	i->a = base;
	i->imm = offset;
	return dst;
}

/* Of the thread that a probe is in, or that a loop is at. */
static u32 thread_pointer(struct lower *l, const struct y_node *n)
{
	struct y_insn *i;
	u32 dst;
	u64 at;

	if (l->thread_pointer != Y_NONE)
		return l->thread_pointer;
	if (!l->in_probe)
		FAIL(l, n,
		        "%s is a thread-local variable: each thread has its own. A probe has that of its thread; "
		        "_foreach (_thread t) { … } goes through all threads",
		        n->name);
	at = y_target_thread_pointer(l->target);
	if (!at)
		FAIL(l, n, "%s is a thread-local variable, and this kernel does not say where a thread's are", n->name);
	dst = new_slot(l, Y_U64);
	i = emit(l, n, Y_OP_CONTEXT, Y_U64);
	i->dst = dst;
	i->a = (u32)at;
	i->imm = Y_THREAD_POINTER;
	return dst;
}

struct value lower_thread_local(struct lower *l, const struct y_node *n, const struct y_target_object *o)
{
	struct y_thread_local place;
	const char *why = y_target_thread_local(l->target, o, &place);
	u32 base;

	if (why)
		FAIL(l, n, "%s is a thread-local variable of %s: %s", n->name, l->target->modules[o->module].path, why);
	base = thread_pointer(l, n);
	if (place.vector)
		base = read_word(l, n, read_word(l, n, base, sizeof(u64), Y_U64), place.vector, Y_U64);
	if (l->explain)
		fprintf(l->explain, "%s: %s at %ld from %s of %s\n", n->name,
		        o->type ? y_type_text(l->s, o->type) : "no type", (long)place.offset,
		        place.vector ? "the thread's block" : "the thread's pointer",
		        l->target->modules[o->module].path);
	return (struct value){.kind = V_TARGET, .type = o->type ? o->type : &y_void, .slot = base, .imm = place.offset};
}

/* The body, for the thread of a link; one that has ended has no number. */
static void one_thread(struct lower *l, const struct y_node *n, u32 tid, u32 next)
{
	u32 inside = new_block(l), outer[] = {l->break_to, l->continue_to};

	emit_branch(l, emit_binary(l, NULL, Y_OP_LT, Y_I32, emit_const(l, Y_I32, 0), tid), inside, next);
	place_block(l, inside);
	l->continue_to = next;
	lower_statement(l, n->d);
	l->break_to = outer[0];
	l->continue_to = outer[1];
}

/* Through both of the C library's circles of threads. */
void lower_foreach_thread(struct lower *l, const struct y_node *n)
{
	u32 circle = new_block(l), test = new_block(l), inside = new_block(l), next = new_block(l),
	    around = new_block(l), second = new_block(l), end = new_block(l);
	u32 head = new_slot(l, Y_U64), link = new_slot(l, Y_U64), tid, outer = l->thread_pointer, last = l->break_to;
	struct variable *variables = l->variables;
	struct y_thread_lists lists;
	const char *why = y_target_threads(l->target, &lists);

	if (why)
		FAIL(l, n, "its threads are not known: %s", why);
	emit_move(l, head, emit_const(l, Y_U64, lists.heads[0]));
	place_block(l, circle);
	emit_move(l, link, read_word(l, n, head, 0, Y_U64));
	place_block(l, test);
	emit_branch(l, emit_binary(l, NULL, Y_OP_NE, Y_U64, link, head), inside, around);
	place_block(l, inside);
	emit(l, n, Y_OP_LOOP, Y_VOID);
	l->thread_pointer = emit_binary(l, NULL, Y_OP_SUB, Y_U64, link, emit_const(l, Y_U64, lists.link));
	tid = read_word(l, n, l->thread_pointer, lists.tid, Y_I32);
	declare_variable(l, n->list[0]->name, &y_int, tid);
	l->break_to = end;
	one_thread(l, n, tid, next);
	l->break_to = last;
	l->variables = variables;
	place_block(l, next);
	emit_move(l, link, read_word(l, n, link, 0, Y_U64));
	emit_jump(l, test);
	place_block(l, around);
	emit_branch(l, emit_binary(l, NULL, Y_OP_EQ, Y_U64, head, emit_const(l, Y_U64, lists.heads[0])), second, end);
	place_block(l, second);
	emit_move(l, head, emit_const(l, Y_U64, lists.heads[1]));
	emit_jump(l, circle);
	place_block(l, end);
	l->thread_pointer = outer;
}
