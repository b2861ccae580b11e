/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JVM that reports garbage of itself: the input overwrites what describes the tables, the tables, and their names, in
 * (place, length, bytes). Reading it, making a layout and a view of the code of it, and trying that, must not crash.
 */
#include "runtimes/hotspot/hotspot_check.h"
#include "tests/unit/hotspot_tables_fake.h"

static void overwrite(struct hotspot_fake *f, const uint8_t *data, size_t size)
{
	while (size >= 4) {
		size_t at = (data[0] | data[1] << 8) % FAKE_OBJECTS, n = data[2] & 31;

		at = data[3] & 1 ? at % 512 : at; /* what describes the tables is small */
		data += 4;
		size -= 4;
		n = n < size ? n : size;
		memcpy(f->bytes + at, data, n);
		data += n;
		size -= n;
	}
}

static void use(struct hotspot_fake *f, const struct vmstructs *v)
{
	struct hotspot_code *code = NULL;
	struct layout *origins = NULL;
	bool conclusive;

	error_free(hotspot_layout_find(v, &origins));
	if (origins)
		error_free(hotspot_code_create(v, origins->values, &code));
	if (code)
		error_free(hotspot_check_process(v, origins->values, code, &f->memory, &conclusive));
	hotspot_code_destroy(code);
	layout_destroy(origins);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct hotspot_fake clean[FAKE_SHAPES], f;
	struct vmstructs *v = NULL;

	if (!clean[0].memory.read)
		for (u32 i = 0; i < FAKE_SHAPES; i++)
			fake_jvm(&clean[i], i);
	if (size < 2)
		return 0;
	f = clean[data[0] % FAKE_SHAPES];
	f.reads = 0;
	f.fail = data[1];
	overwrite(&f, data + 2, size - 2);
	error_free(vmstructs_read(&f.symbols, &f.memory, FAKE_BASE, &v));
	if (v)
		use(&f, v);
	vmstructs_destroy(v);
	return 0;
}
