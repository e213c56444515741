/* Expressions on dates: their parts, and texts. */
#include "mql/expr/date.h"

#include "mql/expr/date_text.h"

enum status
mql_date_compile(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
		 const struct mql_scope *scope, mql_expr_run_fn *run, struct mql_expr **ret)
{
	TRY(mql_expr_args(q, op, arg, scope, run, ret));
	return mql_expr_fold(q, *ret);
}

enum status
mql_date_evaluate(const struct mql_expr *e, struct mql *q, const struct mql_env *env,
		  struct mql_date_call *ret)
{
	ret->q = q;
	ret->op = e->op;
	ret->given = 0;
	for (size_t i = 0; i < e->count; i++) {
		ret->values[i] = MQL_NO_VALUE;
		if (!e->args[i])
			continue;
		ret->given |= 1U << i;
		TRY(mql_expr_run(e->args[i], q, env, &ret->values[i]));
	}
	return STATUS_OK;
}

bool
mql_date_of(const struct bson_value *v, int64_t *ret)
{
	uint32_t seconds;

	switch ((int)v->type) {
	case BSON_DATE:
		*ret = bson_integer(v);
		return true;
	case BSON_TIMESTAMP:
		*ret = (int64_t)((uint64_t)bson_integer(v) >> 32) * MQL_MS_PER_SECOND;
		return true;
	case BSON_OBJECT_ID:
		memcpy(&seconds, bson_text(v).ptr, sizeof(seconds));
		*ret = (int64_t)__builtin_bswap32(seconds) * MQL_MS_PER_SECOND;
		return true;
	default:
		return false;
	}
}

static enum status
read_date(struct mql *q, const struct bson_value *v, int64_t *ret)
{
	if (mql_date_of(v, ret))
		return STATUS_OK;
	return mql_fail(q, 16006, "can't convert from BSON type %s to Date", mql_expr_type(v));
}

enum status
mql_date_zone(const struct mql_date_call *c, unsigned at, struct mql_zone *ret_zone, bool *ret)
{
	const struct bson_value *v = &c->values[at];

	*ret = true;
	*ret_zone = MQL_ZONE_UTC;
	if (!(c->given >> at & 1))
		return STATUS_OK;
	*ret = !mql_is_nullish(v);
	if (!*ret)
		return STATUS_OK;
	if (v->type != BSON_STRING)
		return mql_fail(c->q, 40517, "timezone must evaluate to a string, found %s",
				mql_expr_type(v));
	return mql_zone_of(c->q, bson_text(v), ret_zone);
}

static enum status
local_time(struct mql *q, const struct mql_zone *zone, int64_t ms, struct mql_civil *ret)
{
	int64_t offset, local;

	TRY(mql_zone_offset(q, zone, ms, &offset));
	if (__builtin_add_overflow(ms, offset, &local))
		local = ms;
	mql_civil_of(local, ret);
	return STATUS_OK;
}

/* ---- Parts ---- */

enum part {
	PART_YEAR,
	PART_MONTH,
	PART_DAY,
	PART_HOUR,
	PART_MINUTE,
	PART_SECOND,
	PART_MS,
	PART_WEEKDAY,
	PART_YEAR_DAY,
	PART_WEEK,
	PART_ISO_WEEKDAY,
	PART_ISO_WEEK,
	PART_ISO_YEAR,
};

static int64_t
part_of(enum part part, const struct mql_civil *c)
{
	int64_t days = calendar_days(c->year, c->month, c->day), iso_year;
	int weekday = mql_iso_weekday(days), iso_week;

	mql_iso_week(c, &iso_year, &iso_week);
	switch (part) {
	case PART_YEAR:
		return c->year;
	case PART_MONTH:
		return c->month;
	case PART_DAY:
		return c->day;
	case PART_HOUR:
		return c->hour;
	case PART_MINUTE:
		return c->minute;
	case PART_SECOND:
		return c->second;
	case PART_MS:
		return c->ms;
	case PART_WEEKDAY:
		return weekday % 7 + 1;
	case PART_YEAR_DAY:
		return mql_day_of_year(c);
	case PART_WEEK:
		/* Weeks begin on Sundays; the days before the first one are in week 0. */
		return (mql_day_of_year(c) - 1 + 7 - weekday % 7) / 7;
	case PART_ISO_WEEKDAY:
		return weekday;
	case PART_ISO_WEEK:
		return iso_week;
	case PART_ISO_YEAR:
		break;
	}
	return iso_year;
}

