/* SPDX-License-Identifier: Apache-2.0 */
#include "perl_objects.h"

#include <stdio.h>
#include <string.h>

#define OPS_MAX     16         /* from the start of a sub to its first statement */
#define MAX_MAX     (1u << 28) /* buckets of a hash */
#define LINE_MAX    0x7fffffff
#define STASHES_MAX (1u << 20)
#define SVf_OOK     0x02000000 /* sv.h: of a hash, it has a struct xpvhv_aux */
#define SVf_POK     0x00000400

static bool word(const struct perl_reader *r, u64 *ret, u64 addr)
{
	return memory_read(r->mem, ret, sizeof(*ret), addr);
}

static bool half(const struct perl_reader *r, u32 *ret, u64 addr)
{
	return memory_read(r->mem, ret, sizeof(*ret), addr);
}

/* size: of ret; n: of the text there. */
static bool text(const struct perl_reader *r, u64 addr, u64 n, char *ret, size_t size)
{
	if (n >= size)
		n = size - 1;
	if (!memory_read(r->mem, ret, n, addr))
		return false;
	ret[n] = 0;
	return true;
}

static bool hek(const struct perl_reader *r, u64 at, char *ret, size_t size)
{
	const struct perl_layout *l = r->image->layout;
	u32 n;

	return at && half(r, &n, at + l->hek_len.at) && (s32)n > 0 && text(r, at + l->hek_key.at, n, ret, size);
}

bool perl_is_cv(const struct perl_reader *r, u64 sv)
{
	u32 flags;

	return half(r, &flags, sv + r->image->layout->sv_flags.at) &&
	       ((flags & PERL_SV_TYPE) == PERL_SV_CV || (flags & PERL_SV_TYPE) == PERL_SV_FORMAT);
}

bool perl_read_cv(const struct perl_reader *r, u64 cv, struct perl_cv *ret)
{
	const struct perl_layout *l = r->image->layout;

	ret->flags = 0;
	return perl_is_cv(r, cv) && word(r, &ret->body, cv + l->sv_any.at) &&
	       word(r, &ret->stash, ret->body + l->cv_stash.at) && word(r, &ret->start, ret->body + l->cv_start.at) &&
	       word(r, &ret->root, ret->body + l->cv_root.at) && word(r, &ret->gv, ret->body + perl_cv_gv(l).at) &&
	       memory_read(r->mem, &ret->flags, l->cv_flags.size, ret->body + l->cv_flags.at);
}

/* Where struct xpvhv_aux of a hash is: in its body from 5.36 on, else behind its buckets. */
static bool aux_of(const struct perl_reader *r, u64 hv, u64 *ret)
{
	const struct perl_layout *l = r->image->layout;
	u64 body, array, max;
	u32 flags;

	if (!half(r, &flags, hv + l->sv_flags.at) || !(flags & SVf_OOK) || !word(r, &body, hv + l->sv_any.at))
		return false;
	*ret = body + l->hv_aux.at;
	if (l->hv_aux.size)
		return true;
	if (!word(r, &array, hv + l->sv_u.at) || !word(r, &max, body + l->hv_max.at) || max > MAX_MAX)
		return false;
	*ret = array + 8 * (max + 1);
	return true;
}

/* HvNAME_HEK() of hv.h: of several names the first one is what it was called when it was made. */
bool perl_stash_name(const struct perl_reader *r, u64 stash, char *ret, size_t size)
{
	const struct perl_layout *l = r->image->layout;
	u64 aux, name;
	u32 count;

	if (!stash || !aux_of(r, stash, &aux) || !word(r, &name, aux + l->aux_name.at) || !name ||
	        !half(r, &count, aux + l->aux_name_count.at) || (count && !word(r, &name, name)))
		return false;
	return hek(r, name, ret, size);
}

/* CopSTASH() of cop.h: with threads an index into PL_stashpad, in 5.16 its name. */
bool perl_cop_package(const struct perl_reader *r, u64 cop, char *ret, size_t size)
{
	const struct perl_layout *l = r->image->layout;
	u64 at, pad;

	if (l->cop_stash.size)
		return word(r, &at, cop + l->cop_stash.at) && perl_stash_name(r, at, ret, size);
	if (l->cop_stashpv.size)
		return word(r, &at, cop + l->cop_stashpv.at) && at && memory_string(r->mem, ret, size, at);
	return r->interpreter && l->cop_stashoff.size && word(r, &at, cop + l->cop_stashoff.at) && at < STASHES_MAX &&
	       word(r, &pad, r->interpreter + l->i_stashpad.at) && word(r, &at, pad + 8 * at) &&
	       perl_stash_name(r, at, ret, size);
}

