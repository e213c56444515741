/*
 * History: what the keys of a database held at a moment of the past.
 *
 * Before a model changes a key it calls history_change(), or one of the functions like it. They
 * keep what the key held, in records beside the present:
 *
 *     (P, UNDO, bucket, key…, null, moment, 0) → '': the key was not there; 01 and its value
 *     (P, UNDO, bucket, key…, null, moment, 1) → what was added to the key, little-endian
 *     (P, STATE)                               → (1, (bucket, start), …)
 *                                             or (2, (most bytes), (bucket, start, counts), …)
 *                                             or (3, (most bytes, most versions, from, until),
 *                                                 (bucket, start, counts), …)
 *     (P, HELD, bucket)                        → how many bytes the records of the bucket have
 *
 * `key…` is the key behind P. `moment` is the moment of the transaction, in microseconds. If two
 * transactions change one key, the later one sees what the former has written, and the model gives
 * it a later moment. So the value at T is what the first record after T says. If there is none, it
 * is the present value without what was added since. A key that is only ever added to is recorded
 * without being read. No key may have a null among its elements.
 *
 * Buckets are stretches of time. A transaction that writes reads STATE, and writes its records to
 * the newest bucket. So the model can begin a new bucket, and clear the oldest one as one range.
 * The start of a bucket is not before any moment in the buckets before it; 0: not known yet.
 *
 * A history may be bounded by bytes. Then whoever writes a record adds its bytes to those of the
 * newest bucket: the bytes of its key behind P and of its value, before any compression. Records of
 * older buckets are never changed, so what was recorded before bytes were bounded is counted in
 * slices (history_held_count()); meanwhile the value has the place up to which that has come behind
 * the number. A record of additions to a number counts as often as there were additions. The model
 * may add bytes of its own that belong to a bucket.
 *
 * A model may bound the versions of what it keeps, too, and forget single records before their
 * bucket is cleared (forget.c). It then refuses moments that it has forgotten something of. The
 * state only says that there is such a bound, and since when.
 *
 * The model numbers the subspaces, and keeps the clock. Memory: what is returned lies in the arena.
 * Threading: on the thread or fiber that has the transaction.
 */
#ifndef FROND_HISTORY_HISTORY_H
#define FROND_HISTORY_HISTORY_H

#include "base/arena.h"
#include "base/buf.h"
#include "kv/kv.h"

enum {
	HISTORY_BUCKETS = 20, /* that the window is divided into; likewise the bytes */
	HISTORY_BUCKETS_PLAIN = HISTORY_BUCKETS + 4, /* without a bound by bytes */
	HISTORY_BUCKETS_MOST = 2 * HISTORY_BUCKETS + 4,
	HISTORY_CLEAR_KEYS = 1000, /* that one transaction clears, or counts */
};

/* ---- The buckets there are (state.c) ---- */

struct history_bucket {
	uint64_t number;   /* from 1 */
	uint64_t start_us; /* 0: not known yet */
};

struct history_state {
	struct history_bucket buckets[HISTORY_BUCKETS_MOST]; /* the oldest first */
	size_t count;                                        /* at least 1 */
	/* Writers count the bytes of the records in the bucket. */
	bool counts[HISTORY_BUCKETS_MOST];
	uint64_t most_bytes; /* of all records; 0: no bound, and no bytes are kept */
	/* How many versions of each key the model keeps; 0: all of the window. */
	uint64_t most_versions;
	/* If that is not 0: the first bucket whose writers have noted which keys they change. */
	uint64_t versions_from;
	/*
	 * The newest bucket there was while the model last kept a number of versions only; 0: it
	 * never did since the oldest bucket began.
	 */
	uint64_t versions_until;
};

/* True if the model may have forgotten versions that are not older than the oldest bucket. */
static inline bool
history_state_forgets(const struct history_state *state)
{
	return state->most_versions || state->versions_until;
}

void history_state_put(const struct history_state *state, struct buf *value);
MUST_USE enum status history_state_parse(struct str value, struct history_state *ret,
					 struct err *err);

