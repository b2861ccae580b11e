/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_others.h"

#include <string.h>

static bool is_openj9(const struct image *img)
{
	static const char name[] = "libj9vm";
	const char *slash = strrchr(img->path, '/'), *base = slash ? slash + 1 : img->path;

	return !strncmp(base, name, sizeof(name) - 1) && strstr(base, ".so");
}

static bool is_native_image(struct image *img)
{
	u64 addr, size;

	return image_section_range(img, ".svm_heap", &addr, &size);
}

struct error *hotspot_refuse_other(struct image *img)
{
	if (is_openj9(img))
		return error_hint(error_new(ERROR_UNSUPPORTED, "%s is a JVM of Eclipse OpenJ9, not HotSpot", img->path),
		        "its Java frames are left out; run the program with a JDK that is built with HotSpot to see "
		        "them");
	if (is_native_image(img))
		return error_hint(error_new(ERROR_UNSUPPORTED, "%s is a native image of GraalVM", img->path),
		        "its frames are those of native code: there is no JVM in it");
	return NULL;
}
