/* SPDX-License-Identifier: Apache-2.0 */
/* Java objects that yrt knows: references, java.lang.String, java.lang.Thread. */
#include <string.h>

#include "hotspot_heap_view.h"
#include "hotspot_moved.h"
#include "runtimes/hotspot/walk/hotspot_z.h"

#define HEADER    24
#define CHARS_MAX 256

/* Where an object is now; its first word leads to its copy, if Shenandoah has moved it. */
static u64 moved_to(const struct hotspot_heap_view *h, struct memory *m, u64 object)
{
	u64 to = 0;
	u8 mark[8];

	if (h->concurrent && object && !(object & 7) && memory_read(m, mark, sizeof(mark), object))
		to = hotspot_moved_to(mark);
	return to ? to : object;
}

/* The place of the tables of moved objects is not known in every JDK: then it is as if there were none. */
u64 hotspot_decode_oop(const struct hotspot_heap_view *h, struct memory *m, u64 oop)
{
	u32 remapped;

	if (h->views)
		return hotspot_z_in_view(&h->z, m, oop, h->heap_base);
	if (h->oops != OOP_COLOURED)
		return moved_to(h, m, oop);
	if (h->z.granules)
		return hotspot_z_now(&h->z, m, oop);
	remapped = hs_remapped(oop);
	return remapped && !(remapped & (remapped - 1)) ? hs_z_address(oop) : 0;
}

static u64 load_whole(const struct hotspot_heap_view *h, struct memory *m, u64 addr)
{
	u64 oop;

	return memory_read(m, &oop, 8, addr) ? hotspot_decode_oop(h, m, oop) : 0;
}

u64 hotspot_load_oop(const struct hotspot_heap_view *h, struct memory *m, u64 addr)
{
	u32 low;

	if (h->oops != OOP_NARROW)
		return load_whole(h, m, addr);
	if (!memory_read(m, &low, 4, addr) || !low)
		return 0;
	return moved_to(h, m, h->oop_base + ((u64)low << h->oop_shift));
}

u64 hotspot_load_handle(const struct hotspot_heap_view *h, struct memory *m, u64 addr, bool handle)
{
	u64 at;

	if (!handle)
		return load_whole(h, m, addr);
	return memory_read(m, &at, 8, addr) && at ? load_whole(h, m, at) : 0;
}

static u64 class_of(struct hotspot_heap_view *h, struct memory *m, u64 object)
{
	u8 header[16];

	return object && !(object & 7) && memory_read(m, header, sizeof(header), object)
	               ? hotspot_class_in(h, m, header)
	               : 0;
}

bool hotspot_find_string(struct hotspot_heap_view *h, struct memory *m, u64 klass)
{
	if (h->string_value)
		return true;
	if (!klass || hotspot_super_named(h, m, klass, "java/lang/String") != klass)
		return false;
	if (hotspot_java_field(h, m, klass, "value", "[C", &h->string_value))
		return true;
	h->string_coded = hotspot_java_field(h, m, klass, "coder", "B", &h->string_coder);
	return h->string_coded && hotspot_java_field(h, m, klass, "value", "[B", &h->string_value);
}

static size_t put_utf8(char *p, u32 c)
{
	if (c < 0x80) {
		p[0] = c;
		return 1;
	}
	if (c < 0x800) {
		p[0] = 0xc0 | c >> 6;
		p[1] = 0x80 | (c & 63);
		return 2;
	}
	if (c < 0x10000) {
		p[0] = 0xe0 | c >> 12;
		p[1] = 0x80 | (c >> 6 & 63);
		p[2] = 0x80 | (c & 63);
		return 3;
	}
	p[0] = 0xf0 | c >> 18;
	p[1] = 0x80 | (c >> 12 & 63);
	p[2] = 0x80 | (c >> 6 & 63);
	p[3] = 0x80 | (c & 63);
	return 4;
}

static u32 unit_at(const u8 *chars, u32 i, bool wide)
{
	return wide ? chars[2 * i] | (u32)chars[2 * i + 1] << 8 : chars[i];
}

void hotspot_java_text(const u8 *chars, u32 units, bool wide, char *ret, size_t size)
{
	size_t n = 0;

	for (u32 i = 0; i < units && n + 5 <= size; i++) {
		u32 c = unit_at(chars, i, wide), low = i + 1 < units ? unit_at(chars, i + 1, wide) : 0;

		if (wide && c >> 10 == 0xd800 >> 10 && low >> 10 == 0xdc00 >> 10) {
			c = 0x10000 + ((c & 1023) << 10 | (low & 1023));
			i++;
		} else if (c >= 0xd800 && c < 0xe000) {
			c = 0xfffd; /* half of a pair */
		}
		n += put_utf8(ret + n, c);
	}
	ret[n] = 0;
}

static bool read_string(struct hotspot_heap_view *h, struct memory *m, u64 string, char *ret, size_t size)
{
	const struct hotspot_class *c;
	u8 chars[CHARS_MAX * 2], header[HEADER], coder = 1;
	u32 bytes;
	u64 value;

	if (!h->string_value && !hotspot_find_string(h, m, class_of(h, m, string)))
		return false;
	value = hotspot_load_oop(h, m, string + h->string_value);
	if (!value || value & 7 || !memory_read(m, header, sizeof(header), value))
		return false;
	c = hotspot_class_of(h, m, hotspot_header_class(h, header));
	if (!c || c->kind != SIZE_ARRAY || c->log2_element != (h->string_coded ? 0 : 1))
		return false;
	if (h->string_coded && !memory_read(m, &coder, 1, string + h->string_coder))
		return false;
	memcpy(&bytes, header + hotspot_length_at(h), 4);
	bytes = bytes > CHARS_MAX ? CHARS_MAX : bytes;
	bytes <<= c->log2_element;
	if (coder > 1 || !memory_read(m, chars, bytes, value + c->size))
		return false;
	hotspot_java_text(chars, coder ? bytes / 2 : bytes, coder, ret, size);
	return true;
}

bool hotspot_java_thread_name(struct hotspot_heap_view *h, struct memory *m, u64 thread, char *ret, size_t size)
{
	u64 klass = class_of(h, m, thread), string;

	klass = klass ? hotspot_super_named(h, m, klass, "java/lang/Thread") : 0;
	if (!klass)
		return false;
	if (!h->thread_name && !hotspot_java_field(h, m, klass, "name", "Ljava/lang/String;", &h->thread_name))
		return false;
	string = hotspot_load_oop(h, m, thread + h->thread_name);
	return string && read_string(h, m, string, ret, size) && *ret;
}
