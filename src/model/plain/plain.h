/*
 * model/plain: collections of BSON documents, each under its own `_id`. README.md has the layout.
 *
 * A collection is a database of the catalog in MongoDB's name space, "db.collection". Its scheme
 * says how documents are kept: packed, the BSON in one value; or exploded, a pair for each leaf, so
 * that one field is a point read, and an update of it rewrites that pair. A document that would be
 * too much for either lies in chunks, as a text. Whatever the scheme, a document comes back byte
 * for byte.
 *
 * Documents are checked (bson_check()), at most BSON_DOCUMENT_BYTES long, and begin with their
 * `_id`. Functions that change a document write an event of it to the collection's log.
 *
 * A struct plain is a collection in one transaction. Nothing here commits. What is returned lies in
 * the arena that is passed. Threading: on the thread or fiber that has the transaction.
 */
#ifndef FROND_MODEL_PLAIN_PLAIN_H
#define FROND_MODEL_PLAIN_PLAIN_H

#include "base/arena.h"
#include "bson/bson.h"
#include "catalog/catalog.h"
#include "kv/kv.h"

enum {
	PLAIN_DB_NAME_BYTES = 63, /* of the part in front of the first dot */
	/* Of an `_id`'s key; a longer one keeps that much of itself, and a SHA-256 behind it. */
	PLAIN_ID_BYTES = 1000,
	PLAIN_ID_VALUE_BYTES = 10000, /* of an `_id` itself */
	PLAIN_OPTIONS_BYTES = 90000,  /* of a collection's options */
	/* Packed in one value, or in one leaf; longer documents lie in chunks. */
	PLAIN_WHOLE_BYTES = 98000,
	/* Of leaves that one document may have; with more it is kept as a text, exploded or not. */
	PLAIN_LEAVES_BYTES = 2000000,
	/* A longer text is written ahead of the transaction (plain_stage()). */
	PLAIN_AHEAD_BYTES = 2000000,
	PLAIN_SESSION_BYTES = 16,
	PLAIN_DETAIL_BYTES = 60000, /* of what an event keeps; longer ones are left out */
	/* A longer document before or after an event is written ahead (plain_stage_image()). */
	PLAIN_IMAGE_BYTES = 1000000,
	PLAIN_PATH_STEPS = 200,
	PLAIN_PARTS_MOST = 64, /* of plain_get_parts(); for more all of a document is read */
	PLAIN_PADDING = 10000, /* nulls that setting an element puts in front of it at most */
	PLAIN_EVENTS = 65535,  /* of one transaction */
	/* Of what frond dump writes of a collection; 2: no index has a collation; 1: no indexes. */
	PLAIN_DUMP_FORMAT = 3,
};

enum plain_scheme {
	PLAIN_PACKED = 0, /* stored: never renumber */
	PLAIN_EXPLODED = 1,
};

/* Registers the kind of collections, before other threads start. */
void plain_register(void);

extern const struct catalog_kind plain_kind;

/* ---- Collections (collection.c) ---- */

/*
 * Creates a collection. `options` is a document that is the caller's, or BSON_EMPTY.
 * STATUS_EXISTS; STATUS_INVALID for a name that no collection can have, or for options that are too
 * long. Opened by catalog_open() with CATALOG_SPACE_MONGO, dropped by catalog_delete().
 */
MUST_USE enum status plain_create(struct kv_tx *tx, struct str name, enum plain_scheme scheme,
				  struct str options, struct err *err);

/* Only the catalog's row changes. STATUS_NOT_FOUND; STATUS_EXISTS: drop that one before. */
MUST_USE enum status plain_rename(struct kv_tx *tx, struct str from, struct str to,
				  struct err *err);

enum plain_scheme plain_scheme_of(const struct catalog_db *db);
/* What an opened collection was created with, or was given since. */
struct str plain_options_of(const struct catalog_db *db);
/* True for the options of a view, which has a definition and no documents. */
bool plain_options_are_view(struct str options);
/* Touches the metadata version: the next opening of the collection sees the new ones. */
MUST_USE enum status plain_options_set(struct kv_tx *tx, const struct catalog_db *db,
				       struct str options, struct err *err);

