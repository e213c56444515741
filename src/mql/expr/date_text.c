#include "mql/expr/date_text.h"

#include <stdlib.h>

#include "mql/expr/civil.h"

static const char *const months[] = { "January",   "February", "March",    "April",
				      "May",       "June",     "July",     "August",
				      "September", "October",  "November", "December" };

/* ---- Printing ---- */

enum status
mql_date_check_format(struct mql *q, struct str format, bool reading)
{
	const char *all = reading ? "dGHjLmMSuVYzZbB%" : "dGHjLmMSuUVwYzZbB%";

	for (size_t i = 0; i < format.len; i++) {
		if (format.ptr[i] != '%')
			continue;
		if (++i == format.len)
			return mql_fail(q, 18535, "Unmatched '%%' at end of format string");
		if (!format.ptr[i] || !strchr(all, format.ptr[i]))
			return mql_fail(q, 18536,
					"Invalid format character '%%%c' in format string",
					format.ptr[i]);
	}
	return STATUS_OK;
}

/* The week of a year whose weeks begin on Sundays; days before the first one are in week 0. */
static int
week_of(const struct mql_civil *c)
{
	int weekday = mql_iso_weekday(calendar_days(c->year, c->month, c->day)) % 7;

	return (mql_day_of_year(c) - 1 + 7 - weekday) / 7;
}

static void
print_part(struct buf *out, char what, const struct mql_civil *c, int64_t offset)
{
	int64_t days = calendar_days(c->year, c->month, c->day), iso_year;
	int iso_week;
	int64_t minutes = offset / MQL_MS_PER_MINUTE;

	mql_iso_week(c, &iso_year, &iso_week);
	switch (what) {
	case 'd':
		buf_printf(out, "%02d", c->day);
		return;
	case 'G':
		buf_printf(out, "%04lld", (long long)iso_year);
		return;
	case 'H':
		buf_printf(out, "%02d", c->hour);
		return;
	case 'j':
		buf_printf(out, "%03d", mql_day_of_year(c));
		return;
	case 'L':
		buf_printf(out, "%03d", c->ms);
		return;
	case 'm':
		buf_printf(out, "%02d", c->month);
		return;
	case 'M':
		buf_printf(out, "%02d", c->minute);
		return;
	case 'S':
		buf_printf(out, "%02d", c->second);
		return;
	case 'u':
		buf_printf(out, "%d", mql_iso_weekday(days));
		return;
	case 'U':
		buf_printf(out, "%02d", week_of(c));
		return;
	case 'V':
		buf_printf(out, "%02d", iso_week);
		return;
	case 'w':
		buf_printf(out, "%d", mql_iso_weekday(days) % 7 + 1);
		return;
	case 'Y':
		buf_printf(out, "%04lld", (long long)c->year);
		return;
	case 'z':
		buf_printf(out, "%c%02d%02d", minutes < 0 ? '-' : '+', abs((int)minutes) / 60,
			   abs((int)minutes) % 60);
		return;
	case 'Z':
		buf_printf(out, "%+d", (int)minutes);
		return;
	case 'b':
		buf_printf(out, "%.3s", months[c->month - 1]);
		return;
	case 'B':
		buf_append_cstr(out, months[c->month - 1]);
		return;
	default:
		buf_append_byte(out, (uint8_t)what);
	}
}

enum status
mql_date_print(struct mql *q, struct str format, const struct mql_zone *zone, int64_t ms,
	       struct bson_value *ret)
{
	struct buf out = mql_buf(q, MQL_STRING_BYTES);
	struct mql_civil c;
	int64_t offset, local;

