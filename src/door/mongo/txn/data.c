#include "door/mongo/txn/data.h"

#include <assert.h>

#include "base/steady.h"
#include "door/mongo/txn/index_id.h"
#include "door/mongo/txn/mongo_int.h"
#include "door/mongo/txn/settings.h"
#include "door/mongo/txn/txn.h"
#include "mql/collation.h"

enum {
	UUID_SUBTYPE = 4,
};

/* ---- Collections ---- */

enum status
data_ns(struct call *c, struct str *ret)
{
	char *ns;

	if (c->db.len + 1 + c->collection.len > DATA_NS_BYTES)
		return call_fail(
			c, MONGO_INVALID_NAMESPACE,
			"Fully qualified namespace is too long (DATA_NS_BYTES): %zu, max %d",
			c->db.len + 1 + c->collection.len, DATA_NS_BYTES);
	ns = arena_alloc(c->arena, c->db.len + 1 + c->collection.len);
	if (!ns)
		return STATUS_LIMIT;
	memcpy(ns, c->db.ptr, c->db.len);
	ns[c->db.len] = '.';
	memcpy(ns + c->db.len + 1, c->collection.ptr, c->collection.len);
	*ret = str_of(ns, c->db.len + 1 + c->collection.len);
	return STATUS_OK;
}

enum plain_scheme
data_scheme(const struct call *c)
{
	const char *scheme = c->mongo->config.settings->scheme;

	return scheme && strcmp(scheme, "exploded") == 0 ? PLAIN_EXPLODED : PLAIN_PACKED;
}

void
data_init(struct data *d, struct call *c, struct str ns, bool creates)
{
	*d = (struct data){ .call = c, .ns = ns, .creates = creates, .mark = arena_mark(c->arena) };
}

void
data_fini(struct data *d)
{
	struct txn *txn = d->call ? d->call->txn : NULL;

	if (txn && d->is_there)
		txn->events = d->plain.events;
	arena_free(d->validator_arena);
	d->validator_arena = NULL;
	d->validator = NULL;
	mql_collation_free(d->collation);
	d->collation = NULL;
	catalog_db_unref(d->db);
	d->db = NULL;
	d->is_there = false;
}

enum status
data_begin(struct data *d, struct kv_tx *tx)
{
	arena_reset(d->call->arena, d->mark);
	return data_open(d, tx);
}

static enum status
keep_image(struct plain *p, struct kv_store *store, size_t most, struct str bytes,
	   struct plain_doc *ret)
{
	if (bytes.len > most)
		return plain_stage_image(store, p->db, bytes, ret, p->err);
	*ret = plain_doc_of(bytes);
	return STATUS_OK;
}

enum status
data_keep_images_of(struct plain *p, struct kv_store *store, size_t most, struct str before,
		    struct str after)
{
	struct bson_value images, enabled;

	if (!bson_find(plain_options_of(p->db), STR("changeStreamPreAndPostImages"), &images) ||
	    images.type != BSON_DOCUMENT ||
	    !bson_find(bson_text(&images), STR("enabled"), &enabled) || !bson_is_true(&enabled))
		return STATUS_OK;
	TRY(keep_image(p, store, most, before, &p->before));
	return keep_image(p, store, most, after, &p->after);
}

/*
 * A transaction may have created the collection itself. Other transactions cannot write to that, so
 * in it images are only written ahead where a document of that length is, too.
 */
enum status
data_keep_images(struct data *d, struct str before, struct str after)
{
	return data_keep_images_of(&d->plain, d->call->mongo->config.store,
				   d->call->txn ? PLAIN_AHEAD_BYTES : PLAIN_IMAGE_BYTES, before,
				   after);
}

enum status
data_notice(struct data *d, enum plain_notice_kind kind, struct str detail)
{
	return plain_notice_put(d->plain.tx, d->db, kind, d->ns, STR(""), detail, &d->plain.events,
				&d->call->err);
}

/* Before a document is written, which an open transaction may hold (hold.h). */
static enum status
data_claim(void *arg, struct kv_tx *tx, struct str key)
{
	struct call *c = arg;
	struct holds *all = &c->mongo->txns.holds;

	return c->txn ? hold_take(all, &c->txn->holder, tx, key) : hold_await(all, c->client, key);
}

