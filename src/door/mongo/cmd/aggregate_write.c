/*
 * $out and $merge. Documents are written page by page, each page in a transaction. $out writes to a
 * collection of its own, which takes the place of the target at the end, in one transaction: until
 * then everybody sees the target as it was.
 */
#include "base/rand.h"
#include "catalog/catalog.h"
#include "door/mongo/cmd/aggregate.h"
#include "door/mongo/cmd/merge.h"
#include "door/mongo/cmd/validate.h"
#include "door/mongo/index/index.h"
#include "door/mongo/txn/client.h"
#include "door/mongo/txn/data.h"
#include "door/mongo/txn/run.h"

enum {
	PAGE_BYTES = 96 * 1024 * 1024,   /* of an arena that has a page */
	PAGE_TX_BYTES = 4 * 1000 * 1000, /* that a transaction writes */
	PAGE_TRIES = 8, /* of a document that is large, and that others change meanwhile */
	MERGE_NOT_THERE = 13113,
};

struct page {
	struct call *call;
	const struct mql_write *w;
	struct mql *q;
	struct data data;
	struct arena *arena; /* of documents */
	struct str *docs;
	size_t count, cap;
	size_t bytes;
	struct str target;
	struct str into;  /* the collection that is written */
	size_t from, to;  /* of the documents that this transaction writes */
	bool splits;      /* they were too much for one */
	struct str large; /* what has to be written ahead */
	struct plain_doc staged;
	bool is_staged;
};

/* ---- $out ---- */

/* The new collection has the indexes of the target. */
static enum status
out_index(struct page *p, struct kv_tx *tx, const struct catalog_db *target)
{
	const struct index_def *def;
	uint64_t number;

	for (size_t i = 0; target && (def = index_at(target, i)) != NULL; i++)
		TRY(plain_index_create(tx, p->data.db, def->spec, p->call->arena, &number,
				       &p->call->err));
	return STATUS_OK;
}

/* And what the target was created with. */
static enum status
out_prepare(struct kv_tx *tx, void *arg)
{
	struct page *p = arg;
	struct str options = BSON_EMPTY;
	enum plain_scheme scheme = data_scheme(p->call);
	struct catalog_db *db = NULL;
	enum status status;

	status = catalog_open(tx, NULL, CATALOG_SPACE_MONGO, p->target, &db, NULL);
	if (status == STATUS_OK) {
		options = plain_options_of(db);
		scheme = plain_scheme_of(db);
	} else if (status != STATUS_NOT_FOUND) {
		return status;
	}
	if (db && plain_options_are_view(options)) {
		catalog_db_unref(db);
		return call_fail(p->call, MONGO_NOT_ON_VIEW,
				 "Namespace %.*s is a view, not a collection", STR_ARG(p->target));
	}
	data_init(&p->data, p->call, p->into, false);
	status = plain_create(tx, p->into, scheme, options.ptr ? options : BSON_EMPTY,
			      &p->call->err);
	if (status == STATUS_OK)
		status = data_created(&p->data, tx);
	/* Definitions can be read once they are committed, so the collection is opened before. */
	if (status == STATUS_OK)
		status = out_index(p, tx, db);
	catalog_db_unref(db);
	data_fini(&p->data);
	return status;
}

static bool
same_indexes(const struct catalog_db *a, const struct catalog_db *b)
{
	size_t count = index_count_all(a);

	if (count != index_count_all(b))
		return false;
	for (size_t i = 0; i + 1 < count; i++)
		if (!str_eq(index_at(a, i)->spec, index_at(b, i)->spec))
			return false;
	return true;
}

/* Fails if somebody has made or dropped an index of the target meanwhile. */
static enum status
out_check(struct page *p, struct kv_tx *tx)
{
	struct catalog_db *target = NULL, *into = NULL;
	enum status status;
	bool same = true;

	status = catalog_open(tx, NULL, CATALOG_SPACE_MONGO, p->target, &target, NULL);
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	if (status == STATUS_OK)
		status = catalog_open(tx, NULL, CATALOG_SPACE_MONGO, p->into, &into, NULL);
	if (status == STATUS_OK)
		same = same_indexes(target, into);
	catalog_db_unref(target);
	catalog_db_unref(into);
	return same ? status
		    : call_fail(p->call, MONGO_COMMAND_FAILED,
				"indexes of target collection %.*s changed while processing $out",
				STR_ARG(p->target));
}

