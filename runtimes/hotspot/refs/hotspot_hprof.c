/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_hprof.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "grow.h"
#include "hotspot_refs_internal.h"
#include "hprof.h"

#define CLASSES_MAX (1u << 20)
#define FIELDS_MAX  65535
#define SUPERS_MAX  64
#define NAME_BYTES  1024
#define PIECE       (1u << 16)  /* of an array that is read at once */
#define ARRAY_MAX   0xffffff00u /* bytes of an array, of which the rest is left out: its record has 32 bits for it */
#define CONSTANTS   1           /* the string of this identifier */

struct field {
	u64 name; /* a Symbol */
	u32 at;
	enum hprof_type type;
};

struct fields {
	struct field *items;
	u32 n, bytes; /* as they are written */
};

struct dumped {
	u64 klass, id; /* id: address of its java.lang.Class */
	const struct dumped *above;
	struct fields own, statics; /* that it declares itself */
	u32 bytes;                  /* of all fields of an instance */
	u32 header;                 /* of an array */
	enum hprof_type item;       /* of an array */
	bool mirror;                /* java.lang.Class */
};

struct hotspot_hprof {
	struct hotspot_refs *r;
	struct dumped **layouts;
	u32 nlayouts;
	struct table at, names;    /* from a Klass to a layout's number + 1; Symbols that were written */
	bool contents, begun;      /* begun: objects may follow */
	u32 domain_at, signers_at; /* in a java.lang.Class; 0: not known */
	u32 thread;                /* number of the last one */
	struct error *err;
	struct hprof w;
};

/* --- classes --- */

static void name(struct hotspot_hprof *d, u64 symbol)
{
	char text[NAME_BYTES];

	if (table_get(&d->names, hotspot_refs_key(symbol)))
		return;
	if (!hotspot_symbol(d->r->view, d->r->m, symbol, text, sizeof(text)))
		*text = 0;
	hprof_string(&d->w, symbol, text);
	if (!d->err)
		d->err = table_put(&d->names, hotspot_refs_key(symbol), 1);
}

struct reading {
	struct hotspot_hprof *d;
	struct dumped *l;
};

static bool read_field(void *ctx, const struct hotspot_declared *f)
{
	struct reading *g = ctx;
	struct fields *fields = f->is_static ? &g->l->statics : &g->l->own;
	char signature[2] = "";
	enum hprof_type type;

	hotspot_symbol(g->d->r->view, g->d->r->m, f->signature, signature, sizeof(signature));
	type = hprof_type_of(*signature);
	if (!type || fields->n >= FIELDS_MAX)
		return true;
	g->d->err = grow(&fields->items, fields->n, sizeof(*fields->items));
	if (g->d->err)
		return false;
	fields->items[fields->n++] = (struct field){f->name, f->offset, type};
	fields->bytes += hprof_size_of(type);
	name(g->d, f->name);
	return !g->d->err;
}

/* Of a field in the object, or the java.lang.Class, that begins with these bytes. */
static void put_value(struct hotspot_hprof *d, const struct field *f, const u8 *bytes, u64 size)
{
	u32 n = f->type == HPROF_OBJECT && d->r->view->oops == OOP_NARROW ? 4 : hprof_size_of(f->type);
	u64 value = 0;

	if (bytes && f->at + (u64)n <= size) {
		memcpy(&value, bytes + f->at, n);
		if (f->type == HPROF_OBJECT)
			value = hotspot_refs_decode(d->r, bytes + f->at);
	}
	hprof_put(&d->w, value, hprof_size_of(f->type));
}

static u64 loader_of(const struct hotspot_hprof *d, u64 klass)
{
	struct hotspot_refs *r = d->r;
	u64 data = hotspot_refs_word(d->r, klass + r->at.of_loader);

	return data ? hotspot_refs_handle(r, data + r->at.loader, r->at.loader_handle) : 0;
}

static u32 end_of_statics(const struct dumped *l)
{
	u32 ret = 0;

	for (u32 i = 0; i < l->statics.n; i++)
		ret = l->statics.items[i].at + 8 > ret ? l->statics.items[i].at + 8 : ret;
	return ret < HEAP_BYTES_MAX ? ret : 0;
}

