/* $dateAdd, $dateSubtract, $dateDiff, $dateTrunc. */
#include <assert.h>

#include "mql/expr/date.h"

/* In the order of their lengths. */
enum unit {
	UNIT_MS,
	UNIT_SECOND,
	UNIT_MINUTE,
	UNIT_HOUR,
	UNIT_DAY,
	UNIT_WEEK,
	UNIT_MONTH,
	UNIT_QUARTER,
	UNIT_YEAR,
};

/* `length`: ms up to weeks, months above. */
static const struct {
	const char *name;
	int64_t length;
} units[] = {
	[UNIT_MS] = { "millisecond", 1 },
	[UNIT_SECOND] = { "second", MQL_MS_PER_SECOND },
	[UNIT_MINUTE] = { "minute", MQL_MS_PER_MINUTE },
	[UNIT_HOUR] = { "hour", MQL_MS_PER_HOUR },
	[UNIT_DAY] = { "day", MQL_MS_PER_DAY },
	[UNIT_WEEK] = { "week", 7 * (int64_t)MQL_MS_PER_DAY },
	[UNIT_MONTH] = { "month", 1 },
	[UNIT_QUARTER] = { "quarter", 3 },
	[UNIT_YEAR] = { "year", 12 },
};

/* Years that 64 bits of milliseconds have, in both directions. */
#define SPAN_YEARS INT64_C(584942417)

bool
mql_date_unit(struct str name, int *ret)
{
	for (int i = 0; i <= UNIT_YEAR; i++) {
		if (mql_is(name, units[i].name)) {
			*ret = i;
			return true;
		}
	}
	return false;
}

int64_t
mql_date_unit_ms(int unit)
{
	return unit < UNIT_MONTH ? units[unit].length : 0;
}

static enum status
read_unit(struct mql *q, const struct mql_expr_op *op, const struct bson_value *v, enum unit *ret)
{
	int unit;

	if (v->type != BSON_STRING)
		return mql_fail(q, 5439013, "%s requires 'unit' to be a string, but got %s",
				op->name, mql_expr_type(v));
	if (mql_date_unit(bson_text(v), &unit)) {
		*ret = (enum unit)unit;
		return STATUS_OK;
	}
	return mql_fail(q, MQL_FAILED_TO_PARSE,
			"%s parameter 'unit' value cannot be recognized as a time unit: %.*s",
			op->name, STR_ARG(bson_text(v)));
}

/* From 1 for Monday. Names, or their first three letters, in any case. */
static enum status
read_week_start(struct mql *q, const struct mql_expr_op *op, const struct bson_value *v, int *ret)
{
	static const char *const names[] = { "monday", "tuesday",  "wednesday", "thursday",
					     "friday", "saturday", "sunday" };

	if (v->type != BSON_STRING)
		return mql_fail(q, 5439015, "%s requires 'startOfWeek' to be a string, but got %s",
				op->name, mql_expr_type(v));
	for (int i = 0; i < 7; i++) {
		struct str name = str_from_cstr(names[i]);

		if (str_eq_nocase(bson_text(v), name) ||
		    str_eq_nocase(bson_text(v), str_of(name.ptr, 3))) {
			*ret = i + 1;
			return STATUS_OK;
		}
	}
	return mql_fail(q, 5439016,
			"%s parameter 'startOfWeek' value cannot be recognized as a day of a week: "
			"%.*s",
			op->name, STR_ARG(bson_text(v)));
}

static enum status
to_local(struct mql *q, const struct mql_zone *zone, int64_t ms, int64_t *ret)
{
	int64_t offset;

	TRY(mql_zone_offset(q, zone, ms, &offset));
	if (__builtin_add_overflow(ms, offset, ret))
		*ret = ms;
	return STATUS_OK;
}

static int64_t
months_of(int64_t local)
{
	struct mql_civil c;

	mql_civil_of(local, &c);
	return c.year * 12 + c.month - 1;
}

/* ---- $dateAdd, $dateSubtract ---- */

enum add {
	ADD_START,
	ADD_UNIT,
	ADD_AMOUNT,
	ADD_ZONE,
};