	TRY(mql_date_check_format(q, format, false));
	TRY(mql_zone_offset(q, zone, ms, &offset));
	if (__builtin_add_overflow(ms, offset, &local))
		local = ms;
	mql_civil_of(local, &c);
	for (size_t i = 0; i < format.len; i++) {
		char what = format.ptr[i];

		if (what == '%')
			what = format.ptr[++i];
		else {
			buf_append_byte(&out, (uint8_t)what);
			continue;
		}
		if ((what == 'Y' || what == 'G') && (c.year < 0 || c.year > 9999)) {
			buf_release(&out);
			return mql_fail(q, 18537,
					"Could not convert date to string: date component was "
					"outside the supported range of 0-9999: %lld",
					(long long)c.year);
		}
		print_part(&out, what, &c, offset);
	}
	return mql_expr_keep_text(q, &out, ret);
}

/* ---- Reading ---- */

/* A date while it is read. What was not read is -1. */
struct reading {
	struct str rest;
	int64_t year, month, day, day_of_year;
	int64_t iso_year, iso_week, iso_day;
	int64_t hour, minute, second, ms;
	bool has_offset;
	int64_t offset_ms;
	bool zulu;
};

/* Up to `most` digits, at least `least`. */
static bool
take_number(struct reading *r, size_t least, size_t most, int64_t *ret)
{
	size_t n = 0;
	int64_t value = 0;

	while (n < most && n < r->rest.len && r->rest.ptr[n] >= '0' && r->rest.ptr[n] <= '9')
		value = value * 10 + (r->rest.ptr[n++] - '0');
	if (n < least)
		return false;
	r->rest = str_skip(r->rest, n);
	*ret = value;
	return true;
}

static bool
take(struct reading *r, char c)
{
	if (!r->rest.len || r->rest.ptr[0] != c)
		return false;
	r->rest = str_skip(r->rest, 1);
	return true;
}

/* As thousandths, whatever the number of digits. */
static bool
take_fraction(struct reading *r)
{
	int64_t value = 0;
	size_t n = 0;

	while (n < r->rest.len && r->rest.ptr[n] >= '0' && r->rest.ptr[n] <= '9') {
		if (n < 3)
			value = value * 10 + (r->rest.ptr[n] - '0');
		n++;
	}
	if (!n || n > 9)
		return false;
	r->rest = str_skip(r->rest, n);
	for (; n < 3; n++)
		value *= 10;
	r->ms = value;
	return true;
}

/* "Z", "+HH", "+HHMM", "+HH:MM" */
static bool
take_offset(struct reading *r)
{
	int64_t hours, minutes = 0;
	bool minus;

	r->has_offset = true;
	if (take(r, 'Z') || take(r, 'z'))
		return r->zulu = true;
	minus = r->rest.len && r->rest.ptr[0] == '-';
	if (!take(r, '+') && !take(r, '-'))
		return false;
	if (!take_number(r, 2, 2, &hours))
		return false;
	if ((take(r, ':') || r->rest.len >= 2) && !take_number(r, 2, 2, &minutes))
		return false;
	r->offset_ms = (hours * MQL_MS_PER_HOUR + minutes * MQL_MS_PER_MINUTE) * (minus ? -1 : 1);
	return true;
}

static bool
take_minutes(struct reading *r)
{
	int64_t minutes;
	bool minus = r->rest.len && r->rest.ptr[0] == '-';

	if (!take(r, '+') && !take(r, '-'))
		return false;
	if (!take_number(r, 1, 4, &minutes))
		return false;
	r->has_offset = true;
	r->offset_ms = minutes * MQL_MS_PER_MINUTE * (minus ? -1 : 1);
	return true;
}

static bool
take_month(struct reading *r, bool whole, bool either)
{
	for (int i = 0; i < 12; i++) {
		struct str name = str_from_cstr(months[i]), brief = str_of(name.ptr, 3);

		if ((whole || either) && r->rest.len >= name.len &&
		    str_eq_nocase(str_of(r->rest.ptr, name.len), name)) {
			r->rest = str_skip(r->rest, name.len);
		} else if ((!whole || either) && r->rest.len >= 3 &&
			   str_eq_nocase(str_of(r->rest.ptr, 3), brief)) {
			r->rest = str_skip(r->rest, 3);
		} else {
			continue;
		}
		r->month = i + 1;
		return true;
	}
	return false;
}