static enum status
out_publish(struct kv_tx *tx, void *arg)
{
	struct page *p = arg;
	unsigned events = 0;

	TRY(out_check(p, tx));
	return data_rename(p->call, tx, p->into, p->target, true, &events);
}

static enum status
out_drop(struct kv_tx *tx, void *arg)
{
	struct page *p = arg;
	unsigned events = 0;

	return data_drop(p->call, tx, p->into, false, &events);
}

/* ---- Documents in a transaction ---- */

/* A document that is to be stored: as it is, or as it was written ahead. */
static enum status
page_doc(struct page *p, struct str doc, struct plain_doc *ret)
{
	*ret = plain_doc_of(doc);
	if (doc.len <= PLAIN_AHEAD_BYTES)
		return STATUS_OK;
	if (p->is_staged && str_eq(p->staged.bytes, doc)) {
		*ret = p->staged;
		return STATUS_OK;
	}
	if (p->to - p->from > 1) {
		p->splits = true;
		return STATUS_DOC_TOO_LARGE;
	}
	p->is_staged = false;
	p->large = arena_dup(p->arena, doc);
	return p->large.ptr ? STATUS_DOC_TOO_LARGE : STATUS_LIMIT;
}

/* An index of the target has refused a document: another one has its values. */
static enum status
page_refused(struct page *p, enum status status)
{
	if (p->data.plain.refused.def &&
	    (status == STATUS_DUPLICATE || status == STATUS_UNSUPPORTED))
		return index_fail_command(p->call, p->target, &p->data.plain.refused, status);
	return status;
}

static enum status
page_insert(struct page *p, struct str doc)
{
	struct call *c = p->call;
	struct bson_value id = BSON_OF_NULL;
	struct plain_doc one;
	enum status status;

	TRY(validate_document(&p->data, doc, STR("")));
	TRY(page_doc(p, doc, &one));
	TRY(data_keep_images(&p->data, STR(""), doc));
	status = page_refused(p, plain_insert(&p->data.plain, &one, c->arena));
	if (status != STATUS_EXISTS)
		return status;
	(void)bson_find(doc, STR("_id"), &id);
	return index_fail_id(c, p->target, &id);
}

/* A document keeps its `_id`, also where nothing gives it one. */
static enum status
page_keep_id(struct page *p, struct str doc, const struct bson_value *id, struct str *ret)
{
	struct buf AUTO(buf_release) made = BUF_INIT_OF(BSON_MOST_BYTES, arena_part(p->arena));
	struct bson_builder b;
	struct bson_value now;

	*ret = doc;
	if (!bson_find(doc, STR("_id"), &now)) {
		bson_builder_init(&b, &made);
		bson_begin(&b);
		bson_put(&b, STR("_id"), id);
		bson_put_elements(&b, doc);
		bson_end(&b);
		TRY(buf_status(&made));
		*ret = buf_dup(&made, p->call->arena);
		return ret->ptr ? STATUS_OK : STATUS_LIMIT;
	}
	if (bson_equals(&now, id))
		return STATUS_OK;
	return call_fail(p->call, MONGO_IMMUTABLE_FIELD,
			 "$merge failed to update the matching document, did you attempt to modify "
			 "the _id or the shard key? :: caused by :: Performing an update on the "
			 "path '_id' would modify the immutable field '_id'");
}

