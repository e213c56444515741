#include "cql/time.h"

enum {
	MONTHS_PER_YEAR = 12,
	DAYS_PER_WEEK = 7,
};

/* Units in their order; each may be said once, and none behind a smaller one. */
static const struct {
	const char *text, *name;
	int kind; /* 0: months, 1: days, 2: nanoseconds */
	int64_t factor;
} duration_units[] = {
	{ "y", "years", 0, MONTHS_PER_YEAR },        { "mo", "months", 0, 1 },
	{ "w", "weeks", 1, DAYS_PER_WEEK },          { "d", "days", 1, 1 },
	{ "h", "hours", 2, INT64_C(3600000000000) }, { "m", "minutes", 2, INT64_C(60000000000) },
	{ "s", "seconds", 2, INT64_C(1000000000) },  { "ms", "milliseconds", 2, 1000000 },
	{ "us", "microseconds", 2, 1000 },           { "ns", "nanoseconds", 2, 1 },
};

enum {
	UNITS = sizeof(duration_units) / sizeof(duration_units[0]),
	UNIT_US = 8,
};

struct parts {
	int64_t sums[3];
	int last; /* the unit that was added last; -1: none */
};

static enum status
bad(struct cql *q, struct str text)
{
	return cql_fail(q, CQL_E_BAD_DURATION, text);
}

static enum status
add(struct cql *q, struct parts *p, int unit, int64_t n)
{
	static const char *const names[] = { "months", "days", "nanoseconds" };
	static const char *const mosts[] = { "2147483647", "2147483647", "9223372036854775807" };
	int kind = duration_units[unit].kind;
	int64_t more;

	if (unit == p->last)
		return cql_fail(q, CQL_E_DURATION_REPEATED,
				str_from_cstr(duration_units[unit].name));
	if (unit < p->last)
		return cql_fail(
			q, CQL_E_DURATION_ORDER,
			STR("years, months, weeks, days, hours, minutes, seconds, milliseconds,"
			    " microseconds, nanoseconds"));
	p->last = unit;
	if (__builtin_mul_overflow(n, duration_units[unit].factor, &more) ||
	    __builtin_add_overflow(p->sums[kind], more, &p->sums[kind]) ||
	    (kind < 2 && p->sums[kind] > INT32_MAX))
		return cql_fail(q, CQL_E_DURATION_LARGE, str_from_cstr(names[kind]),
				str_from_cstr(mosts[kind]));
	return STATUS_OK;
}

static bool
take_number(struct str *text, int64_t *ret)
{
	size_t count = 0;
	struct str digits;

	while (count < text->len && text->ptr[count] >= '0' && text->ptr[count] <= '9')
		count++;
	digits = str_of(text->ptr, count);
	*text = str_skip(*text, count);
	return str_to_i64(digits, ret);
}

/* The unit that the text begins with; -1: none. The longer of two that fit. */
static int
take_unit(struct str *text)
{
	int found = -1;
	size_t length = 0;

	for (int i = 0; i < UNITS; i++) {
		struct str unit = str_from_cstr(duration_units[i].text);

		if (text->len >= unit.len && unit.len > length &&
		    str_bytes_eq_nocase(text->ptr, unit.ptr, unit.len)) {
			found = i;
			length = unit.len;
		}
	}
	if (str_starts_with(*text, STR("\xc2\xb5s"))) {
		found = UNIT_US;
		length = 3;
	}
	*text = str_skip(*text, length);
	return found;
}

static enum status
parse_units(struct cql *q, struct str text, struct parts *p)
{
	struct str rest = text;
	int64_t n;
	int unit;

	while (rest.len) {
		if (!take_number(&rest, &n))
			return bad(q, text);
		unit = take_unit(&rest);
		if (unit < 0)
			return bad(q, text);
		TRY(add(q, p, unit, n));
	}
	return p->last < 0 ? bad(q, text) : STATUS_OK;
}

/* Behind P: numbers with letters, T in front of those of the day. */
static enum status
parse_iso(struct cql *q, struct str text, struct parts *p)
{
	static const char letters[] = "YMWDhms"; /* lower case: behind T */
	struct str rest = text;
	bool in_day = false;
	int64_t n;

	while (rest.len) {
		const char *found;
		char c;

		if (!in_day && rest.ptr[0] == 'T') {
			in_day = true;
			rest = str_skip(rest, 1);
		}
		if (!take_number(&rest, &n) || !rest.len)
			return bad(q, text);
		c = rest.ptr[0];
		if (c < 'A' || c > 'Z')
			return bad(q, text);
		found = strchr(letters, in_day ? c - 'A' + 'a' : c);
		if (!found)
			return bad(q, text);
		TRY(add(q, p, (int)(found - letters), n));
		rest = str_skip(rest, 1);
	}
	return p->last < 0 ? bad(q, text) : STATUS_OK;
}

