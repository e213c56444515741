/*
 * Items: the rows of a database without columns whose keys are one component of bytes, as Redis's
 * keys are. An item is one value of bytes, or a collection: a hash, a set, a sorted set, a list, a
 * stream.
 * README.md has the layout.
 *
 * A struct timed_item is one item in one transaction (struct timed): its key, and what its header
 * says. Functions that change the item keep the struct right, so a caller that has two commands on
 * one key in one transaction uses one struct for both, and reads the header once. Two structs of
 * one key at the same time are wrong.
 *
 * Nothing here commits. What is returned lies in the item's arena, and so does what a function
 * needs for a while. Keys, members and values are borrowed during a call, a key for as long as the
 * item. Functions on members expect an item of the type that they are for, or none at all
 * (TIMED_LEAF), which is an empty collection: the caller compares item->type first. Threading: that
 * of the transaction.
 */
#ifndef FROND_MODEL_TIMED_ITEMS_ITEM_H
#define FROND_MODEL_TIMED_ITEMS_ITEM_H

#include "model/timed/timed.h"

enum {
	/* A longer key or member keeps that much of itself in the key, and a SHA-256. */
	TIMED_WHOLE_BYTES = 1000,
	TIMED_ID_BYTES = 15,          /* of the id of a body; stored */
	TIMED_ITEM_KEY_BYTES = 60000, /* of an item's key */
	/* Of a member with its value, an element of a list, an entry of a stream. */
	TIMED_ELEMENT_BYTES = 8000000,
	TIMED_RECORD_BYTES = 60000,     /* of such a one that is not in pieces */
	TIMED_PAGE_BYTES = 1024 * 1024, /* a page of members ends after so many */
	TIMED_INLINE_BYTES = 16 * 1024, /* a value with more is in chunks */
	TIMED_CHUNK_BYTES = 64 * 1024,  /* of such a value; stored: never change */
	TIMED_LENGTH_BYTES = 512 << 20, /* of a value */
	TIMED_WRITE_BYTES = 8000000,    /* of a value that one transaction writes */
	TIMED_STAGE_MS = 3600 * 1000,   /* what is staged for longer is removed */
	TIMED_WATCHES = 2,              /* of an item */
	/* Of the version of an item, at most: see timed_item_version(). */
	TIMED_BASE_BYTES = 8 + 8 + TIMED_ID_BYTES + KV_VERSIONSTAMP_BYTES,
};

/* ---- Items (item.c) ---- */

struct timed_member;
struct timed_pushed;
struct timed_run;

struct timed_item {
	struct timed *t;
	struct arena *arena;
	struct str key;
	enum timed_type type; /* TIMED_LEAF: it is not there, or has expired */
	uint64_t expires_ms;  /* since 1970; 0: never */
	uint64_t write_us;    /* since 1970: when the header was written */
	uint64_t length;      /* TIMED_VALUE: its bytes */

	/* Private. */
	struct timed_got asked; /* if has_asked */
	bool has_asked;
	struct str row;   /* the key of the header */
	struct str value; /* TIMED_VALUE in the header, with all its bytes; or a pack (pack.h) */
	bool packed;      /* the members lie in the header */
	char *pack;       /* bytes of the arena that packs are written to; NULL: none yet */
	size_t pack_cap;  /* of them */
	uint64_t due_ms;  /* there is an entry that says that it expires then; 0: of none */
	struct str body;  /* what all keys of the body begin with; empty: there is none */
	uint8_t id[TIMED_ID_BYTES]; /* of the body */
	unsigned height;            /* of the skip list of a list or sorted set */
	bool has_dues;              /* of a hash: members may expire by themselves */
	bool emptied;               /* it was a hash, all of whose members have expired */
	bool stored;                /* there is a header, although it may have expired */
	bool stamped;               /* this transaction has written the stamp of the body */
	uint64_t noted_us;          /* and noted its change at this moment (timed_version_note()) */
	bool counted;               /* it knows how many members or elements there are */
	uint64_t count;             /* if it does, or is packed */
	struct str count_key;       /* of the body; NULL: not needed yet */
	struct timed_known *known;  /* where blocks begin; NULL: it knows of none */
	struct timed_map *map;      /* the same, between transactions; NULL: none */
	bool reshaped;              /* this transaction has told that maps do not hold any more */
	struct str ends[2];         /* of a list: the places at its left and right end; or NULL */
	struct timed_pushed *pushed; /* of a list: what may be pushed into the same pair; or NULL */
	struct timed_member *recent; /* the member that was looked up last, alone; NULL: none */
	struct str rest;             /* the key of a member or an element that is there; or NULL */
	struct timed_ends *popping;  /* of a sorted set: members that may be popped next; or NULL */
};

