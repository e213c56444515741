/* What the files of the model share: subspaces, keys, records, leaves. */
#ifndef FROND_MODEL_PLAIN_PLAIN_INT_H
#define FROND_MODEL_PLAIN_PLAIN_INT_H

#include "catalog/keys.h"
#include "doc/chunks.h"
#include "index/engine/update.h"
#include "kv/tuple.h"
#include "model/plain/plain.h"

/*
 * Stored: never renumber. They differ from those of other models, because the shape of a store
 * (kv/shape.h) knows subspaces by their numbers alone.
 */
enum plain_space {
	PLAIN_SPACE_OPTIONS = 48,
	PLAIN_SPACE_RECORDS = 49,
	PLAIN_SPACE_TEXTS = 50,
	PLAIN_SPACE_LOG = 51,
	PLAIN_SPACE_COUNT = 52,
	PLAIN_SPACE_CHANGED = 53,
	PLAIN_SPACE_STAGED = 54,
	PLAIN_SPACE_STATS = 55,   /* how many entries all indexes have */
	PLAIN_SPACE_IMAGES = 57,  /* documents before and after an event */
	PLAIN_SPACE_TALLIES = 56, /* how many of them lie in ranges of keys */
};

enum {
	/* Of the description. */
	PLAIN_OPTION_SCHEME = 0,

	PLAIN_TEXT_ID_BYTES = 16,
	PLAIN_HEAD_BYTES = 64, /* that are reserved for what stands in front of a document */
	PLAIN_IMAGE_PART_BYTES = 90000,
	/* Events, and notices of collections, are kept so long at least. */
	PLAIN_EVENTS_MS = 24 * 60 * 60 * 1000,
	/* What is left of a dropped collection outlives the notice of its end. */
	PLAIN_KEPT_MS = 25 * 60 * 60 * 1000,
	/* Of a key below RECORDS, so that it still fits into an index's entry. */
	PLAIN_KEY_BYTES = 8000,
};

/* ---- Keys (keys.c) ---- */

/* What all keys of a subspace begin with. */
void plain_key_space(struct buf *key, const struct catalog_db *db, enum plain_space space);

/* The key of an `_id`: a component, or the beginning of one and a SHA-256. STATUS_INVALID. */
MUST_USE enum status plain_id_key(const struct bson_value *id, struct buf *ret, struct err *err);

/* (P, RECORDS, the key of the `_id`). */
MUST_USE enum status plain_key_record(const struct catalog_db *db, const struct bson_value *id,
				      struct buf *ret, struct err *err);

/* The length of the record's part of a key below RECORDS. STATUS_CORRUPT. */
MUST_USE enum status plain_key_record_bytes(const struct catalog_db *db, struct str key,
					    size_t *ret);

/* (P, TEXTS, text): of the header of a text; its chunks lie below. */
void plain_key_text(const struct catalog_db *db, const uint8_t text[PLAIN_TEXT_ID_BYTES],
		    struct buf *ret);

/*
 * (P, STAGED, text): the text was written ahead, and no document refers to it; or, with a value,
 * the image, to which no event refers.
 */
void plain_key_staged(const struct catalog_db *db, const uint8_t text[PLAIN_TEXT_ID_BYTES],
		      struct buf *ret);

/* (P, COUNT), (P, CHANGED), (P, OPTIONS). */
MUST_USE enum status plain_key_single(const struct catalog_db *db, enum plain_space space,
				      struct buf *ret);

/* What follows all keys that begin with `key`: appended behind a copy of it. */
MUST_USE enum status plain_key_end(struct str key, struct buf *ret);

/* A step as an array's position: digits without a zero in front. */
bool plain_step_is_position(struct str step, uint32_t *ret);

/* ---- Records (record.c) ---- */

enum plain_form {
	PLAIN_FORM_WHOLE = 1,  /* (1) and behind it the document */
	PLAIN_FORM_TEXT = 2,   /* (2, text, length) */
	PLAIN_FORM_LEAVES = 3, /* (3, next ordinal, bound of the length, _id) */
};

struct plain_root {
	enum plain_form form;
	struct str document; /* WHOLE */
	uint8_t text[PLAIN_TEXT_ID_BYTES];
	uint64_t length;      /* TEXT; of LEAVES: not more than that */
	uint64_t next;        /* LEAVES: the ordinal of the next new member */
	struct bson_value id; /* LEAVES */
};

void plain_root_put(const struct plain_root *root, struct buf *value);
/* What has NULs is unescaped in the arena. STATUS_NEWER, explained; STATUS_CORRUPT. */
MUST_USE enum status plain_root_parse(struct str value, struct arena *arena, struct plain_root *ret,
				      struct err *err);

