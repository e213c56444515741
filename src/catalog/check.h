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
#define CATALOG_FINDING_TALLY       "tally"     /* counters of a range do not equal the count */
#define CATALOG_FINDING_UNCHECKED   "unchecked" /* in ranges: it takes too long for one version */

struct catalog_verify_held;

struct catalog_verify {
	struct kv_tx *tx;
	/*
	 * Nobody writes to what is checked, so that it can be read at several versions: each cursor
	 * has a transaction of its own, and reads that fail are made again.
	 */
	bool still;
	bool gone; /* in ranges: the database was deleted meanwhile */
	/* Findings of the range that is being checked; NULL: no range is, and they are told. */
	struct catalog_verify_held *held;
	/* Keeps a finding for the range's end. False without memory for that. */
	bool (*hold)(struct catalog_verify *v, const struct catalog_finding *finding);
	const struct catalog_verify_options *options;
	struct catalog_verify_sum sum;
	uint64_t read_version;
	struct arena *scratch; /* of one pair; cleared with the next one */
	struct buf key;        /* of a single read, or of a finding */
	struct buf value;      /* what should be there */

	/*
	 * There was no memory to parse a pair, which may be a good one. From then on no finding is
	 * reported, and the check ends with STATUS_NOMEM.
	 */
	bool starved;
	enum status failed; /* of a read by the check of a pair of the root, which ends the walk */

	const struct catalog_db *db; /* that is being checked; NULL: the store */
	void *own;                   /* of the function that checks a database of its kind */
};

/*
 * Looks at what a parser has returned. True if it has read the pair. Otherwise the caller reports a
 * finding; if the parser had no memory, this sets `starved`, and the finding is left out.
 */
MUST_USE bool catalog_verify_parsed(struct catalog_verify *v, enum status status);

/* The same of a parser that used this arena in place of `scratch`, for which memory may lack. */
MUST_USE bool catalog_verify_parsed_in(struct catalog_verify *v, enum status status,
				       const struct arena *arena);

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
	bool begins_unit; /* in a catalog_verify_walk(): the pair is the first one of a unit */
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

/* The same from prefix and subspace on, behind which `from` is put. */
MUST_USE enum status catalog_verify_cursor_open_from(struct catalog_verify *v,
						     struct catalog_verify_cursor *c,
						     uint64_t space, struct str from);

/* One pair has been read: counts it. */
void catalog_verify_count(struct catalog_verify *v, const struct kv_pair *pair);

/* ---- Ranges, while others write (verify_ranges.c) ---- */

/* The part of a list, in the order of its keys, that is checked at one version. */
struct catalog_verify_range {
	struct buf from; /* it begins there; empty: at the beginning of the list */
	struct buf next; /* the body puts where the next one begins */
	bool more;       /* and sets this if there is one */
	bool skips;      /* the first unit of it cannot be read in time: pass it over */
	size_t most;     /* units, such as documents, that it has at most */
	size_t units;    /* counted by catalog_verify_range_is_full() */
	uint64_t until_ns;
	void *arg;
};

/*
 * True if the range ends in front of the unit that comes now. Its first one is always in it.
 */
bool catalog_verify_range_is_full(struct catalog_verify_range *range);

enum catalog_verify_unit {
	CATALOG_VERIFY_CHECK, /* it is to be checked */
	CATALOG_VERIFY_PASS,  /* it takes too long, and was told as not checked */
	CATALOG_VERIFY_END,   /* the range ends in front of it, and the next one begins there */
};

/*
 * For a body that goes through a list: what becomes of the unit whose first key the cursor is at,
 * `what` it is. The next range begins at the key's tail.
 */
enum catalog_verify_unit catalog_verify_range_unit(struct catalog_verify *v,
						   struct catalog_verify_range *range,
						   const struct catalog_verify_cursor *c,
						   const char *what);

/*
 * Checks a range in v->tx. May be called again for the same range, so that all that it leaves
 * elsewhere has to be left at its successful end.
 */
typedef enum status catalog_verify_range_body(struct catalog_verify *v,
					      struct catalog_verify_range *range);

/*
 * Calls the body for one range after the other, each in a transaction of its own, as fast as
 * options->rate_bytes lets it. Ends early, with STATUS_OK, once the database is gone.
 */
MUST_USE enum status catalog_verify_ranges(struct catalog_verify *v,
					   catalog_verify_range_body *body, void *arg);

/* A subspace of v->db, in the order of its keys, in units whose pairs are read at one version. */
struct catalog_verify_walk {
	uint64_t space;
	const char *what; /* a unit is, such as "the document" */
	/*
	 * How much of a tail all pairs of its unit begin with; 0 for a pair that belongs to the
	 * one in front of it. NULL: each pair is a unit.
	 */
	size_t (*unit)(const struct catalog_verify *v, const struct catalog_verify_cursor *c);
	enum status (*check)(struct catalog_verify *v, const struct catalog_verify_cursor *c,
			     void *arg);
	void *arg;
};

/* Checks pair by pair what belongs to the range, or all of the subspace. `range`: NULL for all. */
MUST_USE enum status catalog_verify_walk(struct catalog_verify *v,
					 const struct catalog_verify_walk *walk,
					 struct catalog_verify_range *range);

typedef enum status catalog_verify_part(struct catalog_verify *v);

/* What has to be read at one version, whatever its size. */
struct catalog_verify_whole {
	catalog_verify_part *part;
	const char *what; /* it is, for the finding that it was not checked */
};

/* A range that is all of it: `arg` is a struct catalog_verify_whole. */
MUST_USE enum status catalog_verify_whole_body(struct catalog_verify *v,
					       struct catalog_verify_range *range);
/* Checks it. If that takes too long, it is told as not checked, with `what` it is. */
MUST_USE enum status catalog_verify_once(struct catalog_verify *v, catalog_verify_part *part,
					 const char *what);

/* True if the check of a kind has to cut itself into ranges now, which it has not done yet. */
static inline bool
catalog_verify_needs_ranges(const struct catalog_verify *v)
{
	return v->options->ranges && !v->still && !v->held;
}

/* Tells that something was not checked. `key`: where it begins. */
void catalog_verify_unchecked(struct catalog_verify *v, struct str key, const char *what);

/* For the catalog: a database, in ranges. */
MUST_USE enum status catalog_verify_in_ranges(struct catalog_verify *v);

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
/* The same in ranges, and that the counters of whole lists are the sums of theirs. */
MUST_USE enum status catalog_verify_tallies_in_ranges(struct catalog_verify *v);

#endif
