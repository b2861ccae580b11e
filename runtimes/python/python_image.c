/* SPDX-License-Identifier: Apache-2.0 */
#include "python_image.h"

#include <stdlib.h>
#include <string.h>

#include "binary/endbr64.h"
#include "process/copies.h"
#include "symbols/symbols.h"

#define OLDEST        0x03060000
#define NEWEST        0x03100000 /* below 3.16 */
#define NO_RUNTIME    0x03070000 /* below 3.7 there is no _PyRuntime */
#define FRAME_OBJECTS 0x030b0000 /* below 3.11 */
#define JIT           0x030e0000 /* from 3.14 on */
#define TLS           0x030e0000 /* in development versions after 3.14, and from 3.15 on */

/* Variables that a Python exports; the last one only from 3.7 on. */
static const struct copies_variable variables[] = {
        {"PyCode_Type", offsetof(struct python_image, code_type)},
        {"PyFrame_Type", offsetof(struct python_image, frame_type)},
        {"PyType_Type", offsetof(struct python_image, types.type)},
        {"PyTuple_Type", offsetof(struct python_image, types.tuple)},
        {"PyBytes_Type", offsetof(struct python_image, types.bytes)},
        {"PyUnicode_Type", offsetof(struct python_image, types.str)},
        {"PyFunction_Type", offsetof(struct python_image, types.function)},
        {"PyLong_Type", offsetof(struct python_image, types.integer)},
        {"PyBool_Type", offsetof(struct python_image, types.boolean)},
        {"PyFloat_Type", offsetof(struct python_image, types.real)},
        {"PyList_Type", offsetof(struct python_image, types.list)},
        {"PyDict_Type", offsetof(struct python_image, types.dict)},
        {"PyCoro_Type", offsetof(struct python_image, coro_type)},
        {"_PyRuntime", offsetof(struct python_image, runtime)},
};
#define NVARIABLES (sizeof(variables) / sizeof(*variables))

void python_image_destroy(void *data)
{
	struct python_image *image = data;

	layout_destroy(image->origins);
	free(image);
}

static struct error *unsupported(const struct image *img, u32 version)
{
	struct error *err;

	if (!version)
		err = error_new(ERROR_UNSUPPORTED, "%s holds a Python of unknown version", img->path);
	else
		err = error_new(
		        ERROR_UNSUPPORTED, "%s holds Python %u.%u", img->path, version >> 24, version >> 16 & 0xff);
	return error_hint(err, "its Python frames are left out: yrt knows 3.6 to 3.15");
}

/* What the list of interpreters begins at: _PyRuntime, of which a member does; up to 3.6 what PyInterpreterState_Head()
 * loads. */
static bool find_runtime(struct image *img, u32 version, u64 *ret)
{
	struct symbol s;
	u8 code[16];
	s32 displacement;
	u32 at = 0;

	if (version >= NO_RUNTIME) {
		*ret = symbols_lookup(img, "_PyRuntime", &s) ? s.start : 0;
		return *ret;
	}
	if (!symbols_lookup(img, "PyInterpreterState_Head", &s) || !image_read(img, code, sizeof(code), s.start))
		return false;
	if (is_endbr64(code))
		at = ENDBR64_SIZE;
	if (memcmp(code + at, "\x48\x8b\x05", 3)) /* mov displacement(%rip), %rax */
		return false;
	memcpy(&displacement, code + at + 3, sizeof(displacement));
	*ret = s.start + at + 7 + (u64)(s64)displacement;
	return true;
}

static struct error *find_symbols(struct image *img, struct python_image *image)
{
	struct symbol s;

	if (!find_runtime(img, image->version, &image->runtime))
		return error_new(ERROR_UNSUPPORTED, "%s holds Python without its symbol _PyRuntime", img->path);
	for (u32 i = 0; i < NVARIABLES - 1; i++) {
		if (!symbols_lookup(img, variables[i].name, &s))
			return error_new(ERROR_UNSUPPORTED, "%s holds Python without its symbol %s", img->path,
			        variables[i].name);
		memcpy((u8 *)image + variables[i].at, &s.start, sizeof(s.start));
	}
	return NULL;
}

