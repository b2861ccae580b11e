/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile Go program: a sound file, some of whose bytes are others. The input: the layout, then pieces to be written,
 * each with an offset (of the table or the data), a length and bytes.
 */
#include "runtimes/go/go_code.h"
#include "runtimes/go/go_names.h"
#include "runtimes/go/go_rows.h"
#include "tests/unit/go_fake.h"
#include "unwind/cfi/cfi.h"

static struct go_fake fake;

static void change(const uint8_t *data, size_t size)
{
	while (size > 4) {
		size_t at = fake.addr + (data[0] | (data[1] & 0x1f) << 8), n = data[2] % 16 + 1;

		data += 3;
		size -= 3;
		n = n < size ? n : size;
		if (at + n <= fake.file.n)
			memcpy(fake.file.at + at, data, n);
		data += n;
		size -= n;
	}
}

static void name_all(struct go_table *t)
{
	struct frame frames[GO_INLINED_MAX + 1];
	struct frame_name name;

	for (u64 pc = ELF_TEXT; pc < GO_END; pc += 4) {
		struct frame native = {.where = frame_where(FRAME_NATIVE, RUNTIME_NATIVE, 0, pc)};
		u32 n = go_expand_frame(t, 0, &native, frames, GO_INLINED_MAX + 1);

		for (u32 i = 0; i < n; i++)
			go_name_frame(t, 0, &frames[i], &name);
	}
}

static void look(struct image *img)
{
	const struct cfi_options options = {.providers = {&go_provider}};
	struct go_code *code = go_code_create();
	struct go_switches switches;
	struct go_table *t;
	struct cfi *cfi;

	error_free(go_table_open(img, &t));
	if (t && code) {
		name_all(t);
		go_code_switches(code, t, &switches);
	}
	go_table_close(t);
	go_code_destroy(code);
	if (cfi_load(img, &options, &cfi))
		return;
	cfi_destroy(cfi);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image *img;

	if (size < 2)
		return 0;
	go_fake_make(&fake, data[0] % GO_MAGICS, data[0] & 4);
	change(data + 1, size - 1);
	if (!image_from_memory(elf_copy(&fake.file), fake.file.n, "fuzzed", &img)) {
		look(img);
		image_put(img);
	}
	return 0;
}