/* The first moment that can be read; 0: none yet. */
uint64_t history_oldest_us(const struct history_state *state);

/* ---- Of one database, in one transaction ---- */

struct history {
	struct kv_tx *tx;
	struct str prefix;   /* of the database */
	uint64_t space;      /* the number of UNDO */
	uint64_t held_space; /* that of HELD */
	const struct history_state *state;
	uint64_t moment_us; /* of the transaction that writes; or that is read */
};

/*
 * Returns the number of the newest bucket that has records; 0: no bucket has any. The records may
 * be those of a history that has ended, which are cleared some time later.
 */
MUST_USE enum status history_newest_bucket(const struct history *h, uint64_t *ret);

/* ---- Writing (record.c): each is called before the change ---- */

/* Records a key that the caller then sets or clears. Reads it, unless it is recorded already. */
MUST_USE enum status history_change(const struct history *h, struct str key);
/* Does the same for all keys in a range. */
MUST_USE enum status history_change_range(const struct history *h, struct str begin,
					  struct str end);
/* Records an addition to a number of eight bytes, which the caller then makes. Reads nothing. */
MUST_USE enum status history_add(const struct history *h, struct str key, int64_t change);

/* ---- The bytes of records (held.c), where h->state->most_bytes is set ---- */

struct history_held {
	uint64_t bytes[HISTORY_BUCKETS_MOST]; /* of each bucket of the state, so far */
	bool known[HISTORY_BUCKETS_MOST];     /* all of the bucket is counted */
	uint64_t sum;
	bool all; /* everything is counted */
};

MUST_USE enum status history_held_read(const struct history *h, struct history_held *ret);
/* A new bucket has nothing; whoever writes its records counts them. */
MUST_USE enum status history_held_begin(const struct history *h, uint64_t bucket);
/* Adds bytes of another kind to those of a bucket that is counted, or takes them away. */
MUST_USE enum status history_held_more(const struct history *h, uint64_t bucket, uint64_t bytes);
MUST_USE enum status history_held_less(const struct history *h, uint64_t bucket, uint64_t bytes);
/* Forgets the bytes of all buckets before this one. */
MUST_USE enum status history_held_forget(const struct history *h, uint64_t bucket);
/* Counts at most HISTORY_CLEAR_KEYS records of the newest bucket that is not counted yet. */
MUST_USE enum status history_held_count(const struct history *h, const struct history_held *held,
					size_t *ret_records);

/* For checks: (P, HELD, bucket); its value, false if it is none; the bytes that a record counts. */
void history_held_key(const struct history *h, uint64_t bucket, struct buf *ret);
bool history_held_parse(struct str value, uint64_t *ret_bytes, struct str *ret_place);
uint64_t history_record_bytes(const struct history *h, const struct kv_pair *record);

/* ---- Forgetting single records (forget.c) ---- */

/* The bucket of the state that has this number; its count if there is none. */
size_t history_bucket_at(const struct history_state *state, uint64_t number);

/* Clears a record of a bucket of the state; bytes that are bounded are all counted. */
MUST_USE enum status history_forget(const struct history *h, const struct kv_pair *record);

/*
 * Gets what a key held before the transaction of that bucket and moment changed it. The record's
 * key lies in the arena; its value lives as long as the transaction. STATUS_NOT_FOUND: that
 * transaction did not change the key.
 */
struct history_record {
	struct kv_pair pair;
	struct str key; /* that it is about, behind P */
	uint64_t us;
	bool added; /* a number was added to; else: */
	bool there;
	struct str value;
};

MUST_USE enum status history_record_get(const struct history *h, uint64_t bucket, struct str key,
					uint64_t us, struct arena *arena,
					struct history_record *ret);

/*
 * Gets what a key held right after a moment, by the records alone that are later; `ret->ptr` is
 * NULL if it was not there. For keys that are not added to.
 */
MUST_USE enum status history_after(const struct history *h, struct str key, uint64_t us,
				   struct arena *arena, struct str *ret);

