#include "bson/order.h"

#include <assert.h>
#include <math.h>

#include "bson/decimal.h"
#include "bson/scalar.h"
#include "doc/key.h"

/* One more than the rank of each type; 0: there is no such type. */
static const uint8_t type_ranks[UINT8_MAX + 1] = {
	[BSON_MIN_KEY] = 1,   [BSON_UNDEFINED] = 2,   [BSON_NULL] = 3,    [BSON_INT32] = 4,
	[BSON_INT64] = 4,     [BSON_DOUBLE] = 4,      [BSON_DECIMAL] = 4, [BSON_STRING] = 5,
	[BSON_SYMBOL] = 5,    [BSON_DOCUMENT] = 6,    [BSON_ARRAY] = 7,   [BSON_BINARY] = 8,
	[BSON_OBJECT_ID] = 9, [BSON_BOOL] = 10,       [BSON_DATE] = 11,   [BSON_TIMESTAMP] = 12,
	[BSON_REGEX] = 13,    [BSON_DB_POINTER] = 14, [BSON_CODE] = 15,   [BSON_CODE_SCOPE] = 16,
	[BSON_MAX_KEY] = 17,
};

int
bson_type_rank(enum bson_type type)
{
	assert((unsigned)type <= UINT8_MAX && type_ranks[type] && "a type of BSON");
	return type_ranks[type] - 1;
}

/* ---- Numbers ---- */

