// SPDX-License-Identifier: Apache-2.0
// LuaJIT 2.1: cdata objects of the FFI by C type, with their bytes and how many have a finalizer (ffi.gc)
//
// Works without debug information, by what yrt knows of LuaJIT's builds. Takes the process's first VM; -D
// 'STATE=_luajit(1)' its second one. Reads each object's head, some 30 bytes, and each type once. Types are written as
// tostring(ffi.typeof(object)) writes them; a structure without a name has its number. What C allocates behind a
// pointer is not in BYTES. Types that only grow in number are made by ffi.typeof, ffi.cast or ffi.new of a new text, or
// of a type without a name, each time.

#ifndef STATE
#define STATE _luajit
#endif

##ifdeffield GCRef gcptr64
#define REF(r) ((GCobj *)(r).gcptr64)
#define PTR(r) ((r).ptr64)
##else
#define REF(r) ((GCobj *)(unsigned long)(r).gcptr32)
#define PTR(r) ((unsigned long)(r).ptr32)
##endif

/* lj_gc.h, lj_obj.h: flags of GChead.marked; in front of an object whose size its type does not say */
#define FINALIZER 0x10
#define VARIABLE  0x80
#define CDATA     10
struct cdata_front { unsigned short offset, extra; unsigned len; };

/* lj_ctype.h: what a type is, in the uppermost four bits; then flags, whose meaning depends on it */
#define KIND(info)  ((info) >> 28)
#define NUM         0
#define STRUCT      1
#define PTR_TO      2
#define ARRAY       3
#define VOID        4
#define ENUM        5
#define FUNC        6
#define ATTRIB      8
#define IS_BOOL     0x08000000u
#define IS_FLOATING 0x04000000u
#define IS_CONST    0x02000000u
#define IS_VOLATILE 0x01000000u
#define IS_UNSIGNED 0x00800000u
#define IS_VARIABLE 0x00100000u
#define IS_VECTOR   IS_BOOL
#define IS_COMPLEX  IS_FLOATING
#define IS_UNION    IS_UNSIGNED
#define IS_REF      IS_UNSIGNED
#define IS_QUALIFIER(info) (((info) >> 16 & 255) == 1)
#define UNKNOWN     0xffffffffu
#define FIRST_OWN   40 /* a program's own types have larger numbers */

#define CHILD(info) ((int)((info) & 0xffff))

_agg bytes[_str];
_map long finalizers[_str];
_map _str names[int];
CType *types;
_str written;
int word; /* written ends with a word: a space has to follow */

CType *type_of(int id)
{
	return &types[id];
}

void put(_str text)
{
	written = _cat(written, text);
}

void put_word(_str text)
{
	put(_cat(word ? " " : "", text));
	word = 1;
}

void put_mark(_str text)
{
	put(_cat(word ? " " : "", text));
	word = 0;
}

_str digit(unsigned n)
{
	switch (n) {
	case 0: return "0";
	case 1: return "1";
	case 2: return "2";
	case 3: return "3";
	case 4: return "4";
	case 5: return "5";
	case 6: return "6";
	case 7: return "7";
	case 8: return "8";
	}
	return "9";
}

_str decimal(unsigned n)
{
	_str text = digit(n % 10);

	while (n /= 10)
		text = _cat(digit(n % 10), text);
	return text;
}

void put_qualifiers(unsigned info)
{
	if (info & IS_CONST)
		put_word("const");
	if (info & IS_VOLATILE)
		put_word("volatile");
}

void put_named(int id, _str what)
{
	GCobj *name = REF(type_of(id)->name);

	put_word(what);
	if (name)
		put_word(_str((char *)name + sizeof(GCstr)));
	else
		put_word(decimal(id));
}

void put_number(unsigned info, unsigned size)
{
	if (info & IS_BOOL)
		put_word("bool");
	else if (info & IS_FLOATING)
		put_word(size == 8 ? "double" : size == 4 ? "float" : "long double");
	else if (size == 8)
		put_word(info & IS_UNSIGNED ? "uint64_t" : "int64_t");
	else {
		if (info & IS_UNSIGNED)
			put_word("unsigned");
		put_word(size == 1 ? "char" : size == 4 ? "int" : "short");
	}
}

