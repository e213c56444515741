#include "cql/time.h"

#include "base/big_endian.h"
#include "base/calendar.h"

enum {
	FRACTION_DIGITS = 9,
};

#define DAYS_MOST (INT64_MAX / CQL_DAY_MS) /* that a timestamp is away from 1970 */

/* From 1582-10-15, where the times of UUIDs begin, to 1970, in units of 100 ns. */
static const int64_t uuid_ticks_to_1970 = INT64_C(0x01b21dd213814000);

/* ---- Reading ---- */

/* Takes up to `most` digits off the text; false: fewer than `least`. */
static bool
take_digits(struct str *text, size_t least, size_t most, int64_t *ret)
{
	size_t count = 0;
	int64_t n = 0;

	while (count < most && count < text->len && text->ptr[count] >= '0' &&
	       text->ptr[count] <= '9')
		n = n * 10 + (text->ptr[count++] - '0');
	if (count < least)
		return false;
	*text = str_skip(*text, count);
	*ret = n;
	return true;
}

static bool
take_char(struct str *text, char c)
{
	if (!text->len || text->ptr[0] != c)
		return false;
	*text = str_skip(*text, 1);
	return true;
}

/* .f, up to nine digits, as nanoseconds; nothing is 0. */
static bool
take_fraction(struct str *text, int64_t *ret_ns)
{
	size_t before;

	*ret_ns = 0;
	if (!take_char(text, '.'))
		return true;
	before = text->len;
	if (!take_digits(text, 1, FRACTION_DIGITS, ret_ns))
		return false;
	for (size_t count = before - text->len; count < FRACTION_DIGITS; count++)
		*ret_ns *= 10;
	return true;
}

/* [-]yyyy-mm-dd, a day that there is. */
static bool
take_date(struct str *text, int64_t *ret_days)
{
	bool negative = take_char(text, '-');
	int64_t year, month, day;

	if (!negative)
		(void)take_char(text, '+');
	if (!take_digits(text, 1, 9, &year) || !take_char(text, '-') ||
	    !take_digits(text, 1, 2, &month) || !take_char(text, '-') ||
	    !take_digits(text, 1, 2, &day))
		return false;
	year = negative ? -year : year;
	if (month < 1 || month > 12 || day < 1 || day > calendar_month_days(year, (int)month))
		return false;
	*ret_days = calendar_days(year, month, day);
	return true;
}

/* Z, UTC, GMT, +hh, +hhmm, +hh:mm, with a space in front or none; nothing is UTC. */
static bool
take_zone(struct str *text, int64_t *ret_minutes)
{
	int64_t hours, minutes = 0;
	bool east;

	*ret_minutes = 0;
	(void)take_char(text, ' ');
	if (str_eq_nocase(*text, STR("z")) || str_eq_nocase(*text, STR("utc")) ||
	    str_eq_nocase(*text, STR("gmt")) || !text->len) {
		text->len = 0;
		return true;
	}
	east = take_char(text, '+');
	if (!east && !take_char(text, '-'))
		return false;
	if (!take_digits(text, 2, 2, &hours))
		return false;
	(void)take_char(text, ':');
	if (text->len && !take_digits(text, 2, 2, &minutes))
		return false;
	*ret_minutes = (hours * 60 + minutes) * (east ? 1 : -1);
	return hours <= 18 && minutes < 60;
}

static bool
take_clock(struct str *text, bool needs_seconds, int64_t *ret_ns)
{
	int64_t hours, minutes, seconds = 0, fraction = 0;

	if (!take_digits(text, 1, 2, &hours) || !take_char(text, ':') ||
	    !take_digits(text, 1, 2, &minutes))
		return false;
	if (take_char(text, ':')) {
		if (!take_digits(text, 1, 2, &seconds) || !take_fraction(text, &fraction))
			return false;
	} else if (needs_seconds) {
		return false;
	}
	*ret_ns = ((hours * 60 + minutes) * 60 + seconds) * 1000000000 + fraction;
	return hours < 24 && minutes < 60 && seconds < 60;
}

bool
cql_timestamp_parse(struct str text, int64_t *ret_ms)
{
	int64_t days, ns = 0, zone;

	if (str_to_i64(text, ret_ms))
		return true;
	if (!take_date(&text, &days))
		return false;
	if (text.len && (text.ptr[0] == 'T' || text.ptr[0] == 't' || text.ptr[0] == ' ') &&
	    text.len > 1 && text.ptr[1] >= '0' && text.ptr[1] <= '9') {
		text = str_skip(text, 1);
		if (!take_clock(&text, false, &ns))
			return false;
	}
	if (!take_zone(&text, &zone) || text.len || days <= -DAYS_MOST || days >= DAYS_MOST)
		return false;
	*ret_ms = days * CQL_DAY_MS + ns / 1000000 - zone * 60000;
	return true;
}

