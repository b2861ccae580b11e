/* SPDX-License-Identifier: Apache-2.0 */
/* Classes by name, and fields of objects, as kept by the JDK's own classes. */
#include <string.h>

#include "hotspot_heap_view.h"

#define LOADED_MAX (1u << 18)
#define SUPERS_MAX 16

/* The loader of a class keeps all classes that it has loaded, chained (classLoaderData.hpp). */
u64 hotspot_loaded_with(struct hotspot_heap_view *h, struct memory *m, u64 klass, const char *name)
{
	u64 loader, klasses, next, at, symbol;
	char text[128];

	if (!klass || !vmstructs_field(h->v, "Klass", "_class_loader_data", &loader, NULL) ||
	        !vmstructs_field(h->v, "Klass", "_next_link", &next, NULL) ||
	        !vmstructs_field(h->v, "ClassLoaderData", "_klasses", &klasses, NULL) ||
	        !memory_read(m, &loader, 8, klass + loader) || !loader || !memory_read(m, &at, 8, loader + klasses))
		return 0;
	for (u32 i = 0; i < LOADED_MAX && at && !(at & 7); i++) {
		if (!memory_read(m, &symbol, 8, at + h->l->klass_name.at))
			return 0;
		if (hotspot_symbol(h, m, symbol, text, sizeof(text)) && !strcmp(text, name))
			return at;
		if (!memory_read(m, &at, 8, at + next))
			return 0;
	}
	return 0;
}

u64 hotspot_object_class(struct hotspot_heap_view *h, struct memory *m, u64 object)
{
	u8 header[16];
	u64 klass;

	if (!object || object & 7 || !memory_read(m, header, sizeof(header), object))
		return 0;
	klass = hotspot_header_class(h, header);
	return hotspot_class_of(h, m, klass) ? klass : 0;
}

/* java.lang.Class, where static fields are, is behind a handle in all JDKs that have no Klass in the heap. */
u64 hotspot_class_mirror(struct hotspot_heap_view *h, struct memory *m, u64 klass)
{
	u64 at;

	return klass && vmstructs_field(h->v, "Klass", "_java_mirror", &at, NULL)
	               ? hotspot_load_handle(h, m, klass + at, true)
	               : 0;
}

bool hotspot_inherited_field(
        struct hotspot_heap_view *h, struct memory *m, u64 klass, const char *name, const char *signature, u32 *offset)
{
	for (u32 i = 0; i < SUPERS_MAX && klass && !(klass & 7); i++) {
		if (hotspot_java_field(h, m, klass, name, signature, offset))
			return true;
		if (!memory_read(m, &klass, 8, klass + h->at.super))
			return false;
	}
	return false;
}

bool hotspot_declared_field(struct hotspot_heap_view *h, struct memory *m, u64 object, const char *class,
        const char *name, const char *signature, u32 *ret)
{
	u64 klass;

	if (*ret)
		return true;
	klass = hotspot_super_named(h, m, hotspot_object_class(h, m, object), class);
	return klass && hotspot_java_field(h, m, klass, name, signature, ret);
}

u64 hotspot_object_field(
        struct hotspot_heap_view *h, struct memory *m, u64 object, const char *name, const char *signature)
{
	u32 at;

	return hotspot_inherited_field(h, m, hotspot_object_class(h, m, object), name, signature, &at)
	               ? hotspot_load_oop(h, m, object + at)
	               : 0;
}

u64 hotspot_static_field(
        struct hotspot_heap_view *h, struct memory *m, u64 klass, const char *name, const char *signature)
{
	u64 mirror = hotspot_class_mirror(h, m, klass);
	u32 at;

	return mirror && hotspot_java_field(h, m, klass, name, signature, &at) ? hotspot_load_oop(h, m, mirror + at)
	                                                                       : 0;
}
