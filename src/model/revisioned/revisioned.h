/*
 * Documents with revisions (seeds 0, 1 and 3): what a write means to CouchDB's clients.
 *
 * A database's name maps to a short prefix P; its subspaces:
 *
 *     (ROOT, 1, DbName)           → format, P, incarnation, uuid, created, scheme, revs_limit
 *                                   [, fence]
 *     (P, ALL_DOCS, DocID)        → format, RevPos, RevHash
 *     (P, CHANGES, Incarnation, Versionstamp)
 *                                 → format, DocID, RevPos, RevHash, BranchCount, NotDeleted
 *     (P, REVISIONS, DocID, NotDeleted, RevPos, RevHash)
 *                                 → winner: format, (Incarnation, Versionstamp), BranchCount,
 *                                           (ancestors…)
 *                                   others: format, null, null, (ancestors…)
 *     (P, DOCUMENTS, DocID, NotDeleted, RevPos, RevHash)
 *                                 → form (RevisionMetadata): 1; + path… → leaf;
 *                                   or 2, the packed body;
 *                                   + null, name → an attachment of the revision
 *     (P, LOCAL, DocID)           → form, revision number, packed body; + path… → leaf
 *     (P, ATTACHMENTS, "data", AttID, n) → REV_ATT_CHUNK_BYTES of it; the last chunk may have less
 *     (P, ATTACHMENTS, "refs", AttID)    → little-endian counter of the revisions that have it
 *     (ROOT, 3, P, AttID)         → format, begun, last (ms): an upload that no revision has yet
 *     (P, INDEXES, …)             reserved
 *     (ROOT, 5, DbName)           → format, kind, Incarnation, Versionstamp: created or deleted
 *     (ROOT, 6)                   → Incarnation that new databases begin with; absent: 0
 *     (ROOT, 7, DbName)           → a database on its way to or from another store: see move.h
 *     (ROOT, 9, Section, Name)    → format, text or null: a setting of all servers of the store
 *     (P, CONFIG, name)           → value
 *     (P, STATS, name)            → little-endian counter, changed by atomic addition
 *     (P, STATS, "changed")       → Versionstamp of the newest change: what feeds watch
 *     (P, STATS, "purged")        → the Sequence of the newest purge
 *     (P, TALLIES, list, lo, hi)  → little-endian counter: keys of ALL_DOCS or CHANGES in a range
 *
 * The winner is always the last key of its document in REVISIONS, and only its value carries the
 * Sequence. CHANGES carries the winner's deleted flag, whichever branch was edited.
 *
 * Every function that takes a transaction leaves the commit to its caller, and may be called again
 * in the next attempt. Everything returned lives in the arena given. Threading: that of the
 * transaction; a rev_cache belongs to one thread.
 */
#ifndef FROND_MODEL_REVISIONED_H
#define FROND_MODEL_REVISIONED_H

#include "base/arena.h"
#include "doc/doc.h"
#include "doc/packed.h"
#include "kv/kv.h"

enum {
	REV_DB_NAME_BYTES = 238, /* as CouchDB: longer names are refused */
	REV_DOC_ID_BYTES = 7000, /* leaves room for a path in a key of 10,000 */
	REV_SEQUENCE_BYTES = 13,
	REV_SEQUENCE_HEX_BYTES = 26,
	REV_HASH_BYTES = 16, /* CouchDB's hashes; opaque ones, as clients make them, may differ */
	REV_HASH_LIMIT_BYTES = 512, /* of an opaque one */
	/* _revs_limit: revisions that a branch remembers, its leaf included, as in CouchDB. */
	REV_LIMIT_DEFAULT = 1000,
	REV_LIMIT_MAX = 4000,    /* seed 3 */
	REV_DROP_KEYS = 5000,    /* of a deleted database, cleared in one transaction */
	REV_BATCH_EDITS = 65535, /* edits in one transaction: two bytes of a versionstamp */

	REV_ATT_ID_BYTES = 16,
	REV_ATT_DIGEST_BYTES = 16,            /* an MD5 */
	REV_ATT_CHUNK_BYTES = 90000,          /* stored: never change */
	REV_ATT_BATCH_CHUNKS = 11,            /* written by one transaction of an upload */
	REV_ATT_TYPE_BYTES = 1024,            /* a content type */
	REV_ATTS_MAX = 10000,                 /* of one revision */
	REV_UPLOAD_AGE_MS = 60 * 60 * 1000,   /* an upload that rests for so long is given up */
	REV_UPLOAD_TOUCH_MS = 10 * 60 * 1000, /* so often it has to give a sign of life */
};

/* The seeds' names for the numbers in keys. Stored: never renumber. */
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
};

