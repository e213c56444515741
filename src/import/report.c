#include "import/import.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parent.h"

static volatile sig_atomic_t stop_asked;

static void
ask_to_stop(int number)
{
	(void)number;
	stop_asked = 1;
}

void
import_watch_signals(void)
{
	const struct sigaction action = { .sa_handler = ask_to_stop };

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
}

bool
import_stopped(void)
{
	return stop_asked;
}

/* The bar, if there is one, gives its line to the text. */
PRINTF(3, 0)
static void
print_line(struct import *i, const char *begin, const char *fmt, va_list args)
{
	progress_hide(&i->progress);
	fputs(begin, stdout);
	vprintf(fmt, args);
	putchar('\n');
	fflush(stdout);
}

void
import_misfit(struct import *i, const char *fmt, ...)
{
	va_list args;

	if (++i->misfits > IMPORT_MISFITS_SHOWN)
		return;
	va_start(args, fmt);
	print_line(i, "did not fit: ", fmt, args);
	va_end(args);
}

void
import_tell(struct import *i, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	print_line(i, "", fmt, args);
	va_end(args);
}

void
import_count(struct import *i, uint64_t bytes)
{
	i->copied++;
	i->bytes += bytes;
	progress_update(&i->progress, i->copied, i->bytes);
}

/* ---- The state ---- */

enum status
import_state_read(const struct import *i, char **ret, struct err *err)
{
	FILE *file = i->state ? fopen(i->state, "re") : NULL;
	char *text;
	size_t n;

	*ret = NULL;
	if (!file && (!i->state || errno == ENOENT))
		return STATUS_OK;
	if (!file)
		return err_set(err, STATUS_IO, "%s: %s", i->state, strerror(errno));
	text = malloc(IMPORT_STATE_BYTES);
	n = text ? fread(text, 1, IMPORT_STATE_BYTES - 1, file) : 0;
	fclose(file);
	if (!text)
		return err_set(err, STATUS_NOMEM, "out of memory");
	text[n] = '\0';
	*ret = text;
	return STATUS_OK;
}

bool
import_state_due(struct import *i)
{
	if (!i->state || clock_mono_ns() < i->state_due_ns)
		return false;
	i->state_due_ns = clock_after_ms(IMPORT_STATE_MS);
	return true;
}

enum status
import_state_write(const struct import *i, struct str text, struct err *err)
{
	char half[IMPORT_TEXT_BYTES];
	FILE *file;
	bool ok;

	if (!i->state)
		return STATUS_OK;
	if (snprintf(half, sizeof(half), "%s.half", i->state) >= (int)sizeof(half))
		return err_set(err, STATUS_INVALID, "the name of the state's file is too long");
	file = fopen(half, "we");
	if (!file)
		return err_set(err, STATUS_IO, "%s: %s", half, strerror(errno));
	ok = fwrite(text.ptr, 1, text.len, file) == text.len;
	ok = fflush(file) == 0 && ok;
	ok = fsync(fileno(file)) == 0 && ok;
	ok = fclose(file) == 0 && ok;
	if (!ok || rename(half, i->state) != 0)
		return err_set(err, STATUS_IO, "%s: %s", i->state, strerror(errno));
	return parent_sync(i->state, err);
}

void
import_state_remove(const struct import *i)
{
	if (i->state)
		(void)unlink(i->state);
}