/*
 * Asks for the header of the item; timed_item_wait() then has it. Ask for several, and then wait:
 * that is one round trip. One key is read, and the clock once in a transaction. An item that is not
 * there is STATUS_OK, and TIMED_LEAF. STATUS_KEY_TOO_LARGE, explained.
 */
MUST_USE enum status timed_item_ask(struct timed *t, struct str key, struct arena *arena,
				    struct timed_item *ret);
MUST_USE enum status timed_item_wait(struct timed_item *item);
/* Both of them. */
MUST_USE enum status timed_item_open(struct timed *t, struct str key, struct arena *arena,
				     struct timed_item *ret);

/* Removes the item, whatever it is, if it is there. Touches the header alone. */
MUST_USE enum status timed_item_delete(struct timed_item *item);

/*
 * Removes what is stored of an item that has expired, or of a hash all of whose members have, as
 * timed_sweep() would do later.
 */
enum timed_swept {
	TIMED_SWEPT_NOTHING,
	TIMED_SWEPT_EXPIRED,
	TIMED_SWEPT_EMPTIED,
};
MUST_USE enum status timed_item_sweep(struct timed_item *item, enum timed_swept *ret);

/* Changes when the item expires, and nothing else. The item is there. */
MUST_USE enum status timed_item_expire(struct timed_item *item, struct timed_expiry expiry);

/*
 * Hides an item whose expiry has come already, as it is from the next transaction on; whatever
 * finds it then removes it. Of another one it does nothing.
 */
void timed_item_lapse(struct timed_item *item);

/*
 * Gives the item the place of `to`, whatever was there, with its expiry. Touches the two headers
 * alone. `item` is not there afterwards. They are two different keys of one database.
 */
MUST_USE enum status timed_item_rename(struct timed_item *item, struct timed_item *to);

/*
 * Makes `to` a copy of the item, with its expiry. They may be of two databases. Reads all of it.
 * STATUS_TX_TOO_LARGE, explained, past TIMED_WRITE_BYTES.
 */
MUST_USE enum status timed_item_copy(struct timed_item *item, struct timed_item *to);

/*
 * Bytes that differ after every transaction that has changed the item, for WATCH: at most
 * TIMED_BASE_BYTES. Those of an item that is not there are empty. The transaction conflicts with
 * a change. Asks for a key of a collection, so ask for several items and then take their versions:
 * that is one round trip. If this transaction has changed the item, its version is none that an
 * earlier transaction can have got; it must not be kept.
 */
MUST_USE enum status timed_item_version_ask(struct timed_item *item, struct kv_future **ret);
MUST_USE enum status timed_item_version(struct timed_item *item, struct kv_future *asked,
					struct str *ret);

/*
 * Watches the item's header (kv_watch()): that watch completes when the item comes, goes or is
 * replaced, for those who wait for an item that is not there. A change inside a collection does not
 * complete it, so of a stream the stamp of its body is watched as well; `ret[1]` is NULL otherwise.
 */
MUST_USE enum status timed_item_watch(struct timed_item *item,
				      struct kv_future *ret[static TIMED_WATCHES]);

/* ---- Maps of sorted sets and of sets (blocks_map.c, names_map.c) ---- */

/*
 * What a process keeps between transactions, in maps: where the blocks of sorted sets begin, and
 * which members sets have; some megabytes. Threads may share it. A transaction whose `t->maps` is
 * set uses it, checks what it takes, and gives it back by timed_maps_return(), whether or not it
 * took place, before struct timed is forgotten. Not for a store that other processes write to:
 * those of earlier versions would not tell what they change. NULL: out of memory.
 */
struct timed_maps *timed_maps_new(void);
/* NULL is fine. All that was taken has been given back. */
void timed_maps_free(struct timed_maps *maps);
void timed_maps_return(struct timed *t);

/* ---- Values (value.c, value_read.c): TIMED_VALUE ---- */

/*
 * Replaces the item by a value. STATUS_VALUE_TOO_LARGE, explained, past TIMED_LENGTH_BYTES; also if
 * the transaction has no room for it, or it has more than TIMED_WRITE_BYTES, and it is not staged.
 */
MUST_USE enum status timed_value_set(struct timed_item *item, struct str value,
				     struct timed_expiry expiry);
