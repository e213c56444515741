/*
 * Clustered collections. frond keeps every collection by its `_id`, so one that was created with
 * `clusteredIndex` is kept as all others; it says to clients what it is, and documents whose `_id`
 * is a date may expire by that. Its options have `clusteredIndex`, {v: 2, key: {_id: 1}, name,
 * unique: true}, and `expireAfterSeconds`, an int64, if documents expire.
 *
 * Plain functions on the caller's memory.
 */
#ifndef FROND_DOOR_MONGO_INDEX_CLUSTERED_H
#define FROND_DOOR_MONGO_INDEX_CLUSTERED_H

#include "catalog/catalog.h"
#include "door/mongo/txn/command.h"

/* Members of `create` and `collMod` that are for a clustered collection. */
struct clustered_ask {
	struct str index; /* clusteredIndex as it is kept; empty: the collection is not clustered */
	bool expires;     /* expireAfterSeconds was given; */
	bool off;         /* "off", which is for collMod */
	int64_t seconds;
};

/*
 * True in `*ret_known` for such a member, which is then read. Fails with MongoDB's codes for one
 * that is wrong in itself.
 */
MUST_USE enum status clustered_read(struct call *c, const struct bson_element *e,
				    struct clustered_ask *ask, bool *ret_known);
/*
 * Fails for another member of `create`, `name`, that does not go together with clusteredIndex, if
 * the command has that.
 */
MUST_USE enum status clustered_check_member(struct call *c, struct str name);
/* Fails for documents that would expire by an `_id` that the collection is not clustered by. */
MUST_USE enum status clustered_check(struct call *c, const struct clustered_ask *ask,
				     bool is_clustered);

/* Appends what was asked for as options of a new collection. */
void clustered_put(const struct clustered_ask *ask, struct bson_builder *b);
/* The options of a collection with what collMod asks for, in the call's arena. */
MUST_USE enum status clustered_modify(struct call *c, const struct clustered_ask *ask,
				      struct str options, struct str *ret);

/* The collection's clusteredIndex; empty: it is not clustered, or a view. */
struct str clustered_of(const struct catalog_db *db);
/* After how many seconds documents expire by their `_id`; false: never. */
bool clustered_expires(const struct catalog_db *db, int64_t *ret_seconds);
/* Appends the members of the clustered index, as listIndexes tells it. */
void clustered_put_index(struct bson_builder *b, const struct catalog_db *db);

#endif