/* A slice of the records of a bucket that are about the keys which begin with some bytes. */
struct history_slice {
	uint64_t bucket;
	struct str prefix; /* with P; whole elements */
	struct str place;  /* begins behind that key of a record, behind the bucket; empty: first */
	size_t limit;
};

/*
 * Calls `take` for each record of the slice, which may forget it. `*ret_place` is the place behind
 * the slice, in the arena; empty: that was the last one.
 */
typedef enum status history_taker(void *arg, const struct history_record *record);
MUST_USE enum status history_slice_take(const struct history *h, const struct history_slice *slice,
					struct arena *arena, history_taker *take, void *arg,
					size_t *ret_records, struct str *ret_place);

/* ---- Reading at h->moment_us (past.c) ---- */

/*
 * Gets the key that a record of UNDO is about, behind `skip` bytes, its moment and its kind.
 * STATUS_CORRUPT: it is none.
 */
MUST_USE enum status history_record_parse(struct str record, size_t skip, struct str *ret_key,
					  uint64_t *ret_us, uint64_t *ret_kind);
/* True if this can be a record, by its key behind the bucket; for checks. */
bool history_record_is_good(struct str tail, struct str value);

/* Gets the value of a key. `ret->ptr` is NULL if the key was not there. */
MUST_USE enum status history_get(const struct history *h, struct str key, struct arena *arena,
				 struct str *ret);

/* What one bucket, or the present, says of the next key. */
struct history_stream {
	struct kv_scan scan;
	struct kv_pair pair; /* of the scan, if has_pair */
	bool has_pair;
	bool open;
	size_t skip;    /* bytes of a bucket's key before a key of the database */
	struct buf key; /* of which the rest is said; empty: the stream has ended */
	bool has_old;   /* it was overwritten: `there`, `old` */
	bool there;
	struct buf old;
	int64_t added; /* before that, or since */
};

/* Goes through the keys of a range as they were. */
struct history_scan {
	const struct history *h;
	struct buf begin, end;
	bool reverse;
	/* The buckets from the one of the moment on, and the present. */
	struct history_stream streams[HISTORY_BUCKETS_MOST + 1];
	size_t count;
	struct buf key, value; /* of the pair that was returned */
};

MUST_USE enum status history_scan_open(struct history_scan *scan, const struct history *h,
				       struct str begin, struct str end, bool reverse);
/* A pair is valid until the next call. STATUS_NOT_FOUND at the end. */
MUST_USE enum status history_scan_next(struct history_scan *scan, struct kv_pair *ret);
void history_scan_close(struct history_scan *scan);

/* ---- All that keys held (versions.c) ---- */

/* What a key held until a moment. */
struct history_version {
	struct str key;    /* with P */
	uint64_t until_us; /* HISTORY_PRESENT: it holds this now */
	bool added;        /* a number was added to: what it was before is not told */
	bool there;
	struct str value; /* if it was there */
};

#define HISTORY_PRESENT UINT64_MAX

/* Goes through the versions of all keys of a range, as far back as there are records. */
struct history_versions {
	const struct history *h; /* its moment is not used */
	struct history_versions_stream {
		struct kv_scan scan;
		struct kv_pair pair; /* if has_pair */
		bool has_pair;
		bool open;
		size_t skip;    /* bytes of a record's key before the key that it is about */
		struct str key; /* of the pair, behind P */
		uint64_t us, kind;
	} streams[HISTORY_BUCKETS_MOST + 1]; /* the buckets, the oldest first, and the present */
	size_t count;
	struct history_versions_stream *last; /* whose pair was returned, if `key` is not empty */
	struct buf begin, end, key;
};

MUST_USE enum status history_versions_open(struct history_versions *v, const struct history *h,
					   struct str begin, struct str end);
/*
 * Gets the next version: in the order of keys, and of one key the oldest first. A key that is there
 * now has a version with HISTORY_PRESENT at the end. STATUS_NOT_FOUND at the end. A version is
 * valid until the next call.
 */
MUST_USE enum status history_versions_next(struct history_versions *v, struct history_version *ret);
void history_versions_close(struct history_versions *v);

#endif
