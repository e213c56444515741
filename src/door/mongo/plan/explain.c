#include "door/mongo/plan/explain.h"

#include "bson/json.h"
#include "door/mongo/index/index.h"
#include "door/mongo/plan/plan_int.h"
#include "index/bson/form.h"

enum {
	BOUND_BYTES = 4000, /* of an interval's text, which is cut */
};

/* ---- Stages ---- */

void
explain_init(struct explain_tree *t, struct call *c)
{
	*t = (struct explain_tree){ .call = c,
				    .projection = BSON_EMPTY,
				    .out = BUF_INIT_OF(2 * BSON_MOST_BYTES, arena_part(c->arena)) };
}

void
explain_fini(struct explain_tree *t)
{
	buf_release(&t->out);
}

void
explain_begin(struct explain_tree *t, const char *stage)
{
	assert(t->count < EXPLAIN_STAGES);
	buf_clear(&t->out);
	bson_open(&t->b, &t->out);
	bson_put_string(&t->b, STR("stage"), str_from_cstr(stage));
}

enum status
explain_end(struct explain_tree *t)
{
	struct explain_stage *s = &t->stages[t->count];

	bson_end(&t->b);
	TRY(buf_status(&t->out));
	*s = (struct explain_stage){ .fixed = buf_dup(&t->out, t->call->arena) };
	t->count++;
	return s->fixed.ptr ? STATUS_OK : STATUS_LIMIT;
}

static void
put_direction(struct explain_tree *t, bool reverse)
{
	bson_put_string(&t->b, STR("direction"), reverse ? STR("backward") : STR("forward"));
}

static void
put_filter(struct explain_tree *t, const struct query *q)
{
	if (!bson_is_empty(q->ask.filter))
		bson_put_document(&t->b, STR("filter"), q->ask.filter);
}

/* ---- Bounds ---- */

/* The key of a text, which is cut with the interval. */
static void
append_key(struct buf *out, struct str key)
{
	buf_append_cstr(out, "CollationKey(0x");
	buf_append_hex(out, key.len < BOUND_BYTES / 2 ? key : str_of(key.ptr, BOUND_BYTES / 2));
	buf_append_byte(out, ')');
}

static void
append_value(struct buf *out, const struct bson_texts *texts, const struct bson_value *v,
	     struct budget_part *part)
{
	AUTO(buf_release) struct buf key = BUF_INIT_OF(BSON_KEY_TEXT_BYTES, part);
	double n = v->type == BSON_DOUBLE ? bson_to_double(v) : 0;

	if (n != n)
		buf_append_cstr(out, "-inf.0");
	else if (texts && v->type == BSON_STRING &&
		 texts->put_key(texts->of, bson_text(v), &key) == STATUS_OK)
		append_key(out, buf_str(&key));
	else
		bson_json_write_value(out, v, BSON_JSON_RELAXED);
}

/* Appends one interval, "[1, 5)". `texts`: the collation of the index. */
static void
put_interval(struct explain_tree *t, const struct bson_texts *texts, const struct value_interval *i,
	     bool reverse)
{
	const struct bson_value *low = i->low.value, *high = i->high.value;
	bool low_open = i->low.exclusive, high_open = i->high.exclusive;
	AUTO(buf_release) struct buf from = BUF_SHORT(BOUND_BYTES), to = BUF_SHORT(BOUND_BYTES);
	AUTO(buf_release) struct buf text = BUF_SHORT(2 * BOUND_BYTES + 8);
	bool numbers = low && bson_is_number(low);

	if (low)
		append_value(&from, texts, low, t->out.part);
	else
		buf_append_cstr(&from, "MinKey");
	/* The first string is behind all numbers. */
	if (high && numbers && high->type == BSON_STRING) {
		buf_append_cstr(&to, "inf.0");
		high_open = false;
	} else if (high) {
		append_value(&to, texts, high, t->out.part);
	} else {
		buf_append_cstr(&to, "MaxKey");
	}
	buf_append_byte(&text, (reverse ? high_open : low_open) ? '(' : '[');
	buf_append_buf(&text, reverse ? &to : &from);
	buf_append_cstr(&text, ", ");
	buf_append_buf(&text, reverse ? &from : &to);
	buf_append_byte(&text, (reverse ? low_open : high_open) ? ')' : ']');
	bson_put_string(&t->b, STR(""), buf_str(&text));
}

static void
put_set(struct explain_tree *t, const struct bson_texts *texts, const struct value_set *set,
	bool reverse)
{
	for (size_t i = 0; i < set->count; i++)
		put_interval(t, texts, &set->items[reverse ? set->count - 1 - i : i], reverse);
}

/* ---- Indexes ---- */

static void
put_flag(struct explain_tree *t, const char *name, bool value)
{
	bson_put_bool(&t->b, str_from_cstr(name), value);
}

