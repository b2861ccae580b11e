/* SPDX-License-Identifier: Apache-2.0 */
/* hit_name.h: which symbols a name means. */
#include "unit.h"

#include "probes/hit/hit_name.h"

#define ROUNDS 100000

static bool is(const char *wanted, const char *symbol)
{
	struct hit_name name;

	hit_name_set(&name, wanted);
	return hit_name_is(&name, symbol);
}

static void test_forms(void **state)
{
	static const struct {
		const char *wanted, *symbol;
		bool is;
	} forms[] = {
	        {"f", "f", true},
	        {"f", "f.isra.0", true},
	        {"f", "f.constprop.0.isra.0", true},
	        {"f", "f.cold", false},
	        {"f", "f.isra.0.cold", false},
	        {"f", "f.part.0", false},
	        {"f.part.0", "f.part.0", true},
	        {"f", "ff", false},
	        {"ns::f", "_ZN2ns1fEi", true}, /* ns::f(int) */
	        {"ns::f(int)", "_ZN2ns1fEi", true},
	        {"ns::f(long)", "_ZN2ns1fEi", false},
	        {"f", "_ZN2ns1fEi", false},
	        {"ns::f", "_ZN2ns1fEi.cold", false},
	        {"ns::f(int) [clone .cold]", "_ZN2ns1fEi.cold", true},
	        {"ns::f", "_ZN2ns1fEi.constprop.0", true},
	        {"ns::base::~base", "_ZN2ns4baseD1Ev", true},
	        {"ns::base::base", "_ZN2ns4baseD1Ev", false},
	        {"ns::twice", "_ZN2ns5twiceIiEET_S1_", true}, /* int ns::twice<int>(int) */
	        {"ns::twice<int>", "_ZN2ns5twiceIiEET_S1_", true},
	        {"ns::twice<int>(int)", "_ZN2ns5twiceIiEET_S1_", true},
	        {"int ns::twice<int>(int)", "_ZN2ns5twiceIiEET_S1_", true},
	        {"ns::twice<long>", "_ZN2ns5twiceIiEET_S1_", false},
	        {"callable::operator()", "_ZNK8callableclEi", true},
	        {"callable::operator<", "_ZNK8callableltEi", true},
	        {"(anonymous namespace)::hidden", "_ZN12_GLOBAL__N_16hiddenEi", true},
	        {"operator new", "_Znwm", true}, /* operator new(unsigned long) */
	        {"std::ostream::operator<<", "_ZNSolsEi", true},
	        {"ns::derived::run", "_ZTv0_n24_N2ns7derived3runEi", false}, /* a virtual thunk to it */
	        {"core::fmt::write", "_ZN4core3fmt5write17h0123456789abcdefE", true},
	        {"a::b::{{closure}}", "_ZN1a1b28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE", true},
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		if (is(forms[i].wanted, forms[i].symbol) != forms[i].is)
			fail_msg("%s is %s: %d", forms[i].wanted, forms[i].symbol, !forms[i].is);
}

static void test_short(void **state)
{
	char *name = hit_name_short("_ZN2ns5twiceIiEET_S1_");

	assert_string_equal(name, "ns::twice");
	free(name);
	name = hit_name_short("plain");
	assert_string_equal(name, "plain");
	free(name);
}

static void test_random(void **state)
{
	static const char letters[] = "_ZN1a2bE()<>:{}[] operator~SIvi.cold";
	u64 random = 88172645463325252ull;

	for (u32 round = 0; round < ROUNDS; round++) {
		char text[2][40] = {"_Z", "_Z"};

		for (u32 k = 0; k < 2; k++)
			for (size_t len = random & 2; len < sizeof(text[k]) - 1 && random >> 40 & 31; len++) {
				random ^= random << 13;
				random ^= random >> 7;
				random ^= random << 17;
				text[k][len] = letters[random % (sizeof(letters) - 1)];
			}
		is(text[0], text[1]);
		free(hit_name_short(text[1]));
		assert_true(is(text[0], text[0]));
	}
}

static void test_patterns(void **state)
{
	assert_true(hit_name_fits("*", "") && hit_name_fits("", "") && hit_name_fits("a*", "a") &&
	            hit_name_fits("**", "a"));
	assert_true(hit_name_fits("mall*", "malloc") && hit_name_fits("*checkout*", "python.checkout.all"));
	assert_true(hit_name_fits("*ab*ab", "ababab") && hit_name_fits("*.put(long[],*)", "a.B.put(long[],int)"));
	assert_true(hit_name_fits("main.S*[...]", "main.Sum[...]") && hit_name_fits("a[b]?", "a[b]?"));
	assert_false(hit_name_fits("a[b]", "ab") || hit_name_fits("a?", "ab") || hit_name_fits("", "a"));
	assert_false(hit_name_fits("mall*x", "malloc") || hit_name_fits("*a", "ab") || hit_name_fits("a*b", "a"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_forms),
	        cmocka_unit_test(test_short),
	        cmocka_unit_test(test_random),
	        cmocka_unit_test(test_patterns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