/* ---- A collection in a transaction ---- */

struct index_def;

/* Why an index has refused a document. */
struct plain_refused {
	const struct index_def *def;
	/*
	 * STATUS_DUPLICATE: the values that another document has, in the order of the columns;
	 * empty if they are too long to be told.
	 */
	struct str values;
	/* STATUS_UNSUPPORTED: a hashed column is an array; or two columns are, these. */
	bool hashed;
	size_t columns[2];
};

/*
 * A document that is going to be stored. One of more than PLAIN_AHEAD_BYTES is written ahead, by
 * transactions of its own, under an id that nobody knows until the document refers to it; what is
 * never referred to is removed by plain_sweep().
 */
struct plain_doc {
	struct str bytes;
	bool is_new; /* plain_find_new() has found so, in the same transaction */
	bool staged;
	uint8_t text[16];
};

/*
 * Is asked before a document is written; `key` is that of its record. Another status than STATUS_OK
 * ends the write.
 */
typedef enum status plain_claim(void *arg, struct kv_tx *tx, struct str key);

struct plain {
	struct kv_tx *tx;
	const struct catalog_db *db;
	uint64_t now_ms; /* of the events, since 1970 */
	struct err *err;
	unsigned events; /* of this transaction so far, in all its collections */
	/* What its events tell of the transaction: a caller's session and number; or ptr NULL. */
	struct str session; /* PLAIN_SESSION_BYTES */
	int64_t number;
	bool marked;        /* the collection is marked as changed in this transaction */
	plain_claim *claim; /* NULL: nobody is asked */
	void *claim_arg;
	/*
	 * The document before and after the next event, which are kept with that event; empty: are
	 * not. One of more than PLAIN_AHEAD_BYTES is staged by plain_stage_image().
	 */
	struct plain_doc before;
	struct plain_doc after;
	struct plain_refused refused; /* after STATUS_DUPLICATE or STATUS_UNSUPPORTED */
};

/* `now_ms` 0: the system's clock. */
void plain_init(struct plain *p, struct kv_tx *tx, const struct catalog_db *db, uint64_t now_ms,
		struct err *err);

/* How many documents there are, exactly. */
MUST_USE enum status plain_count(struct plain *p, uint64_t *ret);

/* ---- Reading (read.c) ---- */

/*
 * The whole document. STATUS_NOT_FOUND; STATUS_LIMIT when the arena is full. One range for leaves,
 * one key for what is packed, and the chunks behind it.
 */
MUST_USE enum status plain_get(struct plain *p, const struct bson_value *id, enum kv_read mode,
			       struct arena *arena, struct str *ret);

/* In two halves, to have many reads under way at once. The caller's; wait once. */
struct plain_got {
	struct kv_future *future;
	struct str key; /* in the arena */
	bool whole;     /* plain_wait() has found the document in one value, which is all of it */
};
MUST_USE enum status plain_ask(struct plain *p, const struct bson_value *id, enum kv_read mode,
			       struct arena *arena, struct plain_got *ret);
MUST_USE enum status plain_wait(struct plain *p, struct plain_got *got, enum kv_read mode,
				struct arena *arena, struct str *ret);

/*
 * The value at a dotted path, which goes through documents by name and through arrays by position.
 * Of an exploded document a leaf costs one point read, and each step of digits alone one more,
 * to see whether it is a position. STATUS_NOT_FOUND: no such document, or nothing there.
 */
MUST_USE enum status plain_get_path(struct plain *p, const struct bson_value *id, struct str path,
				    enum kv_read mode, struct arena *arena, struct bson_value *ret);

/* A part of a document: what is at a dotted path. */
struct plain_part {
	struct str path;
	/*
	 * True: where the path meets an array, a step of digits means the element at that position.
	 * False: a name means that member of each element, so the first array on the way is taken
	 * as a whole.
	 */
	bool positions;
};

/*
 * Parts of a document, as a document: its `_id`, and those of the parts that are there, in their
 * order. An array element keeps its position: elements in front of it that are not asked for become
 * null. If a position lies behind an array's end, all of the array's elements are null. Only the
 * root, the containers on the way and the parts are read of an exploded document. A document that
 * does not lie in leaves is given whole, and then `*ret_whole` is true. STATUS_NOT_FOUND.
 */
