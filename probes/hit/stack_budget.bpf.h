/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What stacks of waits may cost that are taken in case their call, or request, turns out slow. */
#ifndef YRT_STACK_BUDGET_BPF_H
#define YRT_STACK_BUDGET_BPF_H

#define STACK_BUDGET_PART 64        /* of a CPU: a 64th, */
#define STACK_BUDGET_MAX  5000000ll /* and so much at once */
#define STACK_MOST_NS     50000ull  /* of one stack: more is what the host of a virtual machine took meanwhile */

u32 stack_budget_unlimited = 0;

struct stack_budget {
	s64 credit;
	u64 ns; /* as of then */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stack_budget);
} stack_budgets SEC(".maps");

static inline struct stack_budget *stack_budget_here(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&stack_budgets, &zero);
}

/* May a stack be taken now? */
static inline bool stack_budget_allows(u64 now)
{
	struct stack_budget *budget = stack_budget_here();

	if (!budget)
		return false;
	budget->credit += (s64)((now - budget->ns) / STACK_BUDGET_PART);
	if (budget->credit > STACK_BUDGET_MAX)
		budget->credit = STACK_BUDGET_MAX;
	budget->ns = now;
	return stack_budget_unlimited || budget->credit > 0;
}

/* A stack took the time since then. */
static __attribute__((noinline)) int stack_budget_spend(u64 begin)
{
	struct stack_budget *budget = stack_budget_here();
	u64 ns = bpf_ktime_get_ns() - begin;

	if (budget)
		budget->credit -= (s64)(ns < STACK_MOST_NS ? ns : STACK_MOST_NS);
	return 0;
}

#endif
