#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"

enum {
	LOG_LINE_BYTES = 2048, /* longer lines are cut */
};

static _Atomic int least_level = LOG_LEVEL_INFO;

void
log_set_level(enum log_level least)
{
	atomic_store(&least_level, (int)least);
}

void
log_event(enum log_level level, const char *event, const char *fmt, ...)
{
	static const char *const names[] = { "debug", "info", "warn", "error" };
	char line[LOG_LINE_BYTES];
	uint64_t now = clock_wall_ms();
	time_t seconds = (time_t)(now / 1000);
	struct tm utc;
	va_list args;
	size_t at;
	int n;

	if ((int)level < atomic_load(&least_level))
		return;
	gmtime_r(&seconds, &utc);
	at = strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%S", &utc);
	n = snprintf(line + at, sizeof(line) - at, ".%03uZ level=%s event=%s ",
		     (unsigned)(now % 1000), names[level], event);
	at += (size_t)n;
	va_start(args, fmt);
	n = vsnprintf(line + at, sizeof(line) - at - 1, fmt, args);
	va_end(args);
	at = n < 0 || at + (size_t)n > sizeof(line) - 2 ? sizeof(line) - 2 : at + (size_t)n;
	for (size_t i = 0; i < at; i++)
		if ((unsigned char)line[i] < ' ')
			line[i] = '?'; /* what a client has named may hold anything */
	line[at++] = '\n';
	/* One call a line: lines of several threads never mix. */
	fwrite(line, 1, at, stderr);
}