static enum status
run_part(const struct mql_expr *e, struct mql *q, const struct mql_env *env, struct bson_value *ret)
{
	struct mql_date_call c;
	struct mql_zone zone;
	struct mql_civil civil;
	int64_t ms;
	bool zoned;

	TRY(mql_date_evaluate(e, q, env, &c));
	*ret = BSON_OF_NULL;
	if (mql_is_nullish(&c.values[0]))
		return STATUS_OK;
	TRY(read_date(q, &c.values[0], &ms));
	TRY(mql_date_zone(&c, 1, &zone, &zoned));
	if (!zoned)
		return STATUS_OK;
	TRY(local_time(q, &zone, ms, &civil));
	*ret = BSON_OF_INT32(part_of((enum part)e->op->number, &civil));
	if (e->op->number == PART_ISO_YEAR)
		ret->type = BSON_INT64;
	return STATUS_OK;
}

/* A date, one in an array, or {date: …, timezone: …}. */
static enum status
compile_part(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
	     const struct mql_scope *scope, struct mql_expr **ret)
{
	struct bson_value date = *arg;
	struct bson_iter i;
	struct bson_element e;

	if (arg->type == BSON_DOCUMENT) {
		bson_iter_begin(&i, bson_text(arg));
		if (!bson_iter_read(&i, &e) || !str_starts_with(e.name, STR("$")))
			return mql_date_compile(q, op, arg, scope, run_part, ret);
	}
	if (arg->type == BSON_ARRAY) {
		if (bson_count(bson_text(arg)) != 1)
			return mql_fail(q, 40536,
					"%s accepts exactly one argument if given an array, but "
					"was given %zu",
					op->name, bson_count(bson_text(arg)));
		bson_iter_begin(&i, bson_text(arg));
		(void)bson_iter_read(&i, &e);
		date = e.value;
	}
	TRY(mql_expr_new(q, op, run_part, 2, ret));
	TRY(mql_expr_compile(q, &date, scope, &(*ret)->args[0]));
	return mql_expr_fold(q, *ret);
}

static enum status
fault_part(struct mql *q, const struct mql_expr_op *op, enum mql_expr_fault fault, struct str name,
	   const struct bson_value *arg)
{
	if (fault == MQL_FAULT_UNKNOWN)
		return mql_fail(q, 40535, "unrecognized option to %s: \"%.*s\"", op->name,
				STR_ARG(name));
	return mql_fail(q, 40539, "missing 'date' argument to %s, provided: %s", op->name,
			mql_text(q, STR(""), arg));
}

/* ---- $dateToParts ---- */

static enum status
run_to_parts(const struct mql_expr *e, struct mql *q, const struct mql_env *env,
	     struct bson_value *ret)
{
	static const enum part parts[2][7] = {
		{ PART_YEAR, PART_MONTH, PART_DAY, PART_HOUR, PART_MINUTE, PART_SECOND, PART_MS },
		{ PART_ISO_YEAR, PART_ISO_WEEK, PART_ISO_WEEKDAY, PART_HOUR, PART_MINUTE,
		  PART_SECOND, PART_MS },
	};
	const struct str names[2][7] = {
		{ STR("year"), STR("month"), STR("day"), STR("hour"), STR("minute"), STR("second"),
		  STR("millisecond") },
		{ STR("isoWeekYear"), STR("isoWeek"), STR("isoDayOfWeek"), STR("hour"),
		  STR("minute"), STR("second"), STR("millisecond") },
	};
	struct bson_value values[7];
	struct mql_date_call c;
	struct mql_zone zone;
	struct mql_civil civil;
	int64_t ms;
	bool zoned, iso;