/* ---- Revision identifiers ---- */

/* Bytes are borrowed. {0, empty} is "none". */
struct rev_id {
	uint64_t pos;
	struct str hash; /* REV_HASH_BYTES bytes, or opaque text of another length */
};

/*
 * "3-9b2e…": a suffix of 32 characters must be hexadecimal, any other (UTF-8, REV_HASH_LIMIT_BYTES
 * at most, perhaps empty) is taken as it is. STATUS_INVALID ("Invalid rev format") otherwise. The
 * hash is in the arena. "0-…", as local documents have it, is read, and is no document's revision.
 */
MUST_USE enum status rev_id_parse(struct str text, struct arena *arena, struct rev_id *ret,
				  struct err *err);

/* Hashes of REV_HASH_BYTES in hexadecimal, opaque ones as they are (unescaped). */
void rev_id_write(struct rev_id rev, struct buf *ret);
bool rev_id_eq(struct rev_id a, struct rev_id b);

/* Winner order among leaves: not deleted, then position, then hash bytes. <0, 0, >0. */
int rev_id_cmp(bool a_not_deleted, struct rev_id a, bool b_not_deleted, struct rev_id b);

/*
 * CouchDB's own revision hash: md5 over [Deleted, OldPos, OldHash|0, Body, Atts] in Erlang's
 * external term format, `term` being the body as struct doc has it; an empty one is that of `{}`.
 * `parent.pos` 0: none.
 */
void rev_hash(bool deleted, struct rev_id parent, struct str term, uint8_t ret[REV_HASH_BYTES]);

struct rev_att;

/* The same for a revision with attachments. */
void rev_hash_atts(bool deleted, struct rev_id parent, struct str term, const struct rev_att *atts,
		   size_t atts_count, uint8_t ret[REV_HASH_BYTES]);

/* ---- Sequences ---- */

struct rev_seq {
	uint8_t bytes[REV_SEQUENCE_BYTES]; /* Incarnation, then the 12-byte versionstamp */
};

/*
 * 26 hexadecimal characters, or "0" for the beginning. STATUS_INVALID otherwise. ("now" is the
 * door's to resolve.)
 */
MUST_USE enum status rev_seq_parse(struct str text, struct rev_seq *ret, struct err *err);
void rev_seq_write(const struct rev_seq *seq, struct buf *ret);
int rev_seq_cmp(const struct rev_seq *a, const struct rev_seq *b);

/* ---- Databases ---- */

/*
 * How the bodies of a database's documents are kept (seed 0): a property of the database that says
 * what is written from now on. Reading takes every revision as it is, so that it can be changed at
 * any time. Stored: never renumber.
 */
enum rev_scheme {
	REV_SCHEME_EXPLODED = 1, /* a key-value pair for each leaf */
	REV_SCHEME_PACKED = 2,   /* up to DOC_PACKED_BYTES one value; leaves above that */

	REV_SCHEME_DEFAULT = REV_SCHEME_PACKED, /* why: docs/ARCHITECTURE.md */
};

/* Why a database can only be read: it is, or was, relocated (move.h). Stored: never renumber. */
enum rev_fence {
	REV_FENCE_NONE = 0,
	REV_FENCE_MOVING = 1,
	REV_FENCE_KEPT = 2, /* what is left where it was: it can be read, and deleted */
};

/* A database's description, immutable and counted: a writer may replace it while a reader uses it.
 */
struct rev_db {
	struct str name;
	struct str prefix; /* (P,) encoded: what every key of it starts with */
	uint64_t number;   /* P */
	uint8_t incarnation;
	uint8_t uuid[16];
	uint64_t created_ms; /* since 1970 */
	uint32_t revs_limit;
	enum rev_scheme scheme;
	enum rev_fence fence;
	struct rev_tally *tally; /* what writers know of its counters by range; NULL: nothing */
};

struct rev_db *rev_db_ref(struct rev_db *db);
void rev_db_unref(struct rev_db *db); /* NULL is fine */

/* Descriptions of databases, valid while the store's metadata version stands still. One thread's.
 */
struct rev_cache;
struct rev_cache *rev_cache_new(void); /* NULL when out of memory */
void rev_cache_free(struct rev_cache *cache);

/*
 * The scheme that the database had when the cache last met it; `unknown` if it has not. For taking
 * a document in the form that it is likely to be kept in: rev_write() copes with the other.
 */
enum rev_scheme rev_cache_scheme(const struct rev_cache *cache, struct str name,
				 enum rev_scheme unknown);

/* ---- Counters by range ---- */

