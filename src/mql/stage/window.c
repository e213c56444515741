/*
 * $setWindowFields: documents come in the order of their partitions, and sorted inside. Those of a
 * partition are put aside, and what the fields need of them stays in memory. When the partition has
 * ended, its documents are given one by one, with their fields.
 */
#include "base/mem.h"
#include "mql/stage/spool.h"
#include "mql/stage/window_int.h"

struct window_state {
	struct mql_spool spool;
	struct mql_spool_reader reader;
	bool begun, ended, reads;
	struct str next;    /* the first document of the next partition; ptr NULL: none */
	struct buf key;     /* of the partition */
	struct arena *keep; /* the rows */
	struct mql_window_rows rows;
	size_t given;
	struct mql_window_run *runs;
};

static enum status
fail_full(struct mql_stage_run *r)
{
	const struct mql_window_stage *stage = r->stage->more;
	struct window_state *s = r->state;
	bool starved = mql_stage_is_starved(r, s->keep);

	for (size_t i = 0; i < stage->count; i++)
		starved |= s->runs[i].keep && arena_is_starved(s->runs[i].keep);
	if (starved)
		return STATUS_NOMEM;
	return mql_fail(&r->run->q, MQL_MEMORY_LIMIT,
			"$setWindowFields used too much memory for one of its partitions. Memory "
			"limit (MQL_STAGE_BYTES): %zu bytes",
			r->run->options.stage_bytes);
}

/* ---- Partitions ---- */

static enum status
window_begin(struct mql_stage_run *r)
{
	const struct mql_window_stage *stage = r->stage->more;
	struct window_state *s = r->state;
	enum status status;

	mql_spool_init(&s->spool, r);
	mql_spool_read(&s->reader, &s->spool, r, 0, 0);
	s->key = BUF_INIT_OF(BSON_MOST_BYTES, r->run->options.part);
	s->begun = true;
	s->keep = mql_run_arena(r->run, r->run->options.stage_bytes);
	s->runs = mem_zalloc(stage->count * sizeof(*s->runs));
	if (!s->keep || !s->runs)
		return STATUS_NOMEM;
	for (size_t i = 0; i < stage->count; i++) {
		if (stage->fields[i].op != WINDOW_ACCUMULATOR)
			continue;
		s->runs[i].keep = mql_run_arena(r->run, r->run->options.stage_bytes);
		if (!s->runs[i].keep)
			return STATUS_NOMEM;
	}
	status = r->from->next(r->from, &s->next);
	s->ended = status == STATUS_NOT_FOUND;
	return s->ended ? STATUS_OK : status;
}

/* Files and memory of the last partition are used again. */
static void
partition_clear(struct mql_stage_run *r)
{
	const struct mql_window_stage *stage = r->stage->more;
	struct window_state *s = r->state;

	mql_spool_reader_fini(&s->reader);
	mql_spool_clear(&s->spool);
	arena_clear(s->keep);
	s->rows = (struct mql_window_rows){ 0 };
	s->given = 0;
	for (size_t i = 0; i < stage->count; i++)
		s->runs[i] = (struct mql_window_run){ .keep = s->runs[i].keep };
}

static enum status
field_input(const struct mql_window_field *f, struct mql *q, const struct mql_env *env,
	    struct mql_window_input *ret)
{
	*ret = (struct mql_window_input){ MQL_NO_VALUE, MQL_NO_VALUE };
	if (f->accumulator)
		return mql_accumulator_read(f->accumulator, q, env, &ret->value, &ret->second);
	if (f->input)
		TRY(mql_expr_run(f->input, q, env, &ret->value));
	if (f->second)
		TRY(mql_expr_run(f->second, q, env, &ret->second));
	return STATUS_OK;
}

