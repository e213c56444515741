/* Bounds of values: those of a kind, and narrower ones. What is known of an index's columns. */
#include "door/mongo/plan_int.h"
#include "mql/collation.h"

bool
plan_kind_bounds(const struct bson_value *v, struct bson_value *ret_from, struct bson_value *ret_to)
{
	if (bson_is_number(v)) {
		*ret_from = BSON_OF_DOUBLE(__builtin_nan(""));
		*ret_to = BSON_OF_STRING(STR(""));
		return true;
	}
	if (v->type == BSON_STRING || v->type == BSON_SYMBOL) {
		*ret_from = BSON_OF_STRING(STR(""));
		*ret_to = BSON_OF_DOCUMENT(BSON_EMPTY);
		return true;
	}
	if (v->type == BSON_OBJECT_ID) {
		*ret_from = (struct bson_value){ .type = BSON_OBJECT_ID,
						 .as_text = STR("\0\0\0\0\0\0\0\0\0\0\0\0") };
		*ret_to = BSON_OF_BOOL(false);
		return true;
	}
	if (v->type == BSON_DATE) {
		*ret_from = BSON_OF_DATE(INT64_MIN);
		*ret_to = (struct bson_value){ .type = BSON_TIMESTAMP };
		return true;
	}
	return false;
}

void
plan_bound_from(struct plan_bounds *b, const struct bson_value *v, bool open,
		const struct bson_texts *texts)
{
	int order = b->has_from ? bson_compare_values(v, &b->from, texts) : 1;

	if (order < 0 || (order == 0 && b->from_open))
		return;
	b->from = *v;
	b->from_open = open;
	b->has_from = true;
}

void
plan_bound_to(struct plan_bounds *b, const struct bson_value *v, bool open,
	      const struct bson_texts *texts)
{
	int order = b->has_to ? bson_compare_values(v, &b->to, texts) : -1;

	if (order > 0 || (order == 0 && b->to_open))
		return;
	b->to = *v;
	b->to_open = open;
	b->has_to = true;
}

bool
plan_bounds_narrow(struct plan_bounds *b, const struct mql_demand *d,
		   const struct bson_texts *texts)
{
	bool from = d->op == MQL_DEMAND_GT || d->op == MQL_DEMAND_GTE;
	bool to = d->op == MQL_DEMAND_LT || d->op == MQL_DEMAND_LTE;
	struct bson_value least, most;

	if ((!from && !to) || !plan_kind_bounds(&d->value, &least, &most))
		return false;
	plan_bound_from(b, from ? &d->value : &least, d->op == MQL_DEMAND_GT, texts);
	plan_bound_to(b, to ? &d->value : &most, d->op == MQL_DEMAND_LT || from, texts);
	return true;
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

/* Documents of this transaction may have arrays that its definitions do not know of yet. */
static bool
has_written(const struct choosing *x)
{
	struct kv_tx_stats stats = kv_tx_stats(x->p->tx);

	return stats.sets || stats.clears;
}

uint32_t
plan_arrays_of(const struct choosing *x, const struct index_def *def)
{
	return has_written(x) ? UINT32_MAX : index_def_arrays(def);
}

uint32_t
plan_cuts_of(const struct choosing *x, const struct index_def *def)
{
	return has_written(x) ? UINT32_MAX : index_def_cuts(def);
}
