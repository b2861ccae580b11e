/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What yrt must know about a build of CPython. Names are those of its sources. Members that not every version has are
 * marked OPTIONAL; python_layout_find() says which of them each version must have.
 */
#ifndef YRT_PYTHON_LAYOUT_H
#define YRT_PYTHON_LAYOUT_H

#include "layout/layout.h"
#include "python.h"

#define PYTHON_MEMBERS(M, OPTIONAL)                                                                                    \
	OPTIONAL(runtime_interpreters, "_PyRuntimeState.interpreters.head")  /* 3.7 */                                 \
	OPTIONAL(runtime_key_311, "_PyRuntimeState.gilstate.autoTSSkey")     /* 3.7 to 3.11 */                         \
	OPTIONAL(runtime_key, "_PyRuntimeState.autoTSSkey")                  /* 3.12 */                                \
	OPTIONAL(runtime_current, "_PyRuntimeState.gilstate.tstate_current") /* 3.7 to 3.11 */                         \
	OPTIONAL(runtime_gil, "_PyRuntimeState.ceval.gil")                   /* 3.7 to 3.11 */                         \
	OPTIONAL(interp_gil, "PyInterpreterState.ceval.gil")                 /* 3.12: a pointer */                     \
	OPTIONAL(interp_modules_old, "PyInterpreterState.modules")           /* up to 3.11 */                          \
	OPTIONAL(interp_modules, "PyInterpreterState.imports.modules")       /* 3.12 */                                \
	M(interp_next, "PyInterpreterState.next")                                                                      \
	OPTIONAL(interp_tstate_head, "PyInterpreterState.tstate_head") /* up to 3.10 */                                \
	OPTIONAL(interp_threads, "PyInterpreterState.threads.head")    /* 3.11 */                                      \
	M(ts_next, "PyThreadState.next")                                                                               \
	M(ts_interp, "PyThreadState.interp")                                                                           \
	M(ts_thread_id, "PyThreadState.thread_id")                                                                     \
	OPTIONAL(ts_frame_object, "PyThreadState.frame")          /* up to 3.10 */                                     \
	OPTIONAL(ts_cframe, "PyThreadState.cframe")               /* 3.10 to 3.12 */                                   \
	OPTIONAL(ts_current_frame, "PyThreadState.current_frame") /* 3.13 */                                           \
	OPTIONAL(cf_frame, "_PyCFrame.current_frame")             /* 3.11, 3.12 */                                     \
	OPTIONAL(fo_back, "PyFrameObject.f_back")                                                                      \
	OPTIONAL(fo_code, "PyFrameObject.f_code") /* up to 3.10, as the next */                                        \
	OPTIONAL(fo_lasti, "PyFrameObject.f_lasti")                                                                    \
	OPTIONAL(fo_gen, "PyFrameObject.f_gen")                                                                        \
	OPTIONAL(fo_size, "sizeof PyFrameObject")                                                                      \
	OPTIONAL(f_code, "_PyInterpreterFrame.f_code")             /* 3.11, 3.12 */                                    \
	OPTIONAL(f_executable, "_PyInterpreterFrame.f_executable") /* 3.13 */                                          \
	OPTIONAL(f_prev_instr, "_PyInterpreterFrame.prev_instr")   /* 3.11, 3.12 */                                    \
	OPTIONAL(f_instr_ptr, "_PyInterpreterFrame.instr_ptr")     /* 3.13 */                                          \
	OPTIONAL(f_is_entry, "_PyInterpreterFrame.is_entry")       /* 3.11 */                                          \
	OPTIONAL(f_previous, "_PyInterpreterFrame.previous")       /* 3.11, as the next */                             \
	OPTIONAL(f_owner, "_PyInterpreterFrame.owner")                                                                 \
	OPTIONAL(f_tlbc, "_PyInterpreterFrame.tlbc_index") /* free-threaded 3.14, as the next */                       \
	OPTIONAL(co_tlbc, "PyCodeObject.co_tlbc")                                                                      \
	OPTIONAL(f_stackpointer, "_PyInterpreterFrame.stackpointer")  /* 3.14, as the next */                          \
	OPTIONAL(gen_outer, "PyGenObject.gi_exc_state.previous_item") /* 3.7 to 3.11 count */                          \
	OPTIONAL(gen_frame, "PyGenObject.gi_iframe")                  /* 3.11 */                                       \
	OPTIONAL(gen_state, "PyGenObject.gi_frame_state")             /* 3.14, as the next */                          \
	OPTIONAL(set_used, "PySetObject.used")                                                                         \
	OPTIONAL(set_table, "PySetObject.table")                                                                       \
	OPTIONAL(set_mask, "PySetObject.mask")                                                                         \
	M(ob_size, "PyVarObject.ob_size")                                                                              \
	OPTIONAL(co_size, "sizeof PyCodeObject")                                                                       \
	M(co_firstlineno, "PyCodeObject.co_firstlineno")                                                               \
	M(co_consts, "PyCodeObject.co_consts")                                                                         \
	M(co_names, "PyCodeObject.co_names")                                                                           \
	M(co_filename, "PyCodeObject.co_filename")                                                                     \
	M(co_name, "PyCodeObject.co_name")                                                                             \
	OPTIONAL(co_qualname, "PyCodeObject.co_qualname")   /* 3.11 */                                                 \
	OPTIONAL(co_lnotab, "PyCodeObject.co_lnotab")       /* up to 3.9 */                                            \
	OPTIONAL(co_linetable, "PyCodeObject.co_linetable") /* 3.10 */                                                 \
	OPTIONAL(co_bytes, "PyCodeObject.co_code")          /* up to 3.10: an object */                                \
	OPTIONAL(co_code, "PyCodeObject.co_code_adaptive")  /* 3.11 */                                                 \
	M(ob_type, "PyObject.ob_type")                                                                                 \
	M(bytes_data, "PyBytesObject.ob_sval")                                                                         \
	M(str_length, "PyASCIIObject.length")                                                                          \
	M(str_state, "PyASCIIObject.state")                                                                            \
	M(str_ascii, "sizeof PyASCIIObject")                                                                           \
	M(str_compact, "sizeof PyCompactUnicodeObject")

/* The layout of a build. */
struct python_layout {
#define M(slot, name) struct layout_member slot;
	PYTHON_MEMBERS(M, M)
#undef M
};

extern const struct layout_schema python_layout_schema;

/*
 * The layout of a file that holds CPython of this version (PY_VERSION_HEX without its last byte), of the first that
 * gives it: what 3.13 to 3.15 say about themselves at _PyRuntime; the library by build-id; debug information; the
 * separate debug file; the library by version ("3.11": members do not move within a minor version). *ret is the
 * caller's, its values are a struct python_layout. An error says what is missing.
 */
struct error *python_layout_find(struct image *img, u32 version, struct layout **ret);

/* The member that names a code object; and the one that distinguishes it, besides co_consts and co_names. */
struct layout_member python_layout_name(const struct python_layout *l);
struct layout_member python_layout_code(const struct python_layout *l);

/* Is the first of a thread's Python frames found by its thread state? Else by its native frames. */
static inline bool python_needs_thread(const struct python_vm *vm)
{
	return vm->linkage == PYTHON_NO_CFRAME || vm->linkage == PYTHON_FRAME_OBJECT;
}

/* What the walker needs of it, but for addresses. */
struct python_vm python_vm_of(const struct python_layout *l);

#endif
