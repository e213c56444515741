#include "base/moment.h"

#include <string.h>
#include <time.h>

enum {
	MOMENT_TEXT_BYTES = 64,
	US_PER_SECOND = 1000 * 1000,
};

/* The fraction behind the seconds, and the Z. */
static bool
parse_fraction(const char *text, uint64_t *us)
{
	uint64_t unit = US_PER_SECOND;

	if (*text == '.')
		for (text++; *text >= '0' && *text <= '9' && unit > 1; text++) {
			unit /= 10;
			*us += unit * (uint64_t)(*text - '0');
		}
	return text[0] == 'Z' && !text[1];
}

bool
moment_parse(struct str text, uint64_t *ret_us)
{
	char copy[MOMENT_TEXT_BYTES];
	struct tm tm = { 0 };
	const char *rest;
	time_t seconds;

	if (text.len >= sizeof(copy))
		return false;
	memcpy(copy, text.ptr, text.len);
	copy[text.len] = '\0';
	rest = strptime(copy, "%Y-%m-%dT%H:%M:%S", &tm);
	seconds = timegm(&tm);
	if (!rest || seconds < 0)
		return false;
	*ret_us = (uint64_t)seconds * US_PER_SECOND;
	return parse_fraction(rest, ret_us);
}
