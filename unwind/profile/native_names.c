/* SPDX-License-Identifier: Apache-2.0 */
#include "native_names.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "binary/proc_path.h"
#include "cleanup.h"
#include "symbols/rtti.h"
#include "symbols/symbols.h"
#include "symbols/translated.h"

#define CALL_OF_FUNC 6

static u64 file_key(const struct loaded *loaded)
{
	return XXH3_64bits(&loaded, sizeof(loaded)) | 1;
}

static struct error *put_c_names(
        struct native_names *names, const struct loaded *loaded, const struct c_names *found, struct c_names **ret)
{
	struct c_names *copy = malloc(sizeof(*copy));
	struct error *err =
	        copy ? table_put(&names->c_names, file_key(loaded), (u64)(uintptr_t)copy) : &error_no_memory;

	*ret = copy;
	if (!err) {
		*copy = *found;
		return NULL;
	}
	c_names_free((struct c_names *)found);
	free(copy);
	return err;
}

void native_names_keep(struct native_names *names, const struct loaded *loaded, struct c_names *found)
{
	struct c_names *kept;

	if (table_get(&names->c_names, file_key(loaded)))
		c_names_free(found);
	else
		error_free(put_c_names(names, loaded, found, &kept));
}

/*
 * What a std::function of libc++ calls: __func<what, signature> holds it, and its virtual function 6 is operator()
 * (__functional/function.h; the first template argument ends at a comma outside of brackets). False: the class is
 * another.
 */
static bool name_called(const char *class, u32 index, struct native_name *ret)
{
	static const char holder[] = "__function::__func<";
	const char *what = strstr(class, holder), *end;
	u32 depth = 0;

	if (strncmp(class, "std::", 5) || !what || what - class > 12)
		return false;
	what += sizeof(holder) - 1;
	for (end = what; *end && (depth || *end != ','); end++)
		depth += strchr("<({[", *end) ? 1 : strchr(">)}]", *end) && depth ? -1u : 0;
	if (!*end)
		return false;
	if (index == CALL_OF_FUNC)
		snprintf(ret->text, sizeof(ret->text), "%.*s::operator()", (int)(end - what), what);
	else
		snprintf(ret->text, sizeof(ret->text), "%.*s::[std::function %u]", (int)(end - what), what, index);
	return true;
}

/* A virtual function by the class that defines it, in a file whose symbols were stripped. text is left alone if it is
 * none. */
static struct error *name_by_class(
        const struct native_names *names, struct image *img, u64 start, struct native_name *ret)
{
	static const char prefix[] = "typeinfo name for ";
	cleanup(free) char *demangled = NULL;
	struct rtti_function fn;
	struct error *err = rtti_load(img);

	if (err || !rtti_find(img->rtti, start, &fn))
		return err;
	snprintf(ret->mangled, sizeof(ret->mangled), "_ZTS%s", fn.type);
	demangled = names->mangled ? NULL : symbol_demangle(ret->mangled);
	if (demangled && strncmp(demangled, prefix, sizeof(prefix) - 1)) {
		free(demangled);
		demangled = NULL;
	}
	if (demangled && name_called(demangled + sizeof(prefix) - 1, fn.index, ret))
		return NULL;
	if (demangled)
		snprintf(ret->text, sizeof(ret->text), "%s::[virtual %u]", demangled + sizeof(prefix) - 1, fn.index);
	else
		snprintf(ret->text, sizeof(ret->text), "%s::[virtual %u]", fn.type, fn.index);
	return NULL;
}

static struct error *find_c_names(struct native_names *names, struct loaded *loaded, struct c_names **ret)
{
	u64 *known = table_get(&names->c_names, file_key(loaded));
	struct c_names found = {0};
	struct error *err;

	if (known) {
		*ret = (struct c_names *)(uintptr_t)*known;
		return NULL;
	}
	err = c_names_read(loaded->image, &found);
	image_rest(loaded->image);
	return err ? err : put_c_names(names, loaded, &found, ret);
}