static void
data_init_plain(struct data *d, struct kv_tx *tx)
{
	struct call *c = d->call;

	assert(d->db); /* it borrows the description, which data_fini() gives back */
	plain_init(&d->plain, tx, d->db, 0, &c->err);
	d->plain.claim = data_claim;
	d->plain.claim_arg = c;
	if (c->txn)
		d->plain.events = c->txn->events;
	if (c->txn && c->in_transaction) {
		d->plain.session = c->lsid;
		d->plain.number = c->number;
	}
}

enum status
data_created(struct data *d, struct kv_tx *tx)
{
	struct call *c = d->call;

	catalog_db_unref(d->db);
	d->db = NULL;
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, d->ns, &d->db, &c->err));
	d->is_there = true;
	data_init_plain(d, tx);
	TRY(index_create_of_id(tx, d->db, c->arena, &c->err));
	return data_notice(d, PLAIN_NOTICE_CREATED,
			   plain_options_are_view(plain_options_of(d->db)) ? plain_options_of(d->db)
									   : STR(""));
}

enum status
data_drop(struct call *c, struct kv_tx *tx, struct str ns, bool last, unsigned *events)
{
	const char *dot = memchr(ns.ptr, '.', ns.len);
	struct catalog_db *db;
	enum status status = STATUS_OK;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, ns, &db, NULL));
	/* A view has no documents, whose streams would end with it. */
	if (!plain_options_are_view(plain_options_of(db)))
		status = plain_notice_put(tx, db, PLAIN_NOTICE_DROPPED, ns, STR(""), STR(""),
					  events, &c->err);
	if (status == STATUS_OK && last && dot)
		status = plain_notice_put(tx, db, PLAIN_NOTICE_DATABASE_DROPPED,
					  str_of(ns.ptr, (size_t)(dot - ns.ptr)), STR(""), STR(""),
					  events, &c->err);
	catalog_db_unref(db);
	TRY(status);
	return catalog_delete(tx, CATALOG_SPACE_MONGO, ns, &c->err);
}

/* Drops the collection whose name a renamed one takes: `*ret` describes it, or is empty. */
static enum status
data_drop_target(struct call *c, struct kv_tx *tx, struct str to, unsigned *events, struct str *ret)
{
	struct buf AUTO(buf_release) made = BUF_INIT_OF(BSON_MOST_BYTES, arena_part(c->arena));
	struct catalog_db *db;
	struct bson_builder b;
	enum status status;

	*ret = STR("");
	status = catalog_open(tx, NULL, CATALOG_SPACE_MONGO, to, &db, NULL);
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	bson_open(&b, &made);
	bson_put_binary(&b, STR("dropTarget"), UUID_SUBTYPE, str_of(db->uuid, sizeof(db->uuid)));
	bson_end(&b);
	catalog_db_unref(db);
	TRY(buf_status(&made));
	*ret = buf_dup(&made, c->arena);
	return ret->ptr ? data_drop(c, tx, to, false, events) : STATUS_LIMIT;
}

enum status
data_rename(struct call *c, struct kv_tx *tx, struct str from, struct str to, bool drops_target,
	    unsigned *events)
{
	struct str detail = STR("");
	struct catalog_db *db;
	enum status status;

	if (drops_target)
		TRY(data_drop_target(c, tx, to, events, &detail));
	TRY(catalog_open_bare(tx, NULL, CATALOG_SPACE_MONGO, from, &db, NULL));
	status = plain_rename(tx, from, to, &c->err);
	if (status == STATUS_OK)
		status = plain_notice_put(tx, db, PLAIN_NOTICE_RENAMED, from, to, detail, events,
					  &c->err);
	catalog_db_unref(db);
	return status;
}

enum status
data_refuse_view(struct data *d)
{
	if (!d->db || !plain_options_are_view(plain_options_of(d->db)))
		return STATUS_OK;
	return call_fail(d->call, MONGO_NOT_ON_VIEW, "Namespace %.*s is a view, not a collection",
			 STR_ARG(d->ns));
}

