/*
 * What the files about items share: keys and records of bodies, the skip list over an order.
 *
 * Keys that functions here return lie in the item's arena.
 */
#ifndef FROND_MODEL_TIMED_ITEMS_ITEM_INT_H
#define FROND_MODEL_TIMED_ITEMS_ITEM_INT_H

#include "model/timed/items/group.h"
#include "model/timed/timed_int.h"

/*
 * What lies in a body, behind its id: members under an element of bytes, and parts under these
 * numbers. Stored: never renumber. A copy of an item has what lies before the stamp.
 */
enum timed_part {
	TIMED_PART_ORDER = 1,   /* (order) → an element of a list, or the score of a member */
	TIMED_PART_BLOCKS = 2,  /* (level, order) → how many entries the block has */
	TIMED_PART_CHUNKS = 3,  /* (n) → bytes of a value */
	TIMED_PART_COUNT = 4,   /* → how many members or elements there are */
	TIMED_PART_STAMP = 5,   /* → the versionstamp of the latest change in the body */
	TIMED_PART_OWNER = 6,   /* → the key of the header, where members expire by themselves */
	TIMED_PART_DUE = 7,     /* (ms, name) → '': of a hash, a member that expires by itself */
	TIMED_PART_DUES = 8,    /* → how many of those there are */
	TIMED_PART_STREAM = 9,  /* → the ids that a stream has had */
	TIMED_PART_PIECES = 10, /* (id, n) → bytes of a leaf that is too long for a record */
	TIMED_PART_SHAPE = 11,  /* → a number that changes with what maps of the body say */
	/* A copy of a stream has these as well. */
	TIMED_PART_GROUP = 12,    /* (name) → a group of consumers of a stream */
	TIMED_PART_GROUPS = 13,   /* → how many there are */
	TIMED_PART_OF_GROUP = 14, /* (id, enum timed_group_part, …) → what a group has */
	/* A copy of a document has this as well. */
	TIMED_PART_TREE = 15, /* (step, …) → a leaf of a document */
};

/* What a group has, behind its id. Stored: never renumber. */
enum timed_group_part {
	TIMED_GROUP_OWNER = 0,     /* → the group's name, as in its key; first: it goes first */
	TIMED_GROUP_PENDINGS = 1,  /* → how many entries are pending */
	TIMED_GROUP_CONSUMERS = 2, /* → how many consumers there are */
	TIMED_GROUP_CONSUMER = 3,  /* (name) → a consumer */
	TIMED_GROUP_COUNT = 4,     /* (name) → how many entries are pending for the consumer */
	TIMED_GROUP_PENDING = 5,   /* (id of an entry) → that it is pending, and for whom */
	TIMED_GROUP_OF = 6, /* (name, id of an entry) → '': it is pending for the consumer */
};

enum {
	TIMED_SHA_BYTES = 32,
	TIMED_CUT_BYTES = TIMED_WHOLE_BYTES + TIMED_SHA_BYTES, /* of a name that was cut */
	TIMED_SCORE_BYTES = 8,
	TIMED_STREAM_BYTES = 40,  /* of what a stream says of itself */
	TIMED_PLACE_BYTES = 800,  /* of a position in a list */
	TIMED_HEADER_BYTES = 100, /* of a header beside the key and the value */
	TIMED_LEAF_BYTES = 50,    /* of a member likewise */
	TIMED_COUNT_SHARDS = 16,
	TIMED_HASHES = 1 << 16,
	TIMED_PIECES_MOST = TIMED_LENGTH_BYTES / TIMED_CHUNK_BYTES + 1, /* of a leaf */
	TIMED_HEIGHT_MOST = 12,
	TIMED_RUN_ELEMENTS = 32, /* of a list, in one pair; stored: never raise above 64 */
};

/* How far apart positions are of elements that are pushed at one end of a list. */
#define TIMED_PLACE_STEP (UINT64_C(1) << 16)

/* ---- Keys (item_keys.c) ---- */

/* A buffer of that size in the arena. It does not grow, and is not released. */
struct buf timed_arena_buf(struct arena *arena, size_t bytes);