/*
 * How many documents come before one, and how many changes after one, is the sum of counters, each
 * of a range of keys, and of a count in one range. Writers add to the counters blindly, whatever
 * ranges they know of; the answers are always exact. That few keys are counted takes somebody to
 * split ranges that have grown: rev_tallies_tend().
 *
 * What the writers of a process know of ranges, one for all of its caches. From any thread.
 */
struct rev_tallies;
struct rev_tallies *rev_tallies_new(void); /* NULL when out of memory */
/* After all caches and descriptions. NULL is fine. */
void rev_tallies_free(struct rev_tallies *tallies);
/* Before the cache is used. */
void rev_cache_share(struct rev_cache *cache, struct rev_tallies *tallies);

/*
 * Splits and merges ranges of databases that have been written to lately; `now`: also where little
 * was written. A bounded piece of work; `*ret_more`: there is more, for which writers need a moment
 * to learn of what was done. Call it now and then, from one thread of a process.
 */
MUST_USE enum status rev_tallies_tend(struct rev_tallies *tallies, struct kv_store *store, bool now,
				      bool *ret_more, struct err *err);

/*
 * The same for one database, whose description's own knowledge is renewed. `range_keys`: what a
 * range should have in a small database; 0: the default. STATUS_NOT_FOUND if it is gone or moving;
 * STATUS_CORRUPT if the counters are found to be wrong.
 */
MUST_USE enum status rev_tally_tend(struct kv_store *store, const struct rev_db *db,
				    uint64_t range_keys, bool *ret_more, struct err *err);

/* CouchDB's rule: a-z first, then a-z 0-9 _ $ ( ) + - / ; or _users, _replicator, _global_changes.
 */
bool rev_db_name_valid(struct str name);

/*
 * What every function here that writes to a database asks first: STATUS_UNAVAILABLE while it is
 * being moved, STATUS_FORBIDDEN for what is left where it was.
 */
MUST_USE enum status rev_db_check_writable(const struct rev_db *db, struct err *err);

/*
 * STATUS_EXISTS; STATUS_INVALID for the name; STATUS_UNAVAILABLE while a database of this name is
 * being moved here. Touches the metadata version.
 */
MUST_USE enum status rev_db_create(struct kv_tx *tx, struct str name, enum rev_scheme scheme,
				   struct err *err);

/*
 * The database is gone with the commit, and its prefix is never used again; rev_dropped_sweep()
 * clears its keys. STATUS_NOT_FOUND. Touches the metadata version.
 */
MUST_USE enum status rev_db_delete(struct kv_tx *tx, struct str name, struct err *err);

/*
 * Clears keys of deleted databases, REV_DROP_KEYS a transaction (all at once where the engine
 * clears ranges cheaply) and in at most `transactions` of them. `*ret_more`: some are left. Call it
 * now and then, from one thread of a process.
 */
MUST_USE enum status rev_dropped_sweep(struct kv_store *store, unsigned transactions,
				       bool *ret_more, struct err *err);

/*
 * The database's description as this transaction sees it; conflicts with its deletion. Reads no key
 * when the cache has it (cache may be NULL). The reference is the caller's. STATUS_NOT_FOUND
 * ("Database does not exist.").
 */
MUST_USE enum status rev_db_open(struct kv_tx *tx, struct rev_cache *cache, struct str name,
				 struct rev_db **ret, struct err *err);

/* Names in byte order within [begin, end] (an empty `end`: no end), reversed from `end` if
 * descending. */
struct rev_name_range {
	struct str begin;
	struct str end;
	bool has_begin;
	bool has_end;
	bool exclusive_end;
	bool exclusive_begin; /* for going on after the last name of a page */
	bool descending;      /* begin is then the upper bound, as in CouchDB's queries */
	uint64_t skip;
	size_t limit; /* names at most; the page may be shorter: see `more` */
};

struct rev_name_page {
	struct str *names;
	size_t count;
	bool more;
};

MUST_USE enum status rev_db_list(struct kv_tx *tx, const struct rev_name_range *range,
				 struct arena *arena, struct rev_name_page *ret);

struct rev_db_info {
	uint64_t doc_count; /* whose winner is not deleted */
	uint64_t doc_del_count;
	/* Of the newest change or purge; the beginning in an empty database. Never goes back. */
	struct rev_seq update_seq;
	struct rev_seq purge_seq; /* of the newest purge; the beginning where there was none */
};

MUST_USE enum status rev_db_info(struct kv_tx *tx, const struct rev_db *db,
				 struct rev_db_info *ret);

/* The engine's estimate of what the database takes. May take a millisecond: not for each page. */
MUST_USE enum status rev_db_bytes(struct kv_tx *tx, const struct rev_db *db, uint64_t *ret);

/* The key that every change of the database's documents writes: what a feed watches. In the arena.
 */
