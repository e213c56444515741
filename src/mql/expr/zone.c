#include "mql/expr/zone.h"

#include <pthread.h>
#include <unicode/ucal.h>
#include <unicode/ustring.h>

#include "mql/expr/civil.h"
#include "mql/mql_int.h"

/* ICU computes with days of 32 bits. Rules do not change that far away. */
#define ZONE_MOST_MS INT64_C(8640000000000000)

static pthread_mutex_t zones_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
	char name[MQL_ZONE_NAME_BYTES];
	UCalendar *calendar;
} zones[MQL_ZONES_KEPT];
static size_t zones_next; /* whose place the next one takes */

static bool
read_digits(struct str text, size_t at, int64_t *ret)
{
	if (at + 2 > text.len || text.ptr[at] < '0' || text.ptr[at] > '9' ||
	    text.ptr[at + 1] < '0' || text.ptr[at + 1] > '9')
		return false;
	*ret = (text.ptr[at] - '0') * 10 + (text.ptr[at + 1] - '0');
	return true;
}

/* "+HH", "+HHMM", "+HH:MM" */
static bool
offset_of(struct str text, int64_t *ret)
{
	int64_t hours, minutes = 0;
	size_t at = 3;

	if (text.len < 3 || (text.ptr[0] != '+' && text.ptr[0] != '-') ||
	    !read_digits(text, 1, &hours))
		return false;
	if (text.len > 3) {
		at += text.ptr[3] == ':';
		if (text.len != at + 2 || !read_digits(text, at, &minutes))
			return false;
	}
	*ret = (hours * MQL_MS_PER_HOUR + minutes * MQL_MS_PER_MINUTE) *
	       (text.ptr[0] == '-' ? -1 : 1);
	return true;
}

/* A name that ICU's data has. "GMT+3" and its like are names that ICU makes up. */
static bool
name_is_known(const char *name)
{
	UChar units[MQL_ZONE_NAME_BYTES], canonical[4 * MQL_ZONE_NAME_BYTES];
	UErrorCode code = U_ZERO_ERROR;
	UBool system = false;

	u_uastrcpy(units, name);
	(void)ucal_getCanonicalTimeZoneID(units, -1, canonical, 4 * MQL_ZONE_NAME_BYTES, &system,
					  &code);
	return U_SUCCESS(code) && system;
}

enum status
mql_zone_of(struct mql *q, struct str text, struct mql_zone *ret)
{
	bool plain = text.len > 0 && text.len < MQL_ZONE_NAME_BYTES;

	*ret = MQL_ZONE_UTC;
	if (mql_is(text, "UTC") || mql_is(text, "GMT") || offset_of(text, &ret->offset_ms))
		return STATUS_OK;
	for (size_t i = 0; i < text.len && plain; i++)
		plain = text.ptr[i] > ' ' && text.ptr[i] < 0x7f;
	if (plain) {
		memcpy(ret->name, text.ptr, text.len);
		TRY(step_count(16));
		if (name_is_known(ret->name))
			return STATUS_OK;
	}
	return mql_fail(q, 40485, "unrecognized time zone identifier: \"%.*s\"", STR_ARG(text));
}

/* The calendar of a zone, which is opened if it is not kept. The mutex is held. */
static UCalendar *
zone_calendar(const char *name, UErrorCode *code)
{
	UChar units[MQL_ZONE_NAME_BYTES];
	UCalendar *calendar;

	for (size_t i = 0; i < MQL_ZONES_KEPT; i++) {
		if (zones[i].calendar && !strcmp(zones[i].name, name))
			return zones[i].calendar;
	}
	u_uastrcpy(units, name);
	calendar = ucal_open(units, -1, "en_US", UCAL_GREGORIAN, code);
	if (U_FAILURE(*code))
		return NULL;
	if (zones[zones_next].calendar)
		ucal_close(zones[zones_next].calendar);
	zones[zones_next].calendar = calendar;
	memcpy(zones[zones_next].name, name, strlen(name) + 1);
	zones_next = (zones_next + 1) % MQL_ZONES_KEPT;
	return calendar;
}

enum status
mql_zone_offset(struct mql *q, const struct mql_zone *zone, int64_t ms, int64_t *ret)
{
	UErrorCode code = U_ZERO_ERROR;
	UCalendar *calendar;

	*ret = zone->offset_ms;
	if (!zone->name[0])
		return STATUS_OK;
	TRY(step_count(16));
	if (ms > ZONE_MOST_MS)
		ms = ZONE_MOST_MS;
	if (ms < -ZONE_MOST_MS)
		ms = -ZONE_MOST_MS;
	pthread_mutex_lock(&zones_mutex);
	calendar = zone_calendar(zone->name, &code);
	if (calendar) {
		ucal_setMillis(calendar, (UDate)ms, &code);
		*ret = ucal_get(calendar, UCAL_ZONE_OFFSET, &code);
		*ret += ucal_get(calendar, UCAL_DST_OFFSET, &code);
	}
	pthread_mutex_unlock(&zones_mutex);
	if (U_SUCCESS(code))
		return STATUS_OK;
	if (code == U_MEMORY_ALLOCATION_ERROR)
		return STATUS_NOMEM;
	return err_set(q->err, STATUS_UNAVAILABLE, "ICU has no rules of the time zone %s: %s",
		       zone->name, u_errorName(code));
}

enum status
mql_zone_to_utc(struct mql *q, const struct mql_zone *zone, int64_t local_ms, int64_t *ret)
{
	int64_t before, after, offset;

	if (!zone->name[0]) {
		if (__builtin_sub_overflow(local_ms, zone->offset_ms, ret))
			*ret = local_ms < 0 ? INT64_MIN : INT64_MAX;
		return STATUS_OK;
	}
	if (local_ms > INT64_MAX - 2 * (int64_t)MQL_MS_PER_DAY ||
	    local_ms < INT64_MIN + 2 * (int64_t)MQL_MS_PER_DAY) {
		*ret = local_ms;
		return STATUS_OK;
	}
	TRY(mql_zone_offset(q, zone, local_ms - MQL_MS_PER_DAY, &before));
	TRY(mql_zone_offset(q, zone, local_ms + MQL_MS_PER_DAY, &after));
	*ret = local_ms - before;
	if (before == after)
		return STATUS_OK;
	TRY(mql_zone_offset(q, zone, local_ms - before, &offset));
	if (offset == before)
		return STATUS_OK;
	TRY(mql_zone_offset(q, zone, local_ms - after, &offset));
	if (offset == after)
		*ret = local_ms - after;
	return STATUS_OK;
}
