/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names at random addresses of real files, against the rules of symbols.h worked out the slow way from what readelf
 * prints, and against addr2line.
 */
#include <fcntl.h>
#include <unistd.h>

#include "unit.h"

#include "unwind/grow.h"
#include "unwind/symbols/symbols.h"
#include "unwind/symbols/symbols_table.h"

#define ADDRESSES 1000u

struct line {
	u64 start, size;
	char *name;
	bool local, untyped, dynamic;
};

struct oracle {
	struct line *lines;
	u32 count;
};

static const char *const files[] = {
        "/proc/$PPID/exe", /* this test: never stripped, so addr2line is compared everywhere */
        "$(gcc -print-file-name=libc.so.6)",
        "$(gcc -print-file-name=libstdc++.so.6)",
        "$(gcc -print-file-name=libcrypto.so.3)",
        "$(ldconfig -p | sed -n 's/.*=> //; /libluajit-5.1.so.2$/p')",
        "$(ls -d /usr/lib/jvm/*/lib/server/libjvm.so)",
        "$(command -v nginx)",
        "$(command -v gcc)",
        "$(command -v bash)",
};

/* The type of a symbol whose line readelf prints; false: not one for us. */
static bool parse_line(char *text, struct line *ret)
{
	char type[32], bind[32], section[32], name[8192], size[32];
	unsigned long start;

	if (sscanf(text, " %*u: %lx %31s %31s %31s %*s %31s %8191s", &start, size, type, bind, section, name) != 6)
		return false;
	if ((strcmp(type, "FUNC") && strcmp(type, "IFUNC") && strcmp(type, "NOTYPE")) || !strcmp(section, "UND") ||
	        !strcmp(section, "ABS"))
		return false;
	name[1 + strcspn(name + 1, "@")] = 0;
	*ret = (struct line){
	        start, strtoul(size, NULL, 0), strdup(name), !strcmp(bind, "LOCAL"), !strcmp(type, "NOTYPE"), false};
	return true;
}

static void read_symbols(struct oracle *o, const char *path)
{
	char command[1024], *text = NULL;
	bool dynamic = false;
	size_t room = 0;
	FILE *f;

	snprintf(command, sizeof(command), "readelf -Ws '%s' 2>&1", path);
	f = popen(command, "r");
	assert_non_null(f);
	while (getline(&text, &room, f) > 0) {
		if (!strncmp(text, "Symbol table", 12))
			dynamic = strstr(text, ".dynsym");
		assert_null(grow(&o->lines, o->count, sizeof(*o->lines)));
		if (parse_line(text, &o->lines[o->count])) {
			o->lines[o->count].dynamic = dynamic;
			o->count++;
		}
	}
	free(text);
	pclose(f);
}

static void oracle_free(struct oracle *o)
{
	while (o->count)
		free(o->lines[--o->count].name);
	free(o->lines);
}

static bool covers(const struct line *l, u64 addr)
{
	return addr - l->start < l->size;
}

static size_t underscores(const char *name)
{
	return !strncmp(name, "_Z", 2) || !strncmp(name, "_R", 2) ? 0 : strspn(name, "_");
}

/* < 0: a is the better name at addr, both cover it */
static int order(const struct line *a, const struct line *b, bool whole)
{
	const char *x = a->name, *y = b->name;

	if (a->start != b->start)
		return a->start > b->start ? -1 : 1;
	if (a->untyped != b->untyped)
		return a->untyped - b->untyped;
	if (a->local != b->local)
		return a->local - b->local;
	if (!whole && a->dynamic != b->dynamic)
		return a->dynamic - b->dynamic;
	if (a->size != b->size)
		return a->size < b->size ? -1 : 1;
	if (underscores(x) != underscores(y))
		return underscores(x) < underscores(y) ? -1 : 1;
	return strlen(x) != strlen(y) ? (int)strlen(x) - (int)strlen(y) : strcmp(x, y);
}

