/* What the files of model/revisioned share; see README.md for the layout they keep. */
#ifndef FROND_MODEL_REVISIONED_INT_H
#define FROND_MODEL_REVISIONED_INT_H

#include "base/buf.h"
#include "kv/tuple.h"
#include "catalog/keys.h"
#include "catalog/tally.h"
#include "index/engine/update.h"
#include "model/revisioned/revisioned.h"

enum {
	REV_PAGE_SKIP = 100000,    /* entries that one page skips at most */
	REV_DIFF_WAVE = 1000,      /* documents whose branches are read at once */
	REV_SCAN_BYTES = 65536,    /* of a document's branches that are read at once */
	REV_SKIP_STEP_BYTES = 256, /* of ancestors that are passed over in a step */

	/* An ancestor list in a value, which also holds at most this much else. */
	REV_VALUE_OTHER_BYTES = 100,
	REV_ANCESTORS_BYTES = KV_LIMIT_VALUE_BYTES - REV_VALUE_OTHER_BYTES,

	REV_KEY_SPACE_BYTES = 2, /* a subspace's number in a key */

	/* The number and the flag of a revision in a key, and its hash, encoded: at most. */
	REV_KEY_TAIL_BYTES = 1 + 9,
	REV_KEY_HASH_BYTES = 2 + 2 * REV_HASH_BYTES,
};

/* ---- Keys (keys.c). Each function forgets what the buffer held. ---- */

void rev_key_space(struct buf *key, const struct catalog_db *db, enum rev_subspace space);
void rev_key_named(struct buf *key, const struct catalog_db *db, enum rev_subspace space,
		   struct str name);
void rev_key_rev(struct buf *key, const struct catalog_db *db, enum rev_subspace space,
		 struct str id, bool deleted, struct rev_id rev);
void rev_key_change(struct buf *key, const struct catalog_db *db, const struct catalog_seq *seq);

/* What follows the subspace's prefix. */
struct str rev_key_tail(const struct buf *key, const struct catalog_db *db);

/* The length of a string or of bytes as a tuple element. */
size_t rev_encoded_bytes(struct str s);

/* ---- Branches as REVISIONS stores them (branch_record.c) ---- */

struct rev_branch_record {
	struct rev_id rev;
	bool deleted;
	bool winner;
	bool replaced;          /* by the edit being applied */
	struct catalog_seq seq; /* of a winner */
	uint64_t branch_count;  /* of a winner */
	struct str ancestors;   /* encoded elements, newest first */
	bool has_atts;          /* the value ends with true: there are attachments to care for */
	bool has_one_key;       /* with false: of the head's body, nothing lies below its root */
	bool has_text;          /* the body's text lies in chunks, which… */
	uint8_t text_id[REV_ATT_ID_BYTES]; /* …this names */
	bool has_sizes;                    /* in a partitioned database: those of the head… */
	struct rev_sizes sizes;            /* …which its partition counts */
};

struct rev_branch_records {
	struct rev_branch_record *rows; /* winner first */
	size_t count;
};

/*
 * The bounds of a document's branches, one behind the other in `key`: the prefix of their keys, and
 * the prefix with an FF.
 */
MUST_USE enum status rev_branches_bounds(struct buf *key, const struct catalog_db *db,
					 struct str id, size_t *ret_prefix_len);

/* Asks for the document's branches, from the winner downwards; `limit` 0: all, in any order. */
MUST_USE enum status rev_branches_read(struct kv_tx *tx, const struct catalog_db *db, struct str id,
				       size_t limit, enum kv_read mode, struct buf *key,
				       struct kv_future **ret);

/*
 * Waits for rev_branches_read(). Reads on where the answer is longer than one range. The branches
 * borrow from the transaction's futures: they last until it is reset or `f` is freed.
 */
MUST_USE enum status rev_branches_wait(struct kv_tx *tx, const struct catalog_db *db, struct str id,
				       size_t limit, enum kv_read mode, struct kv_future *f,
				       struct buf *key, struct arena *arena,
				       struct rev_branch_records *ret);

/* Asks for the record of one head, whose deleted flag is known or guessed. */
MUST_USE enum status rev_branch_ask(struct kv_tx *tx, const struct catalog_db *db, struct str id,
				    struct rev_id rev, bool deleted, struct buf *key,
				    struct kv_future **ret);

/* Waits for it. STATUS_NOT_FOUND: there is none. The hash is borrowed from `rev`. */
MUST_USE enum status rev_branch_wait(struct kv_tx *tx, struct rev_id rev, bool deleted,
				     struct kv_future *f, struct arena *arena,
				     struct rev_branch_record *ret);

