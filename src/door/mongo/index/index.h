/*
 * Indexes as clients describe them and are told of them.
 *
 * Plain functions on the caller's memory.
 */
#ifndef FROND_DOOR_MONGO_INDEX_INDEX_H
#define FROND_DOOR_MONGO_INDEX_INDEX_H

#include "door/mongo/txn/command.h"
#include "door/mongo/txn/index_id.h"

enum {
	INDEX_LIST = 64, /* of one collection, with that of `_id` */
};

/*
 * Checks a client's description of an index. `*ret` is the description that is stored and listed,
 * in the arena: its collation has all members, and for the locale "simple" there is none. Fails
 * with MongoDB's codes; kinds of indexes that are not there are refused by their names.
 */
MUST_USE enum status index_read_spec(struct call *c, struct str given, struct str *ret);

/* Fails for an option that the index by `_id` cannot have. */
enum status index_fail_id_option(struct call *c, struct str name);

/*
 * Adds the collation of the collection, a document with all members, to a description that has
 * none. In the arena.
 */
MUST_USE enum status index_spec_collate(struct call *c, struct str spec, struct str collation,
					struct str *ret);

/* True for the index by `_id`, which every collection has. */
bool index_key_is_id(struct str key);

/* Those that clients are told of beside that of `_id`. NULL behind the last. */
const struct index_def *index_at(const struct catalog_db *db, size_t at);
size_t index_count_all(const struct catalog_db *db); /* with that of `_id` */
/* As MongoDB counts them: without that of `_id` where the collection is clustered by it. */
size_t index_count_told(const struct catalog_db *db);
struct str index_key_of(const struct index_def *def);
/* Fails if there is no index with this key, or if there are several. */
MUST_USE enum status index_find_by_key(struct call *c, const struct catalog_db *db, struct str key,
				       const struct index_def **ret);
/* Appends the description of the index by `_id`. */
void index_put_id(struct bson_builder *b, struct str name);
/* That of a collection as a document by itself; it may be clustered. */
void index_put_only_id(struct bson_builder *b, const struct catalog_db *db);

/*
 * Compares a spec with one that is there, or is to be made before it: true in `*ret` if they are of
 * one index. Fails for two that cannot both be there: of one name, or of one key and the same
 * `unique`, `sparse`, `partialFilterExpression` and `collation`.
 */
MUST_USE enum status index_check_conflict(struct call *c, struct str existing, struct str spec,
					  bool *ret);
/* The index that a spec is of already, in `*ret`; NULL: there is none. Fails likewise. */
MUST_USE enum status index_find_same(struct call *c, const struct catalog_db *db, struct str spec,
				     const struct index_def **ret);

/*
 * After STATUS_DUPLICATE or STATUS_UNSUPPORTED of a writer: sets MongoDB's code and text, and
 * returns STATUS_INVALID.
 */
enum status index_fail(struct call *c, struct str ns, const struct plain_refused *refused,
		       enum status status);

/*
 * The same for a failure of the whole command, whose answer has the members of the duplicate; and
 * that of an `_id`. They are left out where they are too large.
 */
enum status index_fail_command(struct call *c, struct str ns, const struct plain_refused *refused,
			       enum status status);
enum status index_fail_id(struct call *c, struct str ns, const struct bson_value *id);

/* Appends keyPattern and keyValue of a duplicate. */
void index_put_duplicate(struct bson_builder *b, const struct plain_refused *refused);
void index_put_duplicate_id(struct bson_builder *b, const struct bson_value *id);

#endif
