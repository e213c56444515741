#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

enum {
	LOG_LINE_BYTES = 2048, /* longer lines are cut */
};

SETTING_GROUP(log_setting_group, log_settings, LOG_SETTINGS);

static _Atomic int least_level = LOG_LEVEL_INFO;

bool
log_level_parse(const char *name, enum log_level *ret)
{
	static const struct {
		const char *name;
		enum log_level level;
	} levels[] = {
		{ "debug", LOG_LEVEL_DEBUG },    { "info", LOG_LEVEL_INFO },
		{ "notice", LOG_LEVEL_INFO },    { "warn", LOG_LEVEL_WARN },
		{ "warning", LOG_LEVEL_WARN },   { "error", LOG_LEVEL_ERROR },
		{ "critical", LOG_LEVEL_ERROR }, { "none", LOG_LEVEL_ERROR },
	};

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		if (strcmp(levels[i].name, name) == 0) {
			*ret = levels[i].level;
			return true;
		}
	}
	return false;
}

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
			line[i] = '?'; /* a name that a client chose may contain any byte */
	line[at++] = '\n';
	/* One call writes the whole line, so that lines of several threads never mix. */
	fwrite(line, 1, at, stderr);
}

bool
log_limit_pass(struct log_limit *limit, uint64_t *ret_before)
{
	uint64_t now = clock_mono_ns();
	uint64_t not_before = atomic_load(&limit->not_before_ns);

	/* Of several threads that come at once, the one that moves the time on logs. */
	if (now < not_before || !atomic_compare_exchange_strong(&limit->not_before_ns, &not_before,
								now + LOG_LIMIT_NS)) {
		atomic_fetch_add(&limit->left_out, 1);
		return false;
	}
	*ret_before = atomic_exchange(&limit->left_out, 0);
	return true;
}
