#include "base/calendar.h"

enum {
	DAYS_PER_ERA = 146097, /* of 400 years */
	DAYS_TO_1970 = 719468, /* since the first of March of the year 0 */
};

/* Years begin in March here, so that the day of a leap year is the last one. */
int64_t
calendar_days(int64_t year, int64_t month, int64_t day)
{
	int64_t y = month <= 2 ? year - 1 : year, era = floor_div(y, 400);
	int64_t of_era = y - era * 400, of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5;

	return era * DAYS_PER_ERA + of_era * 365 + of_era / 4 - of_era / 100 + of_year + day - 1 -
	       DAYS_TO_1970;
}

struct calendar_day
calendar_day_of(int64_t days)
{
	int64_t since = days + DAYS_TO_1970, era = floor_div(since, DAYS_PER_ERA);
	int64_t day = since - era * DAYS_PER_ERA;
	int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	int64_t of_year = day - (365 * year + year / 4 - year / 100);
	int64_t from_march = (5 * of_year + 2) / 153;
	int month = (int)(from_march < 10 ? from_march + 3 : from_march - 9);

	return (struct calendar_day){
		.year = year + era * 400 + (month <= 2),
		.month = month,
		.day = (int)(of_year - (153 * from_march + 2) / 5 + 1),
	};
}

bool
calendar_is_leap(int64_t year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int
calendar_month_days(int64_t year, int month)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

	return month == 2 && calendar_is_leap(year) ? 29 : days[month - 1];
}
