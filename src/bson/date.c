#include "bson/date.h"

#include <assert.h>

#include "base/calendar.h"

enum {
	MS_PER_SECOND = 1000,
	SECONDS_PER_DAY = 86400,
	FRACTION_DIGITS = 9,
};

void
bson_date_write(struct buf *out, int64_t ms)
{
	int64_t seconds = ms / MS_PER_SECOND;
	struct calendar_day day = calendar_day_of(seconds / SECONDS_PER_DAY);

	assert(ms >= BSON_DATE_LEAST_MS && ms <= BSON_DATE_MOST_MS);
	seconds %= SECONDS_PER_DAY;
	buf_printf(out, "%04d-%02d-%02dT%02d:%02d:%02d", (int)day.year, day.month, day.day,
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
	bool west = str_starts_with(text, STR("-"));
	unsigned hours, minutes;

	*ret_seconds = 0;
	if (str_eq(text, STR("Z")))
		return true;
	if (!west && !str_starts_with(text, STR("+")))
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
	if (month < 1 || month > 12 || day < 1 ||
	    day > (unsigned)calendar_month_days(year, (int)month) || hour > 23 || minute > 59 ||
	    second > 59)
		return false;
	*ret_ms = ((calendar_days(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 +
		    second) -
		   zone) * MS_PER_SECOND +
		  ms;
	return true;
}
