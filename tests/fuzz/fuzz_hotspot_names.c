/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names out of garbage: the input overwrites methods, symbols, classes, nmethods and stubs of a JVM whose layout is
 * right, in (place, length, bytes), or is itself a symbol. Names must be whole UTF-8 and end.
 */
#include "runtimes/hotspot/names/hotspot_names.h"
#include "runtimes/hotspot/names/hotspot_text.h"
#include "tests/unit/hotspot_scopes_fake.h"

struct subject {
	struct hotspot_fake clean, f;
	struct vmstructs *v;
	struct layout *origins;
	struct hotspot_code *code;
	u64 stubs;
};

static void must(bool so)
{
	if (!so)
		abort();
}

static void put_stub(struct subject *s)
{
	u64 at = fake_object(&s->clean, 64), code = s->clean.stub + 128;
	u64 words[] = {0, fake_text(&s->clean, "StubRoutines"), fake_text(&s->clean, "call_stub"), code, code + 16};

	for (u32 i = 0; i < 5; i++)
		fake_poke(&s->clean, at + 8 * i, words[i], 8);
	s->stubs = fake_object(&s->clean, 8);
	fake_poke(&s->clean, s->stubs, at, 8);
}

static void create(struct subject *s, enum fake_shape shape)
{
	fake_jvm(&s->clean, shape);
	fake_static(&s->clean, "Abstract_VM_Version", "_vm_major_version", shape == FAKE_17 ? 17 : 25);
	fake_type(&s->clean, "InterpreterCodelet", strlen("InterpreterCodelet"));
	fake_field(&s->clean, "InterpreterCodelet", "_description", "const char*", 0);
	fake_field(&s->clean, "InterpreterCodelet", "_size", "int", 8);
	s->origins = fake_layout(&s->clean, &s->v);
	if (hotspot_code_create(s->v, s->origins->values, &s->code))
		abort();
	fake_inlining(&s->clean, s->origins->values, s->code);
	put_stub(s);
}

/* Texts are terminated, and no sequence of bytes in them is cut. */
static void check_text(const char *s, size_t size)
{
	size_t n = strnlen(s, size);

	must(n < size);
	for (size_t i = 0; i < n;) {
		u8 c = (u8)s[i];
		u32 more = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;

		must((c & 0xc0) != 0x80 && c < 0xf8);
		for (i++; more--; i++)
			must((s[i] & 0xc0) == 0x80);
	}
}

static void check_symbol(const uint8_t *data, size_t size)
{
	char text[64];

	hotspot_text_class(data, size, text, sizeof(text));
	check_text(text, sizeof(text));
	hotspot_text_name(data, size, text, sizeof(text));
	check_text(text, sizeof(text));
	hotspot_text_signature(data, size, text, sizeof(text));
	check_text(text, sizeof(text));
}

static void check_frame(struct subject *s, struct hotspot_names *names, struct frame f)
{
	struct frame_name ret;

	if (!hotspot_name_frame(names, &s->f.memory, &f, &ret) || hotspot_kind(&f) == HOTSPOT_STUB)
		return; /* names of stubs are C's */
	check_text(ret.name, sizeof(ret.name));
	check_text(ret.signature, sizeof(ret.signature));
	check_text(ret.file, sizeof(ret.file));
}

static struct frame frame_of(u32 flags, u64 addr, u64 detail)
{
	return (struct frame){frame_where(FRAME_SCRIPT, RUNTIME_HOTSPOT, flags, addr), detail};
}

static void check_nmethod(struct subject *s, struct hotspot_names *names, u64 at, u32 id)
{
	static struct frame ret[RUNTIME_EXPAND_MAX];

	for (u32 pc = 0; pc < FAKE_BODY; pc += 4)
		for (u32 flags = 0; flags < 2; flags++) {
			struct frame f = frame_of(flags, at, hotspot_nmethod(id, pc));
			u32 eaten, n = hotspot_expand(names, &s->f.memory, &f, 0, 1, EXPAND_LINES, ret,
			                   RUNTIME_EXPAND_MAX, &eaten);

			must(n <= RUNTIME_EXPAND_MAX && eaten == (n > 0));
			for (u32 i = 0; i < n; i++) {
				must(!(frame_flags(&ret[i]) & FRAME_INLINED) == (i + 1 == n));
				check_frame(s, names, ret[i]);
			}
			check_frame(s, names, f);
		}
}

static void check_class(struct subject *s, struct hotspot_names *names)
{
	const struct hotspot_layout *l = s->origins->values;
	u64 constant = fake_peek(&s->clean, s->clean.method[0] + l->method_const.at, 8);
	u64 pool = fake_peek(&s->clean, constant + l->const_pool.at, 8);
	u64 klass = fake_peek(&s->clean, pool + l->pool_holder.at, 8);
	u64 symbol = fake_peek(&s->f, klass + l->klass_name.at, 8);

	check_frame(s, names, frame_of(0, klass, hotspot_detail(HOTSPOT_CLASS, (u32)(symbol >> 3))));
}

static void run(struct subject *s, const uint8_t *data, size_t size)
{
	struct hotspot_names *names;

	s->f = s->clean;
	fake_overwrite(&s->f, data, size);
	must(!hotspot_names_create(s->v, s->origins->values, s->code, &names));
	hotspot_names_stub_list(names, s->stubs);
	for (u32 i = 0; i < 2; i++)
		check_nmethod(s, names, s->f.nmethod[i], 100 + i);
	for (u64 pc = s->f.interpreter; pc < s->f.stub + 256; pc += 48)
		check_frame(s, names, frame_of(0, pc, hotspot_detail(HOTSPOT_STUB, 0)));
	check_class(s, names);
	hotspot_names_destroy(names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct subject subjects[FAKE_SHAPES];
	static bool created;

	for (u32 i = 0; i < FAKE_SHAPES && !created; i++)
		create(&subjects[i], i);
	created = true;
	check_symbol(data, size);
	for (u32 i = 0; i < FAKE_SHAPES; i++)
		run(&subjects[i], data, size);
	return 0;
}