static void put_statics(struct hotspot_hprof *d, const struct dumped *l, u64 constants)
{
	u32 n = l->statics.n + (constants != 0), size = end_of_statics(l);
	const u8 *bytes = size && l->id != l->klass ? heap_bytes(d->r->h, l->id, size) : NULL;

	hprof_put(&d->w, n, 2);
	for (u32 i = 0; i < l->statics.n; i++) {
		hprof_put(&d->w, l->statics.items[i].name, 8);
		hprof_put(&d->w, l->statics.items[i].type, 1);
		put_value(d, &l->statics.items[i], bytes, size);
	}
	if (!constants)
		return;
	hprof_put(&d->w, CONSTANTS, 8);
	hprof_put(&d->w, HPROF_OBJECT, 1);
	hprof_put(&d->w, constants, 8);
}

/* The VM's own fields of a java.lang.Class (javaClasses.hpp). */
static void find_of_mirror(struct hotspot_hprof *d, const struct dumped *l)
{
	if (!l->mirror)
		return;
	hotspot_java_field(
	        d->r->view, d->r->m, l->klass, "protection_domain", "Ljava/security/ProtectionDomain;", &d->domain_at);
	hotspot_java_field(d->r->view, d->r->m, l->klass, "signers", "[Ljava/lang/Object;", &d->signers_at);
}

static u64 of_mirror(const struct hotspot_hprof *d, const struct dumped *l, u32 at)
{
	return at && l->id != l->klass ? hotspot_load_oop(d->r->view, d->r->m, l->id + at) : 0;
}

static void put_class(struct hotspot_hprof *d, const struct dumped *l)
{
	struct refs_class *c = l->item ? NULL : hotspot_refs_class(d->r, l->klass);
	u64 loader = loader_of(d, l->klass), constants = c ? hotspot_refs_constants(d->r, c) : 0;
	u32 statics = l->statics.n + (constants != 0);

	hprof_begin(&d->w, HPROF_CLASS, 70 + 9ull * statics + l->statics.bytes + (constants ? 8 : 0) + 9ull * l->own.n);
	hprof_put(&d->w, l->id, 8);
	hprof_put(&d->w, HPROF_TRACE, 4);
	hprof_put(&d->w, l->above ? l->above->id : 0, 8);
	hprof_put(&d->w, loader, 8);
	hprof_put(&d->w, of_mirror(d, l, d->signers_at), 8);
	hprof_put(&d->w, of_mirror(d, l, d->domain_at), 8);
	hprof_put(&d->w, 0, 8);
	hprof_put(&d->w, 0, 8);
	hprof_put(&d->w, l->bytes, 4);
	hprof_put(&d->w, 0, 2); /* constants of its pool */
	put_statics(d, l, constants);
	hprof_put(&d->w, l->own.n, 2);
	for (u32 i = 0; i < l->own.n; i++) {
		hprof_put(&d->w, l->own.items[i].name, 8);
		hprof_put(&d->w, l->own.items[i].type, 1);
	}
}

static const struct dumped *layout_of(struct hotspot_hprof *d, u64 klass, u32 depth);

static void fill_array(struct dumped *l, const struct hotspot_class *known, char item)
{
	l->header = known->size;
	l->item = hprof_type_of(item);
}

static struct error *fill(struct hotspot_hprof *d, struct dumped *l, u32 depth)
{
	const struct hotspot_class *known = hotspot_class_of(d->r->view, d->r->m, l->klass);
	struct hotspot_class own = known ? *known : (struct hotspot_class){0};
	struct reading g = {d, l};
	char text[3] = "";
	u64 above = 0;