MUST_USE enum status rev_db_watch_key(const struct rev_db *db, struct arena *arena,
				      struct str *ret);

/* Named settings of a database: opaque text such as the security object. NOT_FOUND when never set.
 */
MUST_USE enum status rev_config_get(struct kv_tx *tx, const struct rev_db *db, struct str name,
				    struct arena *arena, struct str *ret);
MUST_USE enum status rev_config_set(struct kv_tx *tx, const struct rev_db *db, struct str name,
				    struct str value, struct err *err);
/* 1 to REV_LIMIT_MAX, otherwise STATUS_INVALID. Touches the metadata version. */
MUST_USE enum status rev_limit_set(struct kv_tx *tx, const struct rev_db *db, uint32_t limit,
				   struct err *err);

/* What is written from now on. Touches the metadata version. */
MUST_USE enum status rev_scheme_set(struct kv_tx *tx, const struct rev_db *db,
				    enum rev_scheme scheme, struct err *err);

/* "exploded", "packed"; STATUS_INVALID for any other name. */
MUST_USE enum status rev_scheme_parse(struct str name, enum rev_scheme *ret);
const char *rev_scheme_name(enum rev_scheme scheme);

/* For struct doc_limits: what is taken packed for a database with this scheme. */
size_t rev_scheme_packed_bytes(enum rev_scheme scheme);

/*
 * Raises the Incarnation of one database (seed 1), because its store goes on elsewhere: whatever is
 * changed from now on gets a Sequence above all that anybody has seen. At 255 it stays there.
 * Touches the metadata version. STATUS_NOT_FOUND.
 */
MUST_USE enum status rev_incarnation_raise(struct kv_tx *tx, struct str name, struct err *err);

/*
 * The same for every database of a store that nobody else uses, in as many transactions as it
 * takes. `ret_count` (or NULL): how many there are.
 */
MUST_USE enum status rev_incarnations_raise(struct kv_store *store, uint64_t *ret_count,
					    struct err *err);

/* ---- Attachments ---- */

enum rev_att_encoding {
	REV_ATT_IDENTITY = 0, /* stored: never renumber */
	REV_ATT_GZIP = 1,
};

/* One attachment of one revision. The data is immutable: another content is another id. */
struct rev_att {
	struct str name;
	struct str type;
	uint8_t id[REV_ATT_ID_BYTES];
	uint64_t length;         /* as its author knows it; encoded_length where nobody told */
	uint64_t encoded_length; /* of what is stored */
	enum rev_att_encoding encoding;
	uint8_t digest[REV_ATT_DIGEST_BYTES]; /* MD5 of what is stored */
	uint64_t revpos;                      /* the position of the revision that brought it */
};

enum rev_att_source {
	REV_ATT_STUB,   /* the one of that name in the revision that is extended */
	REV_ATT_DATA,   /* `data` holds what is to be stored; the transaction writes it */
	REV_ATT_STAGED, /* uploaded before (rev_upload_finish()) */
	REV_ATT_SHARED, /* another document's, read in the same transaction */
};

/* What an edit says about one attachment. */
struct rev_att_edit {
	enum rev_att_source source;
	/* STUB: the name, and with `has_revpos` the revpos that it has to have; otherwise all of
	 * it, but that an interactive edit sets the revpos of DATA and STAGED itself. */
	struct rev_att att;
	bool has_revpos;
	struct str data;
};

/* ---- Writing ---- */

enum rev_edit_kind {
	/*
	 * Extends the live leaf `parent`. With no parent: creates the document, or, if all its
	 * branches are deleted, starts it again from the deleted winner. The revision of a deleted
	 * leaf is always a conflict (seed 3).
	 */
	REV_EDIT_INTERACTIVE,
	/* new_edits=false: brings a revision made elsewhere, with its history. */
	REV_EDIT_REPLICATED,
};

struct rev_edit {
	enum rev_edit_kind kind;
	struct str id;
	bool deleted;
	struct doc doc;       /* leaves or packed; `term` for the hash of interactive edits */
	struct rev_id parent; /* INTERACTIVE: the revision that was named; pos 0: none */
	/* REPLICATED: the new revision, then its ancestors, newest first: pos of [0] counts down.
	 */
	uint64_t start;
	struct str *history;
	size_t history_count;
	/*
	 * All attachments of the new revision, in the order in which they count for its hash; of
	 * the extended revision's own, those that are not here are given up.
	 */
	const struct rev_att_edit *atts;
	size_t atts_count;
};

