#include "door/mongo/cmd/merge.h"

#include "door/mongo/index/index.h"
#include "door/mongo/txn/client.h"
#include "door/mongo/txn/index_id.h"
#include "door/mongo/txn/run.h"
#include "index/engine/scan.h"
#include "loop/step.h"
#include "mql/collation.h"

enum {
	MERGE_ON_NULL = 51132,
	MERGE_NO_INDEX = 51183,
	MERGE_ON_ARRAY = 51185,
	MERGE_DOCUMENT_BYTES = 2 * BSON_MOST_BYTES, /* a filter of values out of one document */
};

bool
merge_is_by_id(const struct mql_write *w)
{
	return !w->on_count || (w->on_count == 1 && str_eq(w->on[0], STR("_id")));
}

/* ---- The index ---- */

static bool
index_is_on(const struct index_def *def, const struct mql_write *w)
{
	struct bson_element e;
	struct bson_iter i;
	size_t found = 0;

	if (!(def->flags & INDEX_UNIQUE) || def->filter.ptr || !index_is_readable(def) ||
	    def->column_count != w->on_count)
		return false;
	for (bson_iter_begin(&i, index_key_of(def)); bson_iter_read(&i, &e);)
		for (size_t k = 0; k < w->on_count; k++)
			found += str_eq(w->on[k], e.name);
	return found == w->on_count;
}

/* One that is not sparse is preferred, since it has documents without the fields. */
static enum status
merge_index(struct call *c, const struct catalog_db *db, const struct mql_write *w,
	    const struct mql *q, const struct index_def **ret)
{
	const struct index_def *def;

	*ret = NULL;
	for (size_t i = 0; db && (def = index_at(db, i)) != NULL; i++) {
		TRY(step_count(1));
		/* What is equal in one collation need not be so in another one. */
		if (str_eq(def->collation, mql_collation_document_of(q->texts)) &&
		    index_is_on(def, w) && (!*ret || !(def->flags & INDEX_SPARSE)))
			*ret = def;
	}
	if (*ret)
		return STATUS_OK;
	return call_fail(c, MERGE_NO_INDEX,
			 "Cannot find index to verify that join fields will be unique");
}

struct checking {
	struct call *call;
	struct data data;
	const struct mql_write *w;
	const struct mql *q;
};

static enum status
check_body(struct kv_tx *tx, void *arg)
{
	struct checking *x = arg;
	const struct index_def *def;

	TRY(data_open(&x->data, tx));
	return merge_index(x->call, x->data.is_there ? x->data.db : NULL, x->w, x->q, &def);
}

enum status
merge_check(struct call *c, struct str ns, const struct mql_write *w, const struct mql *q)
{
	struct checking x = { .call = c, .w = w, .q = q };
	enum status status;

	if (merge_is_by_id(w))
		return STATUS_OK;
	data_init(&x.data, c, ns, false);
	status = call_read(c, check_body, &x);
	data_fini(&x.data);
	return status;
}

/* ---- Values ---- */

/* The value at the path; BSON_UNDEFINED where there is none. Fails for an array on the way. */
static enum status
value_at(struct call *c, struct str doc, struct str path, struct bson_value *ret)
{
	bool found = bson_find_nested(doc, path, ret);

	if (ret->type == BSON_ARRAY)
		return call_fail(c, MERGE_ON_ARRAY,
				 "$merge write error: 'on' field '%.*s' cannot be an array",
				 STR_ARG(path));
	if (!found)
		ret->type = BSON_UNDEFINED;
	return STATUS_OK;
}

/* The values of a document in the order of the index's columns; null for those that lack. */
static enum status
values_of(struct call *c, const struct index_def *def, struct str doc, struct bson_value *ret)
{
	struct bson_element e;
	struct bson_iter i;

	for (bson_iter_begin(&i, index_key_of(def)); bson_iter_read(&i, &e); ret++) {
		TRY(value_at(c, doc, e.name, ret));
		if (ret->type != BSON_UNDEFINED && ret->type != BSON_NULL)
			continue;
		if (def->flags & INDEX_SPARSE)
			return call_fail(c, MERGE_ON_NULL,
					 "$merge write error: 'on' field cannot be missing, null "
					 "or undefined if supporting index is sparse");
		*ret = BSON_OF_NULL;
	}
	return STATUS_OK;
}

