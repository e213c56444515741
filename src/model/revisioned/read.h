/*
 * Reading documents: their branches, their bodies one by one and many at a time, what is missing.
 *
 * Every function that takes a transaction leaves the commit to its caller, and may be called again
 * in the next attempt. What is returned lives in the arena given. Threading: that of the
 * transaction.
 */
#ifndef FROND_MODEL_READ_H
#define FROND_MODEL_READ_H

#include "base/arena.h"
#include "catalog/catalog.h"
#include "doc/doc.h"
#include "kv/kv.h"
#include "model/revisioned/att.h"
#include "model/revisioned/rev_set.h"
#include "model/revisioned/revision.h"

/* One edit branch. */
struct rev_branch {
	struct rev_id rev;
	bool deleted;
	bool winner;
	struct str
		*ancestors; /* newest first, the head's own hash left out; NULL unless asked for */
	size_t ancestors_count;
};

struct rev_tree {
	struct rev_branch *branches; /* winner first, then by winner order downwards */
	size_t count;
	struct catalog_seq seq; /* the document's, as its winner carries it */
};

/* Which ancestors are read with the branches: those of all take much memory in long conflicts. */
enum rev_tree_part {
	REV_TREE_HEADS,  /* none */
	REV_TREE_WINNER, /* the winner's */
	REV_TREE_ALL,
};

/* Every branch. STATUS_NOT_FOUND if the id was never there. */
MUST_USE enum status rev_tree_read(struct kv_tx *tx, const struct catalog_db *db, struct str id,
				   enum rev_tree_part part, struct arena *arena,
				   struct rev_tree *ret);

/*
 * One head with its ancestors, and without the other branches. STATUS_NOT_FOUND if the document has
 * no such head. Two keys are asked for.
 */
MUST_USE enum status rev_branch_read(struct kv_tx *tx, const struct catalog_db *db, struct str id,
				     struct rev_id rev, struct arena *arena,
				     struct rev_branch *ret);

struct rev_want;

/*
 * Live heads of many documents with their ancestors, in one round trip. `wants[i].deleted` is not
 * looked at. A revision that is no live head leaves `ret[i]` with pos 0.
 */
MUST_USE enum status rev_branches_read_live(struct kv_tx *tx, const struct catalog_db *db,
					    const struct rev_want *wants, size_t count,
					    struct arena *arena, struct rev_branch *ret);

/*
 * For each of some revisions of a document, the heads that are that revision or descend from it,
 * winner order downwards: found together, reading each branch once. All in the arena.
 */
enum {
	REV_DESCENT_MOST = 100000, /* links of all revisions together, if there are several */
};

struct rev_descent_link {
	uint32_t head; /* in `heads` */
	uint32_t next; /* in `links`, plus one; 0: none */
};

struct rev_descent {
	struct rev_branch *heads;
	struct rev_descent_link *links;
	bool too_many; /* links: ask about fewer revisions, or about one */
	/* Private. */
	size_t heads_count;
	size_t heads_cap;
	size_t links_count;
	size_t links_cap;
	uint32_t *first;    /* by number in the set: its first link plus one */
	struct rev_set set; /* of the revisions */
};

enum rev_descent_flags {
	REV_DESCENT_WHOLE = 1,  /* the heads come with their ancestors */
	REV_DESCENT_ITSELF = 2, /* a revision has no head but itself */
};

MUST_USE enum status rev_descent_read(struct kv_tx *tx, const struct catalog_db *db, struct str id,
				      const struct rev_id *revs, size_t count, unsigned flags,
				      struct arena *arena, struct rev_descent *ret);

/* The first link of one of the revisions, plus one; 0: it has no head. */
uint32_t rev_descent_first(const struct rev_descent *d, struct rev_id rev);

/*
 * The winners' revisions of many documents, by snapshot reads that go out together. `ret` has room
 * for `count`; the hash of a document that is deleted or was never there has ptr NULL.
 */
MUST_USE enum status rev_winners_read(struct kv_tx *tx, const struct catalog_db *db,
				      const struct str *ids, size_t count, struct arena *arena,
				      struct rev_id *ret);

struct rev_doc {
	struct rev_id rev;
	bool deleted;
	struct str packed;      /* the body as doc/packed.h has it; ptr NULL: it is in leaves */
	struct kv_pair *leaves; /* key: the path alone, as doc_assemble_leaf() wants it */
	size_t count;
	struct rev_att *atts; /* in the order in which they were written */
	size_t atts_count;
	/* Of a body whose text lies in chunks: what names it, for an edit that keeps the body. */
	uint8_t text_id[REV_ATT_ID_BYTES];
	uint64_t text_bytes; /* 0: it does not */
};

/*
 * The JSON of the body's members behind an opening brace that the caller has written, perhaps with
 * members (`has_members`), and the closing brace. STATUS_CORRUPT for leaves that no document has.
 */
MUST_USE enum status rev_body_write(const struct rev_doc *doc, bool has_members, struct buf *out);

/* Makes `leaves` of a packed body, in the arena. STATUS_CORRUPT, STATUS_LIMIT, STATUS_NOMEM. */
MUST_USE enum status rev_body_explode(struct rev_doc *doc, struct arena *arena);

/*
 * The winner and its body. STATUS_NOT_FOUND (never there), STATUS_DELETED (ret->rev and, for a
 * tombstone with a body, the leaves are filled in), STATUS_LIMIT.
 */
MUST_USE enum status rev_doc_read(struct kv_tx *tx, const struct catalog_db *db, struct str id,
				  struct arena *arena, struct rev_doc *ret);