struct rev_result {
	enum status
		status; /* STATUS_OK, STATUS_DOC_CONFLICT, or what is wrong with this edit alone */
	struct str att; /* STATUS_ATT_MISSING: its name, borrowed from the edit */
	struct rev_id rev; /* STATUS_OK: the new revision; REPLICATED: borrowed from the edit */
	bool unchanged;    /* REPLICATED: it was known already */
};

/*
 * Applies the edits, each for itself: a conflict of one is told in its result and leaves the others
 * alone. All reads go out in one wave. `ids` must be distinct within a transaction, because an edit
 * cannot read the versionstamp that another wrote: STATUS_INVALID for the whole. `first` is the
 * number of edits that this transaction has had before (REV_BATCH_EDITS in all).
 *
 * Any status but STATUS_OK is the transaction's: nothing is to be committed. Of one edit alone:
 * STATUS_DOC_CONFLICT; STATUS_KEY_TOO_LARGE for an id (or an id and an opaque hash) past the
 * limits; STATUS_PATH_TOO_LONG for a member that fits no key below them; STATUS_INVALID for an
 * empty id, a history that is none or two attachments of one name; STATUS_ATT_MISSING for a stub
 * that stands for nothing; STATUS_TIMEOUT for an upload that was given up meanwhile.
 *
 * Costs (seed 3): extending the winner 1 key in 1 round trip, extending a loser 2 in 2, deleting
 * the winner 2 in 1, a document with no parent given 1 in 1, REPLICATED N in 1. Where the edit or
 * what it replaces has attachments, those are read as well; see README.md.
 */
MUST_USE enum status rev_write(struct kv_tx *tx, const struct rev_db *db,
			       const struct rev_edit *edits, size_t count, size_t first,
			       struct arena *arena, struct rev_result *ret_results,
			       struct err *err);

/* ---- Purging ---- */

enum {
	REV_PURGE_DOCS = 100, /* in one transaction */
};

struct rev_purge_query {
	struct str id;
	const struct rev_id *revs;
	size_t count;
};

struct rev_purge_result {
	struct rev_id *revs; /* leaves that are gone, in the query's order; borrowed hashes */
	size_t count;
};

/*
 * Takes leaves out of documents as if they had never been, with what only they know of their
 * history: no tombstone tells, and no replication. What is no leaf is passed over. Of the branches
 * that remain the best becomes the winner, under a new Sequence, so that feeds and indexes see the
 * change; a document without any branch left is gone from every subspace.
 *
 * Ids must be distinct, at most REV_PURGE_DOCS of them (STATUS_INVALID). Two round trips, the
 * second only for attachments.
 */
MUST_USE enum status rev_purge(struct kv_tx *tx, const struct rev_db *db,
			       const struct rev_purge_query *queries, size_t count,
			       struct arena *arena, struct rev_purge_result *ret_results,
			       struct err *err);

/* ---- Reading a document ---- */

/* One edit branch. */
struct rev_branch {
	struct rev_id rev;
	bool deleted;
	bool winner;
	struct str
		*ancestors; /* newest first, the leaf's own hash left out; NULL unless asked for */
	size_t ancestors_count;
};

struct rev_tree {
	struct rev_branch *branches; /* winner first, then by winner order downwards */
	size_t count;
	struct rev_seq seq; /* the document's, as its winner carries it */
};

/* Every branch with its ancestors. STATUS_NOT_FOUND if the id was never there. */
MUST_USE enum status rev_tree_read(struct kv_tx *tx, const struct rev_db *db, struct str id,
				   struct arena *arena, struct rev_tree *ret);

