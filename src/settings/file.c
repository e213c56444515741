/* Reading a file of settings. */
#include <errno.h>
#include <stdarg.h>

#include "settings/settings.h"

struct file_reader {
	struct settings *settings;
	FILE *file;
	const char *name;
	size_t line;
	struct err *err;
	enum status failed;                       /* of the first thing that was wrong */
	char section[SETTINGS_SECTION_BYTES + 1]; /* empty: none has begun */
	char line_text[SETTINGS_LINE_BYTES + 2];
};

static void file_fail(struct file_reader *r, enum status status, const char *fmt, ...) PRINTF(3, 4);

/* Only the first mistake of a file is told: later ones may follow from it. */
static void
file_fail(struct file_reader *r, enum status status, const char *fmt, ...)
{
	char text[ERR_TEXT_BYTES];
	va_list args;

	if (r->failed != STATUS_OK)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	r->failed = err_set(r->err, status, "%s:%zu: %s", r->name, r->line, text);
}

/* Where the name of a line ends; NULL: nowhere. */
static const char *
file_find_end_of_name(const struct file_reader *r, const char *line)
{
	/* Names of keys have a ':' in them. A name with a '=' needs spaces around the last one. */
	if (str_eq(str_from_cstr(r->section), STR(SETTINGS_KEYS))) {
		const char *at = strstr(line, " = ");

		return at ? at + 1 : strchr(line, '=');
	}
	return strpbrk(line, "=:");
}

/* "name = value", and a comment behind a space. */
static void
file_take_setting(struct file_reader *r, const char *line)
{
	const char *end = file_find_end_of_name(r, line);
	struct err err = { 0 };
	struct str name, value;
	enum status status;

	if (!end) {
		file_fail(r, STATUS_INVALID, "this is neither \"name = value\" nor a [section]");
		return;
	}
	name = str_trim(str_of(line, (size_t)(end - line)));
	if (!*r->section) {
		file_fail(r, STATUS_INVALID, "\"%.*s\" stands before the first [section]",
			  STR_ARG(name));
		return;
	}
	value = str_from_cstr(end + 1);
	for (size_t i = 1; i < value.len; i++)
		if (value.ptr[i] == ';' && strchr(" \t", value.ptr[i - 1]))
			value.len = i;
	status = settings_set(r->settings, str_from_cstr(r->section), name, str_trim(value), &err);
	if (status != STATUS_OK)
		file_fail(r, status == STATUS_NOT_FOUND ? STATUS_INVALID : status, "%s", err.text);
}

static void
file_take_section(struct file_reader *r, const char *line)
{
	const char *end = strchr(line, ']');
	size_t len;

	if (!end) {
		file_fail(r, STATUS_INVALID, "the section's name has no ]");
		return;
	}
	len = (size_t)(end - line) - 1;
	if (len >= sizeof(r->section)) {
		file_fail(r, STATUS_INVALID, "the section's name is longer than %d bytes",
			  SETTINGS_SECTION_BYTES);
		return;
	}
	memcpy(r->section, line + 1, len);
	r->section[len] = '\0';
}

/* Reads a line without white space around it. False: there is none, or one that is too long. */
static bool
file_next_line(struct file_reader *r)
{
	char *text = r->line_text;
	size_t len, skip;

	if (r->failed != STATUS_OK || !fgets(text, sizeof(r->line_text), r->file))
		return false;
	r->line++;
	len = strlen(text);
	if (len > SETTINGS_LINE_BYTES && text[len - 1] != '\n') {
		file_fail(r, STATUS_INVALID, "the line is longer than %d bytes",
			  SETTINGS_LINE_BYTES);
		return false;
	}
	while (len && strchr(" \t\r\n\v\f", text[len - 1]))
		len--;
	text[len] = '\0';
	skip = strspn(text, " \t");
	memmove(text, text + skip, len - skip + 1);
	return true;
}

enum status
settings_read(struct settings *s, FILE *file, const char *name, struct err *err)
{
	struct file_reader r = { .settings = s, .file = file, .name = name, .err = err };

	while (file_next_line(&r)) {
		const char *line = r.line_text;

		/* What some editors put before the first line. */
		if (r.line == 1 && strncmp(line, "\xef\xbb\xbf", 3) == 0)
			line += 3;
		if (*line == '[')
			file_take_section(&r, line);
		else if (*line && !strchr(";#", *line))
			file_take_setting(&r, line);
	}
	TRY(r.failed);
	if (ferror(file))
		return err_set(err, STATUS_IO, "%s: cannot read: %s", name, strerror(errno));
	return STATUS_OK;
}

enum status
settings_read_file(struct settings *s, const char *path, struct err *err)
{
	FILE *file = fopen(path, "re");
	enum status status;

	if (!file)
		return err_set(err, errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO, "%s: %s", path,
			       strerror(errno));
	status = settings_read(s, file, path, err);
	fclose(file);
	return status;
}
