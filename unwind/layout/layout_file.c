/* SPDX-License-Identifier: Apache-2.0 */
/* Data files of the layout library. A user may give one, so nothing in it is trusted. */
#include "layout.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "grow.h"

#define FILE_SIZE_MAX (1u << 20)
#define KEYS_MAX      256 /* build-ids, versions */
#define VERSION_MAX   128
#define NAMES_MAX     4096 /* of a list */
#define ONE_NAME_MAX  64

struct parser {
	struct layout_file *file;
	const char *name;
	u32 line;
	char *rest; /* of the line, behind its first word */
	bool known; /* whose runtime it is */
};

static struct error *bad(const struct parser *p, const char *what, const char *which)
{
	return error_hint(error_new(ERROR_INPUT, "%s:%u: %s%s%.64s%s", p->name, p->line, what, which ? " \"" : "",
	                          which ? which : "", which ? "\"" : ""),
	        "`yrt layout FILE` makes such a file from a build with debug information");
}

/* Cuts off and returns the next word; NULL at the end of the line. */
static char *next_word(char **rest)
{
	char *word = *rest + strspn(*rest, " \t"), *end = word + strcspn(word, " \t");

	if (!*word)
		return NULL;
	*rest = *end ? end + 1 : end;
	*end = '\0';
	return word;
}

static bool parse_number(const char *word, u16 *ret)
{
	char *end;
	unsigned long value;

	if (!word || !isdigit((unsigned char)*word))
		return false;
	value = strtoul(word, &end, 10);
	*ret = value;
	return !*end && value <= UINT16_MAX;
}

static struct error *add_key(struct parser *p, char ***keys, u32 *n, const char *key)
{
	char *copy;

	if (*n == KEYS_MAX)
		return bad(p, "too many of this kind:", key);
	copy = grow(keys, *n, sizeof(**keys)) ? NULL : strdup(key);
	if (!copy)
		return &error_no_memory;
	(*keys)[(*n)++] = copy;
	return NULL;
}

static struct error *parse_build_id(struct parser *p)
{
	char *word = next_word(&p->rest);
	size_t len = word ? strlen(word) : 0;

	if (!len || len % 2 || len > 2 * BUILD_ID_MAX || strspn(word, "0123456789abcdef") != len)
		return bad(p, "a build-id is an even number of lower-case hexadecimal digits, not", word ? word : "");
	return add_key(p, &p->file->build_ids, &p->file->nbuild_ids, word);
}

static struct error *parse_version(struct parser *p)
{
	char *text = p->rest + strspn(p->rest, " \t");
	size_t len = strlen(text);

	while (len && (text[len - 1] == ' ' || text[len - 1] == '\t'))
		text[--len] = '\0';
	if (!len || len > VERSION_MAX)
		return bad(p, "a version has 1 to 128 bytes, not", text);
	p->rest = text + len;
	return add_key(p, &p->file->versions, &p->file->nversions, text);
}

static struct error *parse_list(struct parser *p, u32 field)
{
	cleanup(free) const char **names = calloc(NAMES_MAX, sizeof(*names));
	char *word;
	u32 n = 0;

	if (!names)
		return &error_no_memory;
	while ((word = next_word(&p->rest))) {
		if (n == NAMES_MAX || strlen(word) > ONE_NAME_MAX)
			return bad(p, "more or longer names than an enumeration has, at", word);
		names[n++] = strcmp(word, "-") ? word : NULL;
	}
	if (!n)
		return bad(p, "names are missing", NULL);
	return layout_set_list(p->file->layout, field, names, n, LAYOUT_LIBRARY);
}

static struct error *parse_member(struct parser *p, u32 field)
{
	const struct layout_field *f = &p->file->layout->schema->fields[field];
	bool is_size = !strncmp(f->name, "sizeof ", 7);
	char *word = next_word(&p->rest);
	struct layout_member value = {0};

	if (word && !strcmp(word, "-")) {
		if (!f->optional)
			return bad(p, "every build has", f->name);
		layout_set(p->file->layout, field, value, LAYOUT_LIBRARY);
		return NULL;
	}
	if (!parse_number(word, &value.at))
		return bad(p, "not a number up to 65535:", word ? word : "");
	value.size = value.at;
	if (!is_size && !parse_number(word = next_word(&p->rest), &value.size))
		return bad(p, "the size is not a number up to 65535:", word ? word : "");
	if (!value.size)
		return bad(p, "a size of 0 for", f->name);
	layout_set(p->file->layout, field, value, LAYOUT_LIBRARY);
	return NULL;
}

/* The longest name of a field that line begins with; its number. */
static u32 match_field(const struct layout_schema *schema, const char *line, size_t *ret_len)
{
	u32 found = schema->n;

	*ret_len = 0;
	for (u32 i = 0; i < schema->n; i++) {
		size_t len = strlen(schema->fields[i].name);

		if (len < *ret_len || strncmp(line, schema->fields[i].name, len) ||
		        (line[len] && line[len] != ' ' && line[len] != '\t'))
			continue;
		*ret_len = len;
		found = i;
	}
	return found;
}

static struct error *parse_field(struct parser *p, char *line)
{
	const struct layout_schema *schema = p->file->layout->schema;
	size_t len;
	u32 field = match_field(schema, line, &len);

	if (field == schema->n)
		return bad(p, "not a member that this yrt knows:", line);
	if (p->file->layout->fills[field].source != LAYOUT_UNKNOWN)
		return bad(p, "given twice:", schema->fields[field].name);
	p->rest = line + len;
	return schema->fields[field].list ? parse_list(p, field) : parse_member(p, field);
}

