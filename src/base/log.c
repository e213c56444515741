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

/* ---- A line ---- */

struct line {
	size_t len;
	char text[LOG_LINE_BYTES];
};

/* What is too long is cut, and leaves room for the end of the line. */
static void
line_put(struct line *l, char byte)
{
	if (l->len < sizeof(l->text) - 2)
		l->text[l->len++] = byte;
}

static void line_printf(struct line *l, const char *fmt, ...) PRINTF(2, 3);

static void
line_printf(struct line *l, const char *fmt, ...)
{
	size_t room = sizeof(l->text) - 1 - l->len;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(l->text + l->len, room, fmt, args);
	va_end(args);
	if (n > 0)
		l->len += (size_t)n < room ? (size_t)n : room - 1;
}

/*
 * Appends a text, which a client may have chosen. If it stands between quotes, its own quotes and
 * backslashes are written as %22 and %5C: otherwise it could end its value and begin another one.
 */
static void
line_put_text(struct line *l, const char *s, size_t most, bool quoted)
{
	static const char digits[] = "0123456789ABCDEF";

	for (size_t i = 0; i < most && s[i]; i++) {
		unsigned char byte = (unsigned char)s[i];

		if (!quoted || (byte != '"' && byte != '\\')) {
			line_put(l, s[i]);
			continue;
		}
		line_put(l, '%');
		line_put(l, digits[byte >> 4]);
		line_put(l, digits[byte & 15]);
	}
}

/* The conversion at `fmt`, behind its '%'. Returns what is behind it. */
static const char *
line_put_argument(struct line *l, const char *fmt, va_list *args, bool quoted)
{
	size_t most = SIZE_MAX;

	if (strncmp(fmt, ".*", 2) == 0) {
		int n = va_arg(*args, int);

		most = n < 0 ? 0 : (size_t)n;
		fmt += 2;
	}
	if (*fmt == 's') {
		const char *s = va_arg(*args, const char *);

		line_put_text(l, s ? s : "(null)", most, quoted);
	} else if (strncmp(fmt, "llu", 3) == 0) {
		line_printf(l, "%llu", va_arg(*args, unsigned long long));
		fmt += 2;
	} else if (strncmp(fmt, "lld", 3) == 0) {
		line_printf(l, "%lld", va_arg(*args, long long));
		fmt += 2;
	} else if (strncmp(fmt, "ld", 2) == 0) {
		line_printf(l, "%ld", va_arg(*args, long));
		fmt++;
	} else if (strncmp(fmt, "zu", 2) == 0) {
		line_printf(l, "%zu", va_arg(*args, size_t));
		fmt++;
	} else if (*fmt == 'u') {
		line_printf(l, "%u", va_arg(*args, unsigned));
	} else if (*fmt == 'd') {
		line_printf(l, "%d", va_arg(*args, int));
	} else {
		/* What lies behind it among the arguments could not be told. */
		line_put(l, '?');
		return fmt + strlen(fmt);
	}
	return fmt + 1;
}

/*
 * As vsnprintf(), which does not know which texts stand between quotes of the format, for the
 * conversions that line_put_argument() has.
 */
static void
line_format(struct line *l, const char *fmt, va_list *args)
{
	bool quoted = false;

	while (*fmt) {
		char byte = *fmt++;

		if (byte == '%') {
			fmt = line_put_argument(l, fmt, args, quoted);
			continue;
		}
		quoted ^= byte == '"';
		line_put(l, byte);
	}
}

void
log_event(enum log_level level, const char *event, const char *fmt, ...)
{
	static const char *const names[] = { "debug", "info", "warn", "error" };
	struct line l = { .len = 0 };
	uint64_t now = clock_wall_ms();
	time_t seconds = (time_t)(now / 1000);
	struct tm utc;
	va_list args;

	if ((int)level < atomic_load(&least_level))
		return;
	gmtime_r(&seconds, &utc);
	l.len = strftime(l.text, sizeof(l.text), "%Y-%m-%dT%H:%M:%S", &utc);
	line_printf(&l, ".%03uZ level=%s event=%s ", (unsigned)(now % 1000), names[level], event);
	va_start(args, fmt);
	line_format(&l, fmt, &args);
	va_end(args);
	for (size_t i = 0; i < l.len; i++)
		if ((unsigned char)l.text[i] < ' ')
			l.text[i] = '?'; /* a name that a client chose may contain any byte */
	l.text[l.len++] = '\n';
	/* One call writes the whole line, so that lines of several threads never mix. */
	fwrite(l.text, 1, l.len, stderr);
}

/* ---- How often ---- */

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
