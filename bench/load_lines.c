/* A file of documents, one a line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "load.h"

static char *
read_file(const char *path, size_t *ret_len)
{
	FILE *f = fopen(path, "r");
	struct stat st = { .st_size = 0 };
	char *text = NULL;

	if (!f)
		return NULL;
	if (fstat(fileno(f), &st) == 0)
		text = mem_alloc((size_t)st.st_size);
	if (text)
		*ret_len = fread(text, 1, (size_t)st.st_size, f);
	fclose(f);
	return text;
}

static size_t
count_lines(const char *text, const char *end)
{
	size_t count = 0;

	for (const char *p = text; (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++)
		count++;
	return count;
}

bool
load_lines_read(const char *path, struct load_lines *ret)
{
	size_t len = 0;
	char *text = read_file(path, &len);
	const char *end = text + len;
	const char *p = text;
	size_t count = text ? count_lines(text, end) : 0;

	ret->at = count ? mem_alloc(count * sizeof(*ret->at)) : NULL;
	if (!ret->at) {
		fprintf(stderr, "load: %s: cannot be read, or has no lines\n", path);
		return false;
	}
	for (ret->count = 0; ret->count < count; ret->count++) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));

		ret->at[ret->count] = str_of(p, (size_t)(newline - p));
		p = newline + 1;
	}
	return true;
}
