/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that a live JVM has compiled: each PcDesc of each nmethod leads to methods that have names, the last of them the
 * one that was compiled. With -Xcomp, as that compiles and inlines what it calls at once; then by C1 and C2.
 */
#include "hotspot_jvm.h"

#include "runtimes/hotspot/names/hotspot_names_state.h"
#include "runtimes/hotspot/names/hotspot_scopes.h"

#define ROUNDS 3000 /* of 10 ms */

struct counts {
	u32 nmethods, natives, pcs, methods, inlined, lines;
};

/* Why this chain is wrong; NULL: it is not. */
static const char *check_scope(struct jvm *j, const struct hotspot_scope *s, struct counts *c)
{
	struct hotspot_names *names = j->instance->names;
	struct frame f = {frame_where(FRAME_SCRIPT, RUNTIME_HOTSPOT, 0, s->method), 0};
	struct frame_name name;
	u32 cookie;

	if (!hotspot_names_cookie(names, j->process->memory, s->method, &cookie))
		return "a method that is none";
	f.detail = hotspot_method(4, s->bci, cookie) | HOTSPOT_CLASSED;
	if (!hotspot_name_frame(names, j->process->memory, &f, &name) || !strchr(name.name, '.'))
		return "a method without a name";
	if (name.signature[0] != '(')
		return "a method without a signature";
	c->methods++;
	c->lines += name.line != 0;
	return NULL;
}

static const char *check_nmethod(struct jvm *j, u64 at, struct counts *c)
{
	static struct hotspot_scope scopes[HOTSPOT_SCOPES_MAX];
	struct hotspot_names *names = j->instance->names;
	struct hotspot_tables *t;
	const char *wrong = NULL;

	if (!hotspot_names_ready(names, j->process->memory))
		return "no version";
	t = hotspot_tables_read(names->l, names->code, j->process->memory, at, 0, names->no_zero);
	if (!t)
		return "tables that make no sense";
	c->natives += !t->npcs;
	for (u32 i = 0; i < t->npcs && !wrong; i++) {
		u32 n = hotspot_scopes_at(t, &t->pcs[i], scopes);

		if (!n)
			wrong = "scopes that make no sense";
		for (u32 k = 0; k < n && !wrong; k++)
			wrong = check_scope(j, &scopes[k], c);
		c->inlined += n > 1;
	}
	c->pcs += t->npcs;
	free(t);
	return wrong;
}

/* What is compiled just now may be torn, but not for long; what is thrown away is none any more. */
static void check_all(struct jvm *j, struct counts *c)
{
	const char *wrong;

	jvm_nmethods(j);
	for (u32 i = 0; i < j->n; i++) {
		u32 round = 0;
		u64 at = j->nmethods[i];
		struct hotspot_nmethod nm;

		while ((wrong = check_nmethod(j, at, c)) &&
		        hotspot_nmethod_read(j->instance->code, j->process->memory, at, 0, &nm)) {
			if (++round == ROUNDS)
				fail_msg("nmethod %#lx (compile_id %u, level %u): %s", at, nm.compile_id, nm.level,
				        wrong);
			usleep(10000);
		}
	}
	c->nmethods = j->n;
}

static void check_jvm(const char *options)
{
	struct jvm *j = jvm_start(options);
	struct counts c = {0};

	check_all(j, &c);
	print_message(
	        "%s: %u nmethods (%u without PcDescs), %u PcDescs, %u in inlined code, %u methods, %u with lines\n",
	        options, c.nmethods, c.natives, c.pcs, c.inlined, c.methods, c.lines);
	assert_true(c.nmethods > 400);
	assert_true(c.pcs > 4000);
	assert_true(c.inlined > 500);
	assert_true(c.lines * 10 > c.methods * 8);
	jvm_end(j);
}

static void test_c1(void **state)
{
	check_jvm("-Xcomp -XX:TieredStopAtLevel=1");
}

static void test_c2(void **state)
{
	check_jvm("-Xcomp -XX:-TieredCompilation");
}

static void test_debug_information(void **state)
{
	check_jvm("-Xcomp -XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_c1), cmocka_unit_test(test_c2), cmocka_unit_test(test_debug_information)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
