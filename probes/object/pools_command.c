/* SPDX-License-Identifier: Apache-2.0 */
/* The options and the help of pools. */
#include "pools.h"
#include "pools_spec.h"
#include "probes/event_command.h"
#include "probes/run.h"

enum { POOL_BLOCKS = EVENT_KEY, POOL_OLDER, POOL_SPEC };

static const struct event_option options[] = {
        {POOL_BLOCKS, "blocks", NULL, "show the number of blocks, not their bytes"},
        {POOL_OLDER, "older", "SECONDS", "only what is in pools that are at least so old at the end (1; 0: all)"},
        {POOL_SPEC, "pool", "FUNCTIONS", "pools of another kind, as said above; may be given several times"},
        {0},
};

static const struct setting own[] = {
        {POOL_OLDER, SETTING_OF(struct pool_options, older_s), .name = "--older", .max = 1e6, .seconds = true},
        {0},
};

static const struct setting run[] = {
        {POOL_BLOCKS, SETTING_OF(struct run_request, second), .on = true},
        {0},
};

static void defaults(struct run_request *r)
{
	((struct pool_options *)r->own)->older_s = 1;
}

static struct error *option(struct run_request *r, int key, const char *argument, bool *taken)
{
	struct pool_options *o = r->own;
	struct pool_spec spec;

	*taken = key == POOL_SPEC;
	if (!*taken)
		return NULL;
	if (o->n == POOL_SPECS_MAX)
		return error_new(ERROR_USAGE, "more than %d of --pool", POOL_SPECS_MAX);
	o->spec[o->n++] = argument;
	return pool_spec_parse(argument, &spec);
}

static const struct event_example examples[] = {
        {"yrt @ -p 4242 -d 60 -o pools.html", "what is in pools that live for a second and more, and what grows"},
        {"yrt @ -p 4242 -d 600 --older 60 -f txt -o -", "slow leaks: of connections that are kept alive"},
        {"yrt @ -p 4242 --pool 'alloc=arena_get(pool,size) create=arena_new destroy=arena_free(pool)'",
                "pools of one's own"},
        {"yrt @ -p 4242 --pool 'alloc=PoolArena_allocate(pool,thread,cache,size)'", "a function with other arguments"},
        {NULL, NULL},
};

const struct event_command pools_command = {
        .size = sizeof(struct pool_options),
        .own = own,
        .run = run,
        .text = "Blocks of a pool are freed with it, so a pool that lives for long keeps all that was ever taken from "
                "it: what a module takes from the pool of a connection for each request is kept as long as the client "
                "keeps the connection. malloc sees only a page of that now and then.\n"
                "Pools of nginx, OpenResty, Tengine, Angie, freenginx and of APR (Apache) are known by the names of "
                "their functions, which stripped programs of distributions have, too. The profile shows what is in "
                "the pools that are alive at the end, by the stack that took it, and below that by the function that "
                "made the pool. Above the last line, for each such function: how many pools are alive and how old "
                "they are, what was in those that are gone, and which grow. Of a pool that is older than the run only "
                "what was taken during the run is known.\n"
                "--pool describes others: alloc=f(pool,size) takes a block, create=f returns a pool, or "
                "create=f(&pool) puts its address there, destroy=f(pool) ends it, reset=f(pool) empties it, "
                "free=f(pool,ptr) gives a block back to malloc. Arguments count by position; those that are neither "
                "pool nor size nor ptr may have any name.\n"
                "Hits cost as in `yrt alloc`; past the budget blocks are seen in windows, and their bytes are "
                "estimates.",
        .options = options,
        .examples = examples,
        .defaults = defaults,
        .option = option,
};
