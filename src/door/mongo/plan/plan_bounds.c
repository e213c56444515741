/* Bounds of values: those of a kind, and narrower ones. What is known of an index's columns. */
#include "door/mongo/plan/plan_int.h"
#include "mql/collation.h"

bool
plan_kind_interval(const struct bson_value *v, struct value_interval *ret)
{
	static const struct bson_value nan = { .type = BSON_DOUBLE, .as_d = __builtin_nan("") };
	static const struct bson_value text = { .type = BSON_STRING, .as_text = { "", 0 } };
	static const struct bson_value document = { .type = BSON_DOCUMENT,
						    .as_text = { "\5\0\0\0", BSON_EMPTY_BYTES } };
	static const struct bson_value id = { .type = BSON_OBJECT_ID,
					      .as_text = { "\0\0\0\0\0\0\0\0\0\0\0",
							   BSON_OBJECT_ID_BYTES } };
	static const struct bson_value truth = { .type = BSON_BOOL };
	static const struct bson_value date = { .type = BSON_DATE, .as_n = INT64_MIN };
	static const struct bson_value timestamp = { .type = BSON_TIMESTAMP };
	static const struct value_interval numbers = { .low = { &nan, false },
						       .high = { &text, true } };
	static const struct value_interval texts = { .low = { &text, false },
						     .high = { &document, true } };
	static const struct value_interval ids = { .low = { &id, false },
						   .high = { &truth, true } };
	static const struct value_interval dates = { .low = { &date, false },
						     .high = { &timestamp, true } };

	if (bson_is_number(v))
		*ret = numbers;
	else if (v->type == BSON_STRING || v->type == BSON_SYMBOL)
		*ret = texts;
	else if (v->type == BSON_OBJECT_ID)
		*ret = ids;
	else if (v->type == BSON_DATE)
		*ret = dates;
	else
		return false;
	return true;
}

enum status
plan_bounds_narrow(const struct value_order *o, const struct mql_demand *d,
		   struct value_interval *bounds, bool *ret_any)
{
	bool low = d->op == MQL_DEMAND_GT || d->op == MQL_DEMAND_GTE;
	bool high = d->op == MQL_DEMAND_LT || d->op == MQL_DEMAND_LTE;
	struct value_interval by;

	*ret_any = (low || high) && plan_kind_interval(&d->value, &by);
	if (!*ret_any)
		return STATUS_OK;
	*(low ? &by.low : &by.high) = (struct value_bound){
		.value = &d->value,
		.exclusive = d->op == MQL_DEMAND_GT || d->op == MQL_DEMAND_LT,
	};
	return value_interval_narrow(o, bounds, &by);
}

/* ---- Texts ---- */

/* Of containers inside each other the deepest is no deeper than BSON_DEPTH. */
bool
plan_has_text(const struct bson_value *v)
{
	struct bson_element e;
	struct bson_iter i;

	if (v->type == BSON_STRING || v->type == BSON_SYMBOL || v->type == BSON_CODE_SCOPE)
		return true;
	if (!bson_is_container(v))
		return false;
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);)
		if (plan_has_text(&e.value))
			return true;
	return false;
}

bool
plan_is_foreign(const struct plan_ask *ask, const struct index_def *def)
{
	return !str_eq(def->collation, mql_collation_document_of(ask->texts));
}

/* ---- Columns ---- */

bool
plan_path_has_number(struct str path)
{
	while (path.len) {
		struct str name = str_cut(&path, '.');

		if (name.len && name.ptr[0] >= '0' && name.ptr[0] <= '9')
			return true;
	}
	return false;
}