	TRY(mql_date_evaluate(e, q, env, &c));
	*ret = BSON_OF_NULL;
	TRY(mql_date_zone(&c, 1, &zone, &zoned));
	if (!zoned)
		return STATUS_OK;
	if (c.given >> 2 & 1 && mql_is_nullish(&c.values[2]))
		return STATUS_OK;
	iso = c.given >> 2 & 1;
	if (iso && c.values[2].type != BSON_BOOL)
		return mql_fail(q, 40521, "iso8601 must evaluate to a bool, found %s",
				mql_expr_type(&c.values[2]));
	iso = iso && bson_truth(&c.values[2]);
	if (mql_is_nullish(&c.values[0]))
		return STATUS_OK;
	TRY(read_date(q, &c.values[0], &ms));
	TRY(local_time(q, &zone, ms, &civil));
	for (int i = 0; i < 7; i++)
		values[i] = BSON_OF_INT32(part_of(parts[iso][i], &civil));
	return mql_expr_document(q, names[iso], values, 7, ret);
}

static enum status
compile_to_parts(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
		 const struct mql_scope *scope, struct mql_expr **ret)
{
	return mql_date_compile(q, op, arg, scope, run_to_parts, ret);
}

/* ---- $dateFromParts ---- */

enum from {
	FROM_YEAR,
	FROM_MONTH,
	FROM_DAY,
	FROM_ISO_YEAR,
	FROM_ISO_WEEK,
	FROM_ISO_DAY,
	FROM_HOUR,
	FROM_MINUTE,
	FROM_SECOND,
	FROM_MS,
	FROM_ZONE,
	FROMS,
};

static const char *const from_names[] = { "year",    "month",        "day",      "isoWeekYear",
					  "isoWeek", "isoDayOfWeek", "hour",     "minute",
					  "second",  "millisecond",  "timezone", NULL };

/* A number of `value`, or what stands for one that was left out; `*ret_null`: null. */
static enum status
from_number(struct mql *q, enum from which, const struct bson_value *v, int64_t *ret)
{
	bool year = which == FROM_YEAR || which == FROM_ISO_YEAR;

	if (!bson_to_int64(v, ret))
		return mql_fail(q, 40515,
				"'%s' must evaluate to an integer, found %s with value %s",
				from_names[which], mql_expr_type(v), mql_text(q, STR(""), v));
	if (year && (*ret < 1 || *ret > 9999))
		return mql_fail(q, 40523,
				"'%s' must evaluate to an integer in the range 1 to 9999, found "
				"%lld",
				from_names[which], (long long)*ret);
	if (which != FROM_SECOND && which != FROM_MS && (*ret < INT16_MIN || *ret > INT16_MAX))
		return mql_fail(q, 31034,
				"'%s' must evaluate to a value in the range [-32768, 32767]; value "
				"%lld is not in range",
				from_names[which], (long long)*ret);
	return STATUS_OK;
}

/* Days since 1970; months and weeks may lie outside of the year. */
static int64_t
from_days(bool iso, const int64_t numbers[FROMS])
{
	int64_t month = numbers[FROM_MONTH] - 1;

	if (iso)
		return mql_iso_year_begin(numbers[FROM_ISO_YEAR]) +
		       (numbers[FROM_ISO_WEEK] - 1) * 7 + numbers[FROM_ISO_DAY] - 1;
	return calendar_days(numbers[FROM_YEAR] + floor_div(month, 12),
			     (int)floor_mod(month, 12) + 1, 1) +
	       numbers[FROM_DAY] - 1;
}

static enum status
run_from_parts(const struct mql_expr *e, struct mql *q, const struct mql_env *env,
	       struct bson_value *ret)
{
	int64_t numbers[FROMS] = { 1970, 1, 1, 1970, 1, 1 }, local, seconds;
	struct bson_value values[FROMS];
	struct mql_date_call c = { .q = q, .op = e->op };
	struct mql_zone zone;
	bool null = false, zoned;

	for (int i = 0; i < FROMS; i++) {
		values[i] = MQL_NO_VALUE;
		if (e->args[i])
			TRY(mql_expr_run(e->args[i], q, env, &values[i]));
	}
	*ret = BSON_OF_NULL;
	for (int i = 0; i < FROM_ZONE; i++) {
		if (!e->args[i])
			continue;
		if (mql_is_nullish(&values[i]))
			null = true;
		else
			TRY(from_number(q, (enum from)i, &values[i], &numbers[i]));
	}
	c.given = e->args[FROM_ZONE] != NULL;
	c.values[0] = values[FROM_ZONE];
	TRY(mql_date_zone(&c, 0, &zone, &zoned));
	if (null || !zoned)
		return STATUS_OK;
	local = from_days(e->args[FROM_ISO_YEAR] != NULL, numbers) * MQL_MS_PER_DAY +
		numbers[FROM_HOUR] * MQL_MS_PER_HOUR + numbers[FROM_MINUTE] * MQL_MS_PER_MINUTE;
	if (__builtin_mul_overflow(numbers[FROM_SECOND], MQL_MS_PER_SECOND, &seconds) ||
	    __builtin_add_overflow(local, seconds, &local) ||
	    __builtin_add_overflow(local, numbers[FROM_MS], &local))
		return mql_fail(q, MQL_OVERFLOW, "$dateFromParts: the date is out of range");
	TRY(mql_zone_to_utc(q, &zone, local, &local));
	*ret = BSON_OF_DATE(local);
	return STATUS_OK;
}