/* (ordinal, scalar), or of a container (ordinal, empty container, next ordinal). */
struct plain_leaf {
	uint64_t ordinal;
	struct bson_value value; /* of a container without its elements */
	uint64_t next;           /* of a container: the ordinal, or position, of the next element */
};

MUST_USE enum status plain_leaf_put(const struct plain_leaf *leaf, struct buf *value);
MUST_USE enum status plain_leaf_parse(struct str value, struct arena *arena,
				      struct plain_leaf *ret);

/* (format, staged at, length[, key of the _id that refers to it]). */
struct plain_text {
	uint64_t staged_ms; /* 0: a document refers to it */
	uint64_t length;
	struct str owner;
};

void plain_text_put(const struct plain_text *text, struct buf *value);
MUST_USE enum status plain_text_parse(struct str value, struct arena *arena, struct plain_text *ret,
				      struct err *err);

/* (format, ms, kind, cut, _id), and behind it the detail. Without the Sequence. */
void plain_event_put(const struct plain_event *event, struct buf *value);
MUST_USE enum status plain_event_parse(struct str value, struct arena *arena,
				       struct plain_event *ret, struct err *err);

/* The Sequence at the end of a key below LOG. STATUS_CORRUPT. */
MUST_USE enum status plain_seq_parse(struct str tail, struct catalog_seq *ret);

/* ---- Leaves (explode.c, assemble.c) ---- */

struct plain_pairs {
	struct kv_pair *pairs; /* keys are behind the record's */
	size_t count;
	size_t cap;
	size_t bytes; /* that they take of a transaction */
};

/*
 * The leaves of a document without its `_id`, whose keys begin with `prefix_bytes` other bytes; and
 * the ordinal of the next member. STATUS_UNSUPPORTED if it cannot be kept as leaves: names that
 * come twice, an array whose names are no positions, leaves or paths that are too long, too many.
 */
MUST_USE enum status plain_explode(struct str document, size_t prefix_bytes, struct arena *arena,
				   struct plain_pairs *ret, uint64_t *ret_next);
/* The same of a value at a path, whose encoding is given, with its own leaf. */
MUST_USE enum status plain_explode_value(const struct bson_value *v, uint64_t ordinal,
					 struct str path, size_t prefix_bytes, struct arena *arena,
					 struct plain_pairs *ret);

/*
 * The document of leaves in the order of their keys, which are behind the record's; or
 * (plain_assemble_value) the value whose own leaf is the first, and whose path they all begin with.
 * STATUS_CORRUPT for leaves that no document has.
 */
MUST_USE enum status plain_assemble(const struct plain_root *root, const struct kv_pair *pairs,
				    size_t count, struct arena *arena, struct str *ret);
MUST_USE enum status plain_assemble_value(const struct kv_pair *pairs, size_t count,
					  struct arena *arena, struct bson_value *ret);

/* ---- Reading and writing (read.c, write.c, text.c, update.c) ---- */

/* The document of a record whose root was parsed. */
MUST_USE enum status plain_read_root(struct plain *p, struct str key, const struct plain_root *root,
				     enum kv_read mode, struct arena *arena, struct str *ret);
/* All pairs of a range, copied. */
MUST_USE enum status plain_read_pairs(struct plain *p, struct str begin, struct str end,
				      enum kv_read mode, struct arena *arena,
				      struct plain_pairs *ret);
/* The value at a key of leaves, behind so many bytes of the record's. STATUS_NOT_FOUND. */
MUST_USE enum status plain_read_value(struct plain *p, struct str key, size_t record_bytes,
				      enum kv_read mode, struct arena *arena,
				      struct bson_value *ret);
/* Appends one pair to those in the arena. */
MUST_USE enum status plain_pairs_add(struct plain_pairs *pairs, struct arena *arena, struct str key,
				     struct str value);

/* The root of a record. STATUS_NOT_FOUND. */
MUST_USE enum status plain_get_root(struct plain *p, struct str key, enum kv_read mode,
				    struct arena *arena, struct plain_root *ret);

/* Explains that a record or what belongs to it cannot be read; returns STATUS_CORRUPT. */
MUST_USE enum status plain_fail_corrupt(struct plain *p, struct str key, const char *what);

/* Writes a record that is not there, at its key. */
MUST_USE enum status plain_put_record(struct plain *p, struct str key, const struct plain_doc *doc,
				      struct arena *arena);
/* Clears a record with what belongs to it. */
MUST_USE enum status plain_clear_record(struct plain *p, struct str key,
					const struct plain_root *root);
/*
 * Before a record is written: checks that the collection can be written to, claims the record, and
 * wakes whoever watches the collection.
 */
