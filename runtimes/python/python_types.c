/* SPDX-License-Identifier: Apache-2.0 */
#include "python_types.h"

#include <string.h>

#include "python_layout.h"

#define PART LAYOUT_PART

const struct layout_type python_types[] = {
        {LAYOUT_STRUCT, "PyObject", "s64 ob_refcnt; PyTypeObject *ob_type", NULL},
        {LAYOUT_STRUCT, "PyVarObject", "PyObject ob_base; s64 ob_size", NULL},
        {LAYOUT_STRUCT, "PyTypeObject",
                "PyVarObject ob_base; char *tp_name; s64 tp_basicsize; s64 tp_itemsize; @168 u64 tp_flags", PART},
        {LAYOUT_STRUCT, "PyGC_Head", "u64 _gc_next; u64 _gc_prev", NULL},
        {LAYOUT_STRUCT, "gc_generation", "PyGC_Head head; s32 threshold; s32 count", NULL},
        {LAYOUT_STRUCT, "_gc_runtime_state", "@24 gc_generation generations[3]", PART},
        {LAYOUT_STRUCT, "PyCodeObject",
                "@layout PyObject *co_filename; @layout PyObject *co_name; @layout PyObject *co_qualname; "
                "@layout PyObject *co_consts; @layout PyObject *co_names; @layout s32 co_firstlineno",
                PART},
        {LAYOUT_STRUCT, "_PyInterpreterFrame",
                "@layout PyCodeObject *f_code; @layout _PyInterpreterFrame *previous; @layout u16 *prev_instr; "
                "@layout u8 owner",
                PART},
        {LAYOUT_STRUCT, "_PyCFrame", "@layout _PyInterpreterFrame *current_frame", PART},
        {LAYOUT_STRUCT, "PyThreadState",
                "@layout PyThreadState *next; @layout PyInterpreterState *interp; @layout u64 thread_id; "
                "@layout _PyCFrame *cframe; @layout _PyInterpreterFrame *current_frame",
                PART},
        {LAYOUT_STRUCT, "PyInterpreterState",
                "@layout PyInterpreterState *next; @layout PyThreadState *tstate_head; @gc _gc_runtime_state gc", PART},
        {LAYOUT_END, NULL, NULL, NULL},
};

/* PyInterpreterState.gc, of the version that has these members; negative: another one. */
static s64 place_of_gc(const struct python_layout *l)
{
	if (l->fo_code.size)
		return l->ts_cframe.size ? 616 : -1; /* 3.10 */
	if (l->f_is_entry.size)
		return 648;                                    /* 3.11 */
	return l->f_code.size && l->ts_cframe.size ? 112 : -1; /* 3.12 */
}

s64 python_types_place(const void *values, const char *name)
{
	return !strcmp(name, "gc") ? place_of_gc(values) : -1;
}
