/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_added.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "hotspot_class_files.h"

#define CONSTANTS_MOST 65536
#define STACK_MOST     63
#define LOCALS_MOST    64
#define NAME_MOST      256
#define UNKNOWN        0xff /* a depth */

enum { UTF8 = 1, LONG = 5, DOUBLE, CLASS, STRING, FIELD, METHOD, INTERFACE_METHOD, NAME_AND_TYPE, HANDLE = 15 };
enum {
	ALOAD = 0x19,
	ALOAD_0 = 0x2a,
	ASTORE = 0x3a,
	ASTORE_0 = 0x4b,
	DUP = 0x59,
	IFEQ = 0x99,
	GOTO = 0xa7,
	JSR,
	TABLESWITCH = 0xaa,
	LOOKUPSWITCH,
	IRETURN,
	RETURN = 0xb1,
	GETSTATIC,
	PUTSTATIC,
	GETFIELD,
	PUTFIELD,
	INVOKEVIRTUAL,
	INVOKESPECIAL,
	INVOKESTATIC,
	INVOKEINTERFACE,
	INVOKEDYNAMIC,
	ATHROW = 0xbf,
	WIDE = 0xc4,
	MULTIANEWARRAY,
	IFNULL,
	IFNONNULL,
	OPCODES = 0xca,
};

/* Of each instruction: its bytes (0: it depends), and the words that it takes and leaves, if that is always as many. */
static const char length[] = "1111111111111111232332222211111111111111111111111111112222211111"
                             "1111111111111111111111111111111111111111111111111111111111111111"
                             "1111311111111111111111111333333333333333320011111133333335532311"
                             "3311043355";
static const char pops[] = "0000000000000000000000000000000000000000000000222222221212111112"
                           "2221111222211113434333312123234224242424242424242424121223232324"
                           "2424011122211122211142244111111222222220001100000000000000001110"
                           "0111001100";
static const char pushes[] = "0111111112211122111121212111112222111122221111121211110000000000"
                             "0000000000000000000000000234456212121212121212121212121212121212"
                             "1212021211212212111111111000000000000000100000000000000000011110"
                             "0100000001";

struct input {
	const u8 *data;
	size_t size, at;
	bool bad; /* it ends too early */
};

static u32 take(struct input *in, u32 n)
{
	u32 ret = 0;

	if (in->size - in->at < n) {
		in->bad = true;
		in->at = in->size;
		return 0;
	}
	while (n--)
		ret = ret << 8 | in->data[in->at++];
	return ret;
}

/* A part of it, which is skipped. */
static struct input part(struct input *in, u32 n)
{
	struct input ret = {.data = in->data + in->at, .size = n};

	if (in->size - in->at < n) {
		in->bad = true;
		ret.size = 0;
		n = (u32)(in->size - in->at);
	}
	in->at += n;
	return ret;
}

struct class
{
	struct input in;
	u32 *constant; /* offset of each entry, at its tag; 0: no entry */
	u32 n;
	char name[NAME_MOST], source[NAME_MOST];
	const char *holder, *field;
	runtime_place *each;
	void *ctx;
};

/* A 2-byte member of a constant of this kind (0: any), at this offset behind its tag. */
static u32 member(const struct class *c, u32 i, u8 tag, u32 at)
{
	struct input in = c->in;

	if (!i || i >= c->n || !c->constant[i])
		return 0;
	in.at = c->constant[i];
	if (take(&in, 1) != tag && tag)
		return 0;
	in.at += at;
	return in.at > in.size ? 0 : take(&in, 2);
}

static void text_of(const struct class *c, u32 i, char *ret)
{
	u32 n = member(c, i, UTF8, 0);

	*ret = '\0';
	if (n && n < NAME_MOST && c->constant[i] + 3 + n <= c->in.size) {
		memcpy(ret, c->in.data + c->constant[i] + 3, n);
		ret[n] = '\0';
	}
}

/* "com.acme.Store" */
static void class_name(const struct class *c, u32 i, char *ret)
{
	text_of(c, member(c, i, CLASS, 0), ret);
	for (char *at = ret; (at = strchr(at, '/'));)
		*at = '.';
}