MUST_USE enum status plain_write_begin(struct plain *p, struct str key);
MUST_USE enum status plain_log(struct plain *p, enum plain_event_kind kind,
			       const struct bson_value *id, struct str detail);

/* A text, in this transaction: its header and its chunks. */
MUST_USE enum status plain_text_write(struct plain *p, struct str owner, struct str bytes,
				      uint8_t ret[PLAIN_TEXT_ID_BYTES]);
/* The text that was staged belongs to a record now. */
MUST_USE enum status plain_text_publish(struct plain *p, struct str owner,
					const struct plain_doc *doc, struct arena *arena);
MUST_USE enum status plain_text_clear(struct plain *p, const uint8_t text[PLAIN_TEXT_ID_BYTES]);

/* ---- Images (image.c) ---- */

/* (P, IMAGES, text): the parts of an image that was written ahead lie below. */
void plain_key_image_text(const struct catalog_db *db, const uint8_t text[PLAIN_TEXT_ID_BYTES],
			  struct buf *ret);

/* Writes what is in p->before and p->after for an event, and empties them. */
MUST_USE enum status plain_images_write(struct plain *p, const uint8_t stamp[KV_VERSIONSTAMP_BYTES],
					const struct plain_event *event);

/* What an event has of an image that was written ahead. */
struct plain_image_ref {
	uint8_t text[PLAIN_TEXT_ID_BYTES];
	uint64_t length;
};

/* STATUS_NEWER, explained; STATUS_CORRUPT. */
MUST_USE enum status plain_image_ref_parse(struct str value, struct plain_image_ref *ret,
					   struct err *err);
MUST_USE enum status plain_image_clear_text(struct plain *p,
					    const uint8_t text[PLAIN_TEXT_ID_BYTES]);
/* Clears the images of all events before one, which is given by its key behind (P, LOG). */
MUST_USE enum status plain_images_clear(struct plain *p, struct str event);

/* ---- Indexes (index.c) ---- */

enum plain_list {
	PLAIN_LIST_ENTRIES = 0, /* of the kind's lists */
};

/* True if a writer has indexes to keep. */
bool plain_has_indexes(const struct plain *p);

/*
 * Changes the entries of a document in all indexes. `before` or `after` has ptr NULL where there is
 * none. STATUS_DUPLICATE and STATUS_UNSUPPORTED, with p->refused: nothing was written.
 */
MUST_USE enum status plain_index_change(struct plain *p, const struct bson_value *id,
					struct str before, struct str after, struct arena *arena);

/* The members of a stored document that indexes look at, as a document. */
MUST_USE enum status plain_index_read(struct plain *p, struct str key,
				      const struct plain_root *root, struct arena *arena,
				      struct str *ret);

/*
 * Changes the entries of a document in leaves, of which it reads those members only that indexes of
 * the changed paths look at.
 */
MUST_USE enum status plain_index_update(struct plain *p, const struct bson_value *id,
					struct str key, const struct plain_root *root,
					const struct plain_change *changes, size_t count,
					struct arena *arena);

extern const struct index_documents plain_indexed_documents; /* indexed.c */

/* ---- For the kind (collection.c, inspect.c, verify.c) ---- */

enum status plain_extend(struct kv_tx *tx, const struct catalog_db *db, void **ret,
			 struct err *err);
void plain_extension_free(void *extension);
const void *plain_extension_indexes(const void *extension);
enum status plain_changed_key(struct str prefix, struct buf *key);
enum status plain_changed_write(struct kv_tx *tx, struct str prefix);
const char *plain_space_name(uint64_t space);
/* The keys of the document with this `_id`, a value in Extended JSON, or a string. */
MUST_USE enum status plain_inspect(struct kv_tx *tx, const struct catalog_db *db, struct str id,
				   struct arena *arena, catalog_draw_prefix *draw, void *arg);
bool plain_draw_pair(const struct catalog_db *db, uint64_t space, struct str tail, struct str value,
		     struct buf *ret);
struct catalog_verify;
enum status plain_verify(struct catalog_verify *v);
#define PLAIN_FINDING_EVENT "plain_event"
MUST_USE enum status plain_verify_indexes(struct catalog_verify *v);
MUST_USE enum status plain_verify_indexes_in_ranges(struct catalog_verify *v);
/* `staged`: how many were written ahead and have no event yet. */
MUST_USE enum status plain_verify_images(struct catalog_verify *v, uint64_t staged);
/* The same in ranges (catalog_verify_ranges()); how many images there are is not compared. */
MUST_USE enum status plain_verify_images_in_ranges(struct catalog_verify *v);
void plain_notices_verify(struct catalog_verify *v, struct tuple_reader key,
			  const struct kv_pair *pair);
enum status plain_dump(const struct catalog_dump *dump);

#endif