enum status
data_open(struct data *d, struct kv_tx *tx)
{
	struct mongo *m = d->call->mongo;
	/* What a transaction has created nobody else may find in a cache before it is committed. */
	struct catalog_cache *cache = d->call->txn ? NULL : catalog_caches_take(&m->caches);
	struct err *err = &d->call->err;
	struct err ignored = { 0 };
	enum status status;

	data_fini(d);
	d->call->code = 0;
	status = catalog_open(tx, cache, CATALOG_SPACE_MONGO, d->ns, &d->db, &ignored);
	catalog_caches_give(&m->caches, cache);
	if (status == STATUS_NOT_FOUND && d->creates) {
		TRY(plain_create(tx, d->ns, data_scheme(d->call), BSON_EMPTY, err));
		return data_created(d, tx);
	}
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	if (status != STATUS_OK)
		return err_set(err, status, "%s", ignored.text);
	if (!d->takes_views)
		TRY(data_refuse_view(d));
	d->is_there = true;
	data_init_plain(d, tx);
	return STATUS_OK;
}

struct str
data_collation_document(const struct data *d)
{
	struct str options = d->is_there ? plain_options_of(d->db) : BSON_EMPTY;
	struct bson_value collation;

	/* Most collections have no options at all. */
	if (bson_is_empty(options) || plain_options_are_view(options) ||
	    !bson_find(options, STR("collation"), &collation))
		return STR("");
	return bson_text(&collation);
}

enum status
data_collation(struct data *d, struct mql *q, const struct bson_texts **ret)
{
	struct str document = data_collation_document(d);

	if (document.len && !d->collation)
		TRY(mql_collation_new(q, document, &d->collation));
	*ret = mql_collation_texts(d->collation);
	return STATUS_OK;
}

enum status
data_check_collation(const struct data *d)
{
	struct str document = data_collation_document(d);
	struct call *c = d->call;

	if (str_eq(document, c->collation))
		return STATUS_OK;
	TRY(arena_copy(c->arena, document, &c->collation));
	return call_fail(c, MONGO_OTHER_COLLATION, "the collection has another collation");
}

/* ---- The query language ---- */

void
data_mql(struct call *c, struct arena *arena, const struct bson_texts *texts, struct mql *ret)
{
	uint64_t now_ms = steady_date_ms();

	scripts_init(&c->scripts, c);
	*ret = (struct mql){ .arena = arena,
			     .err = &c->err,
			     .texts = texts,
			     .scripts = &c->scripts.scripts,
			     .now_ms = (int64_t)now_ms,
			     .cluster_time = now_ms / 1000 << 32 | 1 };
}

enum status
data_mql_status(struct call *c, const struct mql *q, enum status status)
{
	if (status != STATUS_OK && q->code)
		c->code = q->code;
	return status;
}

void
data_mql_take_code(struct call *c, struct mql *q)
{
	if (c->code)
		q->code = c->code;
	c->code = 0;
}

enum status
data_let(struct mql *q, struct str let, const struct mql_scope **ret_scope,
	 const struct mql_bound **ret_bound)
{
	const struct mql_env env = { .root = BSON_EMPTY, .current = MQL_NO_VALUE };
	struct mql_bound *bound;
	struct mql_expr *expr;
	struct bson_element e;
	struct bson_iter i;

	for (bson_iter_begin(&i, let); bson_iter_read(&i, &e);) {
		bound = arena_alloc(q->arena, sizeof(*bound));
		if (!bound)
			return STATUS_LIMIT;
		TRY(mql_scope_check_name(q, e.name));
		TRY(mql_expr_compile(q, &e.value, NULL, &expr));
		TRY(mql_expr_run(expr, q, &env, &bound->value));
		TRY(mql_scope_add(q, *ret_scope, e.name, ret_scope));
		bound->outer = *ret_bound;
		*ret_bound = bound;
	}
	return STATUS_OK;
}

/* ---- Documents ---- */

static enum status
check_id(struct call *c, const struct bson_value *id)
{
	struct bson_element e;
	struct bson_iter i;

	if (id->type == BSON_ARRAY || id->type == BSON_REGEX || id->type == BSON_UNDEFINED)
		return call_fail(c, MONGO_INVALID_ID_FIELD, "The '_id' value cannot be of type %s",
				 bson_type_name(id->type));
	if (id->type != BSON_DOCUMENT)
		return STATUS_OK;
	for (bson_iter_begin(&i, bson_text(id)); bson_iter_read(&i, &e);)
		if (e.name.len && e.name.ptr[0] == '$')
			return call_fail(
				c, MONGO_DOLLAR_PREFIXED,
				"_id fields may not contain '$'-prefixed fields: %.*s is not "
				"valid for storage.",
				(int)(e.name.len < 100 ? e.name.len : 100), e.name.ptr);
	return STATUS_OK;
}