static bool read_constants(struct class *c)
{
	static const u8 sizes[] = {[3] = 4,
	        [4] = 4,
	        [LONG] = 8,
	        [DOUBLE] = 8,
	        [CLASS] = 2,
	        [STRING] = 2,
	        [FIELD] = 4,
	        [METHOD] = 4,
	        [INTERFACE_METHOD] = 4,
	        [NAME_AND_TYPE] = 4,
	        [HANDLE] = 3,
	        [16] = 2,
	        [17] = 4,
	        [18] = 4,
	        [19] = 2,
	        [20] = 2};

	c->n = take(&c->in, 2);
	c->constant = calloc(CONSTANTS_MOST + 1, sizeof(*c->constant));
	for (u32 i = 1; c->constant && i < c->n; i++) {
		u32 tag, size;

		c->constant[i] = (u32)c->in.at;
		tag = take(&c->in, 1);
		size = tag == UTF8 ? take(&c->in, 2) : tag < sizeof(sizes) ? sizes[tag] : 0;
		if (c->in.bad || (!size && tag != UTF8))
			return false;
		part(&c->in, size);
		i += tag == LONG || tag == DOUBLE; /* these count twice */
	}
	return c->constant && !c->in.bad;
}

/* "(ILjava/lang/String;)V": the words of the arguments, and of the result; objects: it gives a reference. */
static u32 words_of(char type)
{
	return type == 'J' || type == 'D' ? 2 : type != 'V';
}

static u32 arguments(const char *d, u32 *result, bool *reference)
{
	u32 n = 0;

	for (d += *d == '('; *d && *d != ')'; d += *d != '\0') {
		bool array = *d == '[';

		d += strspn(d, "[");
		n += array ? 1 : words_of(*d);
		d += *d == 'L' ? strcspn(d, ";") : 0;
	}
	d += *d == ')';
	*result = *d ? words_of(*d) : 0;
	*reference = *d == 'L' || *d == '[';
	return n;
}

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
	while (n--)
		if (!strcmp(name, names[n]))
			return true;
	return false;
}

static bool adds(const char *name)
{
	static const char *const names[] = {"add", "addAll", "addFirst", "addLast", "addElement", "append", "compute",
	        "computeIfAbsent", "enqueue", "insert", "merge", "offer", "offerFirst", "offerLast", "push", "put",
	        "putAll", "putFirst", "putIfAbsent", "putLast", "register", "store"};

	return is_one_of(name, names, sizeof(names) / sizeof(*names));
}

/* What these give is an element, or what elements are in. */
static bool gives(const char *name)
{
	static const char *const names[] = {"compute", "computeIfAbsent", "computeIfPresent", "get", "getFirst",
	        "getLast", "getOrDefault", "merge", "peek", "peekFirst", "peekLast"};

	return is_one_of(name, names, sizeof(names) / sizeof(*names));
}

/* A method as it is executed, one instruction after the other: which words are, or come from, the field's value? */
struct execution {
	const struct class *c;
	struct input code;
	u8 *depth_at; /* of the stack where a jump leads; UNKNOWN */
	u32 depth;
	u64 stack, locals; /* bit n: that word is */
	s64 last;          /* where it adds, the last time; -1: nowhere */
	bool lost;
};

static void push(struct execution *x, u32 n, bool marked)
{
	if (x->depth + n > STACK_MOST) {
		x->lost = true;
		return;
	}
	for (; n; n--, x->depth++)
		x->stack = (x->stack & ~(1ull << x->depth)) | (u64)marked << x->depth;
}

/* The lowest of the words that are taken. */
static bool pop(struct execution *x, u32 n)
{
	x->lost |= n > x->depth;
	x->depth -= n < x->depth ? n : x->depth;
	return n && x->stack >> x->depth & 1;
}

static void jump(struct execution *x, s64 to)
{
	if (to >= 0 && (u64)to < x->code.size)
		x->depth_at[to] = (u8)x->depth;
}

static void invoke(struct execution *x, u32 at, u32 op, u32 constant)
{
	char name[NAME_MOST], type[NAME_MOST];
	u32 both = member(x->c, constant, 0, 2), result, n;
	bool reference, marked;

	text_of(x->c, member(x->c, both, NAME_AND_TYPE, 0), name);
	text_of(x->c, member(x->c, both, NAME_AND_TYPE, 2), type);
	if (*type != '(') {
		x->lost = true;
		return;
	}
	n = arguments(type, &result, &reference) + (op != INVOKESTATIC && op != INVOKEDYNAMIC);
	marked = pop(x, n) && op != INVOKESTATIC && op != INVOKEDYNAMIC;
	if (marked && adds(name))
		x->last = at;
	push(x, result, marked && reference && gives(name));
}