static bool
take_part(struct reading *r, char what)
{
	switch (what) {
	case 'd':
		return take_number(r, 1, 2, &r->day);
	case 'G':
		return take_number(r, 4, 4, &r->iso_year);
	case 'H':
		return take_number(r, 1, 2, &r->hour);
	case 'j':
		return take_number(r, 1, 3, &r->day_of_year);
	case 'L':
		return take_number(r, 1, 3, &r->ms);
	case 'm':
		return take_number(r, 1, 2, &r->month);
	case 'M':
		return take_number(r, 1, 2, &r->minute);
	case 'S':
		return take_number(r, 1, 2, &r->second);
	case 'u':
		return take_number(r, 1, 1, &r->iso_day);
	case 'V':
		return take_number(r, 1, 2, &r->iso_week);
	case 'Y':
		return take_number(r, 4, 4, &r->year);
	case 'z':
		return take_offset(r);
	case 'Z':
		return take_minutes(r);
	case 'b':
		return take_month(r, false, false);
	case 'B':
		return take_month(r, true, false);
	default:
		return take(r, what);
	}
}

static bool
read_by_format(struct reading *r, struct str format)
{
	for (size_t i = 0; i < format.len; i++) {
		if (format.ptr[i] == '%' ? !take_part(r, format.ptr[++i]) : !take(r, format.ptr[i]))
			return false;
	}
	return !r->rest.len;
}

static bool
read_time(struct reading *r)
{
	bool colon;

	if (!take_number(r, 2, 2, &r->hour))
		return false;
	colon = take(r, ':');
	if (!colon && !(r->rest.len >= 2 && r->rest.ptr[0] >= '0' && r->rest.ptr[0] <= '9'))
		return true;
	if (!take_number(r, 2, 2, &r->minute))
		return false;
	if (colon ? take(r, ':')
		  : r->rest.len >= 2 && r->rest.ptr[0] >= '0' && r->rest.ptr[0] <= '9') {
		if (!take_number(r, 2, 2, &r->second))
			return false;
		if ((take(r, '.') || take(r, ',')) && !take_fraction(r))
			return false;
	}
	return true;
}

static bool
read_date(struct reading *r)
{
	bool dash;

	if (!take_number(r, 4, 4, &r->year))
		return false;
	dash = take(r, '-');
	if (take(r, 'W')) {
		r->iso_year = r->year;
		r->year = -1;
		if (!take_number(r, 2, 2, &r->iso_week))
			return false;
		return !take(r, '-') || take_number(r, 1, 1, &r->iso_day);
	}
	if (!dash && take(r, '/'))
		return take_number(r, 1, 2, &r->month) && take(r, '/') &&
		       take_number(r, 1, 2, &r->day);
	if (!take_number(r, dash ? 1 : 2, 2, &r->month))
		return false;
	r->day = 1;
	return dash ? !take(r, '-') || take_number(r, 1, 2, &r->day)
		    : take_number(r, 2, 2, &r->day);
}

/* "July 20, 2017", "20 July 2017", "07/20/2017" */
static bool
read_words(struct reading *r)
{
	struct reading begin = *r;

	if (take_number(r, 1, 2, &r->month) && take(r, '/'))
		return take_number(r, 1, 2, &r->day) && take(r, '/') &&
		       take_number(r, 4, 4, &r->year);
	*r = begin;
	if (take_month(r, true, true)) {
		if (!take(r, ' ') || !take_number(r, 1, 2, &r->day))
			return false;
		(void)take(r, ',');
		return take(r, ' ') && take_number(r, 4, 4, &r->year);
	}
	return take_number(r, 1, 2, &r->day) && take(r, ' ') && take_month(r, true, true) &&
	       take(r, ' ') && take_number(r, 4, 4, &r->year);
}