MUST_USE enum status plain_get_parts(struct plain *p, const struct bson_value *id,
				     const struct plain_part *parts, size_t count,
				     enum kv_read mode, struct arena *arena, struct str *ret,
				     bool *ret_whole);

/* plain_ask() by the bytes of an `_id`'s key, as entries of indexes have it. */
MUST_USE enum status plain_ask_key(struct plain *p, struct str id_key, enum kv_read mode,
				   struct arena *arena, struct plain_got *ret);
/* plain_scan_place() of a scan that has just read the document with this key. */
MUST_USE enum status plain_place_of(struct plain *p, struct str id_key, struct buf *ret);

/* Documents in the order of their `_id`s, or in reverse. */
struct plain_range {
	const struct bson_value *from; /* NULL: from the first */
	bool from_open;                /* not that one itself */
	const struct bson_value *to;   /* NULL: to the last */
	bool to_open;
	bool reverse;
	enum kv_read mode;
	size_t first;      /* so many documents are likely to be wanted; 0: not known */
	struct str resume; /* plain_scan_place() of an earlier scan: go on behind it; or empty */
};

/* Private, but for reading `place`. */
struct plain_scan {
	struct plain *p;
	struct kv_scan scan;
	struct kv_pair pair; /* the first of the next document; key.ptr NULL: not read yet */
	struct buf ahead;    /* a copy of it */
	struct buf place;    /* the key of the document that was read last */
	bool reverse;
	enum kv_read mode;
	bool done;
};

MUST_USE enum status plain_scan_open(struct plain_scan *s, struct plain *p,
				     const struct plain_range *range);
/* The next document, in the arena. STATUS_NOT_FOUND at the end. */
MUST_USE enum status plain_scan_next(struct plain_scan *s, struct arena *arena, struct str *ret);
/* Where to go on in another transaction: bytes to keep for plain_range.resume. */
struct str plain_scan_place(const struct plain_scan *s);
void plain_scan_close(struct plain_scan *s); /* also one that is all zero */

/* ---- Writing (write.c) ---- */

/* What happened to a document. Stored: never renumber. */
enum plain_event_kind {
	PLAIN_EVENT_INSERT = 1,
	PLAIN_EVENT_UPDATE = 2,
	PLAIN_EVENT_REPLACE = 3,
	PLAIN_EVENT_DELETE = 4,
};

MUST_USE enum status plain_stage(struct kv_store *store, const struct catalog_db *db,
				 struct str bytes, struct plain_doc *ret, struct err *err);
/*
 * Writes a document ahead, of any length, that the next event of a transaction keeps as it was
 * before or after it. That transaction may have begun already, and ends within the hour in which
 * plain_sweep() leaves alone what nothing refers to.
 */
MUST_USE enum status plain_stage_image(struct kv_store *store, const struct catalog_db *db,
				       struct str bytes, struct plain_doc *ret, struct err *err);
/* The same without writing: for a document that is not that long. */
struct plain_doc plain_doc_of(struct str bytes);

/*
 * Finds out which of documents that are to be inserted are new, by their `_id`s and before the
 * transaction writes them; reads as KV_READ does. Of `_id`s that come twice the first one may be
 * new. For documents of which it is not known, plain_insert() looks itself, so the others have to
 * be inserted in their order. `ret_new` has room for `count`.
 */
MUST_USE enum status plain_find_new(struct plain *p, const struct bson_value *ids, size_t count,
				    struct arena *arena, bool *ret_new);

/*
 * STATUS_EXISTS, explained, if there is a document with that `_id`. All writers: STATUS_INVALID for
 * a document that does not begin with an `_id`, STATUS_DOC_TOO_LARGE past BSON_DOCUMENT_BYTES and
 * for one past PLAIN_AHEAD_BYTES that is not staged, explained. STATUS_DUPLICATE and
 * STATUS_UNSUPPORTED: an index (index.h) refuses the document, p->refused says why, and nothing was
 * written.
 */
MUST_USE enum status plain_insert(struct plain *p, const struct plain_doc *doc,
				  struct arena *arena);

