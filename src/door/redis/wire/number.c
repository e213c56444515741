#include "door/redis/wire/number.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	READ_BYTES = 512, /* a longer text is no number: the largest double has 309 digits */
	EXACT_INTEGER_BITS = 53,
	EXACT_DIGITS = 15, /* of an integer that a double has as it is */
};

bool
number_read_i64(struct str s, int64_t *ret)
{
	size_t i = s.len && s.ptr[0] == '-' ? 1 : 0;

	if (s.len == i || s.ptr[i] == '+')
		return false;
	if (s.ptr[i] == '0' && s.len > 1)
		return false;
	return str_to_i64(s, ret);
}

/* The text with a NUL behind it; false if it cannot be a number. */
static bool
number_copy(struct str s, char buf[static READ_BYTES])
{
	if (!s.len || s.len >= READ_BYTES || memchr(s.ptr, 0, s.len))
		return false;
	if (s.ptr[0] == ' ' || (s.ptr[0] >= '\t' && s.ptr[0] <= '\r'))
		return false;
	memcpy(buf, s.ptr, s.len);
	buf[s.len] = '\0';
	return true;
}

/* The number of a few digits alone, as most scores are; false: it has to be read as others. */
static bool
number_read_digits(struct str s, double *ret)
{
	int64_t n = 0;

	if (!s.len || s.len > EXACT_DIGITS)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		if (s.ptr[i] < '0' || s.ptr[i] > '9')
			return false;
		n = 10 * n + (s.ptr[i] - '0');
	}
	*ret = (double)n;
	return true;
}

bool
number_read_double(struct str s, double *ret)
{
	char buf[READ_BYTES];
	char *end;
	double d;

	if (number_read_digits(s, ret))
		return true;
	if (!number_copy(s, buf))
		return false;
	errno = 0;
	d = strtod(buf, &end);
	if (*end || isnan(d) || (errno == ERANGE && (isinf(d) || d == 0)))
		return false;
	*ret = d;
	return true;
}

static struct str
number_skip_spaces(struct str s)
{
	while (s.len && (s.ptr[0] == ' ' || (s.ptr[0] >= '\t' && s.ptr[0] <= '\r')))
		s = str_skip(s, 1);
	return s;
}

bool
number_read_weight(struct str s, double *ret)
{
	return number_read_double(number_skip_spaces(s), ret);
}

bool
number_read_bound(struct str s, double *ret)
{
	char buf[READ_BYTES];
	char *end;

	if (s.len >= READ_BYTES)
		return false;
	if (s.len)
		memcpy(buf, s.ptr, s.len);
	buf[s.len] = '\0';
	*ret = strtod(buf, &end);
	return !*end && !isnan(*ret);
}

bool
number_read_unsigned(struct str s, uint64_t *ret)
{
	bool negative;
	int64_t n;

	if (number_read_i64(s, &n)) {
		*ret = (uint64_t)n;
		return n >= 0;
	}
	s = number_skip_spaces(s);
	negative = s.len && s.ptr[0] == '-';
	if (s.len && (negative || s.ptr[0] == '+'))
		s = str_skip(s, 1);
	if (!str_to_u64(s, ret))
		return false;
	if (negative)
		*ret = 0 - *ret;
	return true;
}

bool
number_read_long_double(struct str s, long double *ret)
{
	char buf[READ_BYTES];
	char *end;
	long double d;

	if (!number_copy(s, buf))
		return false;
	errno = 0;
	d = strtold(buf, &end);
	if (*end || isnan(d) || (errno == ERANGE && (isinf(d) || d == 0)))
		return false;
	*ret = d;
	return true;
}

struct str
number_write_double(double d, char buf[static 64])
{
	int len;

	if (isinf(d))
		return d > 0 ? STR("inf") : STR("-inf");
	if (isnan(d))
		return STR("nan");
	if (d == 0)
		return signbit(d) ? STR("-0") : STR("0");
	if (fabs(d) < (double)(INT64_C(1) << (EXACT_INTEGER_BITS - 1)) && d == (double)(int64_t)d)
		len = snprintf(buf, 64, "%lld", (long long)d);
	else
		len = snprintf(buf, 64, "%.17g", d);
	return str_of(buf, (size_t)len);
}

struct str
number_write_long_double(long double d, char buf[static NUMBER_TEXT_BYTES])
{
	int len;

	if (isinf(d))
		return d > 0 ? STR("inf") : STR("-inf");
	len = snprintf(buf, NUMBER_TEXT_BYTES, "%.17Lf", d);
	while (len > 1 && memchr(buf, '.', (size_t)len) && buf[len - 1] == '0')
		len--;
	if (buf[len - 1] == '.')
		len--;
	if (len == 2 && memcmp(buf, "-0", 2) == 0)
		return STR("0");
	return str_of(buf, (size_t)len);
}

bool
number_read_memory(struct str s, int64_t *ret)
{
	static const struct {
		const char *unit;
		int64_t bytes;
	} units[] = { { "kb", 1 << 10 }, { "mb", 1 << 20 },   { "gb", 1 << 30 }, { "k", 1000 },
		      { "m", 1000000 },  { "g", 1000000000 }, { "b", 1 } };
	size_t digits = 0;
	int64_t factor = 1;

	while (digits < s.len && isdigit((unsigned char)s.ptr[digits]))
		digits++;
	if (digits < s.len) {
		struct str unit = str_skip(s, digits);
		size_t i = 0;

		while (i < sizeof(units) / sizeof(units[0]) &&
		       !str_eq_nocase(unit, str_from_cstr(units[i].unit)))
			i++;
		if (i == sizeof(units) / sizeof(units[0]))
			return false;
		factor = units[i].bytes;
	}
	return str_to_i64(str_of(s.ptr, digits), ret) && !__builtin_mul_overflow(*ret, factor, ret);
}