/*
 * A branch from the end of its key, behind the document's id, and its value. Borrows from both. Its
 * ancestors are not looked at: whoever goes through them may still find STATUS_CORRUPT.
 * STATUS_NEWER, explained.
 */
MUST_USE enum status rev_branch_record_parse(struct str tail, struct str value, struct arena *arena,
					     struct rev_branch_record *ret, struct err *err);

/*
 * Whether the branch is, or descends from, `rev`; then `*ret_rest` are the encoded ancestors of
 * `rev` that it knows. `scratch` is used.
 */
MUST_USE enum status rev_branch_record_find(const struct rev_branch_record *row, struct rev_id rev,
					    struct buf *scratch, bool *ret_found,
					    struct str *ret_rest);

/* The branch as readers of the model see it, in the arena; `whole`: with its ancestors. */
MUST_USE enum status rev_branch_copy(const struct rev_branch_record *row, bool whole,
				     struct arena *arena, struct rev_branch *ret);

int rev_branch_record_cmp(const struct rev_branch_record *a, const struct rev_branch_record *b);

/* Asks for the winner of a document that is not deleted; then waits, as rev_winner_read() does. */
MUST_USE enum status rev_winner_ask(struct kv_tx *tx, const struct catalog_db *db, struct str id,
				    struct buf *key, struct kv_future **ret);
MUST_USE enum status rev_winner_wait(struct kv_tx *tx, const struct catalog_db *db, struct str id,
				     struct kv_future *f, struct arena *arena, struct rev_id *ret);

/* ---- Bodies (bodies.c) ---- */

/*
 * Takes the body of doc->rev, whose key is `root`, out of the last keys of its document in
 * DOCUMENTS, which came last key first. STATUS_NOT_FOUND if there is none; `*ret_whole` is false if
 * not all of it is there, and nothing has been taken.
 */
MUST_USE enum status rev_body_take_last(struct kv_tx *tx, const struct catalog_db *db,
					const struct kv_range *last, struct str root,
					struct arena *arena, bool *ret_whole, struct rev_doc *doc);

/* Reads the body of doc->rev from its beginning, by a range. */
MUST_USE enum status rev_body_read_all(struct kv_tx *tx, const struct catalog_db *db, struct str id,
				       struct arena *arena, struct rev_doc *doc);

/* ---- Branches one after another (branch_scan.c) ---- */

/* All fields are private. */
struct rev_branch_scan {
	struct kv_tx *tx;
	struct kv_range_options options;
	struct kv_future *future; /* of `range` */
	struct kv_range range;    /* the stretch that is read now */
	size_t prefix_len;
	size_t at;
	bool waited;
	bool any; /* a branch has been given out */
	bool winner_seen;
};

/* Asks for the first stretch of a document's branches. `key` is used. */
MUST_USE enum status rev_branch_scan_begin(struct rev_branch_scan *s, struct kv_tx *tx,
					   const struct catalog_db *db, struct str id,
					   enum kv_read mode, struct buf *key);

/*
 * The next branch, winner last, valid until the next call; STATUS_NOT_FOUND behind the last one.
 * Where the hash has a NUL it is in the arena.
 */
MUST_USE enum status rev_branch_scan_next(struct rev_branch_scan *s, struct arena *arena,
					  struct rev_branch_record *ret);

/* Lets go of the memory early; it goes with the transaction at the latest. */
void rev_branch_scan_release(struct rev_branch_scan *s);

/* The revisions of one branch, its head first. All fields are private. */
struct rev_lineage {
	struct tuple_reader rest;
	struct rev_id next;
	struct buf *scratch;
	bool begun; /* the head has been given out, or passed over */
};

void rev_lineage_begin(struct rev_lineage *l, const struct rev_branch_record *row,
		       struct buf *scratch);
/* Passes over revisions with a position above `highest`. */
MUST_USE enum status rev_lineage_skip(struct rev_lineage *l, uint64_t highest);
/*
 * The next revision, valid until the next call, and the encoded ancestors behind it.
 * STATUS_NOT_FOUND behind the last one.
 */
MUST_USE enum status rev_lineage_next(struct rev_lineage *l, struct rev_id *ret,
				      struct str *ret_rest);

/* Appends ancestors, as long as the limits allow: some hashes, then what a branch has, once. */
struct rev_ancestors {
	struct buf *out;
	size_t left; /* ancestors that may still come */
};