/* The same, but that an item that is there keeps its expiry. */
MUST_USE enum status timed_value_replace(struct timed_item *item, struct str value);

/*
 * Bytes of the value; fewer where it ends. Reads the chunks that they are in. They stay until the
 * transaction ends.
 */
MUST_USE enum status timed_value_get(struct timed_item *item, uint64_t offset, uint64_t len,
				     struct str *ret);
/*
 * Overwrites bytes from the offset on; the value grows where it has to, with NULs between, and is
 * made if there is none. Keeps the expiry. Reads and writes the chunks that they are in.
 */
MUST_USE enum status timed_value_write(struct timed_item *item, uint64_t offset, struct str bytes);

/* ---- Values that are staged (stage.c) ---- */

/*
 * A value that one transaction cannot write is staged by several, and then published. Whoever can
 * do that gives struct timed a struct timed_stages. A function that writes such a value then fails
 * with STATUS_VALUE_TOO_LARGE and says in `wanted` what has to be staged. The caller drops the
 * transaction, copies `wanted`, calls timed_stage_write() in one transaction after the other until
 * it is complete or stale, adds it to `first` and runs its own transaction again: the function then
 * publishes what is staged. If the item has changed meanwhile, it wants another one.
 */
struct timed_stage {
	struct timed_stage *next;
	struct timed *t;  /* of `wanted`: the database */
	struct str key;   /* borrowed, as are the bytes */
	struct str bytes; /* the same in each attempt, at the same address */
	uint64_t offset;
	uint64_t length; /* of the whole value */
	bool patches;    /* the other bytes are those that the item has */
	bool complete;
	bool stale; /* it is of no use any more */

	/* Private. */
	uint8_t base[TIMED_BASE_BYTES]; /* the version of the item, if `patches` */
	size_t base_len;
	bool begun;
	uint8_t id[TIMED_ID_BYTES]; /* of the body */
	uint64_t until_ms;
	uint64_t chunk; /* the next one */
};

struct timed_stages {
	bool allowed;
	struct timed_stage *first;
	struct timed_stage wanted; /* if is_wanted */
	bool is_wanted;
};

/*
 * Writes a part of what is to be staged. The struct is changed as if the transaction commits: give
 * a copy of it, and keep that then.
 */
MUST_USE enum status timed_stage_write(struct timed *t, struct timed_stage *s, struct arena *arena);

/* Has what is staged removed, if it was not published. */
MUST_USE enum status timed_stage_drop(struct timed *t, const struct timed_stage *s,
				      struct arena *arena);

/* Private: where the bytes of a member or an element are that is too long for a record. */
struct timed_pieces {
	bool there;
	uint8_t id[TIMED_ID_BYTES];
};

/* ---- Members (members.c): TIMED_HASH, TIMED_SET, and by member TIMED_ZSET ---- */

struct timed_member {
	struct str name;
	struct str value;    /* TIMED_HASH */
	double score;        /* TIMED_ZSET; not NaN */
	uint64_t expires_ms; /* since 1970; 0: with the item */
	uint64_t write_us;   /* since 1970, of a member that was read */
	bool found;          /* it is there, or was before a put or a delete */
	double old_score;    /* TIMED_ZSET: after a put or a delete that found it */
	size_t most;         /* for a get: longer values in pieces are not read; 0: all are */
	bool too_long;       /* it was not read */
	uint64_t value_len;  /* TIMED_HASH: after a get, also if it was not read */
	/*
	 * For a put: `found` (TIMED_ZSET: and `old_score`) is what timed_members_get() has told
	 * since the last change of the item, so the member need not be read again.
	 */
	bool known;
	struct timed_pieces pieces; /* private; keep it beside `known` */
};

/*
 * How many members or elements there are, exactly. One key; of a hash with members that expire by
 * themselves also a key for each that has expired and was not removed yet.
 */
MUST_USE enum status timed_count(struct timed_item *item, uint64_t *ret);

/* Looks for members by their names, a point read each, side by side. */
MUST_USE enum status timed_members_get(struct timed_item *item, struct timed_member *members,
				       size_t count);

/*
 * Adds members or gives them values (scores), and makes the item, of that type, if it is not there;
 * it then never expires. A point read each, side by side: `found` tells who was there. A name may
 * be there twice: the later one counts, and finds the former. A member of a hash expires at its
 * `expires_ms`; 0: with the item. What a set has already, a sorted set with the same score, is not
 * written: a put of nothing else changes nothing, not even the item's version.
 */