int is_array(unsigned info)
{
	return KIND(info) == ARRAY && !(info & (IS_VECTOR | IS_COMPLEX));
}

/* What a declaration has on the left of its name. pointed: a pointer leads to this type. */
void put_left(int id, unsigned qualifiers, int pointed)
{
	unsigned info = type_of(id)->info, size = type_of(id)->size;

	switch (KIND(info)) {
	case NUM:
		put_qualifiers(qualifiers | info);
		put_number(info, size);
		return;
	case VOID:
		put_qualifiers(qualifiers | info);
		put_word("void");
		return;
	case STRUCT:
		put_qualifiers(qualifiers);
		put_named(id, info & IS_UNION ? "union" : "struct");
		return;
	case ENUM:
		put_qualifiers(qualifiers);
		if (!REF(type_of(id)->name) && id < FIRST_OWN)
			put_word("ctype");
		else
			put_named(id, "enum");
		return;
	case ATTRIB:
		put_left(CHILD(info), qualifiers | (IS_QUALIFIER(info) ? size : 0), pointed);
		return;
	case PTR_TO:
		put_left(CHILD(info), 0, 1);
		put_mark(info & IS_REF ? "&" : "*");
		if (!(info & IS_REF))
			put_qualifiers(qualifiers | info);
		return;
	}
	if (info & IS_COMPLEX && KIND(info) == ARRAY) {
		put_word(size == 8 ? "complex float" : "complex");
		return;
	}
	put_left(CHILD(info), qualifiers, 0);
	if (KIND(info) == ARRAY && info & IS_VECTOR)
		put_word(_cat("__attribute__((vector_size(", decimal(size), ")))"));
	else if (pointed && (is_array(info) || KIND(info) == FUNC))
		put_mark("(");
}

void put_right(int id, int pointed)
{
	unsigned info = type_of(id)->info, size = type_of(id)->size;

	if (KIND(info) == PTR_TO) {
		put_right(CHILD(info), 1);
		return;
	}
	if (KIND(info) == ATTRIB) {
		put_right(CHILD(info), pointed);
		return;
	}
	if (!is_array(info) && KIND(info) != FUNC)
		return;
	if (pointed)
		put_mark(")");
	put_mark(KIND(info) == FUNC ? "()" : "[");
	if (is_array(info) && size != UNKNOWN) {
		unsigned one = type_of(CHILD(info))->size;

		put(decimal(one ? size / one : 0));
	} else if (is_array(info) && info & IS_VARIABLE)
		put("?");
	if (is_array(info))
		put("]");
	put_right(CHILD(info), 0);
}

_str name_of(int id)
{
	if (!_len(names[id])) {
		written = "";
		word = 0;
		put_left(id, 0, 0);
		put_right(id, 0);
		names[id] = written;
	}
	return names[id];
}

/* A function's object is its address. */
long size_of(GCobj *o)
{
	struct cdata_front *front = (struct cdata_front *)((char *)o - sizeof(struct cdata_front));
	CType *t = type_of(o->cd.ctypeid);

	if (o->gch.marked & VARIABLE)
		return (long)front->len + front->extra;
	while (KIND(t->info) == ATTRIB)
		t = type_of(CHILD(t->info));
	return sizeof(GCcdata) + (KIND(t->info) > ENUM ? 8 : t->size);
}

_probe _oneshot {
	global_State *g = (global_State *)PTR(STATE->glref);
	CTState *state = (CTState *)PTR(g->ctype_state);

	if (!state) {
		printf("no FFI is in use\n");
		_exit();
	}
	types = state->tab;
	for (GCobj *o = REF(g->gc.root); o; o = REF(o->gch.nextgc)) {
		if (o->gch.gct != CDATA)
			continue;
		_str name = name_of(o->cd.ctypeid);
		bytes[name] <<< size_of(o);
		finalizers[name] += (o->gch.marked & FINALIZER) != 0;
	}
	printf("%10s %12s %10s  %s\n", "OBJECTS", "BYTES", "FINALIZERS", "C TYPE");
	_foreach (name : total _in bytes, _top 1000)
		printf("%10ld %12ld %10ld  %s\n", _count(bytes[name]), total, finalizers[name], name);
	printf("%u C types, of at most 65536\n", state->top);
}