void rev_ancestors_init(struct rev_ancestors *list, struct buf *out, const struct catalog_db *db);
void rev_ancestors_add(struct rev_ancestors *list, struct str hash);
/* `most`: there are no more of them, since a revision has fewer than its position. */
MUST_USE enum status rev_ancestors_add_encoded(struct rev_ancestors *list, struct str ancestors,
					       uint64_t most);

/* The values of a branch. A winner's has its Sequence filled in by the commit: the offset. */
void rev_branch_record_put_loser(struct buf *value, const struct rev_branch_record *row);
size_t rev_branch_record_put_winner(struct buf *value, uint8_t incarnation, uint16_t order,
				    uint64_t branch_count, const struct rev_branch_record *row);

/* ---- Counters and the watched key (stats.c) ---- */

#define REV_STAT_DOCS    STR("doc_count")
#define REV_STAT_DELETED STR("doc_del_count")
#define REV_STAT_CHANGED STR("changed")
#define REV_STAT_PURGED  STR("purged")
#define REV_STAT_PURGES  STR("purges")
/* In a partitioned database: the sizes of all documents (partition.h). */
#define REV_STAT_EXTERNAL STR("external")
#define REV_STAT_ACTIVE   STR("active")

/* Adds to a counter; nothing for 0. */
MUST_USE enum status rev_stat_add(struct kv_tx *tx, const struct catalog_db *db, struct str name,
				  int64_t delta, struct buf *key);

/* Remembers the Sequence of the newest purge, so that no Sequence ever goes back. */
MUST_USE enum status rev_stat_purged(struct kv_tx *tx, const struct catalog_db *db, uint16_t order,
				     struct buf *key);

/* The Sequence of the newest purge; the beginning if there was none. Conflicts with purges. */
MUST_USE enum status rev_stat_purged_read(struct kv_tx *tx, const struct catalog_db *db,
					  struct catalog_seq *ret);

/* Leaves a new value under the watched key. */
MUST_USE enum status rev_stat_changed(struct kv_tx *tx, const struct catalog_db *db, uint16_t order,
				      struct buf *key);

/* ---- Applying an edit (apply.c) ---- */

struct rev_writer {
	struct kv_tx *tx;
	const struct catalog_db *db;
	struct arena *arena;
	struct buf key;
	struct buf value;
	struct buf ancestors; /* of the new head, encoded */
	struct buf scratch;
	int64_t docs_delta;
	int64_t deleted_delta;
	bool changed;
	uint16_t last_order;
	struct rev_att_delta *deltas; /* in the arena */
	size_t deltas_count;
	size_t deltas_cap;
	struct catalog_counts counts;           /* what it adds to the counters by range */
	struct index_writer indexes;            /* `set` is NULL if the database has none */
	const struct index_def *duplicate;      /* which index has refused an edit last */
	struct rev_partition_delta *partitions; /* what it adds for partitions, in the arena */
	size_t partitions_count, partitions_cap;
	struct str asked_partition; /* the size of which was asked for last */
	struct kv_future *asked_partition_bytes;
};

/* One edit as it is going to be applied. */
struct rev_update {
	const struct rev_edit *edit;
	struct rev_id rev;
	uint16_t order;
	/* Branches that were read, the winner among them if there is one; `replaced` is set on
	 * those that the new head descends from. */
	struct rev_branch_record *rows;
	size_t count;
	const struct rev_att *atts; /* of the new head, stubs resolved: as many as the edit has */
	bool purges;                /* there is no new head */
	/* What indexes need to know; NULL: nothing. rev_index_apply() comes before the writing. */
	struct rev_index_change *index;
};

/* ---- Indexes and design documents (indexes.c) ---- */

/* The body of a live head, on its way. All fields are private. */
struct rev_body_ask {
	struct kv_future *future; /* NULL: nobody has asked */
	struct rev_id rev;        /* borrowed */
	bool all;                 /* not only the root */
};

/* What becomes of a document's winner. */
struct rev_index_change {
	struct str id;
	bool has_before;
	struct rev_branch_record before; /* the winner so far */
	const struct rev_edit *edit;     /* whose head becomes the winner; or NULL, and then… */
	struct rev_id edit_rev;
	bool has_after;
	struct rev_branch_record after; /* …a branch that is stored, unless nothing is left */
	struct rev_body_ask guess;      /* asked for before the winner was known */
	struct rev_body_ask before_body;
	struct rev_body_ask after_body;
};

/* True if indexes or the hook of design documents want to know what becomes of this document. */
bool rev_index_wants(const struct rev_writer *w, struct str id);