static enum status
compile_from_parts(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
		   const struct mql_scope *scope, struct mql_expr **ret)
{
	struct mql_expr *e;

	TRY(mql_expr_args(q, op, arg, scope, run_from_parts, &e));
	if (!e->args[FROM_YEAR] && !e->args[FROM_ISO_YEAR])
		return mql_fail(q, 40516,
				"$dateFromParts requires either 'year' or 'isoWeekYear' to be "
				"present");
	if (e->args[FROM_YEAR] &&
	    (e->args[FROM_ISO_YEAR] || e->args[FROM_ISO_WEEK] || e->args[FROM_ISO_DAY]))
		return mql_fail(
			q, 40489,
			"$dateFromParts does not allow mixing natural dates with ISO dates");
	if (e->args[FROM_ISO_YEAR] && (e->args[FROM_MONTH] || e->args[FROM_DAY]))
		return mql_fail(
			q, 40525,
			"$dateFromParts does not allow mixing ISO dates with natural dates");
	*ret = e;
	return mql_expr_fold(q, e);
}

/* ---- $dateToString ---- */

enum to_string {
	TO_DATE,
	TO_FORMAT,
	TO_ZONE,
	TO_NULL,
};

static enum status
run_to_string(const struct mql_expr *e, struct mql *q, const struct mql_env *env,
	      struct bson_value *ret)
{
	struct str format = STR("%Y-%m-%dT%H:%M:%S.%LZ");
	struct mql_date_call c;
	struct mql_zone zone;
	int64_t ms;
	bool zoned;

	TRY(mql_date_evaluate(e, q, env, &c));
	*ret = BSON_OF_NULL;
	if (c.given >> TO_FORMAT & 1 && !mql_is_nullish(&c.values[TO_FORMAT])) {
		if (c.values[TO_FORMAT].type != BSON_STRING)
			return mql_fail(
				q, 18533,
				"$dateToString requires that 'format' be a string, found: %s with "
				"value %s",
				mql_expr_type(&c.values[TO_FORMAT]),
				mql_text(q, STR(""), &c.values[TO_FORMAT]));
		format = bson_text(&c.values[TO_FORMAT]);
		TRY(mql_date_check_format(q, format, false));
	} else if (c.given >> TO_ZONE & 1) {
		format = STR("%Y-%m-%dT%H:%M:%S.%L");
	}
	TRY(mql_date_zone(&c, TO_ZONE, &zone, &zoned));
	if (mql_is_nullish(&c.values[TO_DATE])) {
		if (c.given >> TO_NULL & 1)
			*ret = c.values[TO_NULL];
		return STATUS_OK;
	}
	if ((c.given >> TO_FORMAT & 1 && mql_is_nullish(&c.values[TO_FORMAT])) || !zoned)
		return STATUS_OK;
	TRY(read_date(q, &c.values[TO_DATE], &ms));
	return mql_date_print(q, format, &zone, ms, ret);
}

static enum status
compile_to_string(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
		  const struct mql_scope *scope, struct mql_expr **ret)
{
	return mql_date_compile(q, op, arg, scope, run_to_string, ret);
}

/* ---- $dateFromString ---- */

enum from_string {
	STRING_TEXT,
	STRING_FORMAT,
	STRING_ZONE,
	STRING_NULL,
	STRING_ERROR,
};