/* *foreign: the file is another runtime's. */
static struct error *parse_line(struct parser *p, char *line, bool *foreign)
{
	static const char runtime[] = "runtime ", build_id[] = "build-id ", version[] = "version ";
	struct error *err;
	char *word;

	line[strcspn(line, "#")] = '\0';
	line += strspn(line, " \t");
	if (!*line)
		return NULL;
	if (!strncmp(line, runtime, sizeof(runtime) - 1)) {
		p->rest = line + sizeof(runtime) - 1;
		word = next_word(&p->rest);
		*foreign = !word || strcmp(word, p->file->layout->schema->runtime);
		p->known = true;
		err = NULL;
	} else if (!p->known) {
		err = bad(p, "\"runtime NAME\" must come first, not", line);
	} else if (!strncmp(line, build_id, sizeof(build_id) - 1)) {
		p->rest = line + sizeof(build_id) - 1;
		err = parse_build_id(p);
	} else if (!strncmp(line, version, sizeof(version) - 1)) {
		p->rest = line + sizeof(version) - 1;
		err = parse_version(p);
	} else {
		err = parse_field(p, line);
	}
	if (err || *foreign)
		return err;
	word = next_word(&p->rest);
	return word ? bad(p, "more on the line than belongs there:", word) : NULL;
}

static struct error *parse_lines(struct parser *p, char *text, size_t size, bool *foreign)
{
	char *end = text + size;
	struct error *err = NULL;

	while (!err && !*foreign && text < end) {
		char *newline = memchr(text, '\n', end - text);

		p->line++;
		if (newline)
			*newline = '\0';
		err = parse_line(p, text, foreign);
		text = newline ? newline + 1 : end;
	}
	return err;
}

static struct error *create(const struct layout_schema *schema, const char *name, struct layout_file **ret)
{
	struct layout_file *file = calloc(1, sizeof(*file));
	struct error *err;

	if (!file)
		return &error_no_memory;
	err = layout_create(schema, &file->layout);
	file->name = err ? NULL : strdup(name);
	if (!err && !file->name)
		err = &error_no_memory;
	if (!err)
		err = layout_detail(file->layout, LAYOUT_LIBRARY, "%s", name);
	if (err) {
		layout_file_destroy(file);
		return err;
	}
	*ret = file;
	return NULL;
}

static struct error *parse(struct parser *p, const char *text, size_t size, bool *foreign)
{
	cleanup(free) char *copy = NULL;
	struct error *err;

	if (size > FILE_SIZE_MAX || memchr(text, '\0', size))
		return error_new(ERROR_INPUT, "%s: %s", p->name,
		        size > FILE_SIZE_MAX ? "larger than 1 MiB, which no layout is" : "not a text");
	copy = malloc(size + 1);
	if (!copy)
		return &error_no_memory;
	memcpy(copy, text, size);
	copy[size] = '\0';
	err = parse_lines(p, copy, size, foreign);
	if (!err && !p->known)
		return bad(p, "no \"runtime NAME\": not a layout", NULL);
	return err || *foreign ? err : layout_complete(p->file->layout, p->name);
}

struct error *layout_parse(
        const struct layout_schema *schema, const char *name, const char *text, size_t size, struct layout_file **ret)
{
	struct parser p = {.name = name};
	bool foreign = false;
	struct error *err = create(schema, name, &p.file);

	*ret = NULL;
	if (err)
		return err;
	err = parse(&p, text, size, &foreign);
	if (err || foreign)
		layout_file_destroy(p.file);
	else
		*ret = p.file;
	return err;
}

void layout_file_destroy(struct layout_file *file)
{
	if (!file)
		return;
	for (u32 i = 0; i < file->nbuild_ids; i++)
		free(file->build_ids[i]);
	for (u32 i = 0; i < file->nversions; i++)
		free(file->versions[i]);
	free(file->build_ids);
	free(file->versions);
	free(file->name);
	layout_destroy(file->layout);
	free(file);
}

bool layout_file_has_build_id(const struct layout_file *file, const struct image *img)
{
	char hex[IMAGE_ID_TEXT];

	image_id_text(img, hex);
	for (u32 i = 0; *hex && i < file->nbuild_ids; i++)
		if (!strcmp(file->build_ids[i], hex))
			return true;
	return false;
}

static void print_list(const struct layout_list *list, FILE *out)
{
	for (u32 i = 0; i < list->n; i++)
		fprintf(out, " %s", *list->names[i] ? list->names[i] : "-");
}

static void print_field(const struct layout *l, u32 i, FILE *out)
{
	const struct layout_member *m = layout_member(l, i);

	fputs(l->schema->fields[i].name, out);
	if (l->schema->fields[i].list)
		print_list(layout_list(l, i), out);
	else if (!m->size)
		fputs(" -", out);
	else if (!strncmp(l->schema->fields[i].name, "sizeof ", 7))
		fprintf(out, " %u", m->at);
	else
		fprintf(out, " %u %u", m->at, m->size);
	fputc('\n', out);
}

void layout_print(const struct layout *l, FILE *out)
{
	for (u32 i = 0; i < l->schema->n; i++)
		print_field(l, i, out);
}

void layout_print_known(const struct layout *l, FILE *out)
{
	for (u32 i = 0; i < l->schema->n; i++)
		if (l->fills[i].source != LAYOUT_UNKNOWN)
			print_field(l, i, out);
}