/* The first key of a range by `min` and `max`, or that behind the last one. */
static void
put_end(struct explain_tree *t, struct str name, const struct candidate *asked,
	const struct bson_value *bound, bool high)
{
	const struct index_def *def = asked->def;

	if (bound) {
		bson_put_document(&t->b, name, bson_text(bound));
		return;
	}
	bson_begin_document(&t->b, name);
	for (size_t at = 0; at < def->column_count; at++) {
		const struct bson_value v = { .type = high != def->columns[at].descending
							      ? BSON_MAX_KEY
							      : BSON_MIN_KEY };

		bson_put(&t->b, asked->names[at], &v);
	}
	bson_end(&t->b);
}

static void
put_index_bounds(struct explain_tree *t, const struct plan *plan)
{
	const struct candidate *asked = plan->asked;
	const struct index_def *def = asked->def;
	const struct bson_texts *texts = index_bson_texts(def);
	struct value_interval any = { 0 };
	const struct value_set all = { &any, 1 };

	bson_begin_document(&t->b, STR("indexBounds"));
	if (asked->between) {
		put_end(t, STR("startKey"), asked, asked->min, false);
		put_flag(t, "startKeyInclusive", true);
		put_end(t, STR("endKey"), asked, asked->max, true);
		put_flag(t, "endKeyInclusive", !asked->max);
		bson_end(&t->b);
		return;
	}
	for (size_t at = 0; at < def->column_count; at++) {
		bool is_asked = at < asked->points + asked->bounded;
		bool reverse = plan->reverse != def->columns[at].descending;

		bson_begin_array(&t->b, asked->names[at]);
		put_set(t, texts, is_asked ? &asked->columns[at] : &all, reverse);
		bson_end(&t->b);
	}
	bson_end(&t->b);
}

/* The members of a stage that reads an index, behind its name. */
static void
put_index(struct explain_tree *t, const struct plan *plan)
{
	const struct candidate *asked = plan->asked;
	const struct index_def *def = asked->def;

	bson_put_document(&t->b, STR("keyPattern"), index_key_of(def));
	bson_put_string(&t->b, STR("indexName"), def->name);
	if (def->collation.len)
		bson_put_document(&t->b, STR("collation"), def->collation);
	put_flag(t, "isMultiKey", index_def_arrays(def));
	bson_begin_document(&t->b, STR("multiKeyPaths"));
	for (size_t at = 0; at < def->column_count; at++) {
		bson_begin_array(&t->b, asked->names[at]);
		if (index_def_arrays(def) & (UINT32_C(1) << at))
			bson_put_string(&t->b, STR(""), asked->names[at]);
		bson_end(&t->b);
	}
	bson_end(&t->b);
	put_flag(t, "isUnique", def->flags & INDEX_UNIQUE);
	put_flag(t, "isSparse", def->flags & INDEX_SPARSE);
	put_flag(t, "isPartial", def->filter.ptr);
	bson_put_int32(&t->b, STR("indexVersion"), 2);
	put_direction(t, plan->reverse);
	put_index_bounds(t, plan);
}

/* The index of `_id`, which is the collection itself. */
static void
put_id_index(struct explain_tree *t, const struct plan *plan)
{
	bson_begin_document(&t->b, STR("keyPattern"));
	bson_put_int32(&t->b, STR("_id"), 1);
	bson_end(&t->b);
	bson_put_string(&t->b, STR("indexName"), STR("_id_"));
	put_flag(t, "isMultiKey", false);
	put_flag(t, "isUnique", true);
	put_flag(t, "isSparse", false);
	put_flag(t, "isPartial", false);
	bson_put_int32(&t->b, STR("indexVersion"), 2);
	put_direction(t, plan->reverse);
	bson_begin_document(&t->b, STR("indexBounds"));
	bson_begin_array(&t->b, STR("_id"));
	if (plan->kind == PLAN_POINTS)
		put_set(t, NULL, &plan->ids, plan->reverse);
	else
		put_interval(t, NULL, &plan->bounds, plan->reverse);
	bson_end(&t->b);
	bson_end(&t->b);
}

/* The branches of a $or, as stages inside of one. */
static void
put_branches(struct explain_tree *t, const struct plan *plan)
{
	bson_begin_array(&t->b, STR("inputStages"));
	for (size_t i = 0; i < plan->branch_count; i++) {
		const struct plan_branch *branch = &plan->branches[i];
		const struct plan one = { .kind = branch->asked ? PLAN_INDEX : PLAN_POINTS,
					  .asked = branch->asked,
					  .reverse = plan->merged && plan->reverse,
					  .ids = branch->ids };

		bson_begin_document(&t->b, STR(""));
		bson_put_string(&t->b, STR("stage"), STR("IXSCAN"));
		if (branch->asked)
			put_index(t, &one);
		else
			put_id_index(t, &one);
		bson_end(&t->b);
	}
	bson_end(&t->b);
}

