/* Moments that people write: times, times of day, numbers of seconds. */
#include <stdio.h>
#include <time.h>

#include "base/steady.h"
#include "base/moment.h"
#include "cli/rows.h"

enum {
	MOMENT_TEXT_BYTES = 64,
	US_PER_SECOND = 1000 * 1000,
	US_PER_MS = 1000,
	SECONDS_PER_DAY = 24 * 60 * 60,
};

/* A fraction of a second behind a point, if there is one. Digits below microseconds are dropped. */
static const char *
parse_fraction(const char *text, uint64_t *us)
{
	uint64_t unit = US_PER_SECOND;

	if (*text != '.')
		return text;
	for (text++; *text >= '0' && *text <= '9'; text++) {
		unit /= 10;
		*us += unit * (uint64_t)(*text - '0');
	}
	return text;
}

/* A number of seconds, with a fraction or a unit; a bare number is of `bare` microseconds. */
static bool
parse_number(const char *text, uint64_t bare, uint64_t *ret_us)
{
	static const struct {
		const char *name;
		uint64_t us;
	} units[] = { { "s", US_PER_SECOND }, { "ms", US_PER_MS }, { "us", 1 } };
	size_t digits = strspn(text, "0123456789");
	const char *rest = text + digits;
	uint64_t n, us = 0;

	if (!str_to_u64(str_of(text, digits), &n))
		return false;
	if (*rest == '.') {
		rest = parse_fraction(rest, &us);
		bare = US_PER_SECOND;
		if (strcmp(rest, "s") == 0)
			rest = "";
	}
	for (size_t i = 0; *rest && rest == text + digits && i < sizeof(units) / sizeof(*units);
	     i++)
		if (strcmp(rest, units[i].name) == 0) {
			bare = units[i].us;
			rest = "";
		}
	if (*rest || n > (UINT64_MAX - us) / bare)
		return false;
	*ret_us = n * bare + us;
	return true;
}

/* A time of day: the latest one that is not in the future. */
static bool
parse_time_of_day(const char *text, uint64_t now_us, uint64_t *ret_us)
{
	uint64_t day_us = (uint64_t)SECONDS_PER_DAY * US_PER_SECOND, us = 0;
	struct tm tm = { 0 };
	const char *rest = strptime(text, "%H:%M:%S", &tm);

	if (!rest)
		rest = strptime(text, "%H:%M", &tm);
	if (!rest)
		return false;
	rest = parse_fraction(rest, &us);
	if (*rest && strcmp(rest, "Z") != 0)
		return false;
	us += (uint64_t)(tm.tm_hour * 3600 + tm.tm_min * 60 + tm.tm_sec) * US_PER_SECOND;
	us += now_us - now_us % day_us;
	*ret_us = us > now_us ? us - day_us : us;
	return true;
}

/* A time with its Z or without, or a day, which is its beginning. */
static bool
parse_date(const char *text, uint64_t *ret_us)
{
	static const char *const ends[] = { "", "Z", "T00:00:00Z" };
	char whole[2 * MOMENT_TEXT_BYTES];

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		(void)snprintf(whole, sizeof(whole), "%s%s", text, ends[i]);
		if (moment_parse(str_from_cstr(whole), ret_us))
			return true;
	}
	return false;
}

bool
cli_parse_moment(struct str text, uint64_t *ret_us)
{
	/* The end of this millisecond, so that what was written in it has been written. */
	uint64_t now_us = steady_date_ms() * US_PER_MS + US_PER_MS - 1, ago_us;
	char copy[MOMENT_TEXT_BYTES];

	if (text.len >= sizeof(copy))
		return false;
	memcpy(copy, text.ptr, text.len);
	copy[text.len] = '\0';
	*ret_us = now_us;
	if (strcmp(copy, "now") == 0)
		return true;
	if (copy[0] == '-') {
		if (!parse_number(copy + 1, US_PER_SECOND, &ago_us) || ago_us > now_us)
			return false;
		*ret_us = now_us - ago_us;
		return true;
	}
	return parse_number(copy, 1, ret_us) || parse_date(copy, ret_us) ||
	       parse_time_of_day(copy, now_us, ret_us);
}