/* A function that a language knows by a name. text is left alone if none does. */
static struct error *name_by_language(
        struct native_names *names, struct loaded *loaded, u64 start, struct native_name *ret)
{
	struct c_names *c;
	const char *name;
	struct error *err = find_c_names(names, loaded, &c);

	if (err || !(name = c_names_find(c, start)))
		return err;
	snprintf(ret->text, sizeof(ret->text), "%s", name);
	snprintf(ret->mangled, sizeof(ret->mangled), "%s", name);
	return NULL;
}

/* A symbol without a size reaches to the next one, over functions without symbols: their FDEs say where they begin. */
static bool find_symbol(struct image *img, u64 addr, struct symbol *ret)
{
	const struct cfi_fde *fde;

	if (!symbols_find(img, addr, ret))
		return false;
	fde = ret->unsized ? cfi_fde_at(img->cfi, addr) : NULL;
	return !fde || fde->start <= ret->start;
}

static struct error *load_symbols(const struct module *m)
{
	char root[64];

	if (m->loaded->image->symbols)
		return NULL;
	proc_path(root, sizeof(root), m->pid, "root");
	return symbols_load(m->loaded->image, root);
}

/*
 * The C library's trampoline that signal handlers return to: mov $15, %rax; syscall. Its FDE begins a byte
 * before it, for unwinders that look for the call of a return address; its name is in no table of a stripped file.
 */
static bool is_restorer(struct image *img, u64 addr)
{
	static const u8 code[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	u8 there[sizeof(code)];

	return image_read(img, there, sizeof(there), addr) && !memcmp(there, code, sizeof(code));
}

struct error *native_names_find(struct native_names *names, const struct module *m, u64 addr, struct native_name *ret)
{
	const char *file = loaded_name(m->loaded);
	struct image *img = m->loaded->image;
	struct error *err = load_symbols(m);
	const struct cfi_fde *fde;
	cleanup(free) char *demangled = NULL;
	struct symbol sym;

	if (err)
		return err;
	fde = cfi_fde_at(img->cfi, addr + ARCH_CALL_BACK);
	if (fde && fde->start == addr + ARCH_CALL_BACK && !cfi_fde_at(img->cfi, addr))
		addr += ARCH_CALL_BACK; /* a return to a function's first byte: see lay_return_to_start() in cfi.c */
	ret->start = 0;
	ret->addr = addr;
	ret->mangled[0] = '\0';
	if (find_symbol(img, addr, &sym)) {
		demangled = names->mangled ? NULL : symbol_demangle(sym.name);
		snprintf(ret->text, sizeof(ret->text), "%s", demangled ? demangled : sym.name);
		snprintf(ret->mangled, sizeof(ret->mangled), "%s", sym.name);
		ret->start = sym.start;
		if (!names->mangled)
			translated_resolve(img, sym.name, ret->text, sizeof(ret->text));
	} else if ((fde = cfi_fde_at(img->cfi, addr))) {
		ret->start = fde->start;
		if (img->entry && fde->start == img->entry) {
			snprintf(ret->text, sizeof(ret->text), "_start");
			return NULL;
		}
		if (is_restorer(img, fde->start + 1)) {
			snprintf(ret->text, sizeof(ret->text), "__restore_rt");
			return NULL;
		}
		snprintf(ret->text, sizeof(ret->text), "%s+0x%lx", file, fde->start);
		err = name_by_class(names, img, fde->start, ret);
		return err || ret->mangled[0] ? err : name_by_language(names, m->loaded, fde->start, ret);
	} else {
		snprintf(ret->text, sizeof(ret->text), "[%s]", file);
	}
	return NULL;
}

void native_names_free(struct native_names *names)
{
	for (size_t i = 0; i < names->c_names.capacity; i++)
		if (names->c_names.entries[i].key) {
			c_names_free((struct c_names *)(uintptr_t)names->c_names.entries[i].value);
			free((void *)(uintptr_t)names->c_names.entries[i].value);
		}
	table_free(&names->c_names);
}
