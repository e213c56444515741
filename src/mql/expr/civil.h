/* Moments as dates and times of day in UTC, weeks. Plain functions. */
#ifndef FROND_MQL_CIVIL_H
#define FROND_MQL_CIVIL_H

#include "base/calendar.h"
#include "mql/mql.h"

enum {
	MQL_MS_PER_SECOND = 1000,
	MQL_MS_PER_MINUTE = 60 * MQL_MS_PER_SECOND,
	MQL_MS_PER_HOUR = 60 * MQL_MS_PER_MINUTE,
	MQL_MS_PER_DAY = 24 * MQL_MS_PER_HOUR,
};

struct mql_civil {
	int64_t year;
	int month, day; /* from 1 */
	int hour, minute, second, ms;
};

void mql_civil_of(int64_t ms, struct mql_civil *ret);

/* From 1 for Monday to 7, of days since 1970. */
int mql_iso_weekday(int64_t days);
int mql_day_of_year(const struct mql_civil *c); /* from 1 */
void mql_iso_week(const struct mql_civil *c, int64_t *ret_year, int *ret_week);
/* The days since 1970 of the Monday of the first week of a year. */
int64_t mql_iso_year_begin(int64_t year);

#endif