/* The name, or what stands for it in a key if it is too long. */
MUST_USE enum status timed_cut(struct arena *arena, struct str name, struct str *ret);
/* True if this part of a key stands for a name that is too long. */
static inline bool
timed_is_cut(struct str part)
{
	return part.len == TIMED_CUT_BYTES;
}

/* The key of an item's header. */
MUST_USE enum status timed_item_row(const struct catalog_db *db, struct arena *arena,
				    struct str key, struct str *ret);
/* STATUS_CORRUPT, explained. */
MUST_USE enum status timed_item_corrupt(struct timed_item *item);

/* What all keys of the body begin with. */
MUST_USE enum status timed_body_prefix(const struct catalog_db *db, struct arena *arena,
				       const uint8_t id[TIMED_ID_BYTES], struct str *ret);
/* The key of an entry that says that a body is to be cleared. */
MUST_USE enum status timed_gone_key(const struct timed *t, struct arena *arena,
				    const uint8_t id[TIMED_ID_BYTES], struct str *ret);

MUST_USE enum status timed_part_key(struct timed_item *item, enum timed_part part, struct str *ret);
MUST_USE enum status timed_member_key(struct timed_item *item, struct str name, struct str *ret);
/* The same of a name that has been cut, where it had to be. */
MUST_USE enum status timed_cut_key(struct timed_item *item, struct str cut, struct str *ret);
MUST_USE enum status timed_order_key(struct timed_item *item, struct str order, struct str *ret);
MUST_USE enum status timed_block_key(struct timed_item *item, unsigned level, struct str order,
				     struct str *ret);
MUST_USE enum status timed_chunk_key(struct timed_item *item, uint64_t n, struct str *ret);
/* The bytes of the last element of such a key, which begins with `skip` others behind the body. */
MUST_USE enum status timed_key_tail(struct timed_item *item, struct str key, unsigned skip,
				    struct str *ret);
/*
 * How many pairs a page of at least so many is likely to need, with those of the same hash as its
 * last one, and the one behind it, which says that it ends there.
 */
static inline size_t
timed_page_pairs(size_t least)
{
	return least < SIZE_MAX / 2 ? least + least / 8 + 8 : 0;
}

/*
 * The first key that a member of a body, or a header of ROWS, with this hash can have. `before` is
 * what those keys begin with. TIMED_HASHES gives the end of all of them.
 */
MUST_USE enum status timed_hash_key(struct arena *arena, struct str before, uint64_t hash,
				    struct str *ret);
/* The key with one byte more. */
MUST_USE enum status timed_key_with(struct arena *arena, struct str key, uint8_t byte,
				    struct str *ret);

/* ---- Members (members.c) ---- */

/* A page of members as timed_members_page() has it, but of hashes below `to` alone. */
MUST_USE enum status timed_members_between(struct timed_item *item, uint64_t from, uint64_t to,
					   size_t least, struct timed_members *ret);

/* ---- Records of items (item_record.c) ---- */

/* A header: (format, type, write time, expiry, length of the whole key), whole key, the rest. */
struct timed_header {
	enum timed_type type;
	uint64_t write_us;
	uint64_t expires_ms;        /* 0: never */
	struct str whole;           /* the key, if it was cut */
	struct str value;           /* TIMED_VALUE, TIMED_JSON without a body; or a pack */
	bool packed;                /* it is a pack of members (pack.h); there is no body */
	bool has_body;              /* else */
	uint8_t id[TIMED_ID_BYTES]; /* of the body */
	/*
	 * TIMED_VALUE: of the value; TIMED_JSON: of the text, 0: it lies in leaves; packed: how
	 * many members there are; TIMED_HASH: 1 if members may expire; else: the height.
	 */
	uint64_t length;
};

void timed_header_put(const struct timed_header *header, struct buf *value);
MUST_USE enum status timed_header_parse(struct str value, struct timed_header *ret,
					struct err *err);

/*
 * A member or an element: (format, write time, expiry, length of the whole name), name, value. What
 * is in pieces has (format, write time, expiry, length of the whole name, length of the value,
 * b"id"), and a value that is not in pieces.
 */