struct error *python_image_copied(
        const struct python_image *image, u64 bias, const struct runtime_process *p, struct python_image **ret)
{
	void *copy;
	struct error *err = copies_apply(p, bias, variables, NVARIABLES, image, sizeof(*image), &copy);
	u64 moved;

	*ret = copy;
	if (err || !copy || image->version < NO_RUNTIME)
		return err;
	moved = (*ret)->runtime - image->runtime;
	(*ret)->key += image->key ? moved : 0;
	(*ret)->current += image->current ? moved : 0;
	return NULL;
}

static u64 find_current(struct image *img, const struct python_image *image)
{
	struct symbol s;

	if (image->vm.linkage != PYTHON_FRAME_OBJECT)
		return 0;
	if (image->version < NO_RUNTIME)
		return symbols_lookup(img, "_PyThreadState_Current", &s) ? s.start : 0;
	return image->layout->runtime_current.size == 8 ? image->runtime + image->layout->runtime_current.at : 0;
}

/* A build with Py_DEBUG: what else is inlined, as a frame's end, is called. */
static bool is_debug(struct image *img)
{
	struct symbol s;

	return symbols_lookup(img, "_Py_NegativeRefcount", &s);
}

/* How native frames of the eval loop lead to Python frames. */
static struct error *find_links(struct image *img, struct python_image *image)
{
	struct error *err;

	if (image->vm.linkage == PYTHON_FRAME_OBJECT)
		return python_linked_find(img, image->vm.ts_frame, &image->eval);
	err = python_entry_find(img, &image->vm, image->layout->ts_cframe.at, &image->eval);
	image->vm.cframe_below = image->eval.cframe_below;
	image->vm.entry_below = image->eval.entry_below;
	image->vm.calls_late = !image->eval.dispatches || is_debug(img);
	if (!err && image->vm.linkage != PYTHON_NO_CFRAME)
		python_torn_find(img, &image->vm, &image->eval);
	if (!err && !image->eval.dispatches)
		err = python_inlined_find(img, &image->vm, image->layout->gen_frame.at, &image->eval);
	if (!err)
		python_resume_find(img, &image->eval, &image->vm);
	memcpy(image->vm.inlined_below, image->eval.below, sizeof(image->vm.inlined_below));
	return err;
}

static struct error *probe(struct image *img, u64 start, u64 end, struct python_image *image)
{
	struct error *err;

	image->version = python_version(img);
	if (image->version < OLDEST || image->version >= NEWEST)
		return unsupported(img, image->version);
	err = find_symbols(img, image);
	if (!err)
		err = python_layout_find(img, image->version >> 8, &image->origins);
	if (err)
		return err;
	image->layout = image->origins->values;
	image->vm = python_vm_of(image->layout);
	image->current = find_current(img, image);
	if (image->version >= TLS)
		image->tls = python_tls_find(img);
	if (!image->tls.model)
		image->key = python_tls_key(img, image->runtime);
	if ((image->vm.linkage == PYTHON_FRAME_OBJECT) != (image->version < FRAME_OBJECTS))
		return error_new(ERROR_UNSUPPORTED, "%s: the layout found for it belongs to another version of Python",
		        img->path);
	if (image->version >= JIT)
		image->jit = python_jit_find(img, start);
	err = python_eval_find(img, start, end, &image->eval);
	return err ? err : find_links(img, image);
}

static struct error *pypy(struct image *img)
{
	struct symbol s;

	if (!symbols_lookup(img, "pypy_execute_source", &s))
		return NULL;
	return error_hint(error_new(ERROR_UNSUPPORTED, "%s is PyPy", img->path),
	        "its Python frames are left out: yrt knows CPython");
}

struct error *python_image_probe(struct image *img, void **ret)
{
	struct python_image *image;
	struct symbol eval;
	struct error *err;

	*ret = NULL;
	if (!symbols_lookup(img, "_PyEval_EvalFrameDefault", &eval))
		return pypy(img);
	if (img->machine != EM_X86_64)
		return NULL;
	image = calloc(1, sizeof(*image));
	if (!image)
		return &error_no_memory;
	err = probe(img, eval.start, eval.end, image);
	if (err) {
		python_image_destroy(image);
		return err;
	}
	*ret = image;
	return NULL;
}