struct rev_doc {
	struct rev_id rev;
	bool deleted;
	struct str packed;      /* the body as doc/packed.h has it; ptr NULL: it is in leaves */
	struct kv_pair *leaves; /* key: the path alone, as doc_assemble_leaf() wants it */
	size_t count;
	struct rev_att *atts; /* in the order in which they were written */
	size_t atts_count;
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
MUST_USE enum status rev_doc_read(struct kv_tx *tx, const struct rev_db *db, struct str id,
				  struct arena *arena, struct rev_doc *ret);

/* The winner's revision alone: one key when it is not deleted. */
MUST_USE enum status rev_winner_read(struct kv_tx *tx, const struct rev_db *db, struct str id,
				     struct arena *arena, struct rev_id *ret);

/*
 * The body of one leaf, whose deleted flag is known (from the tree, or false for one that a client
 * names). STATUS_NOT_FOUND if it is not stored: no leaf (any more), or a tombstone without a body.
 */
MUST_USE enum status rev_doc_read_leaf(struct kv_tx *tx, const struct rev_db *db, struct str id,
				       struct rev_id rev, bool deleted, struct arena *arena,
				       struct rev_doc *ret);

/* One body on its way. All fields are private. */
struct rev_doc_read {
	struct kv_tx *tx;
	struct rev_id rev; /* borrowed */
	bool deleted;
	struct buf key;         /* of the root */
	struct kv_future *root; /* where the database's documents are packed */
	struct kv_scan scan;    /* everything from the root on */
};

/*
 * Bodies of a list, as rev_doc_read_leaf() reads them, but many at a time: those that lie beside
 * each other by one range, whatever order they are wanted in, and the others in one wave.
 *
 *     struct rev_ahead a = { 0 };
 *     rev_ahead_begin(&a, tx, db, part, wants, count, more);   // a page
 *     rev_ahead_take(&a, arena, &doc);                         // of each in turn
 *     rev_ahead_begin(...)                                     // the next page
 *     rev_ahead_release(&a);                                   // before the transaction is reset
 *
 * However many there are, it holds no more than half a megabyte, and what a document takes.
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
	const struct rev_db *db;
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
MUST_USE enum status rev_ahead_begin(struct rev_ahead *a, struct kv_tx *tx, const struct rev_db *db,
				     struct budget_part *part, const struct rev_want *wants,
				     size_t count, bool more);
/* The next one's; valid until the next call, or in the arena. STATUS_NOT_FOUND: it has none. */
MUST_USE enum status rev_ahead_take(struct rev_ahead *a, struct arena *arena, struct rev_doc *ret);
void rev_ahead_release(struct rev_ahead *a); /* again is fine */

/* The key prefix of a revision's leaves, for doc_read_pointer(). In the arena. */
MUST_USE enum status rev_doc_prefix(const struct rev_db *db, struct str id, struct rev_id rev,
				    bool deleted, struct arena *arena, struct str *ret);

/* The length of that prefix, for doc_explode(), before the revision is known: an upper bound. */
size_t rev_doc_prefix_bytes(const struct rev_db *db, struct str id);

/*
 * Which of `revs` the database does not have, be it as leaf or as ancestor, and the leaves of lower
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

MUST_USE enum status rev_diff(struct kv_tx *tx, const struct rev_db *db,
			      const struct rev_diff_query *queries, size_t count,
			      struct arena *arena, struct rev_diff *ret_diffs);

/*
 * One attachment of a leaf whose deleted flag is known. STATUS_DELETED if the leaf has no
 * attachment of that name, STATUS_NOT_FOUND if it is not there at all. One round trip, one or two
 * keys.
 */
MUST_USE enum status rev_att_read(struct kv_tx *tx, const struct rev_db *db, struct str id,
				  struct rev_id rev, bool deleted, struct str name,
				  struct arena *arena, struct rev_att *ret);

/*
 * The bytes of an attachment, piece by piece, in bounded memory: one range of REV_ATT_READ_BYTES at
 * a time. The transaction may be another one from call to call, since the data never changes.
 */
enum {
	REV_ATT_READ_BYTES = 512 * 1024,
};

struct rev_att_reader;

/*
 * `decode`: what a gzipped one stands for, instead of what is stored. [begin, end) is in stored
 * bytes and must be all of it when decoding. STATUS_NOMEM. Keeps its own reference to `db`.
 */
MUST_USE enum status rev_att_reader_new(struct rev_db *db, const struct rev_att *att, bool decode,
					uint64_t begin, uint64_t end, struct rev_att_reader **ret);
/*
 * The next piece, valid until the next call; STATUS_NOT_FOUND at the end. STATUS_CORRUPT when it is
 * not there, or not gzip. After any other failure the same piece can be asked for again.
 */
MUST_USE enum status rev_att_reader_next(struct rev_att_reader *reader, struct kv_tx *tx,
					 struct str *ret);
void rev_att_reader_free(struct rev_att_reader *reader); /* NULL is fine; before its transaction */

/*
 * Uploads: the bytes of one attachment on their way into the store, whatever their number. What
 * fits a transaction beside a document stays in memory; more goes ahead under a new id, a batch of
 * chunks a transaction, until a revision's transaction makes it its own (REV_ATT_STAGED) or
 * rev_upload_free() takes it back. What a crash leaves is swept.
 */
struct rev_upload;

struct rev_upload_options {
	struct kv_store *store;
	struct rev_db *db;   /* referenced while it takes */
	int gzip_level;      /* 1 to 9: compress with zlib; 0: store as it comes */
	uint64_t max_bytes;  /* of what comes in; 0: no limit */
	size_t memory_bytes; /* kept in memory at most before it is staged */
	bool stored_gzip;    /* what comes is gzipped already */
};

MUST_USE enum status rev_upload_new(const struct rev_upload_options *options,
				    struct rev_upload **ret);
/* STATUS_LIMIT past max_bytes; STATUS_NOT_FOUND if the database has gone; the store's failures. */
MUST_USE enum status rev_upload_write(struct rev_upload *u, struct str data, struct err *err);
/*
 * The end: fills in source, id, lengths, encoding, digest and data (which is the upload's), and
 * nothing else. `ret_md5`: of the bytes that came in.
 */
MUST_USE enum status rev_upload_finish(struct rev_upload *u, struct rev_att_edit *ret,
				       uint8_t ret_md5[REV_ATT_DIGEST_BYTES], struct err *err);
/* While others of the same request take their time: a sign of life, if one is due. */
MUST_USE enum status rev_upload_touch(struct rev_upload *u, struct err *err);
/*
 * Takes back what was staged, unless a revision has it by now; `taken`: one certainly has, or it is
 * going to be used without this. NULL is fine.
 */
void rev_upload_free(struct rev_upload *u, bool taken);

/*
 * Removes what uploads left behind that have rested for `age_ms`, in any database: a bounded number
 * of them. `ret_removed` (or NULL): how many.
 */
MUST_USE enum status rev_uploads_sweep(struct kv_store *store, uint64_t age_ms,
				       uint64_t *ret_removed, struct err *err);

/* ---- What happens to databases ---- */

/*
 * A store keeps one event for each name that a database has, or had: that it was created, or
 * deleted, in the same transaction. That it was updated is not written down: it is the newest
 * change of the database. Reading events therefore reads one key of each database, and a write of a
 * document costs nothing for them, no key and no conflict.
 */
enum rev_event_kind {
	REV_EVENT_CREATED = 1, /* stored: never renumber */
	REV_EVENT_DELETED = 2,
	REV_EVENT_UPDATED = 3, /* never stored */
};

struct rev_event {
	struct rev_seq seq; /* in one order over all databases; UPDATED: the change's own */
	struct str name;
	enum rev_event_kind kind;
};

struct rev_catalog_db {
	struct str name;
	uint64_t number;
};

/* Which databases there are and were. True as long as the metadata version is this one. */
struct rev_catalog {
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES];
	struct rev_catalog_db *dbs;
	size_t dbs_count;
	struct rev_event *events; /* CREATED and DELETED */
	size_t events_count;
};

