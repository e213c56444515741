/* Reading a file of settings, by way of inih. */
#include <errno.h>
#include <ini.h>
#include <stdarg.h>

#include "settings/settings.h"

struct file_reader {
	struct settings *settings;
	FILE *file;
	const char *name;
	size_t line;
	struct err *err;
	enum status failed; /* of the first thing that was wrong */
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

static int
file_take_setting(void *arg, const char *section, const char *name, const char *value)
{
	struct file_reader *r = arg;
	struct err err = { 0 };
	enum status status;

	if (*section == '\0') {
		file_fail(r, STATUS_INVALID, "\"%s\" stands before the first [section]", name);
		return 1;
	}
	status = settings_set(r->settings, str_from_cstr(section), str_from_cstr(name),
			      str_from_cstr(value), &err);
	if (status != STATUS_OK)
		file_fail(r, status == STATUS_NOT_FOUND ? STATUS_INVALID : status, "%s", err.text);
	return 1;
}

/*
 * inih's fgets(): counts lines, refuses what inih would cut, and takes indentation off, which inih
 * would take for the continuation of the value before.
 */
static char *
file_read_line(char *ret, int n, void *arg)
{
	struct file_reader *r = arg;
	char *text = ret;
	size_t len;

	if (r->failed != STATUS_OK || !fgets(ret, n, r->file))
		return NULL;
	r->line++;
	len = strlen(ret);
	if (len > SETTINGS_LINE_BYTES || (len && ret[len - 1] != '\n' && !feof(r->file))) {
		file_fail(r, STATUS_INVALID, "the line is longer than %d bytes",
			  SETTINGS_LINE_BYTES);
		return NULL;
	}
	text += strspn(text, " \t");
	memmove(ret, text, strlen(text) + 1);
	/* inih does not say which line it failed to understand, nor why, so this looks first. */
	if (*ret && !strchr(";#[\r\n", *ret) && !strpbrk(ret, "=:"))
		file_fail(r, STATUS_INVALID, "this is neither \"name = value\" nor a [section]");
	if (*ret == '[' && !strchr(ret, ']'))
		file_fail(r, STATUS_INVALID, "the section's name has no ]");
	return ret;
}

enum status
settings_read(struct settings *s, FILE *file, const char *name, struct err *err)
{
	struct file_reader r = { .settings = s, .file = file, .name = name, .err = err };
	int line = ini_parse_stream(file_read_line, &r, file_take_setting, &r);

	TRY(r.failed);
	if (ferror(file))
		return err_set(err, STATUS_IO, "%s: cannot read: %s", name, strerror(errno));
	if (line != 0)
		return err_set(err, STATUS_INVALID, "%s:%d: cannot make sense of this line", name,
			       line);
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
