/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Perl walker and its naming over a heap of any bytes. Of the input the first bytes choose where the walk begins
 * and a read that fails; the rest overwrites memory.
 */
#include "overwrite.h"
#include "tests/unit/perl_fake.h"

static void build(struct perl_fake *p)
{
	u64 package = perl_fake_package(p, "Some::Package"), a = perl_fake_cv(p, package, "a", 1, false);
	u64 b = perl_fake_cv(p, package, "b", 20, true);

	p->cv = b;
	fake_put(p->f, p->interpreter + p->layout.i_curcop.at, perl_fake_cop(p, 99));
	perl_fake_context(p, 2, 0, 0, 1);
	perl_fake_call(p, p->run);
	perl_fake_call(p, p->runops);
	perl_fake_context(p, 9, a, 8, 2);
	perl_fake_call(p, p->sort);
	perl_fake_stack(p, PERL_STACK_SORT);
	perl_fake_context(p, 0, 0, 0, 3);
	perl_fake_call(p, p->runops);
	perl_fake_context(p, 9, b, 8, 4);
	perl_fake_call(p, p->xs);
	perl_fake_call(p, p->enter);
	perl_fake_stack(p, PERL_STACK_MAGIC);
	perl_fake_context(p, 11, 0, 0, 5);
	perl_fake_context(p, 9, a, 0, 5);
	perl_fake_call(p, p->runops);
	perl_fake_call(p, p->catch);
	perl_fake_context(p, 11 | PERL_CX_BLOCK, 0, 8, 6);
	perl_fake_call(p, p->runops);
	perl_fake_call(p, p->c);
}

static void name_all(struct perl_fake *p)
{
	struct perl_names *names = perl_names_create(&p->image, 0);
	struct frame_name name;

	if (!names)
		abort();
	for (u32 i = 0; i < p->f->walk.nframes; i++)
		if (frame_kind(&p->f->frames[i]) == FRAME_SCRIPT)
			perl_name_frame(names, &p->f->memory, &p->f->frames[i], &name);
	perl_names_destroy(names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct perl_fake *made;
	static u8 clean[FAKE_BYTES];
	struct perl_fake p;
	int stop;

	if (size < 4)
		return 0;
	if (!made) {
		made = perl_fake_create();
		build(made);
		memcpy(clean, made->f->stack, FAKE_BYTES);
	}
	p = *made;
	memcpy(p.f->stack, clean, FAKE_BYTES);
	if (data[0] & 1)
		p.pc = (data[0] & 2 ? p.pushing : p.runops) + FAKE_RETURN;
	p.f->fail = data[1];
	p.f->failures = data[2] & 3;
	/* stacks of native frames and everything above */
	overwrite(p.f->stack + (p.sp - FAKE_STACK), p.heap - p.sp, data + 3, size - 3);
	stop = perl_fake_walk(&p);
	if (stop <= STOP_NONE || stop >= STOP_MAX)
		abort();
	p.f->failures = 0;
	name_all(&p);
	return 0;
}
