/*
 * Collections, as commands work with them: opened in a transaction; documents out of requests.
 *
 * Whatever a transaction's body makes outside of the transaction is memory of the call's arena,
 * which data_begin() gives back when the body runs again.
 */
#ifndef FROND_DOOR_MONGO_TXN_DATA_H
#define FROND_DOOR_MONGO_TXN_DATA_H

#include "door/mongo/txn/command.h"
#include "model/plain/plain.h"
#include "mql/expr/expr.h"

enum {
	DATA_PAGE_DOCS = 1000,         /* that one transaction writes */
	DATA_PAGE_BYTES = 1000 * 1000, /* likewise, of KV_LIMIT_TX_BYTES */
	DATA_NS_BYTES = 235,           /* of "db.collection" */
};

/* ---- Collections ---- */

/* "db.collection", in the arena. STATUS_LIMIT. */
MUST_USE enum status data_ns(struct call *c, struct str *ret);

struct validator;

/* A collection in one attempt of a transaction. */
struct data {
	struct call *call;
	struct str ns;
	bool creates;     /* it is made if it is not there */
	bool takes_views; /* a view is opened as the empty collection that it is kept as */
	bool is_there;
	struct arena_mark mark; /* of the call's arena, before the first attempt */
	struct catalog_db *db;
	struct plain plain;
	struct validator *validator;     /* validate.h; NULL: not needed so far */
	struct arena *validator_arena;   /* it lies there */
	struct mql_collation *collation; /* data_collation(); NULL: not needed so far, or none */
};

/* To be called before the transaction. */
void data_init(struct data *d, struct call *c, struct str ns, bool creates);
/* The scheme of collections for which none is asked. */
enum plain_scheme data_scheme(const struct call *c);
/*
 * Opens the collection in the transaction; each attempt begins with it. `d->is_there` is false for
 * a collection that nobody has made. Fails with MONGO_NOT_ON_VIEW for a view, unless
 * d->takes_views.
 */
MUST_USE enum status data_begin(struct data *d, struct kv_tx *tx);
/* The same, and leaves the call's arena as it is. */
MUST_USE enum status data_open(struct data *d, struct kv_tx *tx);
void data_fini(struct data *d);
/* Fails with MONGO_NOT_ON_VIEW if a view was opened, because of d->takes_views. */
MUST_USE enum status data_refuse_view(struct data *d);

/* ---- Its collation: what compares strings where a command names none ---- */

/* The whole document; empty: bytes are compared, or there is no collection. */
struct str data_collation_document(const struct data *d);
/* How strings are compared, NULL: by bytes. Valid until the collection is opened again. */
MUST_USE enum status data_collation(struct data *d, struct mql *q, const struct bson_texts **ret);
/*
 * The command is run by c->collation. If the collection has another one, sets that and fails with
 * MONGO_OTHER_COLLATION, so that the command is run again by it (call_runs_again()).
 */
MUST_USE enum status data_check_collation(const struct data *d);
/* What a command or a statement names, unless it is empty; else that of its collection. */
static inline struct str
data_choose_collation(struct str given, struct str of_collection)
{
	return given.len && !bson_is_empty(given) ? given : of_collection;
}

/*
 * Called before a document is changed: if the collection keeps images of its documents
 * (changeStreamPreAndPostImages), the event of the change will have these two, one of which may be
 * empty. An image of more than `most` bytes is written ahead by transactions of its own, each time
 * that this is called: so it should come last of what may fail the attempt.
 */
MUST_USE enum status data_keep_images_of(struct plain *p, struct kv_store *store, size_t most,
					 struct str before, struct str after);
MUST_USE enum status data_keep_images(struct data *d, struct str before, struct str after);

/* ---- What becomes of collections, with the notices of it that change streams tell ---- */

/* The collection that this transaction has just created: opens it, and writes the notice. */
MUST_USE enum status data_created(struct data *d, struct kv_tx *tx);
/* Writes a notice about the opened collection. `detail` is a document, or empty. */
MUST_USE enum status data_notice(struct data *d, enum plain_notice_kind kind, struct str detail);
/*
 * Drops a collection, and with the `last` one its database. `*events` counts what the transaction
 * has logged. STATUS_NOT_FOUND.
 */
MUST_USE enum status data_drop(struct call *c, struct kv_tx *tx, struct str ns, bool last,
			       unsigned *events);
/*
 * Renames one. A collection that has the new name already is dropped before if `drops_target`, and
 * told in the notice. STATUS_NOT_FOUND; STATUS_EXISTS.
 */
MUST_USE enum status data_rename(struct call *c, struct kv_tx *tx, struct str from, struct str to,
				 bool drops_target, unsigned *events);

/* ---- The query language ---- */

/* Surroundings of an evaluation, with what it makes in `arena`. */
void data_mql(struct call *c, struct arena *arena, const struct bson_texts *texts, struct mql *ret);
/* Passes a status on, with MongoDB's number for a failure. */
enum status data_mql_status(struct call *c, const struct mql *q, enum status status);
/*
 * The other way round: hands the call's number for a failure to `q`, for mql_batch_run() to keep
 * until it is told.
 */
void data_mql_take_code(struct call *c, struct mql *q);
/* The variables of `let`, a document or empty, and their values, which no document changes. */
MUST_USE enum status data_let(struct mql *q, struct str let, const struct mql_scope **ret_scope,
			      const struct mql_bound **ret_bound);

/* ---- Documents ---- */

/*
 * A document that is to be stored, in the arena: with its `_id` in front, which is made if there is
 * none. Fails for an `_id` of a type that none can have.
 */
MUST_USE enum status data_document(struct call *c, struct str doc, struct str *ret);

/* The documents of an argument, one after the other. */
struct data_list {
	struct str sequence;
	struct bson_iter iter;
	bool is_array;
};

void data_list_begin(struct data_list *l, const struct arg_value *arg);
/* False at the end. An element that is no document is an empty str. */
bool data_list_next(struct data_list *l, struct str *ret);

/* ---- Write concern ---- */

/* Fails for one that makes no sense. Every write is on disk before it is answered. */
MUST_USE enum status data_check_concern(struct call *c);
/* Appends the writeConcernError of one that a single member cannot fulfil. */
void data_put_concern(struct call *c);

#endif