/* In the arena, two pairs a database; STATUS_LIMIT when it is full. */
MUST_USE enum status rev_catalog_read(struct kv_tx *tx, struct arena *arena,
				      struct rev_catalog *ret);

/* All events after `since` as the transaction sees them, oldest first. */
MUST_USE enum status rev_events_read(struct kv_tx *tx, const struct rev_catalog *catalog,
				     const struct rev_seq *since, struct arena *arena,
				     struct rev_event **ret, size_t *ret_count);

/* Watches: for a database that is created or deleted; for an update of one of the catalog's. */
MUST_USE enum status rev_catalog_watch(struct kv_tx *tx, struct kv_future **ret);
MUST_USE enum status rev_catalog_watch_db(struct kv_tx *tx, const struct rev_catalog_db *db,
					  struct kv_future **ret);

/* ---- Feeds: one page a call, so that a long answer can use many transactions ---- */

struct rev_change {
	struct rev_seq seq;
	struct str id;
	struct rev_id rev; /* the winner's */
	bool deleted;      /* the winner's */
	uint64_t branch_count;
};

struct rev_change_page {
	struct rev_change *changes;
	size_t count;
	bool more; /* the page ended before the range did: go on after the last Sequence */
};

/*
 * Changes with since < Sequence <= until, oldest first, or newest first when descending (`since` is
 * then still the lower bound; to go on, lower `until` by exclusive_until).
 */
struct rev_change_range {
	struct rev_seq since;
	struct rev_seq until; /* all FF: no end */
	bool exclusive_until;
	bool descending;
	size_t limit; /* changes at most a page */
};

MUST_USE enum status rev_changes_page(struct kv_tx *tx, const struct rev_db *db,
				      const struct rev_change_range *range, struct arena *arena,
				      struct rev_change_page *ret);

/*
 * The changes of a range page after page, with the next ones read while a page is worked on.
 *
 *     rev_changes_begin(&c, tx, db, &range);    // its limit: of all pages together; 0: none
 *     while (... rev_changes_next(&c, most, keep, arena, &page) ...)
 *     rev_cursor_end(&c);                       // before the transaction is reset; again is fine
 *
 * A page may have fewer than `most` changes, and at the end none although there was to be `more`.
 * Its strings are the cursor's, valid until the next call, or copied into the arena (`keep`).
 */
struct rev_cursor {
	struct kv_scan scan; /* private, as all of it but `open` */
	size_t prefix_len;
	uint64_t skip;
	bool open;
};