bool
cql_day_parse(struct str text, int64_t *ret_days)
{
	int64_t n;

	if (str_to_i64(text, &n)) {
		*ret_days = n - CQL_DAY_ZERO;
		return n >= 0 && n <= UINT32_MAX;
	}
	if (!take_date(&text, ret_days) || text.len)
		return false;
	return *ret_days >= -CQL_DAY_ZERO && *ret_days < CQL_DAY_ZERO;
}

bool
cql_time_parse(struct str text, int64_t *ret_ns)
{
	if (str_to_i64(text, ret_ns))
		return *ret_ns >= 0 && *ret_ns < CQL_DAY_NS;
	return take_clock(&text, true, ret_ns) && !text.len;
}

/* ---- Writing ---- */

void
cql_day_print(struct buf *out, int64_t days)
{
	struct calendar_day c = calendar_day_of(days);

	if (c.year < 0)
		buf_printf(out, "-%04lld-%02d-%02d", -(long long)c.year, c.month, c.day);
	else
		buf_printf(out, "%04lld-%02d-%02d", (long long)c.year, c.month, c.day);
}

void
cql_timestamp_print(struct buf *out, int64_t ms, enum cql_moment_form form)
{
	int64_t days = floor_div(ms, CQL_DAY_MS), rest = floor_mod(ms, CQL_DAY_MS);
	int hours = (int)(rest / 3600000), minutes = (int)(rest / 60000 % 60);
	int seconds = (int)(rest / 1000 % 60), thousandths = (int)(rest % 1000);

	cql_day_print(out, days);
	buf_printf(out, "%c%02d:%02d:%02d.%03d", form == CQL_MOMENT_ISO ? 'T' : ' ', hours, minutes,
		   seconds, thousandths);
	if (form == CQL_MOMENT_CQLSH || form == CQL_MOMENT_COPY)
		buf_append_cstr(out, form == CQL_MOMENT_CQLSH ? "000+0000" : "+0000");
	else
		buf_append_byte(out, 'Z');
}

void
cql_time_print(struct buf *out, int64_t ns)
{
	int64_t seconds = ns / 1000000000;

	buf_printf(out, "%02d:%02d:%02d.%09d", (int)(seconds / 3600), (int)(seconds / 60 % 60),
		   (int)(seconds % 60), (int)(ns % 1000000000));
}

/* ---- Moments and durations ---- */

int64_t
cql_moment_add(int64_t ms, struct cql_duration d, bool subtract)
{
	int64_t sign = subtract ? -1 : 1;
	int64_t days = floor_div(ms, CQL_DAY_MS), rest = floor_mod(ms, CQL_DAY_MS);

	if (d.months) {
		struct calendar_day c = calendar_day_of(days);
		int64_t months;
		int month, most;

		months = c.year * 12 + c.month - 1 + sign * d.months;
		month = (int)(months - floor_div(months, 12) * 12) + 1;
		most = calendar_month_days(floor_div(months, 12), month);
		days = calendar_days(floor_div(months, 12), month, c.day < most ? c.day : most);
	}
	/* Past the ends of int64_t it goes round, as in Java. */
	return (int64_t)((uint64_t)(days + sign * d.days) * (uint64_t)CQL_DAY_MS + (uint64_t)rest +
			 (uint64_t)(sign * (d.nanoseconds / 1000000)));
}

int64_t
cql_timeuuid_ms(struct str uuid)
{
	uint64_t n = big_endian_64(uuid.ptr);
	uint64_t ticks = (n & 0x0fff) << 48 | (n >> 16 & 0xffff) << 32 | n >> 32;

	return floor_div((int64_t)ticks - uuid_ticks_to_1970, 10000);
}

int64_t
cql_date_ms(struct str date)
{
	return ((int64_t)(uint32_t)cql_int_read(date) - CQL_DAY_ZERO) * CQL_DAY_MS;
}

enum status
cql_date_put(struct cql *q, int64_t ms, struct str *ret)
{
	return cql_int_put(q, floor_div(ms, CQL_DAY_MS) + CQL_DAY_ZERO, 4, ret);
}

enum status
cql_timeuuid_put(struct cql *q, int64_t ticks, uint64_t last, struct str *ret)
{
	uint64_t t = (uint64_t)ticks + (uint64_t)uuid_ticks_to_1970;
	char *bytes = arena_bytes(q->arena, DOC_UUID_BYTES);

	if (!bytes)
		return STATUS_LIMIT;
	big_endian_put_64(bytes, t << 32 | (t >> 32 & 0xffff) << 16 | 0x1000 | (t >> 48 & 0x0fff));
	big_endian_put_64(bytes + 8, last);
	*ret = str_of(bytes, DOC_UUID_BYTES);
	return STATUS_OK;
}
