#include "mql/stage/rounder.h"

#include <math.h>

#include "bson/decimal.h"
#include "bson/order.h"
#include "mql/mql_int.h"
#include "mql/number.h"

struct mql_rounder {
	const char *name;
	const int16_t *series; /* NULL: powers of two */
	size_t count;
};

static const int16_t series_125[] = { 10, 20, 50 };
static const int16_t series_r5[] = { 10, 16, 25, 40, 63 };
static const int16_t series_r10[] = { 100, 125, 160, 200, 250, 315, 400, 500, 630, 800 };
static const int16_t series_r20[] = { 100, 112, 125, 140, 160, 180, 200, 224, 250, 280,
				      315, 355, 400, 450, 500, 560, 630, 710, 800, 900 };
static const int16_t series_r40[] = { 100, 106, 112, 118, 125, 132, 140, 150, 160, 170,
				      180, 190, 200, 212, 224, 236, 250, 265, 280, 300,
				      315, 335, 355, 375, 400, 425, 450, 475, 500, 530,
				      560, 600, 630, 670, 710, 750, 800, 850, 900, 950 };
static const int16_t series_r80[] = { 103, 109, 115, 122, 128, 136, 145, 155, 165, 175,
				      185, 195, 206, 218, 230, 243, 258, 272, 290, 307,
				      325, 345, 365, 387, 412, 437, 462, 487, 515, 545,
				      575, 615, 650, 690, 730, 775, 825, 875, 925, 975 };
static const int16_t series_e6[] = { 10, 15, 22, 33, 47, 68 };
static const int16_t series_e12[] = { 10, 12, 15, 18, 22, 27, 33, 39, 47, 56, 68, 82 };
static const int16_t series_e24[] = { 10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30,
				      33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82, 91 };
static const int16_t series_e48[] = { 100, 105, 110, 115, 121, 127, 133, 140, 147, 154, 162, 169,
				      178, 187, 196, 205, 215, 226, 237, 249, 261, 274, 287, 301,
				      316, 332, 348, 365, 383, 402, 422, 442, 464, 487, 511, 536,
				      562, 590, 619, 649, 681, 715, 750, 787, 825, 866, 909, 953 };
static const int16_t series_e96[] = { 100, 102, 105, 107, 110, 113, 115, 118, 121, 124, 127, 130,
				      133, 137, 140, 143, 147, 150, 154, 158, 162, 165, 169, 174,
				      178, 182, 187, 191, 196, 200, 205, 210, 215, 221, 226, 232,
				      237, 243, 249, 255, 261, 267, 274, 280, 287, 294, 301, 309,
				      316, 324, 332, 340, 348, 357, 365, 374, 383, 392, 402, 412,
				      422, 432, 442, 453, 464, 475, 487, 499, 511, 523, 536, 549,
				      562, 576, 590, 604, 619, 634, 649, 665, 681, 698, 715, 732,
				      750, 768, 787, 806, 825, 845, 866, 887, 909, 931, 953, 976 };
static const int16_t series_e192[] = {
	100, 101, 102, 104, 105, 106, 107, 109, 110, 111, 113, 114, 115, 117, 118, 120, 121, 123,
	124, 126, 127, 129, 130, 132, 133, 135, 137, 138, 140, 142, 143, 145, 147, 149, 150, 152,
	154, 156, 158, 160, 162, 164, 165, 167, 169, 172, 174, 176, 178, 180, 182, 184, 187, 189,
	191, 193, 196, 198, 200, 203, 205, 208, 210, 213, 215, 218, 221, 223, 226, 229, 232, 234,
	237, 240, 243, 246, 249, 252, 255, 258, 261, 264, 267, 271, 274, 277, 280, 284, 287, 291,
	294, 298, 301, 305, 309, 312, 316, 320, 324, 328, 332, 336, 340, 344, 348, 352, 357, 361,
	365, 370, 374, 379, 383, 388, 392, 397, 402, 407, 412, 417, 422, 427, 432, 437, 442, 448,
	453, 459, 464, 470, 475, 481, 487, 493, 499, 505, 511, 517, 523, 530, 536, 542, 549, 556,
	562, 569, 576, 583, 590, 597, 604, 612, 619, 626, 634, 642, 649, 657, 665, 673, 681, 690,
	698, 706, 715, 723, 732, 741, 750, 759, 768, 777, 787, 796, 806, 816, 825, 835, 845, 856,
	866, 876, 887, 898, 909, 920, 931, 942, 953, 965, 976, 988
};