	l->id = hotspot_refs_handle(d->r, l->klass + d->r->at.mirror, d->r->at.mirror_handle);
	l->id = l->id ? l->id : l->klass;
	l->mirror = own.kind == SIZE_MIRROR;
	name(d, own.symbol);
	hotspot_symbol(d->r->view, d->r->m, own.symbol, text, sizeof(text));
	if (own.kind == SIZE_ARRAY)
		fill_array(l, &own, text[1]);
	else
		hotspot_each_field(d->r->view, d->r->m, l->klass, read_field, &g);
	if (l->item) /* not Object[], as the VM has it */
		above = hotspot_super_named(d->r->view, d->r->m, l->klass, "java/lang/Object");
	else if (!memory_read(d->r->m, &above, 8, l->klass + d->r->view->at.super))
		above = 0;
	if (!d->err && above)
		l->above = layout_of(d, above, depth + 1);
	l->bytes = l->own.bytes + (l->above ? l->above->bytes : 0);
	hprof_loaded(&d->w, l->id, own.symbol);
	return TAKE(d->err);
}

/*
 * NULL: not a class, or loaded after the first object was written. VisualVM's reader wants all names and classes before
 * the objects.
 */
static const struct dumped *layout_of(struct hotspot_hprof *d, u64 klass, u32 depth)
{
	const u64 *known = table_get(&d->at, hotspot_refs_key(klass));
	struct dumped *l;

	if (known)
		return d->layouts[*known - 1];
	if (d->err || d->begun || depth > SUPERS_MAX || d->nlayouts >= CLASSES_MAX ||
	        !hotspot_class_of(d->r->view, d->r->m, klass))
		return NULL;
	l = calloc(1, sizeof(*l));
	d->err = l ? grow(&d->layouts, d->nlayouts, sizeof(*d->layouts)) : &error_no_memory;
	if (!d->err)
		d->err = table_put(&d->at, hotspot_refs_key(klass), d->nlayouts + 1);
	if (d->err) {
		free(l);
		return NULL;
	}
	l->klass = klass;
	d->layouts[d->nlayouts++] = l;
	d->err = fill(d, l, depth);
	return d->err ? NULL : l;
}

/* --- objects --- */

static void put_instance(struct hotspot_hprof *d, const struct dumped *l, u64 object, u64 size)
{
	const u8 *bytes = size <= HEAP_BYTES_MAX ? heap_bytes(d->r->h, object, (u32)size) : NULL;

	hprof_begin(&d->w, HPROF_INSTANCE, 24 + l->bytes);
	hprof_put(&d->w, object, 8);
	hprof_put(&d->w, HPROF_TRACE, 4);
	hprof_put(&d->w, l->id, 8);
	hprof_put(&d->w, l->bytes, 4);
	for (; l; l = l->above)
		for (u32 i = 0; i < l->own.n; i++)
			put_value(d, &l->own.items[i], bytes, size);
}

/* Writes items that lie in `bytes` bytes at addr; zeros where contents were not asked for or cannot be read. */
static void put_items(struct hotspot_hprof *d, const struct dumped *l, u64 addr, u32 bytes, u32 step)
{
	static const u8 none[PIECE];
	bool told = l->item == HPROF_OBJECT || d->contents;
	const u8 *from = told ? heap_bytes(d->r->h, addr, bytes) : NULL;

	from = from ? from : none;
	if (from == none && l->item != HPROF_OBJECT) {
		hprof_bytes(&d->w, from, bytes);
		return;
	}
	for (u32 i = 0; i < bytes; i += step) {
		u64 value = 0;

		memcpy(&value, from + i, step);
		if (l->item == HPROF_OBJECT)
			value = hotspot_refs_decode(d->r, from + i);
		hprof_put(&d->w, value, hprof_size_of(l->item));
	}
}