MUST_USE enum status timed_members_put(struct timed_item *item, enum timed_type type,
				       struct timed_member *members, size_t count);

/* Removes members; the item goes with the last one. A name that is there twice is found once. */
MUST_USE enum status timed_members_delete(struct timed_item *item, struct timed_member *members,
					  size_t count);

/* When a member of a hash expires by itself: 0, not. It is there, else STATUS_NOT_FOUND. */
MUST_USE enum status timed_member_expire(struct timed_item *item, struct str name,
					 uint64_t expires_ms);

/* A page of members. */
struct timed_members {
	struct timed_member *members;
	size_t count;
	uint64_t next; /* where the next page begins; 0: this is the last one */
};

/*
 * A page of members in the order of a hash of their names. It begins at `from` (0: at the first
 * member) and has at least `least` members, unless there are fewer, or these have more than
 * TIMED_PAGE_BYTES. Members with the same hash are always on the same page. So a position is a
 * hash, a number below 2^17, that means the same after any change; and whoever goes through all
 * pages sees each member that was there all the while.
 */
MUST_USE enum status timed_members_page(struct timed_item *item, uint64_t from, size_t least,
					struct timed_members *ret);

/* ---- Members at random (draw.c) ---- */

enum {
	TIMED_DRAW_SHARE = 64, /* more than this part of the members are not drawn: read them all */
};

/*
 * Draws `wanted` members, each with the same probability. They are different ones unless `again`
 * is set.
 * Reads some fifty members for each, however many there are up to a million, then as many as have
 * one hash, a few times. STATUS_NOT_FOUND: all members have to be read; so it is if there are few.
 * A transaction may draw from a set many times, and may delete each member that it has drawn. As
 * soon as its draws have read as much as all names of the set would take, the names are read once,
 * and the next draws are made from them.
 */
MUST_USE enum status timed_members_draw(struct timed_item *item, size_t wanted, bool again,
					struct timed_members *ret);

/* ---- Sorted sets in their order (zset.c) ---- */

/* A bound of a range. */
struct timed_bound {
	enum timed_bound_kind kind;
	double score;    /* of a range by score */
	struct str name; /* of a range by name, among members of one score */
};

enum timed_zset_by {
	TIMED_BY_RANK,
	TIMED_BY_SCORE,
	TIMED_BY_NAME,
};

/* A range, always from its lower to its upper end; `reverse` is about who comes first. */
struct timed_zset_range {
	enum timed_zset_by by;
	uint64_t from; /* TIMED_BY_RANK: from this rank on, from 0 up, up to but without `to` */
	uint64_t to;
	struct timed_bound lower;
	struct timed_bound upper;
	bool reverse;  /* the greatest first; `from` and `to` then count from the greatest */
	uint64_t skip; /* so many of the first are left out */
	size_t limit;  /* SIZE_MAX: all */
};

/* Members of the range with their scores. Logarithmic in what lies before, by counts of blocks. */
MUST_USE enum status timed_zset_range(struct timed_item *item, const struct timed_zset_range *range,
				      struct timed_members *ret);
/*
 * Removes at most `most` members with the least scores, or the greatest, and returns them in that
 * order. Reads them at their end of the order, and nothing else of most.
 */
MUST_USE enum status timed_zset_pop(struct timed_item *item, bool greatest, uint64_t most,
				    struct timed_members *ret);
/* How many members are in the range (`skip` and `limit` do not count). Logarithmic. */
MUST_USE enum status timed_zset_range_count(struct timed_item *item,
					    const struct timed_zset_range *range, uint64_t *ret);
/* How many members come before this one. STATUS_NOT_FOUND: it is no member. Logarithmic. */
MUST_USE enum status timed_zset_rank(struct timed_item *item, struct str name, bool reverse,
				     uint64_t *ret_rank, double *ret_score);

/* ---- Lists (list.c) ---- */

/* An element, and where it is, for as long as nothing else was done with the list. */
struct timed_element {
	struct str value;
	struct str place;  /* opaque */
	uint64_t write_us; /* since 1970 */

	/* Private. */
	struct timed_pieces pieces;
	const struct timed_run *run; /* the pair that it is in, with others; NULL: it is alone */
	unsigned nth;                /* of these */
};

struct timed_elements {
	struct timed_element *elements;
	size_t count;
};

/* One after the other at that end, so the last one is at the end then. Makes the item. */
MUST_USE enum status timed_list_push(struct timed_item *item, bool left, const struct str *values,
				     size_t count);