/* The best sized one; NULL leaves room for an unsized one in front of addr. */
static const struct line *expected(const struct oracle *o, u64 addr, bool whole)
{
	const struct line *best = NULL, *l;

	for (l = o->lines; l < o->lines + o->count; l++)
		if (l->size && covers(l, addr) && (!best || order(l, best, whole) < 0))
			best = l;
	return best;
}

/* Is name an unsized one at start, with no other symbol between it and addr? */
static bool is_nearest_unsized(const struct oracle *o, const struct symbol *sym, u64 addr)
{
	const struct line *l;
	bool there = false;

	for (l = o->lines; l < o->lines + o->count; l++) {
		if (l->start > sym->start && l->start <= addr)
			return false;
		there |= l->start == sym->start && !l->size && !strcmp(l->name, sym->name);
	}
	return there;
}

/* A function of crtstuff.c: code behind it belongs to no symbol. */
static bool is_startup(const char *name)
{
	return !strcmp(name, "frame_dummy") || !strcmp(name, "__do_global_dtors_aux") ||
	       strstr(name, "register_tm_clones");
}

static bool unsized_covers(const struct image *img, const struct oracle *o, u64 addr)
{
	const struct line *l, *last = NULL;
	u32 i;

	for (l = o->lines; l < o->lines + o->count; l++)
		if (l->start <= addr && (!last || l->start > last->start || (l->start == last->start && l->size)))
			last = l;
	if (last && addr - last->start >= 64 && is_startup(last->name))
		return false;
	for (i = 0; last && i < img->symbols->ncode; i++)
		if (addr >= img->symbols->code[i].start && addr < img->symbols->code[i].end &&
		        last->start >= img->symbols->code[i].start)
			return !last->size;
	return false;
}

struct tally {
	u32 named, unnamed, stubs, wrong;
};

static void check_address(struct image *img, const struct oracle *o, u64 addr, struct tally *tally)
{
	const struct line *want = expected(o, addr, img->symbols->whole);
	struct symbol sym;
	bool found = symbols_find(img, addr, &sym), right;

	if (found && strlen(sym.name) > 4 && !strcmp(sym.name + strlen(sym.name) - 4, "@plt")) {
		tally->stubs++; /* those are compared with objdump in test_symbols.c */
		right = !want;
	} else if (found) {
		tally->named++;
		right = want ? sym.start == want->start && !strcmp(sym.name, want->name)
		             : is_nearest_unsized(o, &sym, addr);
	} else {
		tally->unnamed++;
		right = !want && !unsized_covers(img, o, addr);
	}
	if (!right && !tally->wrong++)
		print_message("%lx: %s, not %s\n", addr, found ? sym.name : "?", want ? want->name : "?");
}

static u64 random_address(const struct image *img)
{
	const struct symbols *s = img->symbols;
	u64 total = 0, at;
	u32 i;

	for (i = 0; i < s->ncode; i++)
		total += s->code[i].end - s->code[i].start;
	at = ((u64)random() << 31 | random()) % total;
	for (i = 0; at >= s->code[i].end - s->code[i].start; i++)
		at -= s->code[i].end - s->code[i].start;
	return s->code[i].start + at;
}

static void addresses_write(const char *path, const u64 *addrs)
{
	FILE *f = fopen(path, "w");
	u32 i;

	assert_non_null(f);
	for (i = 0; i < ADDRESSES; i++)
		fprintf(f, "%lx\n", addrs[i]);
	assert_int_equal(fclose(f), 0);
}

/* Why addr2line may say something else: an alias; the nearest symbol in front of a gap; a function around another. */
static bool is_explained(const struct oracle *o, u64 addr, const struct symbol *sym, const char *theirs)
{
	const struct line *l;

	for (l = o->lines; l < o->lines + o->count; l++) {
		if (strcmp(l->name, theirs))
			continue;
		if (sym && l->start == sym->start)
			return true; /* an alias */
		if (l->start <= addr && !covers(l, addr))
			return true; /* in front of a gap */
		if (sym && covers(l, addr) && l->start < sym->start)
			return true; /* around the innermost */
	}
	return false;
}