#define SERIES(array) array, sizeof(array) / sizeof((array)[0])

static const struct mql_rounder rounders[] = {
	{ "R5", SERIES(series_r5) },   { "R10", SERIES(series_r10) },
	{ "R20", SERIES(series_r20) }, { "R40", SERIES(series_r40) },
	{ "R80", SERIES(series_r80) }, { "1-2-5", SERIES(series_125) },
	{ "E6", SERIES(series_e6) },   { "E12", SERIES(series_e12) },
	{ "E24", SERIES(series_e24) }, { "E48", SERIES(series_e48) },
	{ "E96", SERIES(series_e96) }, { "E192", SERIES(series_e192) },
	{ "POWERSOF2", NULL, 0 },
};

enum status
mql_rounder_of(struct mql *q, struct str name, const struct mql_rounder **ret)
{
	for (size_t i = 0; i < sizeof(rounders) / sizeof(rounders[0]); i++) {
		if (mql_is(name, rounders[i].name)) {
			*ret = &rounders[i];
			return STATUS_OK;
		}
	}
	return mql_fail(q, 40257, "Unknown rounding granularity '%.*s'", STR_ARG(name));
}

/* `*ret_same`: the number is its own result. */
static enum status
rounder_check_number(struct mql *q, const struct bson_value *v, bool *ret_same)
{
	double d = bson_to_double(v);

	if (!bson_is_number(v))
		return mql_fail(q, 40258,
				"$bucketAuto can specify a 'granularity' with numeric boundaries "
				"only, but found a value with type: %s",
				bson_type_name(v->type));
	if (isnan(d))
		return mql_fail(q, 40259,
				"$bucketAuto can specify a 'granularity' with numeric boundaries "
				"only, but found a NaN");
	if (d < 0)
		return mql_fail(q, 40260,
				"$bucketAuto can specify a 'granularity' with non-negative numbers "
				"only, but found a negative number");
	*ret_same = !bson_is_true(v) ||
		    (v->type == BSON_DECIMAL ? bson_decimal_is_infinite(bson_decimal(v))
					     : isinf(d));
	return STATUS_OK;
}

/* ---- Powers of two ---- */

static struct bson_value
power_of_two(const struct bson_value *like, int exponent)
{
	const struct bson_decimal two = bson_decimal_of_int64(2);

	if (like->type == BSON_DECIMAL)
		return (struct bson_value){
			.type = BSON_DECIMAL,
			.as_decimal = bson_decimal_power(two, bson_decimal_of_int64(exponent),
							 NULL),
		};
	if (exponent < 0 || exponent > 62)
		return BSON_OF_DOUBLE(ldexp(1, exponent));
	return exponent > 30 ? BSON_OF_INT64(INT64_C(1) << exponent)
			     : BSON_OF_INT32(INT64_C(1) << exponent);
}

static int
estimate_exponent(const struct bson_value *v)
{
	struct bson_decimal ln;

	if (v->type != BSON_DECIMAL)
		return (int)floor(log2(bson_to_double(v)));
	ln = bson_decimal_apply(BSON_DECIMAL_LN, bson_decimal(v), NULL);
	return (int)floor(bson_decimal_to_double(ln) / M_LN2);
}

