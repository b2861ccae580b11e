/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks of asyncio, and what coroutines await, of a Python whose memory is any bytes (any_bytes.h). The first
 * byte chooses the version, the second where a read fails.
 */
#include <string.h>

#include "any_bytes.h"
#include "runtimes/python/python_coro.h"
#include "runtimes/python/python_tasks.h"

#define READS 4000

static struct python_layout layout(u32 version)
{
	bool object = version < 0x030b0000;

	return (struct python_layout){.runtime_interpreters = {40, 8},
	        .interp_modules = {24, 8},
	        .interp_threads = {16, 8},
	        .ts_next = {8, 8},
	        .ob_type = {8, 8},
	        .ob_size = {16, 8},
	        .f_code = {0, object ? 0 : 8},
	        .f_prev_instr = {56, object ? 0 : 8},
	        .f_owner = {70, 1},
	        .f_stackpointer = {64, 8},
	        .gen_frame = {72, 8},
	        .gen_state = {67, 1},
	        .fo_code = {32, 8},
	        .fo_lasti = {96, 4},
	        .co_bytes = {48, object ? 8 : 0},
	        .co_code = {184, 1},
	        .co_firstlineno = {68, 4},
	        .co_consts = {24, 8},
	        .co_names = {32, 8},
	        .co_filename = {112, 8},
	        .co_name = {120, 8},
	        .co_linetable = {136, 8},
	        .bytes_data = {32, 1},
	        .str_length = {16, 8},
	        .str_state = {32, 4},
	        .str_ascii = {48, 48},
	        .str_compact = {72, 72}};
}

static struct error *add(void *ctx, const struct runtime_task *t)
{
	u32 *n = ctx;

	if (t->nframes > PYTHON_CORO_DEPTH || t->nawaited_by > RUNTIME_TASK_AWAITERS ||
	        strnlen(t->name, sizeof(t->name)) == sizeof(t->name) ||
	        strnlen(t->state, sizeof(t->state)) == sizeof(t->state))
		__builtin_trap();
	++*n;
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const u32 versions[] = {
	        0x03080000, 0x030a0000, 0x030b0000, 0x030c0000, 0x030d0000, 0x030e0000, 0x030f0000};
	static struct python_chain chain;
	struct bytes b = {.memory.read = read_bytes, .data = data, .size = size};
	struct runtime_process p = {.memory = &b.memory};
	struct python_image image = {0};
	struct python_layout l;
	u32 left = READS, n = 0;
	struct python_reader r = {.mem = &b.memory, .l = &l, .left = &left};
	struct python_coros coros = {.r = &r};

	if (size < 16)
		return 0;
	image.version = r.version = versions[data[0] % 7];
	image.layout = &l;
	l = layout(r.version);
	b.fail = data[1];
	coros.names = python_names_create(&l, data[2] * 8ull);
	if (!coros.names)
		return 0;
	error_free(python_tasks(&image, 0, coros.names, READS, &p, add, &n));
	python_chain(&coros, data[3] * 8ull, &chain);
	if (chain.n > PYTHON_CORO_DEPTH)
		__builtin_trap();
	table_free(&coros.kinds);
	python_names_destroy(coros.names);
	return 0;
}