/* Behind P: yyyy-mm-ddThh:mm:ss. */
static enum status
parse_iso_date(struct cql *q, struct str text, struct parts *p)
{
	static const char separators[] = "--T::";
	static const int units[] = { 0, 1, 3, 4, 5, 6 };
	struct str rest = text;
	int64_t n;

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (!take_number(&rest, &n))
			return bad(q, text);
		TRY(add(q, p, units[i], n));
		if (separators[i] && (!rest.len || rest.ptr[0] != separators[i]))
			return bad(q, text);
		if (separators[i])
			rest = str_skip(rest, 1);
	}
	return rest.len ? bad(q, text) : STATUS_OK;
}

enum status
cql_duration_parse(struct cql *q, struct str text, struct cql_duration *ret)
{
	bool negative = text.len && text.ptr[0] == '-';
	struct str rest = negative ? str_skip(text, 1) : text;
	struct parts p = { .last = -1 };
	int64_t sign = negative ? -1 : 1;

	if (rest.len && rest.ptr[0] == 'P') {
		rest = str_skip(rest, 1);
		if (rest.len && memchr(rest.ptr, '-', rest.len))
			TRY(parse_iso_date(q, rest, &p));
		else
			TRY(parse_iso(q, rest, &p));
	} else {
		TRY(parse_units(q, rest, &p));
	}
	*ret = (struct cql_duration){
		.months = (int32_t)(sign * p.sums[0]),
		.days = (int32_t)(sign * p.sums[1]),
		.nanoseconds = sign * p.sums[2],
	};
	return STATUS_OK;
}

/* Appends n in the units from `from` to `to` of those with that factor. */
static void
print_units(struct buf *out, uint64_t n, int from, int to)
{
	for (int i = from; i <= to; i++) {
		uint64_t factor = (uint64_t)duration_units[i].factor;

		if (n / factor == 0)
			continue;
		buf_append_u64(out, n / factor);
		buf_append_cstr(out, duration_units[i].text);
		n %= factor;
	}
}

static uint64_t
magnitude(int64_t n)
{
	return n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
}

void
cql_duration_print(struct buf *out, struct cql_duration d)
{
	size_t begin = out->len;

	if (d.months < 0 || d.days < 0 || d.nanoseconds < 0)
		buf_append_byte(out, '-');
	print_units(out, magnitude(d.months), 0, 1);
	print_units(out, magnitude(d.days), 3, 3);
	print_units(out, magnitude(d.nanoseconds), 4, UNITS - 1);
	if (out->len == begin)
		buf_append_cstr(out, "0s");
}

/* ---- Bytes: three zig-zag vints ---- */

static void
put_vint(struct buf *out, int64_t n)
{
	uint64_t z = (uint64_t)n << 1 ^ (uint64_t)(n >> 63);
	unsigned more = 0;
	char bytes[9];

	/* `more` bytes behind the first one, which has as many leading ones. */
	while (more < 8 && z >> (7 * (more + 1)) != 0)
		more++;
	for (unsigned i = more; i > 0; i--) {
		bytes[i] = (char)z;
		z >>= 8;
	}
	bytes[0] = (char)(more == 8 ? 0xff : (0xff00u >> more & 0xff) | z);
	buf_append(out, bytes, more + 1);
}

static bool
take_vint(struct str *bytes, int64_t *ret)
{
	unsigned first, more;
	uint64_t z;

	if (!bytes->len)
		return false;
	first = (uint8_t)bytes->ptr[0];
	more = first == 0xff ? 8 : (unsigned)__builtin_clz(~(first << 24));
	if (bytes->len < more + 1)
		return false;
	z = more >= 7 ? 0 : first & (0x7fu >> more);
	for (unsigned i = 1; i <= more; i++)
		z = z << 8 | (uint8_t)bytes->ptr[i];
	*bytes = str_skip(*bytes, more + 1);
	*ret = (int64_t)(z >> 1 ^ (0 - (z & 1)));
	return true;
}

bool
cql_duration_parts(struct str bytes, int64_t ret[static 3])
{
	for (size_t i = 0; i < 3; i++)
		if (!take_vint(&bytes, &ret[i]))
			return false;
	return !bytes.len;
}

bool
cql_duration_read(struct str bytes, struct cql_duration *ret)
{
	int64_t parts[3], months, days, ns;
	bool negative, positive;

	if (!cql_duration_parts(bytes, parts))
		return false;
	months = parts[0];
	days = parts[1];
	ns = parts[2];
	negative = months < 0 || days < 0 || ns < 0;
	positive = months > 0 || days > 0 || ns > 0;
	if (months != (int32_t)months || days != (int32_t)days || (negative && positive))
		return false;
	*ret = (struct cql_duration){ (int32_t)months, (int32_t)days, ns };
	return true;
}

enum status
cql_duration_put(struct cql *q, struct cql_duration d, struct str *ret)
{
	struct buf out = BUF_SHORT(27);
	enum status status;

	put_vint(&out, d.months);
	put_vint(&out, d.days);
	put_vint(&out, d.nanoseconds);
	status = buf_copy(&out, q->arena, ret);
	buf_release(&out);
	return status;
}