/* The least power that is greater, or the greatest that is less. */
static struct bson_value
round_power(const struct bson_value *v, bool up)
{
	int exponent = estimate_exponent(v) + (up ? -1 : 2);
	struct bson_value power = power_of_two(v, exponent);

	/* The estimate is at most one off. */
	for (int i = 0; i < 4 && (up ? bson_compare_numbers(&power, v) <= 0
				     : bson_compare_numbers(&power, v) >= 0);
	     i++)
		power = power_of_two(v, up ? ++exponent : --exponent);
	return power;
}

/* ---- Series ---- */

/* A number of the series, times a power of ten that is a double or a Decimal128. */
static struct bson_value
scaled(const struct mql_rounder *r, size_t i, const struct bson_value *scale)
{
	struct bson_value n;

	/* Neither of the two is an integer, so there is no overflow. */
	(void)mql_multiply(&BSON_OF_DOUBLE(r->series[i]), scale, &n);
	if (scale->type == BSON_DECIMAL)
		n.as_decimal = bson_decimal_multiply(bson_decimal_of_int64(r->series[i]),
						     bson_decimal(scale), NULL);
	return n;
}

static struct bson_value
ten_times(const struct bson_value *scale, bool up)
{
	const struct bson_decimal ten = bson_decimal_of_int64(10);

	if (scale->type != BSON_DECIMAL)
		return BSON_OF_DOUBLE(up ? bson_real(scale) * 10 : bson_real(scale) / 10);
	return (struct bson_value){
		.type = BSON_DECIMAL,
		.as_decimal = up ? bson_decimal_multiply(bson_decimal(scale), ten, NULL)
				 : bson_decimal_divide(bson_decimal(scale), ten, NULL)
	};
}

static struct bson_value
scale_of_one(const struct bson_value *v)
{
	if (v->type != BSON_DECIMAL)
		return BSON_OF_DOUBLE(1);
	return (struct bson_value){ .type = BSON_DECIMAL, .as_decimal = bson_decimal_of_int64(1) };
}

/* Compares the number with a scaled number of the series. */
static int
compare_scaled(const struct mql_rounder *r, const struct bson_value *v, size_t i,
	       const struct bson_value *scale)
{
	struct bson_value n = scaled(r, i, scale);

	return bson_compare_numbers(v, &n);
}

/* Scales as MongoDB does, one power of ten after the other, so that doubles come out the same. */
static enum status
round_series(const struct mql_rounder *r, const struct bson_value *v, bool up,
	     struct bson_value *ret)
{
	struct bson_value scale = scale_of_one(v), beyond;
	size_t last = r->count - 1;
	size_t near = up ? 0 : last, far = up ? last : 0;
	int sign = up ? 1 : -1;

	while (sign * compare_scaled(r, v, far, &scale) >= 0) {
		TRY(step_count(1));
		scale = ten_times(&scale, up);
	}
	while (sign * compare_scaled(r, v, near, &scale) < 0) {
		TRY(step_count(1));
		beyond = scaled(r, near, &scale);
		scale = ten_times(&scale, !up);
		if (sign * compare_scaled(r, v, far, &scale) >= 0) {
			*ret = beyond;
			return STATUS_OK;
		}
	}
	for (size_t i = 0; i < r->count; i++) {
		size_t at = up ? i : last - i;

		*ret = scaled(r, at, &scale);
		if (sign * bson_compare_numbers(ret, v) > 0)
			break;
	}
	return STATUS_OK;
}

static enum status
round_number(const struct mql_rounder *r, struct mql *q, const struct bson_value *v, bool up,
	     struct bson_value *ret)
{
	bool same;

	TRY(rounder_check_number(q, v, &same));
	if (same)
		*ret = *v;
	else if (r->series)
		return round_series(r, v, up, ret);
	else
		*ret = round_power(v, up);
	return STATUS_OK;
}

enum status
mql_round_up(const struct mql_rounder *r, struct mql *q, const struct bson_value *v,
	     struct bson_value *ret)
{
	return round_number(r, q, v, true, ret);
}

enum status
mql_round_down(const struct mql_rounder *r, struct mql *q, const struct bson_value *v,
	       struct bson_value *ret)
{
	return round_number(r, q, v, false, ret);
}