/* addr2line sees .symtab only: by DWARF it would name the inlined functions, and .dynsym it does not look at. */
static void compare_addr2line(struct image *img, const struct oracle *o, const char *path, const u64 *addrs)
{
	u32 same = 0, explained = 0, silent = 0, i;
	char list[] = "/tmp/yrt-addresses-XXXXXX", bare[] = "/tmp/yrt-bare-XXXXXX", command[1024], *theirs = NULL;
	size_t room = 0;
	FILE *f;

	close(mkstemp(list));
	close(mkstemp(bare));
	addresses_write(list, addrs);
	snprintf(command, sizeof(command),
	        "objcopy --strip-debug --remove-section=.gnu_debuglink --remove-section=.note.gnu.build-id '%s' %s && "
	        "addr2line -f -e %s <%s | sed -n 1~2p",
	        path, bare, bare, list);
	f = popen(command, "r");
	assert_non_null(f);
	for (i = 0; i < ADDRESSES && getline(&theirs, &room, f) > 0; i++) {
		struct symbol sym;
		bool found = symbols_find(img, addrs[i], &sym);

		theirs[1 + strcspn(theirs + 1, "@\n")] = 0;
		if (found && !strcmp(theirs, sym.name))
			same++;
		else if (!strcmp(theirs, "??"))
			silent++;
		else if (is_explained(o, addrs[i], found ? &sym : NULL, theirs))
			explained++;
		else
			print_message("%lx: %s, addr2line: %s\n", addrs[i], found ? sym.name : "?", theirs);
	}
	free(theirs);
	pclose(f);
	unlink(list);
	unlink(bare);
	print_message("	addr2line: %u the same, %u explained, %u unknown to it\n", same, explained, silent);
	assert_int_equal(i, ADDRESSES);
	assert_int_equal(same + explained + silent, ADDRESSES);
	assert_true(same >= ADDRESSES / 2);
}

static void check_file(const char *path)
{
	struct image *img = NULL, *debug;
	struct oracle o = {.count = 0};
	struct tally tally = {.named = 0};
	u64 addrs[ADDRESSES];
	struct symbol sym;
	u32 i;

	assert_null(image_open(open(path, O_RDONLY | O_CLOEXEC), path, &img));
	assert_null(symbols_load(img, ""));
	symbols_find(img, 0, &sym);
	debug = img->symbols->sources[SOURCE_DEBUG].img;
	read_symbols(&o, path);
	if (debug)
		read_symbols(&o, debug->path);
	for (i = 0; i < ADDRESSES; i++) {
		addrs[i] = random_address(img);
		check_address(img, &o, addrs[i], &tally);
	}
	print_message("%s%s: %u named, %u in stubs, %u without a symbol, %u wrong\n", path,
	        debug ? " (with its debug file)" : "", tally.named, tally.stubs, tally.unnamed, tally.wrong);
	assert_int_equal(tally.wrong, 0);
	if (img->symbols->whole)
		compare_addr2line(img, &o, debug ? debug->path : path, addrs);
	oracle_free(&o);
	image_put(img);
}

static void test_files(void **state)
{
	char command[512], path[512];
	u32 i, checked = 0;
	FILE *f;

	srandom(1);
	for (i = 0; i < sizeof(files) / sizeof(*files); i++) {
		snprintf(command, sizeof(command), "for f in %s; do realpath -e $f; done 2>&1", files[i]);
		f = popen(command, "r");
		while (fgets(path, sizeof(path), f)) {
			path[strcspn(path, "\n")] = 0;
			if (*path == '/') {
				check_file(path);
				checked++;
			} else {
				print_message("not on this machine: %s (%s)\n", files[i], path);
			}
		}
		pclose(f);
	}
	assert_true(checked >= 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