/* STATUS_LIMIT: the memory is full. */
static enum status
row_keep(struct mql_stage_run *r, struct str doc)
{
	const struct mql_window_stage *stage = r->stage->more;
	const struct mql_env env = mql_stage_env(r, doc);
	struct window_state *s = r->state;
	struct mql *q = mql_stage_begin(r);
	struct mql_window_row **rows = arena_grow(s->keep, s->rows.rows, s->rows.count,
						  &s->rows.cap, sizeof(struct mql_window_row *));
	struct mql_window_row *row = arena_alloc(
		s->keep, sizeof(*row) + stage->count * sizeof(struct mql_window_input));
	struct mql_window_input in;

	if (!rows || !row)
		return STATUS_LIMIT;
	s->rows.rows = rows;
	row->by = MQL_NO_VALUE;
	if (stage->sort_path.ptr)
		TRY(mql_path_value(q, &BSON_OF_DOCUMENT(doc), stage->sort_path, &row->by));
	TRY(mql_value_keep(s->keep, &row->by, &row->by));
	for (size_t i = 0; i < stage->count; i++) {
		TRY(field_input(&stage->fields[i], q, &env, &in));
		TRY(mql_value_keep(s->keep, &in.value, &row->inputs[i].value));
		TRY(mql_value_keep(s->keep, &in.second, &row->inputs[i].second));
	}
	rows[s->rows.count++] = row;
	return STATUS_OK;
}

static enum status
partition_check(struct mql *q, struct str key)
{
	struct bson_value v = BSON_OF_NULL;

	bson_find(key, STR("v"), &v);
	if (v.type == BSON_ARRAY)
		return mql_fail(q, MQL_TYPE_MISMATCH,
				"An expression used to partition cannot evaluate to value of type "
				"array");
	return STATUS_OK;
}

/* Reads the next partition. STATUS_NOT_FOUND: there is none. */
static enum status
partition_read(struct mql_stage_run *r)
{
	struct window_state *s = r->state;
	enum status status = STATUS_OK;
	struct str key, doc;

	partition_clear(r);
	if (s->ended)
		return STATUS_NOT_FOUND;
	mql_ordered_parts(s->next, &key, &doc);
	TRY(partition_check(&r->run->q, key));
	buf_clear(&s->key);
	buf_append_str(&s->key, key);
	TRY(buf_status(&s->key));
	while (!s->ended) {
		mql_ordered_parts(s->next, &key, &doc);
		TRY(step_count_bytes(doc.len));
		if (bson_compare_documents(key, buf_str(&s->key), r->run->q.texts) != 0)
			break;
		TRY(mql_spool_put(&s->spool, r, doc));
		status = row_keep(r, doc);
		if (status != STATUS_OK)
			return status == STATUS_LIMIT ? fail_full(r) : status;
		status = r->from->next(r->from, &s->next);
		s->ended = status == STATUS_NOT_FOUND;
		if (status != STATUS_OK && !s->ended)
			return status;
	}
	mql_spool_read(&s->reader, &s->spool, r, 0, mql_spool_end(&s->spool));
	return STATUS_OK;
}

/* ---- Documents ---- */

static enum status
window_next(struct mql_stage_run *r, struct str *ret)
{
	const struct mql_window_stage *stage = r->stage->more;
	struct window_state *s = r->state;
	enum status status;
	struct bson_value v;
	struct mql *q;

	if (!s->begun)
		TRY(window_begin(r));
	if (s->given == s->rows.count)
		TRY(partition_read(r));
	TRY(mql_spool_next(&s->reader, r, ret));
	q = mql_stage_begin(r);
	for (size_t i = 0; i < stage->count; i++) {
		status = mql_window_value(&stage->fields[i], q, &s->rows, s->given, i, &s->runs[i],
					  &v);
		if (status != STATUS_OK)
			return status == STATUS_LIMIT ? fail_full(r) : status;
		TRY(mql_set_path(q, *ret, stage->fields[i].name,
				 (int)v.type == MQL_MISSING ? NULL : &v, ret));
	}
	s->given++;
	return STATUS_OK;
}