static enum status
page_merge_with(struct page *p, struct str old, struct str doc)
{
	struct call *c = p->call;
	struct bson_value id = BSON_OF_NULL;
	struct plain_doc one;
	struct str merged, kept;

	if (p->w->matched == MQL_MERGE_KEEP)
		return STATUS_OK;
	(void)bson_find(old, STR("_id"), &id);
	TRY(data_mql_status(c, p->q, mql_write_merge(p->w, p->q, old, doc, &merged)));
	TRY(page_keep_id(p, merged, &id, &merged));
	TRY(data_document(c, merged, &kept));
	if (str_eq(kept, old))
		return STATUS_OK;
	TRY(validate_document(&p->data, kept, old));
	TRY(page_doc(p, kept, &one));
	p->bytes += kept.len;
	TRY(data_keep_images(&p->data, old, kept));
	return page_refused(p, plain_replace(&p->data.plain, &one, false, PLAIN_EVENT_REPLACE,
					     STR(""), c->arena));
}

static enum status
page_merge(struct page *p, struct str doc)
{
	struct call *c = p->call;
	enum status status = STATUS_NOT_FOUND;
	struct str old, fresh;

	p->q->arena = c->arena;
	/* Then all are inserted, and the index that has their like refuses them. */
	if (p->w->matched != MQL_MERGE_FAIL)
		status = merge_find(c, &p->data, p->w, p->q, doc, &old);
	if (status == STATUS_OK)
		return page_merge_with(p, old, doc);
	if (status != STATUS_NOT_FOUND || p->w->not_matched == MQL_MERGE_DISCARD)
		return status == STATUS_NOT_FOUND ? STATUS_OK : status;
	if (p->w->not_matched == MQL_MERGE_FAIL)
		return call_fail(c, MERGE_NOT_THERE,
				 "$merge could not find a matching document in the target "
				 "collection for at least one document in the source collection");
	TRY(merge_new_document(c, p->w, doc, &fresh));
	p->bytes += fresh.len;
	return page_insert(p, fresh);
}

static enum status
page_body(struct kv_tx *tx, void *arg)
{
	struct page *p = arg;

	TRY(data_begin(&p->data, tx));
	p->bytes = 0;
	for (size_t i = p->from; i < p->to; i++) {
		TRY(p->w->replaces ? page_insert(p, p->docs[i]) : page_merge(p, p->docs[i]));
		if (p->bytes > PAGE_TX_BYTES && p->to - p->from > 1) {
			p->splits = true;
			return STATUS_DOC_TOO_LARGE;
		}
	}
	return STATUS_OK;
}

/* ---- Pages ---- */

/* One document that may have to be written ahead, as often as what it becomes changes. */
static enum status
page_write_one(struct page *p, size_t i)
{
	struct call *c = p->call;
	enum status status = STATUS_OK;

	p->from = i;
	p->to = i + 1;
	p->is_staged = false;
	for (int tries = 0; tries < PAGE_TRIES; tries++) {
		p->large = (struct str){ NULL, 0 };
		status = call_run(c, page_body, p);
		if (status != STATUS_DOC_TOO_LARGE || !p->large.ptr)
			return status;
		c->err = (struct err){ 0 };
		if (!p->data.is_there)
			return status;
		TRY(plain_stage(c->mongo->config.store, p->data.db, p->large, &p->staged, &c->err));
		p->is_staged = true;
	}
	return status;
}

static enum status
page_write(struct page *p)
{
	struct call *c = p->call;
	size_t count = p->count;
	enum status status;

	if (!count)
		return STATUS_OK;
	data_init(&p->data, c, p->into, !p->w->replaces);
	p->from = 0;
	p->to = count;
	p->splits = false;
	status = count > 1 ? call_run(c, page_body, p) : page_write_one(p, 0);
	if (p->splits) {
		c->err = (struct err){ 0 };
		status = STATUS_OK;
		for (size_t i = 0; i < count && status == STATUS_OK; i++)
			status = page_write_one(p, i);
	}
	data_fini(&p->data);
	p->docs = NULL;
	p->count = p->cap = p->bytes = 0;
	arena_clear(p->arena);
	return status;
}