static bool
amount_is_sane(enum unit unit, int64_t amount)
{
	static const int64_t per_year[] = { [UNIT_DAY] = 366,
					    [UNIT_WEEK] = 53,
					    [UNIT_MONTH] = 12,
					    [UNIT_QUARTER] = 4,
					    [UNIT_YEAR] = 1 };
	int64_t most;

	if (unit == UNIT_MS)
		return true;
	if (unit < UNIT_DAY)
		most = INT64_MAX / units[unit].length * 2;
	else
		most = SPAN_YEARS * per_year[unit];
	return amount <= most && amount >= -most;
}

/* The day stays, or becomes the month's last one. */
static int64_t
add_months(int64_t local, int64_t months)
{
	int64_t total = months_of(local) + months, year = floor_div(total, 12), days;
	int month = (int)floor_mod(total, 12) + 1, most = calendar_month_days(year, month);
	struct mql_civil c;
	int64_t ms;

	mql_civil_of(local, &c);
	days = calendar_days(year, month, c.day < most ? c.day : most);
	if (__builtin_mul_overflow(days, (int64_t)MQL_MS_PER_DAY, &ms) ||
	    __builtin_add_overflow(ms, floor_mod(local, MQL_MS_PER_DAY), &ms))
		return INT64_MIN;
	return ms;
}

static enum status
add_span(struct mql *q, const char *name, const struct mql_zone *zone, int64_t ms, enum unit unit,
	 int64_t amount, int64_t *ret)
{
	int64_t local, span;
	bool overflows = false;

	/* So the product with the months of a quarter or a year does not overflow. */
	assert(amount_is_sane(unit, amount));
	if (unit < UNIT_DAY) {
		overflows = __builtin_mul_overflow(amount, units[unit].length, &span) ||
			    __builtin_add_overflow(ms, span, ret);
	} else {
		TRY(to_local(q, zone, ms, &local));
		if (unit < UNIT_MONTH) {
			overflows = __builtin_mul_overflow(amount, units[unit].length, &span) ||
				    __builtin_add_overflow(local, span, &local);
		} else {
			local = add_months(local, amount * units[unit].length);
			overflows = local == INT64_MIN;
		}
		if (!overflows)
			TRY(mql_zone_to_utc(q, zone, local, ret));
	}
	if (overflows)
		return mql_fail(q, 5166406, "%s overflowed", name);
	return STATUS_OK;
}

enum status
mql_date_add(struct mql *q, int64_t ms, int unit, int64_t amount, int64_t *ret)
{
	const struct mql_zone zone = MQL_ZONE_UTC;

	if (!amount_is_sane((enum unit)unit, amount))
		return mql_fail(q, 5976500, "invalid amount of a time unit: %lld %s",
				(long long)amount, units[unit].name);
	return add_span(q, "a date", &zone, ms, (enum unit)unit, amount, ret);
}

static enum status
run_add(const struct mql_expr *e, struct mql *q, const struct mql_env *env, struct bson_value *ret)
{
	struct mql_date_call c;
	struct mql_zone zone;
	enum unit unit;
	int64_t ms, amount;
	bool zoned;

	TRY(mql_date_evaluate(e, q, env, &c));
	*ret = BSON_OF_NULL;
	if (mql_is_nullish(&c.values[ADD_START]))
		return STATUS_OK;
	if (mql_is_nullish(&c.values[ADD_UNIT]) || mql_is_nullish(&c.values[ADD_AMOUNT]))
		return STATUS_OK;
	TRY(read_unit(q, e->op, &c.values[ADD_UNIT], &unit));
	TRY(mql_date_zone(&c, ADD_ZONE, &zone, &zoned));
	if (!zoned)
		return STATUS_OK;
	if (!mql_date_of(&c.values[ADD_START], &ms))
		return mql_fail(q, 5166403, "%s requires startDate to be convertible to a date",
				e->op->name);
	if (!bson_to_int64(&c.values[ADD_AMOUNT], &amount))
		return mql_fail(q, 5166405, "%s expects integer amount of time units", e->op->name);
	if (e->op->number) {
		if (amount == INT64_MIN)
			return mql_fail(q, 6045000, "invalid %s 'amount' parameter value: %s",
					e->op->name, mql_text(q, STR(""), &c.values[ADD_AMOUNT]));
		amount = -amount;
	}
	if (!amount_is_sane(unit, amount))
		return mql_fail(q, 5976500, "invalid %s 'amount' parameter value: %lld %s",
				e->op->name, (long long)amount, units[unit].name);
	TRY(add_span(q, e->op->name, &zone, ms, unit, amount, &ms));
	*ret = BSON_OF_DATE(ms);
	return STATUS_OK;
}