/* The length is as it is now, and what is written has it. */
static void put_array(struct hotspot_hprof *d, const struct dumped *l, u64 object, u64 size)
{
	u32 step = l->item == HPROF_OBJECT && d->r->view->oops == OOP_NARROW ? 4 : hprof_size_of(l->item), n = 0;
	u64 end;

	memory_read(d->r->m, &n, 4, object + hotspot_length_at(d->r->view));
	if ((u64)n * step > size)
		n = 0;
	n = n < ARRAY_MAX / hprof_size_of(l->item) ? n : ARRAY_MAX / hprof_size_of(l->item);
	if (l->item == HPROF_OBJECT)
		hprof_begin(&d->w, HPROF_OBJECTS, 24 + 8ull * n);
	else
		hprof_begin(&d->w, HPROF_PRIMITIVES, 17 + (u64)n * step);
	hprof_put(&d->w, object, 8);
	hprof_put(&d->w, HPROF_TRACE, 4);
	hprof_put(&d->w, n, 4);
	hprof_put(&d->w, l->item == HPROF_OBJECT ? l->id : l->item, l->item == HPROF_OBJECT ? 8 : 1);
	end = object + l->header + (u64)n * step;
	for (u64 at = object + l->header; at < end; at += PIECE)
		put_items(d, l, at, end - at < PIECE ? (u32)(end - at) : PIECE, step);
}

bool hotspot_hprof_object(struct hotspot_hprof *d, u64 object, u64 klass, u64 size)
{
	const struct dumped *l = layout_of(d, klass, 0);
	u64 of;

	if (!l) {
		heap_torn(d->r->h);
		return !d->err;
	}
	of = l->mirror ? hotspot_refs_word(d->r, object + d->r->at.mirror_klass) : 0;
	if (of) /* is written as a class; those of primitive types have no Klass */
		return true;
	if (l->item)
		put_array(d, l, object, size);
	else
		put_instance(d, l, object, size);
	return !d->err;
}

/* --- roots --- */

static bool is_object(struct hotspot_hprof *d, u64 addr, u32 label)
{
	struct heap_object ignored;

	return !(label & HEAP_MAYBE) || hotspot_refs_object(d->r, addr, label, &ignored) == HEAP_OBJECT;
}

static void put_root(void *ctx, const char *top, u32 label, u64 addr)
{
	struct hotspot_hprof *d = ctx;
	bool maybe = label & HEAP_MAYBE, known = label & HEAP_PART;

	if (!is_object(d, addr, label))
		return;
	if (!maybe && known && !strcmp(top, "(threads)")) {
		hprof_begin(&d->w, HPROF_ROOT_THREAD, 16);
		hprof_put(&d->w, addr, 8);
		hprof_put(&d->w, ++d->thread, 4);
		hprof_put(&d->w, HPROF_TRACE, 4);
	} else if (!maybe && !strcmp(top, "(JNI global references)")) {
		hprof_begin(&d->w, HPROF_ROOT_JNI_GLOBAL, 16);
		hprof_put(&d->w, addr, 8);
		hprof_put(&d->w, 0, 8);
	} else {
		hprof_begin(&d->w, known && !maybe ? HPROF_ROOT_CLASS : HPROF_ROOT_OTHER, 8);
		hprof_put(&d->w, addr, 8);
	}
}

/* --- life --- */

struct error *hotspot_hprof_begin(struct hotspot_refs *r, FILE *out, bool contents, struct hotspot_hprof **ret)
{
	struct hotspot_hprof *d = *ret = calloc(1, sizeof(*d));

	if (!d)
		return &error_no_memory;
	d->r = r;
	d->contents = contents;
	hprof_start(&d->w, out);
	hprof_string(&d->w, CONSTANTS, "<resolved_references>");
	for (u32 i = 0; !d->err && i < r->nclasses; i++)
		layout_of(d, r->classes[i]->klass, 0);
	d->begun = true;
	for (u32 i = 0; !d->err && i < d->nlayouts; i++)
		find_of_mirror(d, d->layouts[i]);
	for (u32 i = 0; !d->err && i < d->nlayouts; i++)
		put_class(d, d->layouts[i]);
	if (!d->err)
		heap_each_root_ref(r->h, put_root, d);
	return NULL;
}

struct error *hotspot_hprof_end(struct hotspot_hprof *d)
{
	struct error *err = d->err;

	if (!err)
		hprof_end(&d->w);
	for (u32 i = 0; i < d->nlayouts; i++) {
		free(d->layouts[i]->own.items);
		free(d->layouts[i]->statics.items);
		free(d->layouts[i]);
	}
	free(d->layouts);
	table_free(&d->at);
	table_free(&d->names);
	free(d);
	return err;
}
