/* SPDX-License-Identifier: Apache-2.0 */
#include "python_gil.h"

#define INTERPRETERS_MAX 64
#define HEAD_WITH_GIL	 8 /* PyObject.ob_type: a free-threaded build has more before it */

struct error *python_gil_known(const struct python_image *image, pid_t pid)
{
	const struct python_layout *l = image->layout;
	struct error *err;

	if (l->ob_type.at != HEAD_WITH_GIL)
		err = error_new(ERROR_UNSUPPORTED, "process %d runs a free-threaded Python: there is no GIL to hold", pid);
	else if (!l->interp_gil.size && !l->runtime_gil.size)
		err = error_new(ERROR_UNSUPPORTED, "process %d: it is not known where Python %u.%u has its GIL", pid,
		        image->version >> 24, image->version >> 16 & 0xff);
	else
		return NULL;
	return error_hint(err, "leave out --gil");
}

static void add(struct python_vm *vm, u64 gil)
{
	u32 i = 0;

	while (i < PYTHON_GILS_MAX && vm->gil[i] && vm->gil[i] != gil)
		i++;
	if (gil && i < PYTHON_GILS_MAX)
		vm->gil[i] = gil;
}

void python_gil_find(struct memory *mem, const struct python_layout *l, u64 runtime, struct python_vm *vm)
{
	u64 interp, gil;

	vm->ts_thread_id = l->ts_thread_id.at;
	if (l->runtime_gil.size) {
		add(vm, runtime + l->runtime_gil.at);
		return;
	}
	if (!memory_read(mem, &interp, sizeof(interp), runtime + l->runtime_interpreters.at))
		return;
	for (u32 i = 0; interp && i < INTERPRETERS_MAX; i++) {
		if (memory_read(mem, &gil, sizeof(gil), interp + l->interp_gil.at))
			add(vm, gil);
		if (!memory_read(mem, &interp, sizeof(interp), interp + l->interp_next.at))
			break;
	}
}