/* Whether a document has these values, as a filter sees it: keys of long values are cut. */
static enum status
has_values(struct call *c, struct mql *q, const struct index_def *def,
	   const struct bson_value *values, struct str doc, bool *ret)
{
	struct buf AUTO(buf_release) made = BUF_INIT_OF(MERGE_DOCUMENT_BYTES, arena_part(q->arena));
	struct mql_match *match;
	struct bson_builder b;
	struct bson_element e;
	struct bson_iter i;
	struct str filter;
	int64_t position;

	bson_open(&b, &made);
	for (bson_iter_begin(&i, index_key_of(def)); bson_iter_read(&i, &e); values++) {
		bson_begin_document(&b, e.name);
		bson_put(&b, STR("$eq"), values);
		bson_end(&b);
	}
	bson_end(&b);
	TRY(buf_copy(&made, q->arena, &filter));
	TRY(data_mql_status(c, q, mql_match_compile_scoped(q, filter, NULL, &match)));
	return data_mql_status(c, q, mql_match_run_scoped(match, q, doc, NULL, ret, &position));
}

/* The documents of the range's entries, up to the first one with the values. */
static enum status
find_in_range(struct call *c, struct data *data, struct mql *q, const struct index_def *def,
	      const struct bson_value *values, struct index_scan *scan, struct str *ret)
{
	struct index_work work = { .arena = q->arena };
	struct index_entry entry;
	bool found = false;

	while (!found) {
		struct plain_got got;
		struct str key;

		TRY(mongo_client_check(c->client));
		TRY(index_scan_next(scan, &work, &entry));
		TRY(arena_copy(q->arena, entry.id, &key));
		TRY(plain_ask_key(&data->plain, key, KV_READ, q->arena, &got));
		TRY(plain_wait(&data->plain, &got, KV_READ, q->arena, ret));
		TRY(has_values(c, q, def, values, *ret, &found));
	}
	return STATUS_OK;
}

/* The document with these values of the index's columns. */
static enum status
find_by_index(struct call *c, struct data *data, struct mql *q, const struct index_def *def,
	      const struct bson_value *values, struct str *ret)
{
	const void *equal[INDEX_COLUMNS];
	struct index_interval interval = { .equal = equal };
	const struct index_scan_options options = { .mode = KV_READ };
	struct index_work work = { .arena = q->arena };
	AUTO(index_scan_release) struct index_scan scan = { 0 };
	struct index_range range;

	for (; interval.equal_count < def->column_count; interval.equal_count++)
		equal[interval.equal_count] = &values[interval.equal_count];
	TRY(index_range_make(data->db, def, &interval, &work, &range));
	TRY(index_scan_init(&scan, data->plain.tx, data->db, def, &range, &options));
	return find_in_range(c, data, q, def, values, &scan, ret);
}

/*
 * The document with this `_id`. Where the target has a collation, it is one that the target's
 * collation holds equal, whatever collation the pipeline has: the index by `_id` has no other.
 */
static enum status
find_by_id(struct call *c, struct data *data, struct mql *q, const struct bson_value *id,
	   struct str *ret)
{
	const struct index_def *def = index_of_id(data->db);
	struct mql of_target = *q;
	enum status status;

	status = plain_get(&data->plain, id, KV_READ, q->arena, ret);
	if (status != STATUS_NOT_FOUND || !def || !index_is_readable(def))
		return status;
	TRY(data_collation(data, &of_target, &of_target.texts));
	return find_by_index(c, data, &of_target, def, id, ret);
}

enum status
merge_find(struct call *c, struct data *data, const struct mql_write *w, struct mql *q,
	   struct str doc, struct str *ret)
{
	struct bson_value values[INDEX_COLUMNS], id = BSON_OF_NULL;
	const struct index_def *def;

	if (merge_is_by_id(w)) {
		(void)bson_find(doc, STR("_id"), &id);
		return find_by_id(c, data, q, &id, ret);
	}
	TRY(merge_index(c, data->db, w, q, &def));
	TRY(values_of(c, def, doc, values));
	return find_by_index(c, data, q, def, values, ret);
}

enum status
merge_new_document(struct call *c, const struct mql_write *w, struct str doc, struct str *ret)
{
	const struct bson_value null = BSON_OF_NULL;
	struct plain_change *changes = arena_alloc(c->arena, (w->on_count + 1) * sizeof(*changes));
	size_t count = 0;

	if (!changes)
		return STATUS_LIMIT;
	if (!merge_is_by_id(w) && (w->matched == MQL_MERGE_MERGE || w->matched == MQL_MERGE_KEEP))
		for (size_t i = 0; i < w->on_count; i++) {
			struct str rest = w->on[i];

			if (!str_eq(rest, STR("_id")) && !bson_find(doc, str_cut(&rest, '.'), NULL))
				changes[count++] = (struct plain_change){ w->on[i], &null };
		}
	if (count)
		TRY(plain_apply(doc, changes, count, c->arena, &doc, &c->err));
	return data_document(c, doc, ret);
}
