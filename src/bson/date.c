#include "bson/date.h"

#include <assert.h>

enum {
	MS_PER_SECOND = 1000,
	SECONDS_PER_DAY = 86400,
	DAYS_PER_ERA = 146097, /* 400 years */
	/* From 0000-03-01, where the calculation begins, to 1970-01-01. */
	DAYS_BEFORE_1970 = 719468,
	FRACTION_DIGITS = 9,
};

/* Years are counted from March, so that a leap day is the last one of a year. */
static int64_t
days_of_date(int64_t year, unsigned month, unsigned day)
{
	int64_t from_march = month > 2 ? month - 3 : month + 9;
	int64_t era, of_era;

	year -= month <= 2;
	era = (year >= 0 ? year : year - 399) / 400;
	of_era = year - era * 400;
	return era * DAYS_PER_ERA + of_era * 365 + of_era / 4 - of_era / 100 +
	       (153 * from_march + 2) / 5 + day - 1 - DAYS_BEFORE_1970;
}

static unsigned
days_of_month(int64_t year, unsigned month)
{
	static const uint8_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	return days[month - 1] + (unsigned)(month == 2 && leap);
}

void
bson_date_write(struct buf *out, int64_t ms)
{
	int64_t seconds = ms / MS_PER_SECOND;
	int64_t days = seconds / SECONDS_PER_DAY + DAYS_BEFORE_1970;
	int64_t era = days / DAYS_PER_ERA;
	int64_t day = days % DAYS_PER_ERA;
	int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	int64_t month;

	assert(ms >= BSON_DATE_LEAST_MS && ms <= BSON_DATE_MOST_MS);
	day -= 365 * year + year / 4 - year / 100;
	month = (5 * day + 2) / 153;
	day -= (153 * month + 2) / 5;
	month = month < 10 ? month + 3 : month - 9;
	year += era * 400 + (month <= 2);
	seconds %= SECONDS_PER_DAY;
	buf_printf(out, "%04d-%02d-%02dT%02d:%02d:%02d", (int)year, (int)month, (int)day + 1,
		   (int)(seconds / 3600), (int)(seconds / 60 % 60), (int)(seconds % 60));
	if (ms % MS_PER_SECOND)
		buf_printf(out, ".%03d", (int)(ms % MS_PER_SECOND));
	buf_append_byte(out, 'Z');
}

/* Reads so many digits and, if it is not NUL, the character behind them. */
static bool
read_digits(struct str *text, size_t count, char behind, unsigned *ret)
{
	*ret = 0;
	if (text->len < count + (behind != 0))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (text->ptr[i] < '0' || text->ptr[i] > '9')
			return false;
		*ret = *ret * 10 + (unsigned)(text->ptr[i] - '0');
	}
	if (behind && text->ptr[count] != behind)
		return false;
	*text = str_skip(*text, count + (behind != 0));
	return true;
}

static bool
read_fraction(struct str *text, unsigned *ret_ms)
{
	unsigned scale = MS_PER_SECOND / 10;
	size_t n = 0;

	*ret_ms = 0;
	if (!text->len || text->ptr[0] != '.')
		return true;
	*text = str_skip(*text, 1);
	for (; n < text->len && text->ptr[n] >= '0' && text->ptr[n] <= '9'; n++, scale /= 10)
		*ret_ms += (unsigned)(text->ptr[n] - '0') * scale;
	*text = str_skip(*text, n);
	return n >= 1 && n <= FRACTION_DIGITS;
}

static bool
read_zone(struct str text, int64_t *ret_seconds)
{
	bool west = text.len && text.ptr[0] == '-';
	unsigned hours, minutes;

	*ret_seconds = 0;
	if (str_eq(text, STR("Z")))
		return true;
	if (!text.len || (!west && text.ptr[0] != '+'))
		return false;
	text = str_skip(text, 1);
	if (!read_digits(&text, 2, text.len == 5 ? ':' : 0, &hours) ||
	    !read_digits(&text, 2, 0, &minutes) || text.len || hours > 23 || minutes > 59)
		return false;
	*ret_seconds = (int64_t)hours * 3600 + minutes * 60;
	if (west)
		*ret_seconds = -*ret_seconds;
	return true;
}

bool
bson_date_read(struct str text, int64_t *ret_ms)
{
	unsigned year, month, day, hour, minute, second, ms;
	int64_t zone;

	if (!read_digits(&text, 4, '-', &year) || !read_digits(&text, 2, '-', &month) ||
	    !read_digits(&text, 2, 'T', &day) || !read_digits(&text, 2, ':', &hour) ||
	    !read_digits(&text, 2, ':', &minute) || !read_digits(&text, 2, 0, &second) ||
	    !read_fraction(&text, &ms) || !read_zone(text, &zone))
		return false;
	if (month < 1 || month > 12 || day < 1 || day > days_of_month(year, month) || hour > 23 ||
	    minute > 59 || second > 59)
		return false;
	*ret_ms = ((days_of_date(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 +
		    second) -
		   zone) * MS_PER_SECOND +
		  ms;
	return true;
}
