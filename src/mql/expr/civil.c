#include "mql/expr/civil.h"

enum {
	DAYS_PER_ERA = 146097, /* of 400 years */
	DAYS_TO_1970 = 719468, /* since the first of March of the year 0 */
};

/* Years begin in March here, so that the day of a leap year is the last one. */
int64_t
mql_days_of(int64_t year, int month, int64_t day)
{
	int64_t y = month <= 2 ? year - 1 : year, era = mql_floor_div(y, 400);
	int64_t of_era = y - era * 400, of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5;

	return era * DAYS_PER_ERA + of_era * 365 + of_era / 4 - of_era / 100 + of_year + day - 1 -
	       DAYS_TO_1970;
}

void
mql_civil_of(int64_t ms, struct mql_civil *ret)
{
	int64_t days = mql_floor_div(ms, MQL_MS_PER_DAY) + DAYS_TO_1970;
	int64_t rest = mql_floor_mod(ms, MQL_MS_PER_DAY), era = mql_floor_div(days, DAYS_PER_ERA);
	int64_t day = days - era * DAYS_PER_ERA;
	int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	int64_t of_year = day - (365 * year + year / 4 - year / 100);
	int64_t month = (5 * of_year + 2) / 153;

	ret->day = (int)(of_year - (153 * month + 2) / 5 + 1);
	ret->month = (int)(month < 10 ? month + 3 : month - 9);
	ret->year = year + era * 400 + (ret->month <= 2);
	ret->hour = (int)(rest / MQL_MS_PER_HOUR);
	ret->minute = (int)(rest / MQL_MS_PER_MINUTE % 60);
	ret->second = (int)(rest / MQL_MS_PER_SECOND % 60);
	ret->ms = (int)(rest % MQL_MS_PER_SECOND);
}

bool
mql_is_leap(int64_t year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int
mql_days_in_month(int64_t year, int month)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

	return month == 2 && mql_is_leap(year) ? 29 : days[month - 1];
}

/* The first of January 1970 was a Thursday. */
int
mql_iso_weekday(int64_t days)
{
	return (int)mql_floor_mod(days + 3, 7) + 1;
}

int
mql_day_of_year(const struct mql_civil *c)
{
	return (int)(mql_days_of(c->year, c->month, c->day) - mql_days_of(c->year, 1, 1)) + 1;
}

int64_t
mql_iso_year_begin(int64_t year)
{
	/* The fourth of January always is in the first week. */
	int64_t fourth = mql_days_of(year, 1, 4);

	return fourth - (mql_iso_weekday(fourth) - 1);
}

void
mql_iso_week(const struct mql_civil *c, int64_t *ret_year, int *ret_week)
{
	int64_t days = mql_days_of(c->year, c->month, c->day), year = c->year;

	if (days < mql_iso_year_begin(year))
		year--;
	else if (days >= mql_iso_year_begin(year + 1))
		year++;
	*ret_year = year;
	*ret_week = (int)((days - mql_iso_year_begin(year)) / 7) + 1;
}