static void
window_fini(struct mql_stage_run *r)
{
	const struct mql_window_stage *stage = r->stage->more;
	struct window_state *s = r->state;

	if (!s->begun)
		return;
	mql_spool_reader_fini(&s->reader);
	mql_spool_fini(&s->spool);
	buf_release(&s->key);
	arena_free(s->keep);
	for (size_t i = 0; s->runs && i < stage->count; i++)
		arena_free(s->runs[i].keep);
	mem_free(s->runs);
}

static const struct mql_stage_ops window_ops = { .next = window_next,
						 .fini = window_fini,
						 .state_bytes = sizeof(struct window_state) };

/* ---- Compiling ---- */

struct window_spec {
	struct bson_value partition, sort, output;
};

static enum status
window_option(struct mql *q, const struct bson_element *e, struct window_spec *ret)
{
	if (mql_is(e->name, "partitionBy")) {
		ret->partition = e->value;
	} else if (mql_is(e->name, "sortBy")) {
		if (e->value.type != BSON_DOCUMENT && e->value.type != BSON_NULL)
			return mql_fail(q, MQL_TYPE_MISMATCH,
					"BSON field '$setWindowFields.sortBy' is the wrong type "
					"'%s', expected type 'object'",
					bson_type_name(e->value.type));
		ret->sort = e->value;
	} else if (mql_is(e->name, "output")) {
		if (e->value.type != BSON_DOCUMENT)
			return mql_fail(q, MQL_TYPE_MISMATCH,
					"BSON field '$setWindowFields.output' is the wrong type "
					"'%s', expected type 'object'",
					bson_type_name(e->value.type));
		ret->output = e->value;
	} else {
		return mql_fail(q, 40415, "BSON field '$setWindowFields.%.*s' is an unknown field.",
				STR_ARG(e->name));
	}
	return STATUS_OK;
}

/* Looks at the sort before it is used with other names. */
static enum status
window_sort(struct mql_stages *c, struct str sort, struct mql_window_stage *s)
{
	struct mql_sort_by *by;

	if (bson_is_empty(sort))
		return STATUS_OK;
	TRY(mql_sort_by_compile(c->q, sort, &by));
	if (mql_sort_by_count(by) == 1)
		s->sort_path = mql_sort_by_path(by, 0, &s->descending);
	return STATUS_OK;
}

MQL_STAGE_COMPILE(window)
{
	struct window_spec spec = { MQL_NO_VALUE, MQL_NO_VALUE, MQL_NO_VALUE };
	struct mql_window_stage *s = mql_stage_alloc(c, sizeof(*s));
	struct bson_element e;
	struct bson_iter i;
	struct str sort;

	if (!s)
		return mql_full(c->q);
	if (v->type != BSON_DOCUMENT)
		return mql_fail(c->q, MQL_FAILED_TO_PARSE,
				"the $setWindowFields stage specification must be an object, found "
				"%s",
				bson_type_name(v->type));
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);)
		TRY(window_option(c->q, &e, &spec));
	if ((int)spec.output.type == MQL_MISSING)
		return mql_fail(c->q, 40414,
				"BSON field '$setWindowFields.output' is missing but a required "
				"field");
	sort = spec.sort.type == BSON_DOCUMENT ? bson_text(&spec.sort) : BSON_EMPTY;
	TRY(window_sort(c, sort, s));
	s->fields = mql_stage_alloc(c,
				    (bson_count(bson_text(&spec.output)) + 1) * sizeof(*s->fields));
	if (!s->fields)
		return mql_full(c->q);
	for (bson_iter_begin(&i, bson_text(&spec.output)); bson_iter_read(&i, &e);) {
		TRY(step_count(1));
		TRY(mql_window_field(c, s, spec.sort.type == BSON_DOCUMENT, &e,
				     &s->fields[s->count]));
		s->count++;
	}
	TRY(mql_stage_ordered(c, (int)spec.partition.type == MQL_MISSING ? NULL : &spec.partition,
			      sort));
	return mql_stage_add(c, stage, v, &window_ops, s);
}
