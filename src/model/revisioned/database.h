/*
 * Databases of documents with revisions: how they are made, opened, set and summed up.
 *
 * Every function that takes a transaction leaves the commit to its caller, and may be called again
 * in the next attempt. What is returned lives in the arena given. Threading: that of the
 * transaction.
 */
#ifndef FROND_MODEL_DATABASE_H
#define FROND_MODEL_DATABASE_H

#include "base/arena.h"
#include "catalog/catalog.h"
#include "catalog/seq.h"
#include "kv/kv.h"

enum {
	/* _revs_limit: revisions that a branch remembers, its head included, as in CouchDB. */
	REV_LIMIT_DEFAULT = 1000,
	REV_LIMIT_MAX = 4000,
};

/* The numbers of the subspaces in keys. Stored: never renumber. */
enum rev_subspace {
	REV_SUBSPACE_ALL_DOCS = 1,
	REV_SUBSPACE_CHANGES = 2,
	REV_SUBSPACE_REVISIONS = 3,
	REV_SUBSPACE_DOCUMENTS = 4,
	REV_SUBSPACE_LOCAL = 5,
	REV_SUBSPACE_ATTACHMENTS = 6,
	REV_SUBSPACE_INDEXES = 7,
	REV_SUBSPACE_CONFIG = 8,
	REV_SUBSPACE_STATS = 9,
	REV_SUBSPACE_TALLIES = 10,
	REV_SUBSPACE_PURGES = 11,
	REV_SUBSPACE_ENTRIES = 12, /* of indexes (index/engine/entry.h) */
	REV_SUBSPACE_PARTITIONS = 13,
	REV_SUBSPACE_VIEWS = 14, /* index/view/keys.h */
};

/*
 * How the bodies of a database's documents are kept : a property of the database that says
 * what is written from now on. Reading takes every revision as it is, so that it can be changed at
 * any time. Stored: never renumber.
 */
enum rev_scheme {
	REV_SCHEME_EXPLODED = 1, /* a key-value pair for each leaf */
	REV_SCHEME_PACKED = 2,   /* up to DOC_PACKED_BYTES one value; leaves above that */

	REV_SCHEME_DEFAULT = REV_SCHEME_PACKED, /* why: docs/ARCHITECTURE.md */
};

/* The kind, to be registered at the catalog before any database is opened; again is fine. */
void rev_register(void);

/* What the options of a description mean. */
enum rev_option {
	REV_OPTION_SCHEME,
	REV_OPTION_REVS_LIMIT,
	REV_OPTION_PARTITIONED, /* 1: ids are "partition:rest" (partition.h); for life */
};

static inline enum rev_scheme
rev_db_scheme(const struct catalog_db *db)
{
	return (enum rev_scheme)db->options[REV_OPTION_SCHEME];
}

static inline uint32_t
rev_db_revs_limit(const struct catalog_db *db)
{
	return (uint32_t)db->options[REV_OPTION_REVS_LIMIT];
}

static inline bool
rev_db_is_partitioned(const struct catalog_db *db)
{
	return db->options[REV_OPTION_PARTITIONED] != 0;
}

/*
 * The scheme that the database had when the cache last met it; `unknown` if it has not. For taking
 * a document in the form that it is likely to be kept in: rev_write() copes with the other.
 */
enum rev_scheme rev_cache_scheme(const struct catalog_cache *cache, struct str name,
				 enum rev_scheme unknown);

/* CouchDB's rule: a-z first, then a-z 0-9 _ $ ( ) + - / ; or _users, _replicator, _global_changes.
 */
bool rev_db_name_valid(struct str name);

/*
 * STATUS_EXISTS; STATUS_INVALID for the name; STATUS_UNAVAILABLE while a database of this name is
 * being moved here. Touches the metadata version.
 */
MUST_USE enum status rev_db_create(struct kv_tx *tx, struct str name, enum rev_scheme scheme,
				   struct err *err);

/* Does the same for a database whose documents are in partitions (partition.h). */
MUST_USE enum status rev_db_create_partitioned(struct kv_tx *tx, struct str name,
					       enum rev_scheme scheme, struct err *err);

/*
 * The database's description as this transaction sees it; conflicts with its deletion. Reads no key
 * when the cache has it (cache may be NULL). The reference is the caller's. STATUS_NOT_FOUND
 * ("Database does not exist.").
 */
MUST_USE enum status rev_db_open(struct kv_tx *tx, struct catalog_cache *cache, struct str name,
				 struct catalog_db **ret, struct err *err);

/* The same by catalog_open_bare(), for a request that only reads documents. */
MUST_USE enum status rev_db_open_bare(struct kv_tx *tx, struct catalog_cache *cache,
				      struct str name, struct catalog_db **ret, struct err *err);

/* catalog_open_cached() of a revisioned database. */
struct catalog_db *rev_db_cached(struct kv_tx *tx, struct catalog_cache *cache, struct str name);

struct rev_db_info {
	uint64_t doc_count; /* whose winner is not deleted */
	uint64_t doc_del_count;
	/* Of the newest change or purge; the beginning in an empty database. Never goes back. */
	struct catalog_seq update_seq;
	struct catalog_seq purge_seq; /* of the newest purge; the beginning where there was none */
};

MUST_USE enum status rev_db_info(struct kv_tx *tx, const struct catalog_db *db,
				 struct rev_db_info *ret);

/* Reads only the database's update_seq, by two reads. */
MUST_USE enum status rev_db_newest(struct kv_tx *tx, const struct catalog_db *db,
				   struct catalog_seq *ret);

/* The key that every change of the database's documents writes: what a feed watches. In the arena.
 */
MUST_USE enum status rev_db_watch_key(const struct catalog_db *db, struct arena *arena,
				      struct str *ret);

/* Named settings of a database: opaque text such as the security object. NOT_FOUND when never set.
 */
MUST_USE enum status rev_config_get(struct kv_tx *tx, const struct catalog_db *db, struct str name,
				    struct arena *arena, struct str *ret);
/* The same in two halves: rev_config_ask() waits for nothing. */
MUST_USE enum status rev_config_ask(struct kv_tx *tx, const struct catalog_db *db, struct str name,
				    struct kv_future **ret);
MUST_USE enum status rev_config_wait(struct kv_future *f, struct arena *arena, struct str *ret);
MUST_USE enum status rev_config_set(struct kv_tx *tx, const struct catalog_db *db, struct str name,
				    struct str value, struct err *err);
/* 1 to REV_LIMIT_MAX, otherwise STATUS_INVALID. Touches the metadata version. */
MUST_USE enum status rev_limit_set(struct kv_tx *tx, const struct catalog_db *db, uint32_t limit,
				   struct err *err);

/* What is written from now on. Touches the metadata version. */
MUST_USE enum status rev_scheme_set(struct kv_tx *tx, const struct catalog_db *db,
				    enum rev_scheme scheme, struct err *err);

/* "exploded", "packed"; STATUS_INVALID for any other name. */
MUST_USE enum status rev_scheme_parse(struct str name, enum rev_scheme *ret);
const char *rev_scheme_name(enum rev_scheme scheme);

/* For struct doc_limits: what is taken packed for a database with this scheme. */
size_t rev_scheme_packed_bytes(enum rev_scheme scheme);

#endif