MUST_USE enum status rev_changes_begin(struct rev_cursor *c, struct kv_tx *tx,
				       const struct rev_db *db,
				       const struct rev_change_range *range);
MUST_USE enum status rev_changes_next(struct rev_cursor *c, size_t most, bool keep,
				      struct arena *arena, struct rev_change_page *ret);
void rev_cursor_end(struct rev_cursor *c);

/*
 * The changes of these documents that lie in the range, in its order; its limit does not count. One
 * key a document, in one wave. `ids` is sorted; one that comes again is passed over.
 */
MUST_USE enum status rev_changes_of(struct kv_tx *tx, const struct rev_db *db,
				    const struct rev_change_range *range, const struct str *ids,
				    size_t count, struct arena *arena, struct rev_change_page *ret);

/*
 * How many changes lie in the range (its limit aside): the counters, and at most the changes of one
 * range of them at each end that is not the list's own.
 */
MUST_USE enum status rev_changes_count(struct kv_tx *tx, const struct rev_db *db,
				       const struct rev_change_range *range, uint64_t *ret);

struct rev_entry {
	struct str id;
	struct rev_id rev;
};

struct rev_entry_page {
	struct rev_entry *entries;
	size_t count;
	uint64_t skipped; /* of range->skip: a page may end in the middle of skipping */
	bool more;
	struct str
		last; /* the last id that the page passed, skipped ones included: go on after it */
};

/* Documents whose winner is not deleted, by id; ranges as rev_db_list() has them. */
MUST_USE enum status rev_all_docs_page(struct kv_tx *tx, const struct rev_db *db,
				       const struct rev_name_range *range, struct arena *arena,
				       struct rev_entry_page *ret);

/* As rev_changes_begin() and rev_changes_next(); a page that skips has no entries. */
MUST_USE enum status rev_all_docs_begin(struct rev_cursor *c, struct kv_tx *tx,
					const struct rev_db *db,
					const struct rev_name_range *range);
MUST_USE enum status rev_all_docs_next(struct rev_cursor *c, size_t most, bool keep,
				       struct arena *arena, struct rev_entry_page *ret);

/* How many of them come before the range begins, its skip aside: likewise. */
MUST_USE enum status rev_all_docs_offset(struct kv_tx *tx, const struct rev_db *db,
					 const struct rev_name_range *range, uint64_t *ret);

/* ---- Local documents: revision "0-N", never replicated ---- */

/*
 * Writes the document, whatever was there before. `ret_rev`: `parent` + 1; 0 is for none named. The
 * arena is for taking the document apart or packing it.
 * STATUS_INVALID (an empty id, a revision out of bounds), STATUS_KEY_TOO_LARGE.
 */
MUST_USE enum status rev_local_put(struct kv_tx *tx, const struct rev_db *db, struct str id,
				   uint64_t parent, const struct doc *doc, struct arena *arena,
				   uint64_t *ret_rev, struct err *err);
/* STATUS_NOT_FOUND. */
MUST_USE enum status rev_local_get(struct kv_tx *tx, const struct rev_db *db, struct str id,
				   struct arena *arena, uint64_t *ret_rev, struct rev_doc *ret);
/* STATUS_NOT_FOUND. */
MUST_USE enum status rev_local_delete(struct kv_tx *tx, const struct rev_db *db, struct str id,
				      struct err *err);
MUST_USE enum status rev_local_page(struct kv_tx *tx, const struct rev_db *db,
				    const struct rev_name_range *range, struct arena *arena,
				    struct rev_entry_page *ret);

/* The length of a local document's key prefix, for doc_explode(). */
size_t rev_local_prefix_bytes(const struct rev_db *db, struct str id);

/* ---- Settings of all servers of a store (settings.c) ---- */

enum {
	REV_SETTING_NAME_BYTES = 256, /* of a section's name, and of a setting's */
	REV_SETTING_TEXT_BYTES = 8192,
};

struct rev_setting {
	struct str section;
	struct str name;
	struct str text; /* ptr NULL: it is not set, whatever a server's own settings say */
};

/* True as long as the metadata version is this one. */
struct rev_settings {
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES];
	struct rev_setting *items; /* by section, then name */
	size_t count;
};

/* In the arena; STATUS_LIMIT when it is full. */
MUST_USE enum status rev_settings_read(struct kv_tx *tx, struct arena *arena,
				       struct rev_settings *ret);

/*
 * UTF-8. STATUS_INVALID for an empty name or what is longer than the limits. Touches the metadata
 * version.
 */
MUST_USE enum status rev_setting_put(struct kv_tx *tx, const struct rev_setting *setting,
				     struct err *err);

#endif