static enum status
compile_add(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
	    const struct mql_scope *scope, struct mql_expr **ret)
{
	return mql_date_compile(q, op, arg, scope, run_add, ret);
}

/* ---- $dateDiff ---- */

enum diff {
	DIFF_START,
	DIFF_END,
	DIFF_UNIT,
	DIFF_ZONE,
	DIFF_WEEK_START,
};

/* Which of its kind the unit is that an instant lies in. */
static enum status
unit_index(struct mql *q, const struct mql_zone *zone, enum unit unit, int week_start, int64_t ms,
	   int64_t *ret)
{
	int64_t local;

	if (unit <= UNIT_MINUTE) {
		*ret = floor_div(ms, units[unit].length);
		return STATUS_OK;
	}
	TRY(to_local(q, zone, ms, &local));
	if (unit >= UNIT_MONTH)
		*ret = floor_div(months_of(local), units[unit].length);
	else if (unit == UNIT_WEEK)
		/* The first of January 1970 was a Thursday. */
		*ret = floor_div(floor_div(local, MQL_MS_PER_DAY) + 3 - (week_start - 1), 7);
	else
		*ret = floor_div(local, units[unit].length);
	return STATUS_OK;
}

/* Hours are those that pass: not those that clocks skip or repeat. */
static enum status
hours_between(struct mql *q, const struct mql_zone *zone, int64_t from, int64_t to, int64_t *ret)
{
	int64_t before, after;

	TRY(mql_zone_offset(q, zone, from, &before));
	TRY(mql_zone_offset(q, zone, to, &after));
	*ret -= floor_div(after - before, MQL_MS_PER_HOUR);
	return STATUS_OK;
}

static enum status
read_dates(struct mql_date_call *c, int64_t *ret_from, int64_t *ret_to)
{
	for (unsigned i = DIFF_START; i <= DIFF_END; i++) {
		if (!mql_date_of(&c->values[i], i == DIFF_START ? ret_from : ret_to))
			return mql_fail(c->q, 5166307,
					"$dateDiff requires '%s' to be a date, but got %s",
					c->op->names[i], mql_expr_type(&c->values[i]));
	}
	return STATUS_OK;
}

static enum status
run_diff(const struct mql_expr *e, struct mql *q, const struct mql_env *env, struct bson_value *ret)
{
	int64_t from, to, first, last;
	struct mql_date_call c;
	struct mql_zone zone;
	int week_start = 7;
	enum unit unit;
	bool zoned;

	TRY(mql_date_evaluate(e, q, env, &c));
	*ret = BSON_OF_NULL;
	if (mql_is_nullish(&c.values[DIFF_START]) || mql_is_nullish(&c.values[DIFF_END]) ||
	    mql_is_nullish(&c.values[DIFF_UNIT]))
		return STATUS_OK;
	TRY(read_unit(q, e->op, &c.values[DIFF_UNIT], &unit));
	if (unit == UNIT_WEEK && c.given >> DIFF_WEEK_START & 1) {
		if (mql_is_nullish(&c.values[DIFF_WEEK_START]))
			return STATUS_OK;
		TRY(read_week_start(q, e->op, &c.values[DIFF_WEEK_START], &week_start));
	}
	TRY(mql_date_zone(&c, DIFF_ZONE, &zone, &zoned));
	if (!zoned)
		return STATUS_OK;
	TRY(read_dates(&c, &from, &to));
	TRY(unit_index(q, &zone, unit, week_start, from, &first));
	TRY(unit_index(q, &zone, unit, week_start, to, &last));
	if (__builtin_sub_overflow(last, first, &last))
		return mql_fail(q, 5166308, "dateDiff overflowed");
	if (unit == UNIT_HOUR)
		TRY(hours_between(q, &zone, from, to, &last));
	*ret = BSON_OF_INT64(last);
	return STATUS_OK;
}