enum status
data_document(struct call *c, struct str doc, struct str *ret)
{
	struct buf AUTO(buf_release) made = BUF_INIT_OF(BSON_MOST_BYTES, arena_part(c->arena));
	char fresh[BSON_OBJECT_ID_BYTES];
	struct bson_element e;
	struct bson_builder b;
	struct bson_value id;
	struct bson_iter i;
	bool first = true;

	if (doc.len > MONGO_DOCUMENT_BYTES)
		return call_fail(c, MONGO_BSON_TOO_LARGE,
				 "object to insert too large. size in bytes: %zu, max size: %d",
				 doc.len, MONGO_DOCUMENT_BYTES);
	bson_iter_begin(&i, doc);
	if (bson_iter_read(&i, &e) && str_eq(e.name, STR("_id"))) {
		*ret = doc;
		return check_id(c, &e.value);
	}
	if (bson_find(doc, STR("_id"), &id)) {
		TRY(check_id(c, &id));
	} else {
		bson_object_id_new((uint32_t)(steady_date_ms() / 1000), fresh);
		id = (struct bson_value){ .type = BSON_OBJECT_ID,
					  .as_text = str_of(fresh, sizeof(fresh)) };
	}
	bson_open(&b, &made);
	bson_put(&b, STR("_id"), &id);
	for (bson_iter_begin(&i, doc); bson_iter_read(&i, &e);) {
		if (first && str_eq(e.name, STR("_id"))) {
			first = false;
			continue;
		}
		bson_put_element(&b, &e);
	}
	bson_end(&b);
	return buf_copy(&made, c->arena, ret);
}

void
data_list_begin(struct data_list *l, const struct arg_value *arg)
{
	*l = (struct data_list){ .sequence = arg->sequence, .is_array = !arg->sequence.ptr };
	if (l->is_array)
		bson_iter_begin(&l->iter, bson_text(&arg->value));
}

bool
data_list_next(struct data_list *l, struct str *ret)
{
	struct bson_element e;

	if (!l->is_array)
		return wire_document_cut(&l->sequence, ret);
	if (!bson_iter_read(&l->iter, &e))
		return false;
	*ret = e.value.type == BSON_DOCUMENT ? bson_text(&e.value) : STR("");
	return true;
}

/* ---- Write concern ---- */

static bool
find_concern(struct call *c, struct bson_value *ret)
{
	struct bson_value concern;

	return bson_find(c->body, STR("writeConcern"), &concern) && concern.type == BSON_DOCUMENT &&
	       bson_find(bson_text(&concern), STR("w"), ret);
}

enum status
data_check_concern(struct call *c)
{
	struct bson_value w;
	int64_t n;

	if (!find_concern(c, &w) || (bson_to_int64(&w, &n) && n >= 0 && n <= 50) ||
	    w.type == BSON_STRING)
		return STATUS_OK;
	return call_fail(c, MONGO_FAILED_TO_PARSE,
			 "w has to be a number from 0 to 50, or a string");
}

void
data_put_concern(struct call *c)
{
	struct bson_value w;
	char name[32];
	int64_t n;
	int code = 0;

	if (!find_concern(c, &w))
		return;
	if (w.type == BSON_STRING && !str_eq(bson_text(&w), STR("majority")))
		code = MONGO_UNKNOWN_WRITE_CONCERN;
	else if (w.type != BSON_STRING && bson_to_int64(&w, &n) && n > 1)
		code = MONGO_UNSATISFIABLE_WRITE_CONCERN;
	if (!code)
		return;
	bson_begin_document(c->reply, STR("writeConcernError"));
	bson_put_int32(c->reply, STR("code"), code);
	bson_put_string(c->reply, STR("codeName"), str_from_cstr(mongo_code_name(code, name)));
	bson_put_string(c->reply, STR("errmsg"),
			code == MONGO_UNKNOWN_WRITE_CONCERN
				? STR("No write concern mode with that name found in replica set "
				      "configuration")
				: STR("Not enough data-bearing nodes"));
	bson_end(c->reply);
}
