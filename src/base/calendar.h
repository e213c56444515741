/*
 * Days of the Gregorian calendar, before its time as well. Plain functions, for all years that have
 * 12 digits at most.
 */
#ifndef FROND_BASE_CALENDAR_H
#define FROND_BASE_CALENDAR_H

#include <stdbool.h>
#include <stdint.h>

/* Divides towards less, so that the rest is never negative. */
static inline int64_t
floor_div(int64_t n, int64_t by)
{
	return n / by - (n % by < 0);
}

static inline int64_t
floor_mod(int64_t n, int64_t by)
{
	return n % by + (n % by < 0 ? by : 0);
}

struct calendar_day {
	int64_t year;
	int month, day; /* from 1 */
};

/* Days since 1970-01-01 of a day, which may lie outside of its month. The month is 1 to 12. */
int64_t calendar_days(int64_t year, int64_t month, int64_t day);
/* The day that is so many days after 1970-01-01. */
struct calendar_day calendar_day_of(int64_t days);

bool calendar_is_leap(int64_t year);
int calendar_month_days(int64_t year, int month);

#endif
