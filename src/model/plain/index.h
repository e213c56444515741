/*
 * Indexes of collections, kept by the engine (index/engine): which there are, creating them, what
 * they hold of a document.
 *
 * An index is described by a document, as clients write it: {key: {"a.b": 1, c: -1, d: "hashed"},
 * name, unique, sparse, partialFilterExpression, collation} are the model's, and all other members
 * the caller's. The collation has all of its members, as mql_collation_document() has them.
 * index_set_of() (index/engine/def.h) has those of an opened collection, whose `spec` is that
 * document. Writers (plain.h) keep all of them in the transaction of the write.
 *
 * Threading: on the thread or fiber that has the transaction.
 */
#ifndef FROND_MODEL_PLAIN_INDEX_H
#define FROND_MODEL_PLAIN_INDEX_H

#include "index/engine/build.h"
#include "model/plain/plain.h"

/* The name of the index of its `_id`s that a collection with a collation has. */
#define PLAIN_ID_INDEX "_id_"

/*
 * True if the collection has a collation. It should then have PLAIN_ID_INDEX, which keeps apart the
 * `_id`s that the collation holds equal; the documents themselves lie in the order of bytes.
 */
bool plain_wants_id_index(const struct catalog_db *db);

/*
 * Creates an index: READY if the collection has no documents, else BUILDING, and the chore of
 * index/engine/build.h builds it, or index_build_run(). The caller has looked whether there is such
 * an index. STATUS_INVALID, explained, for a description that is none; STATUS_LIMIT, explained.
 */
MUST_USE enum status plain_index_create(struct kv_tx *tx, const struct catalog_db *db,
					struct str spec, struct arena *arena, uint64_t *ret_number,
					struct err *err);

/* How index_build_run() is told of an index of the collection. `name` outlives the key. */
struct index_build_key plain_index_build_key(const struct catalog_db *db, struct str name,
					     uint64_t number);

/*
 * Why the index of this collection has failed: looks at the first document that its `failure`
 * names. STATUS_DUPLICATE or STATUS_UNSUPPORTED, with p->refused; STATUS_NOT_FOUND: the document
 * is gone, or the index could have it by now.
 */
MUST_USE enum status plain_index_failure(struct plain *p, const struct index_def *def,
					 struct arena *arena);

/* Appends the bytes of the key of an `_id`, as entries have them. */
MUST_USE enum status plain_index_id(const struct bson_value *id, struct buf *ret, struct err *err);

/* The document of an entry, as entries are made of it. */
struct index_source plain_index_source(struct str id_key, struct str document);

#endif