static enum status
compile_diff(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
	     const struct mql_scope *scope, struct mql_expr **ret)
{
	return mql_date_compile(q, op, arg, scope, run_diff, ret);
}

/* ---- $dateTrunc ---- */

enum trunc {
	TRUNC_DATE,
	TRUNC_UNIT,
	TRUNC_BIN,
	TRUNC_ZONE,
	TRUNC_WEEK_START,
};

static enum status
fail_range(struct mql *q)
{
	return mql_fail(q, MQL_OVERFLOW, "$dateTrunc: the date is out of range");
}

/* How long after the beginning of a bin an instant is; one bin begins at `at`. */
static int64_t
past_begin(int64_t ms, int64_t at, int64_t length)
{
	return floor_mod(floor_mod(ms, length) - floor_mod(at, length), length);
}

/* Bins are counted from the beginning of 2000; of weeks, from the first one that begins then. */
static enum status
truncate(struct mql *q, const struct mql_zone *zone, enum unit unit, int64_t bin, int week_start,
	 int64_t ms, int64_t *ret)
{
	int64_t first = calendar_days(2000, 1, 1), local, at, length;

	if (unit >= UNIT_MONTH ? __builtin_mul_overflow(bin, units[unit].length, &length) ||
					 length > 12 * SPAN_YEARS
			       : __builtin_mul_overflow(bin, units[unit].length, &length))
		return mql_fail(q, unit >= UNIT_MONTH ? 5439006 : 5439002,
				"$dateTrunc 'binSize' parameter value is too large: %lld %s",
				(long long)bin, units[unit].name);
	if (unit < UNIT_DAY) {
		TRY(mql_zone_to_utc(q, zone, first * MQL_MS_PER_DAY, &at));
		if (__builtin_sub_overflow(ms, past_begin(ms, at, length), ret))
			return fail_range(q);
		return STATUS_OK;
	}
	TRY(to_local(q, zone, ms, &local));
	if (unit == UNIT_WEEK)
		first += floor_mod(week_start - mql_iso_weekday(first), 7);
	if (unit < UNIT_MONTH) {
		at = first * MQL_MS_PER_DAY;
		if (__builtin_sub_overflow(local, past_begin(local, at, length), &local))
			return fail_range(q);
	} else {
		at = months_of(local);
		at -= floor_mod(at - 2000 * 12, length);
		if (__builtin_mul_overflow(
			    calendar_days(floor_div(at, 12), (int)floor_mod(at, 12) + 1, 1),
			    (int64_t)MQL_MS_PER_DAY, &local))
			return fail_range(q);
	}
	return mql_zone_to_utc(q, zone, local, ret);
}

static enum status
read_bin(const struct mql_date_call *c, int64_t *ret)
{
	const struct bson_value *v = &c->values[TRUNC_BIN];

	*ret = 1;
	if (!(c->given >> TRUNC_BIN & 1))
		return STATUS_OK;
	if (!bson_to_int64(v, ret))
		return mql_fail(c->q, 5439017,
				"$dateTrunc requires 'binSize' to be a 64-bit integer, but got "
				"value '%s' of type %s",
				mql_text(c->q, STR(""), v), mql_expr_type(v));
	if (*ret <= 0)
		return mql_fail(c->q, 5439018,
				"$dateTrunc requires 'binSize' to be greater than 0, but got value "
				"%lld",
				(long long)*ret);
	return STATUS_OK;
}

static enum status
run_trunc(const struct mql_expr *e, struct mql *q, const struct mql_env *env,
	  struct bson_value *ret)
{
	struct mql_date_call c;
	struct mql_zone zone;
	int week_start = 7;
	int64_t ms, bin;
	enum unit unit;
	bool zoned;