static bool
read_freely(struct reading *r)
{
	struct reading begin = *r;

	if (!read_date(r)) {
		*r = begin;
		if (!read_words(r))
			return false;
	}
	if (take(r, 'T') || take(r, 't') || take(r, ' ')) {
		if (!read_time(r))
			return false;
		(void)take(r, ' ');
	}
	if (r->rest.len && !take_offset(r))
		return false;
	return !r->rest.len;
}

static int64_t
or_zero(int64_t n)
{
	return n < 0 ? 0 : n;
}

/* Days since 1970 of what was read; false if it is no day, or not enough for one. */
static bool
reading_days(const struct reading *r, int64_t *ret)
{
	int64_t month = r->month < 0 ? 1 : r->month, day = r->day < 0 ? 1 : r->day;

	if (r->iso_year >= 0) {
		int64_t week = r->iso_week < 0 ? 1 : r->iso_week;
		int64_t of_week = r->iso_day < 0 ? 1 : r->iso_day;

		*ret = mql_iso_year_begin(r->iso_year) + (week - 1) * 7 + of_week - 1;
		return r->year < 0 && r->month < 0 && r->day < 0 && week >= 1 && week <= 53 &&
		       of_week >= 1 && of_week <= 7;
	}
	if (r->year < 0)
		return false;
	if (r->day_of_year >= 0) {
		*ret = calendar_days(r->year, 1, 1) + r->day_of_year - 1;
		return r->month < 0 && r->day < 0 && r->day_of_year >= 1 &&
		       r->day_of_year <= 365 + calendar_is_leap(r->year);
	}
	if (r->month < 0 || month < 1 || month > 12 || day < 1 ||
	    day > calendar_month_days(r->year, (int)month))
		return false;
	*ret = calendar_days(r->year, (int)month, day);
	return r->day >= 0;
}

static enum status
fail_text(struct mql *q, struct str text, const char *why)
{
	return mql_fail(q, MQL_CONVERSION_FAILURE, "Error parsing date string '%.*s'; %s",
			STR_ARG(text), why);
}

enum status
mql_date_parse(struct mql *q, struct str text, const struct str *format,
	       const struct mql_zone *zone, int64_t *ret)
{
	struct reading r = { .rest = text,
			     .year = -1,
			     .month = -1,
			     .day = -1,
			     .day_of_year = -1,
			     .iso_year = -1,
			     .iso_week = -1,
			     .iso_day = -1,
			     .hour = -1,
			     .minute = -1,
			     .second = -1,
			     .ms = -1 };
	const struct mql_zone utc = MQL_ZONE_UTC;
	int64_t days, local;

	TRY(step_count_bytes(text.len));
	if (!(format ? read_by_format(&r, *format) : read_freely(&r)))
		return fail_text(q, text, "0: Unexpected character");
	if (!reading_days(&r, &days))
		return fail_text(q, text,
				 "0: an incomplete date/time string has been found, with elements "
				 "missing, or no such day");
	if (r.hour > 24 || r.minute > 59 || r.second > 60 ||
	    (r.hour == 24 && (r.minute > 0 || r.second > 0)))
		return fail_text(q, text, "0: no such time");
	local = days * MQL_MS_PER_DAY + or_zero(r.hour) * MQL_MS_PER_HOUR +
		or_zero(r.minute) * MQL_MS_PER_MINUTE + or_zero(r.second) * MQL_MS_PER_SECOND +
		or_zero(r.ms);
	if (!r.has_offset)
		return mql_zone_to_utc(q, zone ? zone : &utc, local, ret);
	if (zone && !(r.zulu && !zone->name[0] && !zone->offset_ms))
		return mql_fail(q, MQL_CONVERSION_FAILURE,
				"you cannot pass in a date/time string with time zone information "
				"('%.*s') together with a timezone argument",
				STR_ARG(text));
	*ret = local - r.offset_ms;
	return STATUS_OK;
}
