/* SPDX-License-Identifier: Apache-2.0 */
#include "perl_values.h"

#include <string.h>

#include "argument_text.h"

#define GP_AV       40 /* gv.h: struct gp: gp_sv, gp_io, gp_cv, gp_cvgen, gp_refcnt, gp_hv, gp_av */
#define HE_WORDS    3  /* hv.h: struct he: hent_next, hent_hek, hent_val */
#define STASHES_MAX (1u << 16)
#define BUCKETS_MAX (1u << 20)
#define CHAIN_MAX   1024
#define PACKAGE_MAX 8
#define SVf_POK     0x400 /* sv.h */
#define TEXT        sizeof(((struct value_text *)0)->text)

static bool word(const struct perl_reader *r, u64 *ret, u64 addr)
{
	return addr && memory_read(r->mem, ret, sizeof(*ret), addr);
}

/* Is this key "_"? */
static bool is_underscore(const struct perl_reader *r, u64 hek)
{
	const struct perl_layout *l = r->image->layout;
	u32 length;
	char letter;

	return hek && memory_read(r->mem, &length, sizeof(length), hek + l->hek_len.at) && length == 1 &&
	       memory_read(r->mem, &letter, 1, hek + l->hek_key.at) && letter == '_';
}

/* The glob "_" of a package; 0: it has none. */
static u64 find_glob(const struct perl_reader *r, u64 stash)
{
	const struct perl_layout *l = r->image->layout;
	u64 body, array, max, he, entry[HE_WORDS];

	if (!word(r, &body, stash + l->sv_any.at) || !word(r, &array, stash + l->sv_u.at) || !array ||
	        !word(r, &max, body + l->hv_max.at) || max > BUCKETS_MAX)
		return 0;
	for (u64 i = 0; i <= max && word(r, &he, array + 8 * i); i++)
		for (u32 n = 0; he && n < CHAIN_MAX && memory_read(r->mem, entry, sizeof(entry), he); n++) {
			if (is_underscore(r, entry[1]))
				return entry[2];
			he = entry[0];
		}
	return 0;
}

/* *main::_, whose array @_ is. */
static u64 find_arguments(const struct perl_reader *r)
{
	char name[PACKAGE_MAX];
	u64 pad, stash;

	if (!r->interpreter || !word(r, &pad, r->interpreter + r->image->layout->i_stashpad.at))
		return 0;
	for (u32 i = 0; i < STASHES_MAX && word(r, &stash, pad + 8 * i); i++)
		if (stash && perl_stash_name(r, stash, name, sizeof(name)) && !strcmp(name, "main"))
			return find_glob(r, stash);
	return 0;
}

static bool add_field(struct value_path *path, u64 at)
{
	if (path->n == VALUE_HOPS || at >= VALUE_KEYED)
		return false;
	path->at[path->n++] = (u16)at;
	return true;
}

/* "[PATH_INFO]": what the hash behind a reference has under that. Returns what follows; NULL: there is no room. */
static const char *add_key(
        const struct perl_layout *l, const char *way, struct value_places *v, struct value_path *path)
{
	size_t len = strcspn(++way, "],");
	u16 key = way[len] == ']' ? runtime_add_key(v, way, len) : 0;

	if (!key || !add_field(path, l->sv_u.at) || path->n == VALUE_HOPS)
		return NULL;
	path->at[path->n++] = key;
	return way + len + 1;
}

bool perl_field(const struct perl_reader *r, u32 i, const char *way, struct value_places *v, u32 slot)
{
	const struct perl_layout *l = r->image->layout;
	struct value_path *path = &v->path[slot];

	*path = (struct value_path){.pv = 1};
	v->absolute = find_arguments(r);
	v->reference_bytes = 8;
	v->hash = (struct value_hash){.body = l->sv_any.at,
	        .flags = l->sv_flags.at,
	        .own = l->sv_u.at,
	        .max = l->hv_max.at,
	        .length = l->pv_cur.at,
	        .key_length = l->hek_len.at,
	        .key_text = l->hek_key.at,
	        .is_text = SVf_POK};
	v->shape[slot] = (struct value_shape){.type = 1, .sense = VALUE_TEXT};
	if (!v->absolute || !add_field(path, l->sv_u.at) || !add_field(path, GP_AV) || !add_field(path, l->sv_u.at) ||
	        !add_field(path, 8 * i))
		return false;
	while (way && *way == '[')
		way = add_key(l, way, v, path);
	return way && (!*way || *way == ',');
}

void perl_value(void *instance, const struct runtime_process *p, const struct runtime_value *v, FILE *out)
{
	struct value_text t;

	if (v->size < sizeof(t) - TEXT || v->size > sizeof(t)) {
		putc('?', out);
		return;
	}
	memcpy(&t, v->bytes, v->size);
	argument_quoted((const char *)t.text, v->size - (sizeof(t) - TEXT), t.length > TEXT, out);
}
