#include "mql/expr/civil.h"

void
mql_civil_of(int64_t ms, struct mql_civil *ret)
{
	struct calendar_day day = calendar_day_of(floor_div(ms, MQL_MS_PER_DAY));
	int64_t rest = floor_mod(ms, MQL_MS_PER_DAY);

	ret->year = day.year;
	ret->month = day.month;
	ret->day = day.day;
	ret->hour = (int)(rest / MQL_MS_PER_HOUR);
	ret->minute = (int)(rest / MQL_MS_PER_MINUTE % 60);
	ret->second = (int)(rest / MQL_MS_PER_SECOND % 60);
	ret->ms = (int)(rest % MQL_MS_PER_SECOND);
}

/* The first of January 1970 was a Thursday. */
int
mql_iso_weekday(int64_t days)
{
	return (int)floor_mod(days + 3, 7) + 1;
}

int
mql_day_of_year(const struct mql_civil *c)
{
	return (int)(calendar_days(c->year, c->month, c->day) - calendar_days(c->year, 1, 1)) + 1;
}

int64_t
mql_iso_year_begin(int64_t year)
{
	/* The fourth of January always is in the first week. */
	int64_t fourth = calendar_days(year, 1, 4);

	return fourth - (mql_iso_weekday(fourth) - 1);
}

void
mql_iso_week(const struct mql_civil *c, int64_t *ret_year, int *ret_week)
{
	int64_t days = calendar_days(c->year, c->month, c->day), year = c->year;

	if (days < mql_iso_year_begin(year))
		year--;
	else if (days >= mql_iso_year_begin(year + 1))
		year++;
	*ret_year = year;
	*ret_week = (int)((days - mql_iso_year_begin(year)) / 7) + 1;
}