static enum status
page_add(struct page *p, struct str doc)
{
	struct call *c = p->call;
	struct arena_mark mark = arena_mark(c->arena);
	struct str *docs, kept;

	kept = doc;
	/* One that is matched by other fields gets an `_id` only if it is new. */
	if (p->w->replaces || merge_is_by_id(p->w))
		TRY(data_document(c, doc, &kept));
	docs = arena_grow(p->arena, p->docs, p->count, &p->cap, sizeof(*docs));
	if (!docs)
		return STATUS_LIMIT;
	p->docs = docs;
	docs[p->count] = arena_dup(p->arena, kept);
	arena_reset(c->arena, mark);
	if (!docs[p->count].ptr)
		return STATUS_LIMIT;
	p->count++;
	p->bytes += kept.len;
	return STATUS_OK;
}

static enum status
write_all(struct page *p, struct mql_source *from)
{
	enum status status;
	struct str doc;

	while ((status = from->next(from, &doc)) == STATUS_OK) {
		TRY(mongo_client_check(p->call->client));
		TRY(page_add(p, doc));
		if (p->count == DATA_PAGE_DOCS || p->bytes >= DATA_PAGE_BYTES)
			TRY(page_write(p));
	}
	return status == STATUS_NOT_FOUND ? page_write(p) : status;
}

static enum status
out_run(struct page *p, struct mql_source *from)
{
	struct call *c = p->call;
	uint64_t random;
	enum status status;

	rand_bytes(&random, sizeof(random));
	p->into = arena_printf(c->arena, "%.*s.tmp.agg_out.%016llx",
			       STR_ARG(p->w->db.len ? p->w->db : c->db),
			       (unsigned long long)random);
	if (!p->into.ptr)
		return STATUS_LIMIT;
	TRY(call_run(c, out_prepare, p));
	status = write_all(p, from);
	if (status == STATUS_OK)
		status = call_run(c, out_publish, p);
	if (status != STATUS_OK) {
		struct err err = c->err;
		int code = c->code;

		/* Dropping it takes little, and takes place also when the command's time is up. */
		c->client->entry.op.ends = OPS_FINISHES;
		/* What is not dropped now is a collection that its name tells about. */
		(void)!call_run(c, out_drop, p);
		c->err = err;
		c->code = code;
	}
	return status;
}

static enum status
check_target(struct page *p)
{
	struct call *c = p->call;
	const struct mql_write *w = p->w;
	struct str name = w->collection;

	if (!name.len || name.ptr[0] == '.' || memchr(name.ptr, '$', name.len) ||
	    memchr(name.ptr, '\0', name.len) || p->target.len > DATA_NS_BYTES)
		return call_fail(c, MONGO_INVALID_NAMESPACE, "Invalid %s target namespace, %.*s",
				 w->replaces ? "$out" : "$merge", STR_ARG(p->target));
	if (str_starts_with(name, STR("system.")))
		return call_fail(c, w->replaces ? 17385 : 31319,
				 "Can't %s to special collection: %.*s",
				 w->replaces ? "$out" : "$merge", STR_ARG(name));
	return w->replaces ? STATUS_OK : merge_check(c, p->target, w, p->q);
}

static enum status
page_init(struct page *p, struct call *c, const struct mql_write *w, struct mql *q)
{
	*p = (struct page){ .call = c, .w = w, .q = q };
	p->target = arena_printf(c->arena, "%.*s.%.*s", STR_ARG(w->db.len ? w->db : c->db),
				 STR_ARG(w->collection));
	return p->target.ptr ? check_target(p) : STATUS_LIMIT;
}

enum status
mongo_aggregate_write_check(struct call *c, const struct mql_write *w, struct mql *q)
{
	struct page p;

	return page_init(&p, c, w, q);
}

enum status
mongo_aggregate_write(struct call *c, const struct mql_write *w, struct mql *q,
		      struct mql_source *from)
{
	struct mql own = *q;
	enum status status;
	struct page p;

	own.code = 0;
	TRY(page_init(&p, c, w, &own));
	TRY(validate_check_bypass(c, w->db.len ? w->db : c->db));
	p.into = p.target;
	p.arena = arena_new(PAGE_BYTES);
	if (!p.arena)
		return STATUS_NOMEM;
	arena_set_part(p.arena, arena_part(c->arena));
	status = w->replaces ? out_run(&p, from) : write_all(&p, from);
	arena_free(p.arena);
	return status;
}