struct timed_leaf_record {
	uint64_t write_us;
	uint64_t expires_ms; /* 0: with the item */
	struct str whole;    /* if it is in pieces: after timed_leaf_load() */
	struct str value;    /* likewise, if value_len is not 0 */
	struct timed_pieces pieces;
	uint64_t whole_len; /* if it is in pieces: of what is in them */
	uint64_t value_len;
};

void timed_leaf_put(const struct timed_leaf_record *leaf, struct buf *value);
MUST_USE enum status timed_leaf_parse(struct str value, struct timed_leaf_record *ret,
				      struct err *err);

/* Elements of a list in one pair, in the order in which they were pushed (runs.c). */
struct timed_run {
	struct str place; /* of the pair, and of the first element: 8 bytes */
	bool leftwards;   /* each further element lies to the left of the one before, else right */
	unsigned count;   /* at least 2 */
	uint64_t write_us;
	struct str values[TIMED_RUN_ELEMENTS];
};

/* True if the record of an element is one of a run. */
bool timed_is_run(struct str value);
/*
 * Reads the record of a run. The values are in `value`; the place is left as it is. STATUS_CORRUPT.
 */
MUST_USE enum status timed_run_parse(struct str value, struct timed_run *ret);
/* What such a record begins with, and one element of it, of at most 255 bytes. */
void timed_run_put_header(uint64_t write_us, bool leftwards, struct buf *value);
void timed_run_put_value(struct str element, struct buf *value);

/* A score: in the order of scores, where -0 is 0, and as it is. */
void timed_score_order(double score, uint8_t ret[TIMED_SCORE_BYTES]);
void timed_score_put(double score, uint8_t ret[TIMED_SCORE_BYTES]);
double timed_score_get(const uint8_t bytes[TIMED_SCORE_BYTES]);

/* ---- Leaves of a body (leaf.c) ---- */

/* STATUS_VALUE_TOO_LARGE, explained, if a leaf has more bytes than it may. */
MUST_USE enum status timed_leaf_check(struct timed_item *item, size_t bytes, const char *what);
/* Writes the leaf, in pieces where it is long; `leaf->pieces` then says where they are. */
MUST_USE enum status timed_leaf_write(struct timed_item *item, struct str key,
				      struct timed_leaf_record *leaf);
/* Removes the pieces of a leaf that is removed, or written again. */
MUST_USE enum status timed_leaf_drop(struct timed_item *item, const struct timed_pieces *pieces);
/* timed_leaf_parse() of a leaf of the item's, which is told of if the record is damaged. */
MUST_USE enum status timed_leaf_read(struct timed_item *item, struct str value,
				     struct timed_leaf_record *ret);
/* Reads what a leaf has in pieces. */
MUST_USE enum status timed_leaf_load(struct timed_item *item, struct timed_leaf_record *leaf);
/* All keys of the pieces. */
MUST_USE enum status timed_pieces_range(struct timed_item *item, const struct timed_pieces *pieces,
					struct str *ret_begin, struct str *ret_end);

/* ---- Runs of elements of a list (runs.c) ---- */

/* The place of the `n`th element. */
MUST_USE enum status timed_run_place(struct timed_item *item, const struct timed_run *run,
				     unsigned n, struct str *ret);
/*
 * Removes `n` elements from one end of a run, with `front` those at the pair's position, and makes
 * `run` what is left of it, which may lie the other way round.
 */
MUST_USE enum status timed_run_cut(struct timed_item *item, struct timed_run *run, unsigned n,
				   bool front);
/*
 * Divides a run. A bit of `gone` stands for an element that is removed, a bit of `begins` for one
 * that is to begin a pair; bit 0 is the first element.
 */
MUST_USE enum status timed_run_divide(struct timed_item *item, const struct timed_run *run,
				      uint64_t gone, uint64_t begins);
/*
 * Adds an element to a list at a place behind the one at that end, which is empty if the list is.
 * It is written by timed_run_flush() at the latest. Whoever then changes the list in another way
 * sets item->pushed to NULL.
 */
MUST_USE enum status timed_run_push(struct timed_item *item, bool left, struct str end,
				    struct str place, struct str value);
MUST_USE enum status timed_run_flush(struct timed_item *item);

/* ---- Versions that are forgotten (forget.c); see struct timed_kind ---- */

