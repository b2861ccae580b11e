/* SPDX-License-Identifier: Apache-2.0 */
/* A JVM of fake memory with all that names its frames. */
#ifndef YRT_HOTSPOT_NAMES_FAKE_H
#define YRT_HOTSPOT_NAMES_FAKE_H

#include "unit.h"

#include "hotspot_scopes_fake.h"
#include "runtimes/hotspot/alloc/hotspot_alloc_leaf.h"
#include "runtimes/hotspot/names/hotspot_names_state.h"
#include "runtimes/hotspot/names/hotspot_text.h"

#define CALL_STUB_RETURN (FAKE_BASE + 0x7f1)

struct jvm {
	struct hotspot_fake f;
	struct vmstructs *v;
	struct layout *origins;
	const struct hotspot_layout *l;
	struct hotspot_code *code;
	struct hotspot_names *names;
	u64 version, stubs; /* variables */
};

static inline bool name(struct jvm *j, struct frame f, struct frame_name *ret)
{
	return hotspot_name_frame(j->names, &j->f.memory, &f, ret);
}

static inline void start(struct jvm *j, enum fake_shape shape)
{
	fake_jvm(&j->f, shape);
	fake_type(&j->f, "InterpreterCodelet", strlen("InterpreterCodelet"));
	fake_field(&j->f, "InterpreterCodelet", "_description", "const char*", 0);
	fake_field(&j->f, "InterpreterCodelet", "_size", "int", 8);
	j->version = fake_static(&j->f, "Abstract_VM_Version", "_vm_major_version", shape == FAKE_17 ? 17 : 25);
	j->stubs = fake_object(&j->f, 8);
	fake_static(&j->f, "StubRoutines", "_call_stub_return_address", CALL_STUB_RETURN);
	j->origins = fake_layout(&j->f, &j->v);
	j->l = j->origins->values;
	assert_null(hotspot_code_create(j->v, j->l, &j->code));
	fake_inlining(&j->f, j->l, j->code);
	assert_null(hotspot_names_create(j->v, j->l, j->code, &j->names));
	hotspot_names_stub_list(j->names, j->stubs);
}

static inline void stop(struct jvm *j)
{
	hotspot_names_destroy(j->names);
	hotspot_code_destroy(j->code);
	layout_destroy(j->origins);
	vmstructs_destroy(j->v);
}

static inline struct frame frame_of(u32 flags, u64 addr, u64 detail)
{
	return (struct frame){frame_where(FRAME_SCRIPT, RUNTIME_HOTSPOT, flags, addr), detail};
}

static inline u32 cookie_of(struct jvm *j, u32 method)
{
	return hotspot_method_cookie(fake_peek(&j->f, j->f.method[method] + j->l->method_const.at, 8));
}

static inline struct frame method_frame(struct jvm *j, u32 method, u32 tier, u32 bci)
{
	return frame_of(0, j->f.method[method], hotspot_method(tier, bci, cookie_of(j, method)));
}

static inline u32 expand(struct jvm *j, u32 flags, u32 pc, u32 options, struct frame *ret)
{
	struct frame f = frame_of(flags, j->f.nmethod[0], hotspot_nmethod(100, pc));
	u32 eaten, n = hotspot_expand(j->names, &j->f.memory, &f, 0, 1, options, ret, RUNTIME_EXPAND_MAX, &eaten);

	assert_int_equal(eaten, n != 0);
	return n;
}

#endif
