/*
 * What a check of a database reads with (verify.h): the kinds' functions `verify` use it. Single
 * reads, ranges that are gone through side by side, and findings.
 *
 * A check belongs to its caller's stack. Threading: any thread that may wait.
 */
#ifndef FROND_CATALOG_CHECK_H
#define FROND_CATALOG_CHECK_H

#include "catalog/catalog.h"
#include "catalog/keys.h"
#include "catalog/verify.h"

/* Kinds of findings that every kind of database can have; models add their own. */
#define CATALOG_FINDING_KEY "unknown_key" /* a key that means nothing where it is */
/* bytes of a file do not match their checksum, so that keys cannot be read */
#define CATALOG_FINDING_DAMAGE      "damage"
#define CATALOG_FINDING_VALUE       "unreadable_value" /* a value that cannot be read */
#define CATALOG_FINDING_NEWER       "newer_format"     /* a record of a newer frond */
#define CATALOG_FINDING_NO_DATABASE "no_database"      /* keys of a database that does not exist */
#define CATALOG_FINDING_DATABASE    "database"         /* its name or number cannot be right */
#define CATALOG_FINDING_TALLY       "tally" /* counters of a range do not equal the count */

struct catalog_verify {
	struct kv_tx *tx;
	/*
	 * Nobody writes to what is checked, so that it can be read at several versions: each cursor
	 * has a transaction of its own, and reads that fail are made again.
	 */
	bool still;
	const struct catalog_verify_options *options;
	struct catalog_verify_sum sum;
	uint64_t read_version;
	struct arena *scratch; /* of one pair; cleared with the next one */
	struct buf key;        /* of a single read, or of a finding */
	struct buf value;      /* what should be there */

	enum status failed; /* of a read by the check of a pair of the root, which ends the walk */

	const struct catalog_db *db; /* that is being checked; NULL: the store */
	void *own;                   /* of the function that checks a database of its kind */
};

/* `kind`: a static name. */
void catalog_verify_found(struct catalog_verify *v, const char *kind, struct str key,
			  const char *fmt, ...) PRINTF(4, 5);

/*
 * Tells of a record that cannot be parsed: STATUS_NEWER by the text in `err`, anything else by
 * `text`.
 */
void catalog_verify_unreadable(struct catalog_verify *v, enum status status, const struct err *err,
			       struct str key, const char *text);

/*
 * After a read of v->tx that has failed with `status`: STATUS_OK if it can be made again, at
 * another version; otherwise `status`. `failures` begins with 0.
 */
MUST_USE enum status catalog_verify_again(struct catalog_verify *v, unsigned *failures,
					  enum status status);

/* Single reads, answered; the answer is to be used and freed before the next one. */
MUST_USE enum status catalog_verify_get(struct catalog_verify *v, struct str key,
					struct kv_future **ret);
MUST_USE enum status catalog_verify_get_range(struct catalog_verify *v, struct str begin,
					      struct str end,
					      const struct kv_range_options *options,
					      struct kv_future **ret);
/* The first key with begin <= key < end, copied to `ret`. STATUS_NOT_FOUND. */
MUST_USE enum status catalog_verify_first_key(struct catalog_verify *v, struct str begin,
					      struct str end, struct buf *ret);

/* ---- Going through ranges ---- */

struct catalog_verify_cursor {
	struct kv_scan scan;
	struct kv_tx *own;   /* of what stands still */
	struct kv_pair pair; /* valid until the next step */
	struct str tail;     /* the key behind the subspace's prefix */
	size_t prefix_len;
	bool done;
};

/* Stands at the first pair of a subspace of v->db, and then at the next one, if there is one. */
MUST_USE enum status catalog_verify_cursor_open(struct catalog_verify *v,
						struct catalog_verify_cursor *c, uint64_t space);
/* The same for everything that begins with the bytes in v->key. */
MUST_USE enum status catalog_verify_cursor_open_at(struct catalog_verify *v,
						   struct catalog_verify_cursor *c);
MUST_USE enum status catalog_verify_cursor_next(struct catalog_verify *v,
						struct catalog_verify_cursor *c);
void catalog_verify_cursor_close(struct catalog_verify_cursor *c);

/* One pair has been read: counts it. */
void catalog_verify_count(struct catalog_verify *v, const struct kv_pair *pair);

/* ---- Parts of the root that belong to modules above the catalog ---- */

enum {
	CATALOG_ROOT_CHECKS = 8,
};

/*
 * Checks one pair; `key` is at what follows the part. Sets v->failed when it cannot read another
 * pair that it needs.
 */
typedef void catalog_root_check(struct catalog_verify *v, struct tuple_reader key,
				const struct kv_pair *pair);

/*
 * Registers the function that checks the keys (ROOT, part, …). Must be called before other threads
 * start; a repeated call changes nothing.
 */
void catalog_verify_register(uint64_t part, catalog_root_check *check);

/* ---- Elements ---- */

/* The next element as it is encoded, if it is of that kind and not empty. */
bool catalog_verify_text_next(struct tuple_reader *r, enum tuple_kind kind, struct str *ret);

/* Incarnation and versionstamp. */
bool catalog_verify_seq_next(struct tuple_reader *r, struct catalog_seq *ret);

/* ---- What every kind has (verify_tallies.c) ---- */

/* The counters by range of v->db, of all lists of its kind. */
MUST_USE enum status catalog_verify_tallies(struct catalog_verify *v);

#endif