MUST_USE enum status timed_items_body_of(struct timed *t, struct str value, struct buf *ret_body,
					 uint64_t *ret_made_us);
MUST_USE enum status timed_items_left_by(struct timed *t, const struct history_record *record,
					 struct buf *ret);

/* ---- What changes an item (item.c) ---- */

/* Before each change of the item: the transaction writes, and notes that it changes the item. */
MUST_USE enum status timed_item_write_begin(struct timed_item *item);

/* Sets the fields of the struct to what the header says. */
MUST_USE enum status timed_item_take(struct timed_item *item, const struct timed_header *header);
/* Forgets what the struct knows of the body's content. */
void timed_item_forget(struct timed_item *item);
/* Gives the item a body of its own, which is empty. */
MUST_USE enum status timed_body_make(struct timed_item *item);
/*
 * Makes the item one of this type, instead of what was there, with an empty body; a value has none.
 * Its header is written by timed_item_store().
 */
MUST_USE enum status timed_item_renew(struct timed_item *item, enum timed_type type);
/* Writes the header as the struct says. */
MUST_USE enum status timed_item_store(struct timed_item *item);
/* Before each change in a body: the transaction writes, and the stamp says so. */
MUST_USE enum status timed_item_touch(struct timed_item *item);
/* Adds to the count of members. */
MUST_USE enum status timed_item_add(struct timed_item *item, int64_t change);
/* Removes what is stored of the item, also if it has expired. */
MUST_USE enum status timed_item_remove(struct timed_item *item);
/*
 * Makes `to` an item of the type of `item`, instead of what was there, with its expiry and, if it
 * is a value in the header, its value. The caller gives `to` a body and writes its header.
 */
MUST_USE enum status timed_item_replace(struct timed_item *to, const struct timed_item *item);
/* Clears a pair that stands for a member or an element. */
MUST_USE enum status timed_item_clear(struct timed_item *item, struct str key);
/*
 * Deletes the item if no member, or element, is left. Reads one of them, once in a transaction as
 * long as that one stays; none if item->rest is one, or if the transaction has read the count.
 */
MUST_USE enum status timed_item_delete_empty(struct timed_item *item);
/* The time at which an expiry that is written by this transaction comes. 0: never. */
uint64_t timed_expiry_ms(const struct timed *t, struct timed_expiry expiry);

/* ---- Members of a hash that expire by themselves (dues.c) ---- */

/*
 * Says that the member at the key expires at `new_ms`, where it did at `old_ms`; 0: not. The caller
 * writes or clears the member itself.
 */
MUST_USE enum status timed_due_change(struct timed_item *item, struct str member_key,
				      uint64_t old_ms, uint64_t new_ms);
/* The number that is stored at the key; 0 if there is none. */
MUST_USE enum status timed_count_get(struct timed_item *item, struct str key, uint64_t *ret);
/* What is stored of a count of the body. */
MUST_USE enum status timed_count_part(struct timed_item *item, enum timed_part part, uint64_t *ret);
/* How many members have expired, and are stored still. */
MUST_USE enum status timed_dues_hidden(struct timed_item *item, uint64_t *ret);
/* A hash of which all members have expired is not there: item->type is TIMED_LEAF then. */
MUST_USE enum status timed_dues_look(struct timed_item *item);

/*
 * Has the body of the item cleared, at once or in the background; with history, when the past no
 * longer refers to it.
 */
MUST_USE enum status timed_body_drop(struct timed_item *item);

/* ---- Texts in the header or in chunks (value.c, value_read.c) ---- */

/* True for an item that is a text with a length: a value, a document that is not in leaves. */
static inline bool
timed_has_text(enum timed_type type)
{
	return type == TIMED_VALUE || type == TIMED_JSON;
}

/* Bytes of the text; fewer where it ends. */
MUST_USE enum status timed_text_get(struct timed_item *item, uint64_t offset, uint64_t len,
				    struct str *ret);
/* Writes bytes into the chunks of a text, which has none behind them. */
MUST_USE enum status timed_text_write(struct timed_item *item, uint64_t offset, struct str bytes);

/* ---- Values that are staged (stage.c) ---- */