static void use_field(struct execution *x, u32 op, u32 constant)
{
	char name[NAME_MOST], type[NAME_MOST], holder[NAME_MOST];
	u32 both = member(x->c, constant, FIELD, 2), words;

	class_name(x->c, member(x->c, constant, FIELD, 0), holder);
	text_of(x->c, member(x->c, both, NAME_AND_TYPE, 0), name);
	text_of(x->c, member(x->c, both, NAME_AND_TYPE, 2), type);
	words = words_of(*type);
	pop(x, (op == GETFIELD || op == PUTFIELD) + (op == PUTFIELD || op == PUTSTATIC ? words : 0));
	if (op == GETFIELD || op == GETSTATIC)
		push(x, words, !strcmp(name, x->c->field) && !strcmp(holder, x->c->holder));
}

static void load(struct execution *x, u32 local)
{
	push(x, 1, local < LOCALS_MOST && x->locals >> local & 1);
}

static void store(struct execution *x, u32 local)
{
	bool marked = pop(x, 1);

	if (local < LOCALS_MOST)
		x->locals = (x->locals & ~(1ull << local)) | (u64)marked << local;
}

/* An instruction at `at` whose operands follow; false: what comes next is not reached from here. */
static bool execute(struct execution *x, u32 at, u32 op)
{
	struct input operand = x->code;
	u64 top;
	u32 n;

	operand.at = at + 1;
	switch (op) {
	case ALOAD:
		load(x, take(&operand, 1));
		return true;
	case ASTORE:
		store(x, take(&operand, 1));
		return true;
	case DUP:
		top = x->depth ? x->stack >> (x->depth - 1) & 1 : 0;
		push(x, 1, top);
		return true;
	case GETSTATIC ... PUTFIELD:
		use_field(x, op, take(&operand, 2));
		return true;
	case INVOKEVIRTUAL ... INVOKEDYNAMIC:
		invoke(x, at, op, take(&operand, 2));
		return true;
	case MULTIANEWARRAY:
		take(&operand, 2);
		n = take(&operand, 1);
		pop(x, n);
		push(x, 1, false);
		return true;
	case WIDE:
		x->lost = true; /* of methods with hundreds of variables */
		return true;
	default:
		break;
	}
	if (op >= ALOAD_0 && op <= ALOAD_0 + 3)
		load(x, op - ALOAD_0);
	else if (op >= ASTORE_0 && op <= ASTORE_0 + 3)
		store(x, op - ASTORE_0);
	else {
		pop(x, (u32)(pops[op] - '0'));
		push(x, (u32)(pushes[op] - '0'), false);
	}
	if ((op >= IFEQ && op <= JSR) || op == IFNULL || op == IFNONNULL)
		jump(x, (s64)at + (s16)take(&operand, 2));
	return op != GOTO && (op < TABLESWITCH || op > RETURN) && op != ATHROW;
}

/* The length of a switch instruction; 0: it is damaged. */
static u32 switch_length(struct input code, u32 at, u32 op)
{
	u32 padded = (at + 4) & ~3u, low, high, n;

	code.at = padded < code.size ? padded : code.size;
	take(&code, 4);
	low = take(&code, 4);
	if (op == LOOKUPSWITCH)
		n = low < UINT16_MAX ? 2 * low : 0;
	else
		n = (high = take(&code, 4)) - low < UINT16_MAX ? high - low + 1 : 0;
	return code.bad ? 0 : (u32)code.at - at + 4 * n;
}

static void execute_all(struct execution *x)
{
	bool reached = true;

	for (u32 at = 0, n; at < x->code.size && !x->lost; at += n) {
		u32 op = x->code.data[at];

		n = op < OPCODES ? (u32)(length[op] - '0') : 0;
		if (op == TABLESWITCH || op == LOOKUPSWITCH)
			n = switch_length(x->code, at, op);
		if (!n)
			break;
		if (x->depth_at[at] != UNKNOWN || !reached) {
			x->depth = x->depth_at[at] != UNKNOWN ? x->depth_at[at] : 0;
			x->stack &= (1ull << x->depth) - 1;
		}
		reached = execute(x, at, op);
	}
}