/* Asks for the body of a live head: one key where the database keeps documents packed. */
MUST_USE enum status rev_body_ask(struct rev_writer *w, struct str id, struct rev_id rev,
				  struct rev_body_ask *ret);

/*
 * Finds out what an update does to the winner, and asks for the bodies that are not in `guess` (or
 * NULL). `*ret_waits` is set if another wave of reads is needed for them.
 */
MUST_USE enum status rev_index_begin(struct rev_writer *w, const struct rev_update *u,
				     const struct rev_body_ask *guess,
				     struct rev_index_change **ret, bool *ret_waits);

/* The same where the caller has filled in the change; asks for the bodies. */
MUST_USE enum status rev_index_ask(struct rev_writer *w, struct rev_index_change *c,
				   bool *ret_waits);

/*
 * Waits for the bodies and changes the entries; or calls the hook of design documents.
 * STATUS_DUPLICATE: a unique index forbids the edit, and nothing was written.
 */
MUST_USE enum status rev_index_apply(struct rev_writer *w, struct rev_index_change *c);

/* ---- Applying several edits ---- */

/*
 * Writes the new head, whose encoded ancestors are in w->ancestors, clears what it replaces, and
 * moves the winner's belongings: the Sequence, the change, the entry in ALL_DOCS, the counts.
 */
MUST_USE enum status rev_update_apply(struct rev_writer *w, const struct rev_update *u);

/*
 * Clears the rows that are `replaced`, and leaves the document's belongings to the best of the
 * others, under a new Sequence; with no other, nothing is left. Of the document's rows there are
 * the winner, all that are replaced, and the best of those that are not.
 */
MUST_USE enum status rev_update_purge(struct rev_writer *w, const struct rev_update *u);

/* What has become of a document by several edits. */
struct rev_merged {
	struct str id;
	/* Those that are stored, winner first, and behind them those that edits have made. What was
	 * replaced meanwhile is marked. */
	struct rev_branch_record *rows;
	size_t stored;
	size_t count;
	struct rev_update *heads; /* of the rows behind `stored`: the edit, its revision and order;
				   * `rows` is not used */
};

/* Of the branches that are not replaced, the best. */
const struct rev_branch_record *rev_merged_winner(const struct rev_merged *m,
						  uint64_t *ret_branches);

/*
 * Writes all new branches that are not replaced, clears stored ones that are, and moves the
 * winner's belongings once. There must be a new branch.
 */
MUST_USE enum status rev_merged_apply(struct rev_writer *w, const struct rev_merged *m);

/* ---- Several replicated edits of a document (merge.c) ---- */

struct rev_merge;

/*
 * Begins with edit `leader`. `next` gives for each edit the number of the next one of the same
 * document plus one, or 0. `first` is added to the edits' numbers for the order of their Sequences.
 * All of them can merge. Those whose result is no STATUS_OK are passed over; the others' results
 * have the revision already.
 */
MUST_USE enum status rev_merge_begin(struct rev_writer *w, const struct rev_edit *edits,
				     const uint32_t *next, size_t leader, size_t first,
				     struct rev_result *results, struct rev_merge **ret);

/* Goes on when a wave of reads has come; without `ret_done` there is another one. */
MUST_USE enum status rev_merge_resolve(struct rev_writer *w, struct rev_merge *m, bool *ret_done);

/*
 * At the end of a batch: attachments, counters, and the watched key if anything has changed. The
 * counts are still the caller's to release.
 */
MUST_USE enum status rev_writer_finish(struct rev_writer *w);

/* What is counted by ranges: the index in the lists of the kind. */
enum rev_list {
	REV_LIST_DOCS,    /* the keys of ALL_DOCS */
	REV_LIST_CHANGES, /* those of CHANGES */
	REV_LIST_ENTRIES, /* those of all indexes */
	REV_LISTS,
};

/* ---- Attachments (att.c) ---- */

#define REV_ATT_SPACE_DATA STR("data")
#define REV_ATT_SPACE_REFS STR("refs")

/* (P, ATTACHMENTS, space, id) */
void rev_key_att(struct buf *key, const struct catalog_db *db, struct str space,
		 const uint8_t id[REV_ATT_ID_BYTES]);
void rev_key_upload(struct buf *key, uint64_t number, const uint8_t id[REV_ATT_ID_BYTES]);

/* What follows a revision's key in DOCUMENTS in front of an attachment's name. */
#define REV_ATT_MARK STR("\0")

