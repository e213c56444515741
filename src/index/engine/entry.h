/*
 * Entries of indexes: their keys, their values, and ranges of them.
 *
 *     (P, ENTRIES, number, bytes(component)…, id) = (format, flags[, text…])
 *
 * A component is that of doc/key.h in the definition's order, as the form makes it of a value (of
 * JSON with a sort key of the collation in each text's place); inverted where the column is
 * descending. Each is one element of bytes, so that keys stay tuples and sort as the values do. All
 * entries of a database, of all indexes, are one list that is counted by range (catalog/tally.h):
 * the number of entries between two keys is the difference of two ranks, and no index has a counter
 * of its own.
 *
 * What is longer than its share of a key is cut: an entry with a cut component has INDEX_ENTRY_CUT,
 * lies where the beginning of its values belongs, and whoever reads it has to compare the document.
 * Bounds are cut in the same way, so a range never misses an entry.
 *
 * What is in the value behind the flags, and whether an id is a text or bytes, b"id" in place of
 * "id", is the form's (form.h).
 *
 * Ownership: what is read is borrowed from the key and value, or in the arena of the work.
 * Threading: that of the caller's work and transaction.
 */
#ifndef FROND_INDEX_ENGINE_ENTRY_H
#define FROND_INDEX_ENGINE_ENTRY_H

#include "index/engine/def.h"
#include "index/engine/source.h"

enum {
	/* All components of a key together; each column has an equal share. */
	INDEX_COMPONENTS_BYTES = 2600,
	INDEX_ID_BYTES = 7200,      /* an id, encoded; of a longer one the key has a digest */
	INDEX_PAYLOAD_BYTES = 2000, /* the texts in an entry's value; longer ones are left out */
	INDEX_ENTRY_FORMAT = 1,     /* the newest */
};

/* Stored: never renumber. */
enum index_entry_flag {
	INDEX_ENTRY_CUT = 1,      /* a component was cut: compare the document */
	INDEX_ENTRY_TEXTS = 2,    /* the JSON texts of all columns follow */
	INDEX_ENTRY_LONG_ID = 4,  /* the id is here, and the key has a digest in its place */
	INDEX_ENTRY_BSON = 8,     /* a BSON document of the columns' values follows */
	INDEX_ENTRY_FREE = 16,    /* of a UNIQUE index that others may have the values of, too */
	INDEX_ENTRY_CARRIES = 32, /* values of columns follow, as the form has them */
	INDEX_ENTRY_FLAGS = 63,
};

/* The name of a null, in `values`, that stands for nothing. */
#define INDEX_MISSING STR("-")

/* An entry that was read. */
struct index_entry {
	struct str key; /* what follows (P, ENTRIES, number): a place to go on from */
	struct str id;
	bool cut;
	bool has_texts; /* the index is covering, and the texts were short enough */
	/* With `has_texts`: each column's JSON text; ptr NULL where the document has no value. */
	struct str texts[INDEX_COLUMNS];
	/*
	 * Of a BSON index that is covering: a document of the columns' values in their order. The
	 * name of each is empty, or INDEX_MISSING where the document has nothing; empty: they were
	 * too long. Of an entry with INDEX_ENTRY_CARRIES: the values that it carries. ptr NULL: it
	 * carries none.
	 */
	struct str values;
};

/* (P, ENTRIES, number), with which all keys of an index begin. Forgets what the buffer held. */
void index_key_entries(struct buf *key, const struct catalog_db *db, uint64_t number);

/*
 * Appends the id, or a digest of a text that is too long for a key. Returns true for the digest.
 */
bool index_key_put_id(struct buf *key, const struct index_form *form, struct str id);

/*
 * Reads an entry of the index; `tail` is its key from behind index_key_entries(). STATUS_NEWER,
 * STATUS_CORRUPT; STATUS_LIMIT when the arena is full.
 */
MUST_USE enum status index_entry_parse(const struct index_def *def, struct str tail,
				       struct str value, struct arena *arena,
				       struct index_entry *ret);

/* ---- Ranges ---- */

