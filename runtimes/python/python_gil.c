/* SPDX-License-Identifier: Apache-2.0 */
#include "python_gil.h"

#define HEAD_WITH_GIL 8 /* PyObject.ob_type: a free-threaded build has more before it */

struct error *python_gil_known(const struct python_image *image, pid_t pid)
{
	const struct python_layout *l = image->layout;
	struct error *err;

	if (l->ob_type.at != HEAD_WITH_GIL)
		err = error_new(
		        ERROR_UNSUPPORTED, "process %d runs a free-threaded Python: there is no GIL to hold", pid);
	else if (!l->interp_gil.size && !l->runtime_gil.size)
		err = error_new(ERROR_UNSUPPORTED, "process %d: it is not known where Python %u.%u has its GIL", pid,
		        image->version >> 24, image->version >> 16 & 0xff);
	else
		return NULL;
	return error_hint(err, "leave out --gil");
}

void python_gil_ask(const struct python_layout *l, u64 runtime, struct python_vm *vm)
{
	vm->wants_lock = 1;
	vm->gil = l->interp_gil.size ? 0 : runtime + l->runtime_gil.at;
	vm->interp_gil = l->interp_gil.at;
}