/* Removes at most `count` from that end, the one at the end first. The item goes with the last. */
MUST_USE enum status timed_list_pop(struct timed_item *item, bool left, size_t count,
				    struct timed_elements *ret);
/* The elements from index `from` on (0: the left end), at most `count`. Logarithmic in `from`. */
MUST_USE enum status timed_list_range(struct timed_item *item, uint64_t from, size_t count,
				      struct timed_elements *ret);
/* Who is told values one after the other. Each is valid during the call alone. */
struct timed_values {
	void (*fn)(void *arg, struct str value);
	void *arg;
};
/*
 * Tells the values of the same elements, for whoever wants nothing else of them: nothing is copied
 * or allocated for each. `*ret_count`: how many there were.
 */
MUST_USE enum status timed_list_values(struct timed_item *item, uint64_t from, uint64_t count,
				       const struct timed_values *to, uint64_t *ret_count);
/* Replaces an element that timed_list_range() has returned. */
MUST_USE enum status timed_list_set(struct timed_item *item, const struct timed_element *element,
				    struct str value);
/*
 * Inserts before or behind an element that timed_list_range() has returned. STATUS_LIMIT,
 * explained, where there is no room left, after some thousand insertions between the same two.
 */
MUST_USE enum status timed_list_insert(struct timed_item *item, const struct timed_element *element,
				       bool before, struct str value);
/* Removes elements that timed_list_range() has returned. The item goes with the last. */
MUST_USE enum status timed_list_remove(struct timed_item *item,
				       const struct timed_element *elements, size_t count);
/* Removes all but the `count` from index `from` on. The item goes with the last. */
MUST_USE enum status timed_list_trim(struct timed_item *item, uint64_t from, uint64_t count);

/* ---- Streams (stream.c) ---- */

/* Of an entry; in their order entries lie. */
struct timed_stream_id {
	uint64_t ms; /* since 1970, where nobody says something else */
	uint64_t seq;
};

int timed_stream_id_cmp(struct timed_stream_id a, struct timed_stream_id b);
/* The next one, or the one before; false: there is none, and the id stays. */
bool timed_stream_id_next(struct timed_stream_id *id);
bool timed_stream_id_before(struct timed_stream_id *id);

/* What a stream says of itself; all 0: it is not there. */
struct timed_stream {
	struct timed_stream_id last;    /* of the entry that came last, though it may be gone */
	struct timed_stream_id deleted; /* the greatest that was deleted by its id */
	uint64_t added;                 /* entries that it ever had */
};

MUST_USE enum status timed_stream_get(struct timed_item *item, struct timed_stream *ret);
/* Makes the item if it is not there. */
MUST_USE enum status timed_stream_set(struct timed_item *item, const struct timed_stream *stream);

struct timed_entry {
	struct timed_stream_id id;
	struct str *fields; /* a field, its value, … */
	size_t count;       /* of both */
};

struct timed_entries {
	struct timed_entry *entries;
	size_t count;
};

/*
 * Adds an entry, and keeps `stream` right, which is what timed_stream_get() has returned. Makes the
 * item. The caller has seen to it that the id is greater than the last one.
 */
MUST_USE enum status timed_stream_add(struct timed_item *item, struct timed_stream *stream,
				      const struct timed_entry *entry);

/* Entries from one id up to another, both included. */
struct timed_stream_range {
	struct timed_stream_id from;
	struct timed_stream_id to;
	bool reverse;
	size_t limit; /* 0: all */
};

MUST_USE enum status timed_stream_range(struct timed_item *item,
					const struct timed_stream_range *range,
					struct timed_entries *ret);

/* Looks for entries by their ids, a point read each: `fields` is NULL where there is none. */
MUST_USE enum status timed_stream_find(struct timed_item *item, struct timed_entry *entries,
				       size_t count);

/* Deletes entries; the item stays, also without any. */
MUST_USE enum status timed_stream_delete(struct timed_item *item, struct timed_stream *stream,
					 const struct timed_stream_id *ids, size_t count,
					 uint64_t *ret_deleted);

struct timed_stream_trim {
	bool by_length;
	uint64_t length;              /* by_length: so many stay */
	struct timed_stream_id least; /* else: those from here on stay */
	uint64_t limit;               /* so many go at most; 0: all */
	/* They go in blocks of so many, from the first one there ever was; 0: any number. */
	uint64_t step;
};

/* Deletes the entries that came first. */
MUST_USE enum status timed_stream_trim(struct timed_item *item,
				       const struct timed_stream_trim *trim, uint64_t *ret_deleted);

#endif
