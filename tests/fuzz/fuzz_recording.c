/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings, pprof and folded stacks from bytes. Checksums would keep a fuzzer out of the sections; so an input may be
 * a list of sections (type, length, bytes), which are written here with checksums that hold, behind a meta section and
 * functions that make sense, if it asks for those.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "frontends/format/diff.h"
#include "frontends/format/format.h"
#include "frontends/format/gzip.h"
#include "frontends/format/input.h"

static void put_section(FILE *to, u32 type, const u8 *bytes, size_t size)
{
	struct section_header header = {type, ENCODING_RAW, size, size, XXH3_64bits(bytes, size), 0};

	header.header = XXH3_64bits(&header, offsetof(struct section_header, header));
	fwrite(&header, sizeof(header), 1, to);
	fwrite(bytes, 1, size, to);
}

enum {
	BYTES = 0,
	SECTIONS = 1,
	WITH_META = 2,
	WITH_FUNCTIONS = 4,
	NODES = 8,
	PPROF = 16
}; /* what the first byte asks for */

static void put_sections(FILE *to, u8 what, const u8 *data, size_t size)
{
	static const char meta[] = "{\"count\":1000,\"kinds\":[\"root\",\"kernel\",\"native\",\"thread\",\"script\"]}";
	static const char functions[] = "\3\0\0\0\0\1t\0\0\1\0\0\0\0\1k\0\0\4\x10\7\0\0\1s\3lua\1f\2\0\0\0\5\1a\0\0";
	const u32 version[2] = {RECORDING_VERSION, 0};

	fwrite(RECORDING_MAGIC, 1, sizeof(RECORDING_MAGIC) - 1, to);
	fwrite(version, 1, sizeof(version), to);
	if (what & WITH_META)
		put_section(to, SECTION_META, (const u8 *)meta, sizeof(meta) - 1);
	if (what & WITH_FUNCTIONS)
		put_section(to, SECTION_FUNCTIONS, (const u8 *)functions, sizeof(functions) - 1);
	if (what & NODES)
		put_section(to, SECTION_NODES, data, size);
	while (!(what & NODES) && size > 2) {
		size_t n = data[1] < size - 2 ? data[1] : size - 2;

		put_section(to, data[0] % 9, data + 2, n);
		data += 2 + n;
		size -= 2 + n;
	}
}

static void write_all(const struct profile *p)
{
	static const struct format *const all[] = {&format_recording, &format_folded, &format_svg, &format_txt,
	        &format_speedscope, &format_pprof, &format_firefox, &format_chrome, &format_perf, &format_jfr};
	FILE *out = fopen("/dev/null", "w");

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!p->base || all[i]->compares)
			error_free(all[i]->write(p, out));
	fclose(out);
}

/* Totals must agree with counts, a difference to itself is none, and every format must be able to show what was read.
 */
static void check(const struct profile *p)
{
	struct diff_options options = {.before = "itself"};
	struct profile *difference;
	u64 total = 0;

	for (u32 i = 0; i < p->nnodes; i++) {
		if (i && p->nodes[i].parent >= i)
			abort();
		total += p->nodes[i].self;
	}
	if (total != p->nodes[0].total)
		abort();
	write_all(p);
	if (diff_create(p, p, &options, &difference))
		abort();
	for (u32 i = 0; i < difference->nnodes; i++)
		if (difference->base[i] != difference->nodes[i].self)
			abort();
	write_all(difference);
	profile_destroy(difference);
}

static void put_gzip(FILE *to, const u8 *bytes, size_t size)
{
	struct gzip *gz;

	if (gzip_create(to, &gz))
		abort();
	gzip_write(gz, bytes, size);
	gzip_finish(gz);
	gzip_destroy(gz);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct filter_options options = {0};
	struct recording recording;
	struct profile *p;
	struct error *err;
	char *bytes = NULL;
	size_t length;
	FILE *file = open_memstream(&bytes, &length);

	if (size < 2)
		return fclose(file), free(bytes), 0;
	if (data[0] & SECTIONS)
		put_sections(file, data[0], data + 2, size - 2);
	else if (data[0] & PPROF)
		put_gzip(file, data + 2, size - 2);
	else
		fwrite(data + 2, 1, size - 2, file);
	fclose(file);
	options.threads = data[1] & 1;
	options.no_kernel = data[1] & 2;
	options.no_user = data[1] & 4;
	options.include = data[1] & 8 ? "a" : NULL;
	options.exclude = data[1] & 16 ? "b" : NULL;
	file = fmemopen(bytes, length ? length : 1, "r");
	err = input_read(file, "input", &options, &p, &recording);
	if (!err) {
		check(p);
		profile_destroy(p);
	}
	error_free(err);
	fclose(file);
	free(bytes);
	return 0;
}