static int
compare_i64(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int
compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int
compare_doubles(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(b) - isnan(a);
	return (a > b) - (a < b);
}

static int
compare_int_double(int64_t n, double d)
{
	double whole = trunc(d);

	if (isnan(d) || d < -0x1p63)
		return 1;
	if (d >= 0x1p63)
		return -1;
	if (n != (int64_t)whole)
		return n > (int64_t)whole ? 1 : -1;
	return compare_doubles(whole, d);
}

/* A double may have 767 digits and a decimal has 34: their keys are exact. */
static int
compare_by_keys(const struct bson_value *a, const struct bson_value *b)
{
	enum {
		KEY_BYTES = 128 /* of which no number of these types needs more than 40 */
	};
	char bytes[2][KEY_BYTES];
	struct buf keys[2];
	struct doc_scalar s;

	for (int i = 0; i < 2; i++) {
		keys[i] = (struct buf){ .ptr = bytes[i], .cap = KEY_BYTES, .max_bytes = KEY_BYTES };
		bson_to_scalar(i ? b : a, &s);
		if (doc_key_put(&keys[i], DOC_KEY_BSON, &s) != STATUS_OK)
			assert(false && "a key of a number is short");
	}
	return str_cmp(buf_str(&keys[0]), buf_str(&keys[1]));
}

int
bson_compare_numbers(const struct bson_value *a, const struct bson_value *b)
{
	bool a_is_int = a->type == BSON_INT32 || a->type == BSON_INT64;
	bool b_is_int = b->type == BSON_INT32 || b->type == BSON_INT64;

	if (a_is_int && b_is_int)
		return compare_i64(bson_integer(a), bson_integer(b));
	assert(bson_is_number(a) && bson_is_number(b));
	if (a->type == BSON_DOUBLE && b->type == BSON_DOUBLE)
		return compare_doubles(bson_real(a), bson_real(b));
	if (a_is_int && b->type == BSON_DOUBLE)
		return compare_int_double(bson_integer(a), bson_real(b));
	if (a->type == BSON_DOUBLE && b_is_int)
		return -compare_int_double(bson_integer(b), bson_real(a));
	if (a->type == BSON_DOUBLE || b->type == BSON_DOUBLE)
		return compare_by_keys(a, b);
	return bson_decimal_compare(bson_decimal_of(a), bson_decimal_of(b));
}

/* ---- Scalars ---- */

static int
compare_binary(const struct bson_value *a, const struct bson_value *b)
{
	if (bson_text(a).len != bson_text(b).len)
		return bson_text(a).len > bson_text(b).len ? 1 : -1;
	if (a->subtype != b->subtype)
		return a->subtype > b->subtype ? 1 : -1;
	return str_cmp(bson_text(a), bson_text(b));
}

static int
compare_pairs(const struct bson_value *a, const struct bson_value *b)
{
	int c = str_cmp(bson_text(a), bson_text(b));

	return c ? c : str_cmp(bson_more(a), bson_more(b));
}

static int
compare_texts(struct str a, struct str b, const struct bson_texts *texts)
{
	return texts ? texts->compare(texts->of, a, b) : str_cmp(a, b);
}

/* Two values of one rank, which are no containers. */
static int
compare_scalars(const struct bson_value *a, const struct bson_value *b,
		const struct bson_texts *texts)
{
	switch ((int)a->type) {
	case BSON_INT32:
	case BSON_INT64:
	case BSON_DOUBLE:
	case BSON_DECIMAL:
		return bson_compare_numbers(a, b);
	case BSON_STRING:
	case BSON_SYMBOL:
		return compare_texts(bson_text(a), bson_text(b), texts);
	case BSON_BINARY:
		return compare_binary(a, b);
	case BSON_OBJECT_ID:
	case BSON_CODE:
		return str_cmp(bson_text(a), bson_text(b));
	case BSON_BOOL:
		return bson_truth(a) - bson_truth(b);
	case BSON_DATE:
		return compare_i64(bson_integer(a), bson_integer(b));
	case BSON_TIMESTAMP:
		return compare_u64((uint64_t)bson_integer(a), (uint64_t)bson_integer(b));
	case BSON_REGEX:
		return compare_pairs(a, b);
	case BSON_DB_POINTER:
		if (bson_text(a).len != bson_text(b).len)
			return bson_text(a).len > bson_text(b).len ? 1 : -1;
		return compare_pairs(a, b);
	default: /* MinKey, undefined, null, MaxKey */
		return 0;
	}
}

/* ---- Containers ---- */

struct compare_level {
	struct bson_iter a;
	struct bson_iter b;
	bool named; /* not arrays */
};

struct comparison {
	const struct bson_texts *texts;
	size_t depth;
	struct compare_level levels[BSON_DEPTH];
};

/* Compares two containers: now, if they lie deeper than any that were checked, else next. */
static int
comparison_enter(struct comparison *c, struct str a, struct str b, bool named)
{
	struct compare_level *level;

	if (c->depth == BSON_DEPTH)
		return str_cmp(a, b);
	level = &c->levels[c->depth++];
	level->named = named;
	bson_iter_begin(&level->a, a);
	bson_iter_begin(&level->b, b);
	return 0;
}

/* 0 also if the values begin a level, which then decides. */
static int
comparison_values(struct comparison *c, const struct bson_value *a, const struct bson_value *b)
{
	int order;

	if (bson_is_container(a))
		return comparison_enter(c, bson_text(a), bson_text(b), a->type == BSON_DOCUMENT);
	if (a->type != BSON_CODE_SCOPE)
		return compare_scalars(a, b, c->texts);
	order = str_cmp(bson_text(a), bson_text(b));
	return order ? order : comparison_enter(c, bson_more(a), bson_more(b), true);
}

static int
comparison_run(struct comparison *c)
{
	struct bson_element a, b;

	while (c->depth) {
		struct compare_level *level = &c->levels[c->depth - 1];
		bool more_a = bson_iter_read(&level->a, &a);
		bool more_b = bson_iter_read(&level->b, &b);
		int order;

		if (more_a != more_b)
			return more_a ? 1 : -1;
		if (!more_a) {
			c->depth--;
			continue;
		}
		order = bson_type_rank(a.value.type) - bson_type_rank(b.value.type);
		if (!order && level->named)
			order = str_cmp(a.name, b.name);
		if (!order)
			order = comparison_values(c, &a.value, &b.value);
		if (order)
			return order;
	}
	return 0;
}

int
bson_compare_documents(struct str a, struct str b, const struct bson_texts *texts)
{
	return bson_compare_values(&BSON_OF_DOCUMENT(a), &BSON_OF_DOCUMENT(b), texts);
}

int
bson_compare_values(const struct bson_value *a, const struct bson_value *b,
		    const struct bson_texts *texts)
{
	int order = bson_type_rank(a->type) - bson_type_rank(b->type);
	struct comparison c;

	if (order)
		return order;
	if (!bson_is_container(a) && a->type != BSON_CODE_SCOPE)
		return compare_scalars(a, b, texts);
	c.texts = texts;
	c.depth = 0;
	order = comparison_values(&c, a, b);
	return order ? order : comparison_run(&c);
}