static enum status
read_string(const struct mql_date_call *c, const struct mql_zone *zone, int64_t *ret)
{
	const struct bson_value *text = &c->values[STRING_TEXT];
	bool has_format = c->given >> STRING_FORMAT & 1;
	struct str format = has_format ? bson_text(&c->values[STRING_FORMAT]) : STR("");

	if (text->type != BSON_STRING)
		return mql_fail(c->q, MQL_CONVERSION_FAILURE,
				"$dateFromString requires that 'dateString' be a string, found: %s "
				"with value %s",
				mql_expr_type(text), mql_text(c->q, STR(""), text));
	return mql_date_parse(c->q, bson_text(text), has_format ? &format : NULL,
			      c->given >> STRING_ZONE & 1 ? zone : NULL, ret);
}

static enum status
run_from_string(const struct mql_expr *e, struct mql *q, const struct mql_env *env,
		struct bson_value *ret)
{
	const struct bson_value *format;
	struct mql_date_call c;
	struct mql_zone zone;
	enum status status;
	int64_t ms;
	bool zoned, formatted;

	TRY(mql_date_evaluate(e, q, env, &c));
	*ret = BSON_OF_NULL;
	format = &c.values[STRING_FORMAT];
	formatted = c.given >> STRING_FORMAT & 1;
	if (formatted && !mql_is_nullish(format)) {
		if (format->type != BSON_STRING)
			return mql_fail(
				q, 40684,
				"$dateFromString requires that 'format' be a string, found: %s "
				"with value %s",
				mql_expr_type(format), mql_text(q, STR(""), format));
		TRY(mql_date_check_format(q, bson_text(format), true));
	}
	TRY(mql_date_zone(&c, STRING_ZONE, &zone, &zoned));
	if (mql_is_nullish(&c.values[STRING_TEXT])) {
		if (c.given >> STRING_NULL & 1)
			*ret = c.values[STRING_NULL];
		return STATUS_OK;
	}
	if ((formatted && mql_is_nullish(format)) || !zoned)
		return STATUS_OK;
	status = read_string(&c, &zone, &ms);
	if (status == STATUS_INVALID && q->code == MQL_CONVERSION_FAILURE &&
	    c.given >> STRING_ERROR & 1) {
		q->code = 0;
		*ret = c.values[STRING_ERROR];
		return STATUS_OK;
	}
	TRY(status);
	*ret = BSON_OF_DATE(ms);
	return STATUS_OK;
}

static enum status
compile_from_string(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
		    const struct mql_scope *scope, struct mql_expr **ret)
{
	return mql_date_compile(q, op, arg, scope, run_from_string, ret);
}

static const char *const part_names[] = { "date", "timezone", NULL };
static const char *const to_parts_names[] = { "date", "timezone", "iso8601", NULL };
static const char *const to_string_names[] = { "date", "format", "timezone", "onNull", NULL };
static const char *const from_string_names[] = { "dateString", "format",  "timezone",
						 "onNull",     "onError", NULL };

#define PART(text, which)                                                                          \
	{                                                                                          \
		.name = text, .names = part_names, .required = 1, .fault = fault_part,             \
		.compile = compile_part, .number = which                                           \
	}

const struct mql_expr_op mql_expr_date_ops[] = {
	{ .name = "$dateFromParts",
	  .names = from_names,
	  .codes = { 40519, 40518, 40516 },
	  .compile = compile_from_parts },
	{ .name = "$dateFromString",
	  .names = from_string_names,
	  .required = 1,
	  .codes = { 40540, 40541, 40542 },
	  .compile = compile_from_string },
	{ .name = "$dateToParts",
	  .names = to_parts_names,
	  .required = 1,
	  .codes = { 40524, 40520, 40522 },
	  .compile = compile_to_parts },
	{ .name = "$dateToString",
	  .names = to_string_names,
	  .required = 1,
	  .codes = { 18629, 18534, 18628 },
	  .compile = compile_to_string },
	PART("$dayOfMonth", PART_DAY),
	PART("$dayOfWeek", PART_WEEKDAY),
	PART("$dayOfYear", PART_YEAR_DAY),
	PART("$hour", PART_HOUR),
	PART("$isoDayOfWeek", PART_ISO_WEEKDAY),
	PART("$isoWeek", PART_ISO_WEEK),
	PART("$isoWeekYear", PART_ISO_YEAR),
	PART("$millisecond", PART_MS),
	PART("$minute", PART_MINUTE),
	PART("$month", PART_MONTH),
	PART("$second", PART_SECOND),
	PART("$week", PART_WEEK),
	PART("$year", PART_YEAR),
	{ 0 },
};