/* Ranges that are merged, as stages inside of one: each has one value of each column. */
static void
put_merged(struct explain_tree *t, const struct plan *plan, struct str sort)
{
	bson_put_document(&t->b, STR("sortPattern"), sort);
	bson_begin_array(&t->b, STR("inputStages"));
	for (size_t i = 0; i < plan->asked->ranges; i++) {
		struct candidate asked = *plan->asked;
		const struct plan one = { .kind = PLAN_INDEX,
					  .asked = &asked,
					  .reverse = plan->reverse };
		size_t at = i;

		for (size_t k = 0; k < asked.points; k++) {
			struct value_set *column = &asked.columns[k];

			column->items += at % column->count;
			at /= column->count;
			column->count = 1;
		}
		bson_begin_document(&t->b, STR(""));
		bson_put_string(&t->b, STR("stage"), STR("IXSCAN"));
		put_index(t, &one);
		bson_end(&t->b);
	}
	bson_end(&t->b);
}

static const char *
entries_stage(const struct plan *plan)
{
	return plan->merged         ? "SORT_MERGE"
	       : plan->branch_count ? "OR"
	       : plan->distinct     ? "DISTINCT_SCAN"
				    : "IXSCAN";
}

static enum status
draw_entries(struct explain_tree *t, const struct plan *plan, struct str sort)
{
	explain_begin(t, entries_stage(plan));
	if (plan->branch_count && plan->merged)
		bson_put_document(&t->b, STR("sortPattern"), sort);
	if (plan->branch_count)
		put_branches(t, plan);
	else if (plan->merged && plan->asked)
		put_merged(t, plan, sort);
	else if (plan->asked)
		put_index(t, plan);
	else
		put_id_index(t, plan);
	TRY(explain_end(t));
	t->stages[t->count - 1].has_keys = true;
	return STATUS_OK;
}

static enum status
draw_one_id(struct explain_tree *t, bool fast)
{
	explain_begin(t, fast ? "EXPRESS_IXSCAN" : "IDHACK");
	if (fast) {
		bson_put_string(&t->b, STR("keyPattern"), STR("{ _id: 1 }"));
		bson_put_string(&t->b, STR("indexName"), STR("_id_"));
	}
	TRY(explain_end(t));
	t->stages[t->count - 1].has_keys = true;
	t->stages[t->count - 1].has_docs = true;
	return STATUS_OK;
}

enum status
explain_query(struct explain_tree *t, const struct query *q, bool by_id_order, bool fast)
{
	const struct plan *plan = &q->plan;

	if (!q->walks) {
		explain_begin(t, "EOF");
		return explain_end(t);
	}
	if (plan->kind == PLAN_POINTS && plan->ids.count == 1)
		return draw_one_id(t, fast);
	if (plan->kind == PLAN_RANGE && value_interval_is_all(&plan->bounds) && !by_id_order) {
		explain_begin(t, "COLLSCAN");
		put_filter(t, q);
		put_direction(t, plan->reverse);
	} else {
		t->by_id = plan->kind == PLAN_RANGE;
		TRY(draw_entries(t, plan, q->ask.sort));
		explain_begin(t, plan->covered ? "PROJECTION_COVERED" : "FETCH");
		put_filter(t, q);
		if (plan->covered && !bson_is_empty(t->projection))
			bson_put_document(&t->b, STR("transformBy"), t->projection);
	}
	TRY(explain_end(t));
	t->stages[t->count - 1].has_docs = true;
	return STATUS_OK;
}

void
explain_count(struct explain_tree *t, const struct plan_figures *f)
{
	for (size_t i = 0; i < t->count; i++) {
		struct explain_stage *s = &t->stages[i];

		s->keys = f->keys;
		s->docs = f->docs;
		if (s->has_keys || s->has_docs)
			s->returned = s->has_docs ? f->found : f->keys;
	}
}

/* ---- The tree ---- */

static void
put_figures(const struct explain_stage *s, struct bson_builder *b)
{
	uint64_t works = s->has_docs ? s->docs : s->has_keys ? s->keys : s->returned;

	bson_put_int64(b, STR("nReturned"), (int64_t)s->returned);
	bson_put_int64(b, STR("works"), (int64_t)works + 1);
	bson_put_int64(b, STR("advanced"), (int64_t)s->returned);
	bson_put_int64(b, STR("needTime"),
		       works > s->returned ? (int64_t)(works - s->returned) : 0);
	bson_put_int32(b, STR("needYield"), 0);
	bson_put_int32(b, STR("saveState"), 0);
	bson_put_int32(b, STR("restoreState"), 0);
	bson_put_int32(b, STR("isEOF"), 1);
	if (s->has_keys)
		bson_put_int64(b, STR("keysExamined"), (int64_t)s->keys);
	if (s->has_docs)
		bson_put_int64(b, STR("docsExamined"), (int64_t)s->docs);
	if (s->counter)
		bson_put_int64(b, str_from_cstr(s->counter), (int64_t)s->counted);
}

void
explain_put(const struct explain_tree *t, struct bson_builder *b, struct str name, bool ran)
{
	for (size_t i = t->count; i-- > 0;) {
		bson_begin_document(b, i + 1 == t->count ? name : STR("inputStage"));
		bson_put_elements(b, t->stages[i].fixed);
		if (ran)
			put_figures(&t->stages[i], b);
	}
	for (size_t i = 0; i < t->count; i++)
		bson_end(b);
}