/* The entry of EXPIRY that says that a body is staged. */
MUST_USE enum status timed_stage_key(const struct catalog_db *db, struct arena *arena,
				     const uint8_t id[TIMED_ID_BYTES], uint64_t ms,
				     struct str *ret);
/*
 * Publishes a value that is staged, or says that it has to be. `patches`: what the item has beside
 * the bytes stays.
 */
MUST_USE enum status timed_value_staged(struct timed_item *item, uint64_t offset, struct str bytes,
					bool patches, uint64_t expires_ms);

/* ---- Groups of consumers (group.c, group_record.c) ---- */

/*
 * Their records: (format, b"id", ms, seq of the last id, entries read + 1), whole name;
 * (format, ms), whole name; (format, ms, times), name of the consumer as keys have it. A whole name
 * is empty where the key has all of it.
 */
void timed_group_record_put(const struct timed_group *group, struct buf *value);
void timed_consumer_record_put(const struct timed_consumer *consumer, struct buf *value);
void timed_pending_record_put(const struct timed_pending *entry, struct str cut, struct buf *value);
/* A name that the record does not have stays as it is. */
MUST_USE enum status timed_group_record_parse(struct str value, struct timed_group *ret,
					      struct err *err);
MUST_USE enum status timed_consumer_record_parse(struct str value, struct timed_consumer *ret,
						 struct err *err);
MUST_USE enum status timed_pending_record_parse(struct str value, struct timed_pending *ret,
						struct err *err);

/* The 16 bytes that stand for the id of an entry in keys. */
enum {
	TIMED_ENTRY_BYTES = 16,
};
void timed_entry_put(struct timed_stream_id id, uint8_t ret[static TIMED_ENTRY_BYTES]);
struct timed_stream_id timed_entry_get(const uint8_t bytes[static TIMED_ENTRY_BYTES]);

/* ---- The skip list over an order (blocks.c) ---- */

/*
 * Adds an entry, which is not in the list yet, to the counts. May change item->height.
 *
 * `behind` is the order of the entry right before the new one, which becomes the last one: the
 * transaction has read that nothing follows, and conflicts with whoever changes that. Empty: the
 * new entry becomes the first one. `ptr` NULL: the caller does not know what is before it.
 */
MUST_USE enum status timed_blocks_add(struct timed_item *item, struct str order, struct str behind);
/*
 * Adds `count` entries to the counts. None of them begins a block. They become the last ones, and
 * `behind` is an entry before them that is counted already; or the first ones, and `behind` is
 * empty. `order` is that of the one at the end.
 */
MUST_USE enum status timed_blocks_grow(struct timed_item *item, struct str order, struct str behind,
				       uint64_t count);
/* True if an entry with that order begins a block when it is added. */
bool timed_block_begins(struct timed_item *item, struct str order);
/*
 * Takes an entry out of the counts. `first`: nothing is before the entry; the transaction has read
 * that, and conflicts with whoever changes it.
 */
MUST_USE enum status timed_blocks_remove(struct timed_item *item, struct str order, bool first);
/*
 * The first entry is at `order`, and neither it nor any other one up to `until`, or at that, begins
 * a block: timed_blocks_remove() need not look for one then.
 */
MUST_USE enum status timed_blocks_first(struct timed_item *item, struct str order,
					struct str until);
/* How many entries come before the order, which need not be an entry's. */
MUST_USE enum status timed_blocks_rank(struct timed_item *item, struct str order, uint64_t *ret);
/*
 * An order with at most `index` entries before it, which `*ret_before` counts, not far from the
 * entry of that index. An `index` behind the last entry is fine.
 */
MUST_USE enum status timed_blocks_find(struct timed_item *item, uint64_t index, struct str *ret,
				       uint64_t *ret_before);

/* ---- What a transaction knows of blocks (blocks_known.c) ---- */

/* Finds the beginning of the block that the order is in, on one level. False: it is not known. */
bool timed_known_find(const struct timed_item *item, unsigned level, struct str order,
		      struct str *ret_from);
/* Remembers that a block begins at `from` and that no other begins after it, up to `to`. */
MUST_USE enum status timed_known_add(struct timed_item *item, unsigned level, struct str from,
				     struct str to);