/* Keys of entries: begin <= key < end. In the arena of the work. */
struct index_range {
	struct str begin;
	struct str end;
	bool cut;   /* a bound was cut: entries lie in the range that do not belong there */
	bool point; /* each column has one value, or one cut component: entries are in id order */
	/* Each entry is of a document that matches what is asked, which index/plan may know. */
	bool certain;
};

/*
 * What is asked of an index: values of its first columns, and then bounds of one more. All NULL and
 * zero: everything. Values are the form's: struct leaf_value, or struct bson_value. `low` is the
 * smaller value in the order of values, also where the column is descending; NULL: no bound on that
 * side. A bound that is a missing value does not exist: where the index is not sparse, a missing
 * value is null.
 */
struct index_interval {
	struct str partition;     /* of a PARTITIONED index, without the colon */
	const void *const *equal; /* of the first `equal_count` columns, each a value */
	size_t equal_count;
	const void *low; /* one value */
	const void *high;
	bool low_exclusive;
	bool high_exclusive;
};

/*
 * The range of the keys that may answer. Entries that are cut may lie in it without belonging
 * there; all others belong. A hashed column can only be asked for equality. STATUS_LIMIT when the
 * arena is full; STATUS_UNAVAILABLE without the data of ICU.
 */
MUST_USE enum status index_range_make(const struct catalog_db *db, const struct index_def *def,
				      const struct index_interval *interval, struct index_work *w,
				      struct index_range *ret);

/*
 * The key (from behind index_key_entries()) of the entry that a document with these values has:
 * `interval` has one for each column, and no bounds. In the arena of the work. `*ret_known` is
 * false if a value is too long for a key, so that entries of other values may lie around it.
 */
MUST_USE enum status index_place_make(const struct catalog_db *db, const struct index_def *def,
				      const struct index_interval *interval, struct str id,
				      struct index_work *w, struct str *ret, bool *ret_known);

/* ---- The entries of one document ---- */

/* Why an index cannot have a document: the two columns that are both arrays, or the hashed one,
 * which is one. */
struct index_refusal {
	const struct index_def *def;
	bool hashed;
	size_t columns[2];
};

/* Entries as they are stored, each its whole key and its value. */
struct index_pairs {
	struct kv_pair *pairs; /* in key order, each key once; in the arena of the work */
	size_t count;
	uint64_t many;                /* columns with arrays and with cut values (def.h) */
	struct index_refusal refusal; /* after STATUS_UNSUPPORTED */
};

/* The entries of one document while a form makes them. */
struct index_making {
	const struct catalog_db *db;
	const struct index_def *def;
	const struct index_source *source;
	struct index_work *w;
	struct index_pairs *pairs;
	size_t cap;       /* of these */
	struct buf key;   /* of the entry that is being made */
	struct buf value; /* likewise */
};

/* Begins the value: (format, flags). */
void index_making_flags(struct index_making *m, unsigned flags);
/* Adds the entry of `key` and `value`. The failures of both buffers; STATUS_LIMIT. */
MUST_USE enum status index_making_add(struct index_making *m);

/*
 * The entries that a document has in the index: none, one, or where it has arrays several. This is
 * what readers check a cut entry with, and what a check of the store compares with what is there.
 * STATUS_UNSUPPORTED: the index cannot have the document; ret->refusal tells why.
 */
MUST_USE enum status index_entries_make(const struct catalog_db *db, const struct index_def *def,
					const struct index_source *source, struct index_work *w,
					struct index_pairs *ret);

/*
 * True if the entry with this key (from behind index_key_entries()) is the first one of its
 * document within the ranges, in the direction of reading: the one at which a page returns the
 * document. The ranges are in the order of keys and do not overlap. Where no document has several
 * entries nothing is computed.
 */
MUST_USE enum status index_entry_is_first(const struct catalog_db *db, const struct index_def *def,
					  const struct index_source *source,
					  const struct index_range *ranges, size_t count,
					  bool reverse, struct str key, struct index_work *w,
					  bool *ret);

#endif