	TRY(mql_date_evaluate(e, q, env, &c));
	*ret = BSON_OF_NULL;
	if (mql_is_nullish(&c.values[TRUNC_DATE]) || mql_is_nullish(&c.values[TRUNC_UNIT]) ||
	    (c.given >> TRUNC_BIN & 1 && mql_is_nullish(&c.values[TRUNC_BIN])))
		return STATUS_OK;
	TRY(read_unit(q, e->op, &c.values[TRUNC_UNIT], &unit));
	if (unit == UNIT_WEEK && c.given >> TRUNC_WEEK_START & 1) {
		if (mql_is_nullish(&c.values[TRUNC_WEEK_START]))
			return STATUS_OK;
		TRY(read_week_start(q, e->op, &c.values[TRUNC_WEEK_START], &week_start));
	}
	TRY(mql_date_zone(&c, TRUNC_ZONE, &zone, &zoned));
	if (!zoned)
		return STATUS_OK;
	TRY(read_bin(&c, &bin));
	if (!mql_date_of(&c.values[TRUNC_DATE], &ms))
		return mql_fail(q, 16006, "can't convert from BSON type %s to Date",
				mql_expr_type(&c.values[TRUNC_DATE]));
	TRY(truncate(q, &zone, unit, bin, week_start, ms, &ms));
	*ret = BSON_OF_DATE(ms);
	return STATUS_OK;
}

static enum status
compile_trunc(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
	      const struct mql_scope *scope, struct mql_expr **ret)
{
	return mql_date_compile(q, op, arg, scope, run_trunc, ret);
}

/* ---- Faults ---- */

static enum status
fault_add(struct mql *q, const struct mql_expr_op *op, enum mql_expr_fault fault, struct str name,
	  const struct bson_value *arg)
{
	switch ((int)fault) {
	case MQL_FAULT_NOT_OBJECT:
		return mql_fail(q, 5166400, "%s expects an object as its argument.found type: %s",
				op->name, mql_expr_type(arg));
	case MQL_FAULT_UNKNOWN:
		return mql_fail(q, 5166401,
				"Unrecognized argument to %s: %.*s. Expected arguments are "
				"startDate, unit, amount, and optionally timezone.",
				op->name, STR_ARG(name));
	default:
		return mql_fail(q, 5166402, "%s requires startDate, unit, and amount to be present",
				op->name);
	}
}

static enum status
fault_span(struct mql *q, const struct mql_expr_op *op, enum mql_expr_fault fault, struct str name,
	   const struct bson_value *arg)
{
	bool trunc = mql_is(str_from_cstr(op->name), "$dateTrunc");

	switch ((int)fault) {
	case MQL_FAULT_NOT_OBJECT:
		return mql_fail(q, trunc ? 5439007 : 5166301,
				"%s only supports an object as its argument, found: %s", op->name,
				mql_expr_type(arg));
	case MQL_FAULT_UNKNOWN:
		return mql_fail(q, trunc ? 5439008 : 5166302, "Unrecognized argument to %s: %.*s",
				op->name, STR_ARG(name));
	default:
		return mql_fail(q,
				trunc ? (mql_is(name, "date") ? 5439009 : 5439010)
				: mql_is(name, "startDate") ? 5166303
				: mql_is(name, "endDate")   ? 5166304
							    : 5166305,
				"Missing '%.*s' parameter to %s", STR_ARG(name), op->name);
	}
}

static const char *const add_names[] = { "startDate", "unit", "amount", "timezone", NULL };
static const char *const diff_names[] = { "startDate", "endDate",     "unit",
					  "timezone",  "startOfWeek", NULL };
static const char *const trunc_names[] = { "date",     "unit",        "binSize",
					   "timezone", "startOfWeek", NULL };

const struct mql_expr_op mql_expr_span_ops[] = {
	{ .name = "$dateAdd",
	  .names = add_names,
	  .required = 7,
	  .fault = fault_add,
	  .compile = compile_add },
	{ .name = "$dateDiff",
	  .names = diff_names,
	  .required = 7,
	  .fault = fault_span,
	  .compile = compile_diff },
	{ .name = "$dateSubtract",
	  .names = add_names,
	  .required = 7,
	  .fault = fault_add,
	  .compile = compile_add,
	  .number = 1 },
	{ .name = "$dateTrunc",
	  .names = trunc_names,
	  .required = 3,
	  .fault = fault_span,
	  .compile = compile_trunc },
	{ 0 },
};