/* Attachments with the numbers that they were written under, to be put in that order. */
struct rev_att_list {
	struct rev_att *atts;
	uint64_t *orders;
	size_t count;
	size_t cap;
	size_t orders_cap;
};

MUST_USE enum status rev_att_list_add(struct rev_att_list *list, struct str path, struct str value,
				      struct arena *arena, struct err *err);
void rev_att_list_sort(struct rev_att_list *list);

/* Asks for all attachments of a head; then waits for them. */
MUST_USE enum status rev_atts_get(struct kv_tx *tx, const struct catalog_db *db, struct str id,
				  struct rev_id rev, bool deleted, struct buf *key,
				  struct kv_future **ret);
MUST_USE enum status rev_atts_wait(struct kv_tx *tx, const struct catalog_db *db, struct str id,
				   struct rev_id rev, bool deleted, struct kv_future *f,
				   struct buf *key, struct arena *arena, struct rev_att_list *ret);

/* Writes `data`, whose first byte is byte `first` * REV_ATT_CHUNK_BYTES of the attachment. */
MUST_USE enum status rev_att_write_data(struct kv_tx *tx, const struct catalog_db *db,
					const uint8_t id[REV_ATT_ID_BYTES], uint64_t first,
					struct str data, struct buf *key);

/* Clears the data and the counter. */
MUST_USE enum status rev_att_clear(struct kv_tx *tx, const struct catalog_db *db,
				   const uint8_t id[REV_ATT_ID_BYTES], struct buf *key);

/* Gives up every upload into the database with this number. */
MUST_USE enum status rev_uploads_clear(struct kv_store *store, uint64_t number, struct err *err);

/* ---- Attachments of edits (att_edit.c) ---- */

/* By how much the number of revisions that have an attachment changes. */
struct rev_att_delta {
	uint8_t id[REV_ATT_ID_BYTES];
	int64_t change;
	struct kv_future *refs;
};

/* What is wrong with an edit's attachments, whose keys have `prefix_bytes` before their names. */
MUST_USE enum status rev_atts_check(const struct rev_edit *edit, size_t prefix_bytes,
				    size_t key_limit);

/*
 * The new head's attachments, with stubs taken from `from`. `revpos`: what those that the edit
 * brings get; 0: as it says. STATUS_ATT_MISSING, with the name in *ret_name.
 */
MUST_USE enum status rev_atts_resolve(const struct rev_edit *edit, const struct rev_att_list *from,
				      uint64_t revpos, struct arena *arena, struct rev_att **ret,
				      struct str *ret_name);

/*
 * For an edit whose stubs were resolved to `atts` from the attachments `from` of `parent`, which is
 * an edit of the same transaction and is not going to be written: what `parent` brings becomes what
 * the edit brings. `*edit` becomes a copy of it, in the arena.
 */
MUST_USE enum status rev_atts_inherit(const struct rev_edit *parent,
				      const struct rev_att_list *from, const struct rev_att *atts,
				      struct arena *arena, const struct rev_edit **edit);

/* Notes that one more revision (+1), or one less (-1), refers to the data of this name. */
MUST_USE enum status rev_data_count(struct rev_writer *w, const uint8_t id[REV_ATT_ID_BYTES],
				    int64_t change);

/* Notes that a head has come with (+1), or one has gone that had (-1), these attachments. */
MUST_USE enum status rev_atts_count(struct rev_writer *w, const struct rev_att *atts, size_t count,
				    int64_t change);

/* Writes the pointers below w->key, the new head's, and the data that comes with the edit. */
MUST_USE enum status rev_atts_write(struct rev_writer *w, const struct rev_update *u);

/* At the end of a batch: the counters, and the data that nothing refers to any more. One wave. */
MUST_USE enum status rev_atts_settle(struct rev_writer *w);

/* ---- The record of purges (purges.c) ---- */

#define REV_PURGES_RECORDS STR("records")
#define REV_PURGES_READERS STR("readers")
#define REV_PURGES_CLEARED STR("cleared")

/* The key of a record behind "records": its Sequence, and which part of it this is. */
MUST_USE enum status rev_purge_key_parse(struct str tail, struct catalog_seq *ret,
					 uint64_t *ret_part);

/* Records that these heads of a document go with the purge of that order. */
MUST_USE enum status rev_purge_write(struct rev_writer *w, struct str id, uint16_t order,
				     const struct rev_id *revs, size_t count);

/* ---- What the catalog calls (kind.c) ---- */

extern const struct catalog_kind rev_kind;

#endif
