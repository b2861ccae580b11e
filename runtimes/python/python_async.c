/* SPDX-License-Identifier: Apache-2.0 */
#include "python_async.h"

#define SECTION       ".AsyncioDebug"
#define FIRST_VERSION 0x030e0000
#define NEXT_VERSION  0x030f0000 /* numbers of states, and a word more below the stack pointer */

/* The section in 8-byte words. */
enum {
	TASK_SIZE,
	TASK_AWAITED_BY = 2,
	TASK_IS_TASK,
	TASK_AWAITED_BY_IS_SET,
	TASK_CORO,
	TASK_NODE,
	INTERP_SIZE,
	INTERP_HEAD,
	STATE_SIZE,
	STATE_TASK = 11,
	STATE_HEAD,
	WORDS = 13,
};

static bool read_section(struct image *img, u64 *words)
{
	u64 addr, size;

	return image_section_range(img, SECTION, &addr, &size) && size >= WORDS * sizeof(*words) &&
	       image_read(img, words, WORDS * sizeof(*words), addr);
}

static bool find_section(const struct runtime_process *p, u64 *words)
{
	const struct image *last = NULL;

	for (u32 i = 0; i < p->nmappings; i++) {
		if (!p->mappings[i].image || p->mappings[i].image == last)
			continue;
		last = p->mappings[i].image;
		if (read_section(p->mappings[i].image, words))
			return true;
	}
	return false;
}

static bool makes_sense(const u64 *words)
{
	for (u32 i = TASK_AWAITED_BY; i <= TASK_CORO; i++)
		if (words[i] >= words[TASK_SIZE])
			return false;
	return words[TASK_SIZE] <= UINT16_MAX && words[STATE_SIZE] <= UINT16_MAX &&
	       words[STATE_TASK] < words[STATE_SIZE] && words[STATE_TASK] % 8 == 0;
}

/* A coroutine's frame, as far as it is looked at, must be in what is read of a coroutine at once. */
static bool fits(const struct python_layout *l)
{
	const struct layout_member words[] = {l->f_executable, l->f_instr_ptr, l->f_stackpointer};

	if (!l->gen_frame.size || l->gen_frame.at % 8 || l->gen_state.at >= PYTHON_CORO_BYTES || !l->set_used.size)
		return false;
	for (u32 i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (words[i].size != 8 || words[i].at % 8 || l->gen_frame.at + words[i].at + 8 > PYTHON_CORO_BYTES)
			return false;
	return true;
}

void python_async_find(
        const struct python_image *image, u64 bias, const struct runtime_process *p, struct python_vm *vm)
{
	const struct python_layout *l = image->layout;
	bool next = image->version >= NEXT_VERSION;
	u64 words[WORDS];

	if (vm->awaits.ts_task || image->version < FIRST_VERSION || !fits(l) || !find_section(p, words) ||
	        !makes_sense(words))
		return;
	vm->awaits = (struct python_awaits){
	        .coro_type = bias + image->coro_type,
	        .task_awaited_by = (u16)words[TASK_AWAITED_BY],
	        .task_awaited_by_is_set = (u16)words[TASK_AWAITED_BY_IS_SET],
	        .task_is_task = (u16)words[TASK_IS_TASK],
	        .task_coro = (u16)words[TASK_CORO],
	        .gen_frame = l->gen_frame.at,
	        .gen_state = l->gen_state.at,
	        .f_stackpointer = l->f_stackpointer.at,
	        .set_used = l->set_used.at,
	        .set_table = l->set_table.at,
	        .set_mask = l->set_mask.at,
	        .awaiting = next ? 2 : (u8)-1,
	        .awaited_below = next ? 16 : 8,
	};
	__atomic_store_n(&vm->awaits.ts_task, (u16)words[STATE_TASK], __ATOMIC_RELEASE);
}

bool python_async_list(const struct python_image *image, const struct runtime_process *p, struct python_task_list *ret)
{
	u64 words[WORDS];

	if (image->version < FIRST_VERSION || !find_section(p, words) || !makes_sense(words) ||
	        words[TASK_NODE] >= words[TASK_SIZE] || words[INTERP_HEAD] >= words[INTERP_SIZE] ||
	        words[INTERP_SIZE] > UINT32_MAX || words[STATE_HEAD] >= words[STATE_SIZE])
		return false;
	*ret = (struct python_task_list){.interp_head = (u32)words[INTERP_HEAD],
	        .ts_head = (u32)words[STATE_HEAD],
	        .task_node = (u32)words[TASK_NODE],
	        .task_awaited_by = (u32)words[TASK_AWAITED_BY],
	        .task_awaited_by_is_set = (u32)words[TASK_AWAITED_BY_IS_SET]};
	return true;
}