/* The line of an instruction, by the attributes of the code. */
static u32 line_of(const struct class *c, struct input attributes, u32 pc)
{
	u32 n = take(&attributes, 2), ret = 0, best = 0;

	for (u32 i = 0; i < n && !attributes.bad; i++) {
		char name[NAME_MOST];
		struct input lines;

		text_of(c, take(&attributes, 2), name);
		lines = part(&attributes, take(&attributes, 4));
		if (strcmp(name, "LineNumberTable") != 0)
			continue;
		for (u32 k = take(&lines, 2); k && !lines.bad; k--) {
			u32 start = take(&lines, 2), line = take(&lines, 2);

			if (!lines.bad && start <= pc && start >= best) {
				best = start;
				ret = line;
			}
		}
	}
	return ret;
}

/* "com.acme.Store.record", also of a lambda in it ("lambda$record$0"). */
static void name_method(const struct class *c, const char *method, char *ret, size_t size)
{
	const char *from = !strncmp(method, "lambda$", 7) ? method + 7 : method;

	snprintf(ret, size, "%s.%.*s", c->name, (int)(from != method ? strcspn(from, "$") : strlen(from)), from);
}

static struct error *read_code(const struct class *c, struct input in, const char *method)
{
	struct execution x = {.c = c, .last = -1};
	char name[2 * NAME_MOST];

	take(&in, 4);
	x.code = part(&in, take(&in, 4));
	part(&in, 8 * take(&in, 2)); /* handlers */
	if (in.bad || !x.code.size || x.code.size > UINT16_MAX)
		return NULL;
	x.depth_at = malloc(x.code.size);
	if (!x.depth_at)
		return &error_no_memory;
	memset(x.depth_at, UNKNOWN, x.code.size);
	execute_all(&x);
	free(x.depth_at);
	if (x.last < 0)
		return NULL;
	name_method(c, method, name, sizeof(name));
	return c->each(c->ctx, name, c->source, line_of(c, in, (u32)x.last));
}

/* Fields or methods, but for what fills the collection as it is made. */
static struct error *read_members(struct class *c, bool methods)
{
	struct error *err = NULL;

	for (u32 n = take(&c->in, 2); n && !err && !c->in.bad; n--) {
		char name[NAME_MOST], attribute[NAME_MOST];

		take(&c->in, 2);
		text_of(c, take(&c->in, 2), name);
		take(&c->in, 2);
		for (u32 i = take(&c->in, 2); i && !err && !c->in.bad; i--) {
			struct input body;

			text_of(c, take(&c->in, 2), attribute);
			body = part(&c->in, take(&c->in, 4));
			if (methods && !c->in.bad && *name != '<' && !strcmp(attribute, "Code"))
				err = read_code(c, body, name);
		}
	}
	return err;
}

/* The class's attributes stand behind its methods, which are read once more when its file's name is known. */
static struct error *read_class(struct class *c)
{
	u32 this;
	size_t members;
	struct error *err;

	if (take(&c->in, 4) != 0xcafebabe)
		return NULL;
	take(&c->in, 4);
	if (!read_constants(c))
		return NULL;
	take(&c->in, 2);
	this = take(&c->in, 2);
	class_name(c, this, c->name);
	take(&c->in, 2);
	part(&c->in, 2 * take(&c->in, 2));
	err = read_members(c, false);
	members = c->in.at;
	if (!err)
		err = read_members(c, false);
	for (u32 n = take(&c->in, 2); n && !c->in.bad; n--) {
		char name[NAME_MOST];
		struct input body;

		text_of(c, take(&c->in, 2), name);
		body = part(&c->in, take(&c->in, 4));
		if (!strcmp(name, "SourceFile"))
			text_of(c, take(&body, 2), c->source);
	}
	if (err || c->in.bad)
		return err;
	c->in.at = members;
	return read_members(c, true);
}

struct error *hotspot_added_in(
        const void *file, size_t size, const char *holder, const char *field, runtime_place *each, void *ctx)
{
	struct class c = {
	        .in = {.data = file, .size = size}, .holder = holder, .field = field, .each = each, .ctx = ctx};
	struct error *err = read_class(&c);

	free(c.constant);
	return err;
}

struct search {
	const char *holder, *field;
	runtime_place *each;
	void *ctx;
};

static struct error *search_file(void *ctx, const void *file, size_t size)
{
	const struct search *s = ctx;

	return hotspot_added_in(file, size, s->holder, s->field, s->each, s->ctx);
}

struct error *hotspot_added(pid_t pid, const char *holder, const char *field, runtime_place *each, void *ctx)
{
	struct search s = {holder, field, each, ctx};

	return hotspot_class_files(pid, holder, search_file, &s);
}