/*
 * Puts a document in the place of the one that has its `_id`, or adds it (`upsert`), else
 * STATUS_NOT_FOUND. `detail` is a document for the event, or an empty str: the new document itself,
 * as for inserts.
 */
MUST_USE enum status plain_replace(struct plain *p, const struct plain_doc *doc, bool upsert,
				   enum plain_event_kind kind, struct str detail,
				   struct arena *arena);

/*
 * The same for a caller who has already read the document, and so saves reading it again. `before`
 * is what he read in this transaction with KV_READ. It must have been in one value
 * (plain_got.whole), and nothing may have changed it since.
 */
MUST_USE enum status plain_replace_whole(struct plain *p, const struct plain_doc *doc,
					 struct str before, enum plain_event_kind kind,
					 struct str detail, struct arena *arena);

/* STATUS_NOT_FOUND. */
MUST_USE enum status plain_delete(struct plain *p, const struct bson_value *id, struct str detail,
				  struct arena *arena);

/* One change of an update: sets the value at a path, or takes it out. */
struct plain_change {
	struct str path;
	const struct bson_value *value; /* NULL: take it out */
};

/*
 * Applies changes one after the other and writes one event, or none if no change has changed
 * anything. A set makes the documents that are missing on its way, and pads an array with nulls;
 * taking an element out of an array leaves null in its place. Members that are new come last. Of an
 * exploded document only the pairs that change are written, and what is on the way is read.
 * STATUS_NOT_FOUND: no such document. STATUS_INVALID, explained: a scalar is on the way, a name in
 * an array, the `_id`, too much padding, an empty name. STATUS_DOC_TOO_LARGE: the result has to be
 * written ahead, and put in the place of the document by plain_replace(). After a failure the
 * transaction must not be committed.
 */
MUST_USE enum status plain_update(struct plain *p, const struct bson_value *id,
				  const struct plain_change *changes, size_t count,
				  struct str detail, struct arena *arena, bool *ret_changed);

/*
 * The same, if it can be done leaf by leaf and without reading all of the document. Otherwise
 * STATUS_DOC_TOO_LARGE, and nothing was written but the wake-up of watchers.
 */
MUST_USE enum status plain_update_leaves(struct plain *p, const struct bson_value *id,
					 const struct plain_change *changes, size_t count,
					 struct str detail, struct arena *arena, bool *ret_changed);

/* plain_update() in memory, on any document: appends the result to the arena. */
MUST_USE enum status plain_apply(struct str doc, const struct plain_change *changes, size_t count,
				 struct arena *arena, struct str *ret, struct err *err);

/* ---- Dumps (dump.c) ---- */

/* The line that begins a dump. */
struct plain_dump_header {
	enum plain_scheme scheme;
	struct str options;
	struct str indexes; /* an array of descriptions (index.h); or BSON_EMPTY */
};

/*
 * Reads the line; what is returned lies in `room`. STATUS_INVALID, explained, for what is none;
 * STATUS_NEWER.
 */
MUST_USE enum status plain_dump_header_read(struct str line, struct buf *room,
					    struct plain_dump_header *ret, struct err *err);

/* Creates a collection as the header says, with its indexes, which writers keep from then on. */
MUST_USE enum status plain_dump_create(struct kv_tx *tx, struct str name,
				       const struct plain_dump_header *header, struct arena *arena,
				       struct err *err);

/* ---- The log (log.c) ---- */

struct plain_event {
	struct catalog_seq seq;
	uint64_t ms; /* since 1970 */
	enum plain_event_kind kind;
	struct bson_value id;
	struct str detail;  /* a document; empty: there is none */
	bool detail_is_cut; /* it was longer than PLAIN_DETAIL_BYTES, and was left out */
	struct str session; /* of its transaction (struct plain); ptr NULL: none was told */
	int64_t number;
};

/*
 * Events behind `after` (all zero: from the first), at most `limit`, in the arena. Fewer than
 * `limit` only at the end.
 */
MUST_USE enum status plain_log_read(struct plain *p, const struct catalog_seq *after, size_t limit,
				    struct arena *arena, struct plain_event **ret,
				    size_t *ret_count);