/*
 * The same, with the body asked for before its revision is known: one round trip for a live
 * document of up to 32 KB. It reads what else lies at the end of the document's bodies, such as
 * conflicts, in vain, and is slower than rev_doc_read() where waiting costs nothing. rev_doc_read()
 * calls it if the store is a cluster.
 */
MUST_USE enum status rev_doc_read_together(struct kv_tx *tx, const struct catalog_db *db,
					   struct str id, struct arena *arena, struct rev_doc *ret);

/* The winner's revision alone: one key when it is not deleted. */
MUST_USE enum status rev_winner_read(struct kv_tx *tx, const struct catalog_db *db, struct str id,
				     struct arena *arena, struct rev_id *ret);

/*
 * The body of one head, whose deleted flag is known (from the tree, or false for one that a client
 * names). STATUS_NOT_FOUND if it is not stored: no head (any more), or a tombstone without a body.
 */
MUST_USE enum status rev_doc_read_head(struct kv_tx *tx, const struct catalog_db *db, struct str id,
				       struct rev_id rev, bool deleted, struct arena *arena,
				       struct rev_doc *ret);

/* One body on its way. All fields are private. */
struct rev_doc_read {
	struct kv_tx *tx;
	enum kv_read mode;
	struct rev_id rev; /* borrowed */
	bool deleted;
	struct buf key;         /* of the root */
	struct kv_future *root; /* where the database's documents are packed */
	struct kv_scan scan;    /* everything from the root on */
};

/*
 * Bodies of a list, as rev_doc_read_head() reads them, but many at a time: those that lie beside
 * each other by one range, whatever order they are wanted in, and the others in one wave.
 *
 *     struct rev_ahead a = { 0 };
 *     rev_ahead_begin(&a, tx, db, part, wants, count, more);   // a page
 *     rev_ahead_take(&a, arena, &doc);                         // of each in turn
 *     rev_ahead_begin(...)                                     // the next page
 *     rev_ahead_release(&a);                                   // before the transaction is reset
 *
 * However many there are, it holds no more than half a megabyte, and what a document takes. All are
 * snapshot reads: whoever writes by what they say adds a conflict with the winner's key, which
 * every edit of a document rewrites (indexed_docs.c).
 */
enum {
	REV_AHEAD = 64,              /* read by themselves that are on their way */
	REV_AHEAD_BYTES = 64 * 1024, /* of each: the rest of a larger one is asked for later */
	REV_AHEAD_ARENA_BYTES = 16 * 1024 * 1024,
};

struct rev_want {
	struct str id;
	struct rev_id rev;
	bool deleted;
};

struct rev_ahead_item;
struct budget_part;

/* All fields are private; all zero: not in use. */
struct rev_ahead {
	struct kv_tx *tx;
	const struct catalog_db *db;
	const struct rev_want *wants;
	size_t count;
	size_t taken;
	struct arena *arena; /* of the window */
	size_t window;       /* bodies read together next time */
	size_t first;        /* of the window there is, in `wants` */
	size_t filled;
	struct rev_ahead_item *items;
	bool ascending;   /* they come as their keys do: each is read when it is taken */
	unsigned sparse;  /* windows that are to be read without a scan */
	struct buf bound; /* of the next scan */
	struct buf key;   /* of the last root that the scan was asked for */
	struct kv_scan scan;
	bool scanning;
	size_t served;       /* bodies that the scan has brought */
	struct kv_pair pair; /* that it stands at */
	bool has_pair;
};

/*
 * `wants`, and what they borrow, stay where they are until all have been taken or given up. `more`:
 * another page will go on behind them. The memory is of `part` (NULL: of none). STATUS_NOMEM.
 */
MUST_USE enum status rev_ahead_begin(struct rev_ahead *a, struct kv_tx *tx,
				     const struct catalog_db *db, struct budget_part *part,
				     const struct rev_want *wants, size_t count, bool more);
/* The next one's; valid until the next call, or in the arena. STATUS_NOT_FOUND: it has none. */
MUST_USE enum status rev_ahead_take(struct rev_ahead *a, struct arena *arena, struct rev_doc *ret);
void rev_ahead_release(struct rev_ahead *a); /* again is fine */

/*
 * Says, after rev_ahead_begin(), that these documents lie far apart: they are read one by one, many
 * at a time, without trying a scan first.
 */
void rev_ahead_is_sparse(struct rev_ahead *a);

/*
 * The length of the prefix of a revision's leaves, for doc_explode(), before the revision is known:
 * an upper bound.
 */
size_t rev_doc_prefix_bytes(const struct catalog_db *db, struct str id);

/* Of the documents of a database, whose JSON text may have that many bytes, for doc_explode(). */
struct doc_limits rev_doc_limits(const struct catalog_db *db, size_t doc_bytes);

/*
 * Which of `revs` the database does not have, be it as head or as ancestor, and the heads of lower
 * position that may be ancestors of them (empty if nothing is missing).
 */
struct rev_diff {
	struct rev_id *missing; /* hashes are borrowed from the query */
	size_t missing_count;
	struct rev_id *possible_ancestors;
	size_t possible_ancestors_count;
};

struct rev_diff_query {
	struct str id;
	struct rev_id *revs;
	size_t count;
};

MUST_USE enum status rev_diff(struct kv_tx *tx, const struct catalog_db *db,
			      const struct rev_diff_query *queries, size_t count,
			      struct arena *arena, struct rev_diff *ret_diffs);

/* Where the body of a revision lies, for doc_read_pointer(). In the arena. */
MUST_USE enum status rev_doc_place(const struct catalog_db *db, struct str id, struct rev_id rev,
				   bool deleted, struct arena *arena, struct doc_place *ret);

#endif
