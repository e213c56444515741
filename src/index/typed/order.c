#include "index/typed/order.h"

#include <math.h>

#include "base/words.h"
#include "doc/ordered.h"

enum {
	ORDERED_BYTES = 192 *
			1024, /* of one value: of a numeric with all digits that there can be */
};

/* In definitions of indexes: they never change. */
enum order {
	ORDER_NUMERIC,
	ORDER_INTERVAL,
	ORDER_FLOAT,
};

static const char *const names[] = {
	[ORDER_NUMERIC] = "numeric",
	[ORDER_INTERVAL] = "interval",
	[ORDER_FLOAT] = "float",
};

bool
index_typed_order_is_known(struct str order)
{
	return WORDS_FIND(names, order) < WORDS_COUNT(names);
}

/* Every NaN is one, which keys have behind all numbers, and -0 is 0. */
static bool
order_float(const struct doc_scalar *value, struct doc_scalar *ret)
{
	*ret = *value;
	if (value->kind == DOC_DOUBLE)
		ret->d = isnan(value->d) ? (double)NAN : value->d + 0.0;
	else if (value->kind == DOC_FLOAT)
		ret->f = isnan(value->f) ? NAN : value->f + 0.0f;
	return value->kind == DOC_DOUBLE || value->kind == DOC_FLOAT;
}

static bool
order_bytes(enum order order, const struct doc_scalar *value, struct buf *out)
{
	if (value->kind != DOC_BYTES)
		return false;
	if (order == ORDER_INTERVAL)
		return doc_interval_put(value->text, out);
	if (!doc_numeric_check(value->text))
		return false;
	doc_numeric_put(value->text, out);
	return true;
}

enum status
index_typed_order(struct str order, const struct doc_scalar *value, struct arena *arena,
		  struct doc_scalar *ret, bool *ret_there)
{
	AUTO(buf_release) struct buf bytes = BUF_INIT(ORDERED_BYTES);
	size_t which = WORDS_FIND(names, order);

	*ret_there = false;
	if (which == ORDER_FLOAT) {
		*ret_there = order_float(value, ret);
		return STATUS_OK;
	}
	if (which == WORDS_COUNT(names) || !order_bytes((enum order)which, value, &bytes))
		return STATUS_OK;
	*ret = (struct doc_scalar){ .kind = DOC_BYTES };
	TRY(buf_status(&bytes));
	*ret_there = true;
	return buf_copy(&bytes, arena, &ret->text);
}