/* The last event's Sequence; all zero if there is none. */
MUST_USE enum status plain_log_last(struct plain *p, struct catalog_seq *ret);
/*
 * The document before that event, or after it, in the arena. STATUS_NOT_FOUND: it was not kept.
 */
MUST_USE enum status plain_image_read(struct plain *p, const struct catalog_seq *seq, bool after,
				      struct arena *arena, struct str *ret);
/* Clears a page of events from before `ms`, with their images, but never the last one. */
MUST_USE enum status plain_log_clear(struct plain *p, uint64_t ms, bool *ret_more);

/* ---- What becomes of collections (notices.c) ---- */

/* Stored: never renumber. */
enum plain_notice_kind {
	PLAIN_NOTICE_CREATED = 1,
	PLAIN_NOTICE_DROPPED = 2,
	PLAIN_NOTICE_RENAMED = 3,
	PLAIN_NOTICE_DATABASE_DROPPED = 4, /* the last of its collections was */
	PLAIN_NOTICE_MODIFIED = 5,
	PLAIN_NOTICE_INDEXES_CREATED = 6,
	PLAIN_NOTICE_INDEXES_DROPPED = 7,
};

/*
 * A notice says what became of a collection. Notices of all collections are one log, in one order
 * with the events of their documents; they are kept for a day, and the newest that is older stays.
 */
struct plain_notice {
	struct catalog_seq seq;
	uint64_t ms; /* since 1970 */
	enum plain_notice_kind kind;
	uint64_t number; /* of the collection */
	uint8_t uuid[16];
	struct str name;   /* that it had before */
	struct str to;     /* RENAMED: that it has now; else empty */
	struct str detail; /* a document of the door's, or BSON_EMPTY */
};

/*
 * Writes a notice about an opened collection, and wakes whoever waits for notices. `name` is that
 * of the collection, or of its database. `*events` counts what the transaction has logged (struct
 * plain has such a counter), and gives the notice its place among that. A `detail` of more than
 * PLAIN_DETAIL_BYTES is left out.
 */
MUST_USE enum status plain_notice_put(struct kv_tx *tx, const struct catalog_db *db,
				      enum plain_notice_kind kind, struct str name, struct str to,
				      struct str detail, unsigned *events, struct err *err);

/* Selects notices; `arg` is the caller's. */
typedef bool plain_notice_wanted(void *arg, const struct plain_notice *notice);

/*
 * Reads the notices from `from` on, itself included, that are wanted. STATUS_LIMIT: there are more
 * than `most`, or the arena is full.
 */
MUST_USE enum status plain_notices_read(struct kv_tx *tx, const struct catalog_seq *from,
					size_t most, plain_notice_wanted *wanted, void *arg,
					struct arena *arena, struct plain_notice **ret,
					size_t *ret_count, struct err *err);
/* Reads the oldest notice. STATUS_NOT_FOUND: there is none. */
MUST_USE enum status plain_notices_first(struct kv_tx *tx, struct arena *arena,
					 struct plain_notice *ret, struct err *err);
/* Completes when a notice is written. */
MUST_USE enum status plain_notices_watch(struct kv_tx *tx, struct kv_future **ret);
/* Clears a page of notices from before `ms`, but never the newest of those. */
MUST_USE enum status plain_notices_clear(struct kv_tx *tx, uint64_t ms, bool *ret_more,
					 struct err *err);

/* ---- What is left behind ---- */

struct chores;

/*
 * Removes notices that are older than a day. Then goes on to some collections, and removes their
 * events that are older than a day, and texts that were staged an hour ago and never referred to.
 * `place` is the name of the collection that was done last, and is set here; it is empty at first,
 * and again after the last collection. `*ret_more`: there is more to do, so call again soon.
 */
MUST_USE enum status plain_sweep(struct kv_store *store, uint64_t now_ms, struct buf *place,
				 bool *ret_more, struct err *err);

/* What the chore works on: the owner sets the store, and in the end releases the place. */
struct plain_sweeping {
	struct kv_store *store;
	struct buf place; /* CATALOG_KEY_INIT */
};
/* Adds a chore that calls plain_sweep(). `sweeping` and its store outlive the registry. */
void plain_chores_add(struct chores *chores, struct plain_sweeping *sweeping);

#endif
