/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python walker and its naming over a heap of any bytes. Of the input the first bytes choose the version, where the
 * walk begins and a read that fails; the rest overwrites memory.
 */
#include "overwrite.h"
#include "tests/unit/python_fake.h"

#define IMAGES 4 /* linkages */

struct image_of {
	struct python_fake *p;
	u8 clean[FAKE_BYTES];
};

/* The frame of the loop that was called last runs a task, which another one awaits. */
static void build_tasks(struct python_fake *p, u64 a, u64 b)
{
	u64 other, coro;

	python_fake_awaits(p, p->f->region[p->f->nregions - 1].vm);
	other = python_fake_task(p, python_fake_coroutine(p, a, python_fake_coroutine(p, b, 0)), 0, 0);
	python_fake_eval(p, (u64[]){a}, 1);
	coro = python_fake_coroutine(p, b, 0);
	python_fake_runs(p, coro, b, python_fake_task(p, coro, python_fake_set(p, other, 3, 1), 1));
}

static void build(struct python_fake *p)
{
	u64 a = python_fake_code(p, "outer", 1), b = python_fake_code(p, "Inner.call", 20);

	if (p->vm.linkage == PYTHON_FRAME_OBJECT) {
		python_fake_object(p, a, 4);
		python_fake_object_generator(p, python_fake_object_only(p, b, 2), 0);
		python_fake_object_generator(p, python_fake_object(p, b, 2), PYTHON_STATE);
	} else {
		python_fake_eval(p, (u64[]){a, b}, 2);
		python_fake_call(p, p->c, PYTHON_C_BYTES);
		python_fake_eval(p, (u64[]){b, b, a}, 3);
	}
	if (p->vm.linkage == PYTHON_NO_CFRAME)
		build_tasks(p, a, b);
	python_fake_call(p, p->c, PYTHON_C_BYTES);
}

static void name_all(struct python_fake *p)
{
	struct python_names *names = python_names_create(&p->layout, PYTHON_TYPE);
	struct frame_name name;

	if (!names)
		abort();
	for (u32 i = 0; i < p->f->walk.nframes; i++)
		if (frame_kind(&p->f->frames[i]) == FRAME_SCRIPT)
			python_name_frame(names, &p->f->memory, &p->f->frames[i], &name);
	python_names_destroy(names);
}

static void walk(struct image_of *image, const uint8_t *data, size_t size)
{
	struct python_fake p = *image->p;
	const u64 leaves[] = {p.pc, p.eval + 1, p.enter + FAKE_RETURN, p.link + FAKE_RETURN};
	int stop;

	memcpy(p.f->stack, image->clean, FAKE_BYTES);
	if (data[1] & 3) {
		p.pc = leaves[data[1] & 3];
		p.sp += PYTHON_C_BYTES;
	}
	p.f->fail = data[2];
	p.f->failures = data[1] >> 2 & 3;
	/* stacks of native frames and everything above */
	overwrite(p.f->stack + (p.sp - FAKE_STACK), p.heap - p.sp, data + 3, size - 3);
	stop = python_fake_walk(&p);
	if (stop <= STOP_NONE || stop >= STOP_MAX)
		abort();
	p.f->failures = 0;
	name_all(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct image_of images[IMAGES];

	if (size < 4)
		return 0;
	for (u32 i = 0; i < IMAGES && !images[i].p; i++) {
		images[i].p = python_fake_create((enum python_linkage)i);
		build(images[i].p);
		memcpy(images[i].clean, images[i].p->f->stack, FAKE_BYTES);
	}
	walk(&images[data[0] % IMAGES], data, size);
	python_line(data + 1, size - 1, data[0], (u32)size * data[0] % 512);
	python_line_310(data + 1, size - 1, data[0], (u32)size * data[0] % 512);
	python_line_39(data + 1, size - 1, data[0], (u32)size * data[0] % 512);
	return 0;
}
