/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces of any bytes, expanded. Of the input the first byte chooses the build (64-bit references, places kept) and the
 * next two where in the code; the rest overwrites a working trace, three bytes (where, how many) before each piece.
 */
#include "overwrite.h"
#include "tests/unit/trace_fake.h"

static void check(const struct frame *ret, u32 n, u32 eaten)
{
	if (eaten != 3 || !n || n > RUNTIME_EXPAND_MAX)
		abort();
	for (u32 i = 0; i < n; i++)
		if (frame_kind(&ret[i]) != FRAME_SCRIPT || frame_runtime(&ret[i]) != RUNTIME_LUAJIT)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frame frames[3], ret[RUNTIME_EXPAND_MAX];
	struct luajit_traces *traces;
	struct trace_fake *f;
	u32 n, eaten;

	if (size < 3)
		return 0;
	f = trace_fake_create(data[0] & 1);
	if (data[0] & 2)
		f->layout.snap_mcofs.size = 0;
	fake_frames(f, f->code + data[1], data[2], frames);
	overwrite(f->bytes + 4096, f->free - FAKE_START - 4096, data + 3, size - 3);
	fake_member(f, FAKE_G, f->layout.g_mainthref, FAKE_START + 4096);
	fake_member(f, FAKE_START + 4096, f->layout.l_glref, FAKE_G);
	traces = luajit_traces_create(&f->image);
	if (!traces)
		abort();
	for (u32 flags = 0; flags < 4; flags++) {
		n = luajit_expand(traces, &f->memory, frames, 3, flags, ret, RUNTIME_EXPAND_MAX, &eaten);
		check(ret, n, eaten);
	}
	luajit_traces_destroy(traces);
	free(f);
	return 0;
}