static bool join(const struct perl_reader *r, u64 stash, u64 name, char *ret, size_t size)
{
	size_t n = 0;

	if (perl_stash_name(r, stash, ret, size)) {
		n = strlen(ret);
		n += (size_t)snprintf(ret + n, size - n, "::");
	}
	return n < size && hek(r, name, ret + n, size - n);
}

bool perl_gv_name(const struct perl_reader *r, u64 gv, char *ret, size_t size)
{
	const struct perl_layout *l = r->image->layout;
	u64 body, name, stash;

	return word(r, &body, gv + l->sv_any.at) && word(r, &name, body + l->gv_namehek.at) &&
	       word(r, &stash, body + l->gv_stash.at) && join(r, stash, name, ret, size);
}

bool perl_cv_name(const struct perl_reader *r, const struct perl_cv *cv, char *ret, size_t size)
{
	if (!cv->gv)
		return false;
	if (cv->flags & PERL_CV_NAMED)
		return cv->flags & PERL_CV_LEXICAL ? hek(r, cv->gv, ret, size) : join(r, cv->stash, cv->gv, ret, size);
	return perl_gv_name(r, cv->gv, ret, size);
}

bool perl_sv_text(const struct perl_reader *r, u64 sv, char *ret, size_t size)
{
	const struct perl_layout *l = r->image->layout;
	u64 body, pv, n;
	u32 flags;

	return half(r, &flags, sv + l->sv_flags.at) && flags & SVf_POK && word(r, &body, sv + l->sv_any.at) &&
	       word(r, &pv, sv + l->sv_u.at) && word(r, &n, body + l->pv_cur.at) && n && text(r, pv, n, ret, size);
}

bool perl_is_state(const struct perl_reader *r, u64 ppaddr, u32 type)
{
	const struct perl_image *image = r->image;
	u64 now;

	if (ppaddr == image->nextstate + r->bias || ppaddr == image->dbstate + r->bias)
		return true;
	return image->ppaddr && (type == image->type || type == image->dbtype) &&
	       word(r, &now, image->ppaddr + r->bias + 8 * (u64)type) && now == ppaddr;
}

bool perl_is_cop(const struct perl_reader *r, u64 op)
{
	const struct perl_layout *l = r->image->layout;
	u64 ppaddr, type;
	u32 bits; /* op_type, and more */

	if (!word(r, &ppaddr, op + l->op_ppaddr.at))
		return false;
	if (ppaddr == r->image->null + r->bias)
		return word(r, &type, op + l->op_targ.at) && type == r->image->type;
	return half(r, &bits, op + l->op_targ.at + 8) && perl_is_state(r, ppaddr, bits & PERL_OP_TYPE);
}

u64 perl_first_cop(const struct perl_reader *r, u64 op)
{
	for (u32 i = 0; op && i < OPS_MAX; i++) {
		if (perl_is_cop(r, op))
			return op;
		if (!word(r, &op, op + r->image->layout->op_next.at))
			return 0;
	}
	return 0;
}

/*
 * "(eval 12)" loses its number: it would be another place each time. With PERLDB_NAMEEVAL, as below a debugger or
 * Devel::Cover, "[FILE:LINE]" of what ran it follows.
 */
static void same_place(char *file)
{
	unsigned number;
	int n = 0;

	if (sscanf(file, "(eval %u)%n", &number, &n) == 1 && n && (!file[n] || file[n] == '['))
		strcpy(file, "(eval)");
}

/* Without threads a COP has a GV whose name is "_<" and the file's. */
static bool file_of(const struct perl_reader *r, u64 cop, char *ret, size_t size)
{
	const struct perl_layout *l = r->image->layout;
	u64 at, body;
	char name[1024];

	if (l->cop_file.size)
		return word(r, &at, cop + l->cop_file.at) && at && memory_string(r->mem, ret, size, at);
	if (!word(r, &at, cop + l->cop_filegv.at) || !at || !word(r, &body, at + l->sv_any.at) ||
	        !word(r, &at, body + l->gv_namehek.at) || !hek(r, at, name, sizeof(name)) || strncmp(name, "_<", 2))
		return false;
	snprintf(ret, size, "%s", name + 2);
	return true;
}

bool perl_cop_place(const struct perl_reader *r, u64 cop, u32 *line, char *file, size_t size)
{
	if (!cop || !perl_is_cop(r, cop) || !half(r, line, cop + r->image->layout->cop_line.at) || *line > LINE_MAX ||
	        !file_of(r, cop, file, size))
		return false;
	same_place(file);
	return true;
}