/* Remembers that a block now begins at the order, inside of a block that was known. */
MUST_USE enum status timed_known_divide(struct timed_item *item, unsigned level, struct str order);
/*
 * How many entries the block has that begins at `from`. False: it is not known. A known count is
 * right when the transaction commits, since it has read the count and conflicts with its changes.
 */
bool timed_known_count(const struct timed_item *item, unsigned level, struct str from,
		       uint64_t *ret);
void timed_known_set_count(struct timed_item *item, unsigned level, struct str from,
			   uint64_t entries);
/*
 * Adds `change` to a count that is known. Gives the place where the caller may keep the block's key
 * for the next time, which lies in the item's arena; NULL: the block is not known.
 */
struct str *timed_known_change(struct timed_item *item, unsigned level, struct str from,
			       int64_t change);
/*
 * On that level the block that began at `order` has become part of the block before it, which
 * begins at `former`. The caller has called timed_known_add() for `former` and `order`.
 */
void timed_known_join(struct timed_item *item, unsigned level, struct str former, struct str order);

/* ---- What a process knows of blocks of sorted sets (blocks_map.c) ---- */

/*
 * Finds the beginning of the block that the order is in, on one level, as of the transaction's
 * snapshot and its own changes. May read where blocks begin. STATUS_NOT_FOUND: there is no map, or
 * it cannot tell.
 */
MUST_USE enum status timed_map_find(struct timed_item *item, unsigned level, struct str order,
				    struct str *ret);
/* The same of the block before the one that begins at the order. Reads nothing. */
MUST_USE enum status timed_map_before(struct timed_item *item, unsigned level, struct str order,
				      struct str *ret);
/* The body is not the item's any more. */
void timed_map_drop(struct timed_item *item);
/* Says in the store that blocks begin elsewhere, or of a set that its members are others. */
MUST_USE enum status timed_map_reshape(struct timed_item *item);
/* A block now begins at the order, in the one at `from`. */
void timed_map_divide(struct timed_item *item, unsigned level, struct str from, struct str order);
/* None begins there any more. */
void timed_map_join(struct timed_item *item, unsigned level, struct str order);

/* ---- The order of a sorted set (zset_order.c) ---- */

MUST_USE enum status timed_zset_order(struct timed_item *item, double score, struct str name,
				      struct str *ret);
MUST_USE enum status timed_zset_insert(struct timed_item *item, struct str name, double score);
/* `first`: as timed_blocks_remove() has it. */
MUST_USE enum status timed_zset_erase(struct timed_item *item, struct str name, double score,
				      bool first);

/* ---- Removing in the background (expiry.c, gone.c) ---- */

/* Notes for timed_sweep_by() that the transaction writes an expiry at that moment. */
static inline void
timed_note_expiry(struct timed *t, uint64_t ms)
{
	if (!t->soonest_ms || ms < t->soonest_ms)
		t->soonest_ms = ms;
}

/* See struct timed_kind. */
MUST_USE enum status timed_items_due_sweep(struct timed *t, const struct timed_due *due,
					   struct kv_future *asked, struct arena *arena,
					   struct timed_due_swept *ret);

/* Clears bodies that are gone, TIMED_SWEEP_KEYS at most. */
MUST_USE enum status timed_gone_sweep(struct timed *t, uint64_t *ret_done, bool *ret_more);

/* ---- For people, and the check (inspect.c, verify.c) ---- */

bool timed_items_draw_pair(const struct catalog_db *db, uint64_t space, struct str tail,
			   struct str value, struct buf *ret);
/* See struct timed_kind. */
/* The keys of the item that has this name: its header and its body. */
MUST_USE enum status timed_items_inspect(struct kv_tx *tx, const struct catalog_db *db,
					 struct str key, struct arena *arena,
					 catalog_draw_prefix *draw, void *arg);
MUST_USE enum status timed_items_draw_key(const struct catalog_db *db, uint64_t space,
					  struct str tail, struct arena *arena, struct buf *ret);
MUST_USE enum status timed_items_verify(struct catalog_verify *v);
MUST_USE enum status timed_items_verify_in_ranges(struct catalog_verify *v);

#endif
