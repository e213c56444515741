/*
 * Definitions of indexes: which there are in a database, what their entries are made of, and in
 * what state they are. The engine knows no model: a model lends it the number of its database, says
 * which documents have entries, and hands over their values (source.h).
 *
 *     (P, INDEXES)                         the number that the next index gets
 *     (P, INDEXES, number)                 a definition (def_record.c)
 *     (P, INDEXES, "build", number, …)     what a build notes of itself: whoever builds owns it
 *     (P, ENTRIES, number, component…, id) an entry (entry.h)
 *
 * Writers keep an index from the transaction on that creates it: they know the definitions by the
 * description of the database that they opened in their transaction. Whatever changes a definition
 * touches the store's metadata version, so that every open transaction that knows another set of
 * definitions conflicts and starts again with the new one.
 *
 * Ownership: a set and its definitions are immutable and live as long as the description that they
 * belong to. Threading: any thread may read a set; what takes a transaction belongs to its thread.
 */
#ifndef FROND_INDEX_ENGINE_DEF_H
#define FROND_INDEX_ENGINE_DEF_H

#include <assert.h>

#include "base/arena.h"
#include "catalog/catalog.h"
#include "catalog/kind.h"
#include "catalog/seq.h"
#include "doc/key.h"
#include "index/engine/form.h"

/* Subspaces of a database that has indexes, whatever its kind. Stored: never renumber. */
enum index_space {
	INDEX_SPACE_DEFS = 7,
	INDEX_SPACE_ENTRIES = 12,
};

enum {
	INDEX_COLUMNS = 32,         /* of one index */
	INDEX_PATH_NAMES = 128,     /* of one column */
	INDEX_DEFS = 256,           /* of one database, those that are being cleared included */
	INDEX_FILTER_BYTES = 16384, /* a partial filter's text */
	INDEX_TEXT_BYTES = 8192,    /* a name, an owner; a failure, which is cut */
	INDEX_RECORD_BYTES = 65536, /* a definition as it is stored */
	INDEX_COLLATOR_BYTES = 120, /* versions of what orders texts */
	INDEX_COLLATION_BYTES = 1024,
	INDEX_SPEC_BYTES = 32768, /* what a door keeps with a definition */
	INDEX_FORMAT = 5,       /* the newest format of a definition: as 2, with carried columns */
	INDEX_FORMAT_PATHS = 4, /* as 2, with longer paths than the form had in that format */
	INDEX_FORMAT_ORDERED = 3, /* as 2, with a collation */
	INDEX_FORMAT_MORE = 2,    /* with a spec, `hashed` and `many` */
	INDEX_FORMAT_LEAST = 1,   /* without these */
};

/* Stored: never renumber. */
enum index_state {
	INDEX_BUILDING = 1, /* writers keep it; not every document has entries yet */
	INDEX_READY = 2,    /* every document that should have entries has them: it can be read */
	/* Its build has found what it cannot hold (`failure`). Nobody keeps it or reads it. */
	INDEX_FAILED = 3,
	INDEX_DROPPED = 4, /* its entries are to be cleared, then its definition */
	/*
	 * A writer with another version of the collation has met it, whose sort keys would be out
	 * of order in it. Nobody keeps it or reads it: index_renew() begins another one.
	 */
	INDEX_STALE = 5,
};

/* Stored: never renumber. */
enum index_flag {
	/* A column whose value is an array has one entry for each different element. */
	INDEX_MULTIKEY = 1,
	/* No two documents have the same values. */
	INDEX_UNIQUE = 2,
	/* Only documents that have every column have entries; otherwise a missing one is null. */
	INDEX_SPARSE = 4,
	/* Entries have the values that they were made of, so that readers need no document. */
	INDEX_COVERING = 8,
	/*
	 * A component of its own comes before the columns: what the document's id has before its
	 * first colon. Documents without one have no entries.
	 */
	INDEX_PARTITIONED = 16,
	/* The form is that of BSON (index/bson/form.h), or of rows (index/typed/form.h), else of
	 * JSON. */
	INDEX_BSON = 32,
	INDEX_TYPED = 64,
	/* The flags of forms: a definition has that of its own. */
	INDEX_FORMS = INDEX_BSON | INDEX_TYPED,
	INDEX_FLAGS = 127,
};

/* A column: the names on the way to a value, such as "address", "city". Names may be positions. */
struct index_column {
	const struct str *path;
	size_t path_count;
	bool descending;
};

struct index_def {
	const struct index_form *form;
	uint64_t number; /* of this index in its database; never used again */
	enum index_state state;
	uint32_t flags; /* enum index_flag */
	enum doc_key_order order;
	/*
	 * What clients call it, and whom it belongs to: the id of a design document, for example.
	 * The engine compares neither; one owner may have several indexes.
	 */
	struct str name;
	struct str owner;
	const struct index_column *columns;
	size_t column_count;
	/*
	 * As the form has filters, a JSON text for example; ptr NULL: all documents have entries.
	 */
	struct str filter;
	struct str collator; /* versions of what orders texts; empty if the order needs none */
	/*
	 * A document whose winner is of a greater Sequence was written by somebody who knew of the
	 * index. Documents of the very transaction that created it did not. All zero where
	 * documents have no Sequences, and builds go by marks (build.h): so the transaction that
	 * creates an index can read the definition again, and use the index.
	 */
	struct catalog_seq created;
	struct str failure; /* FAILED: what the build has found, for people */

	/* What is not stored in INDEX_FORMAT_LEAST. */
	struct str spec; /* a text that is the door's; the engine does not look into it */
	/*
	 * How texts are ordered, as the form has collations, with all that there is to say of it.
	 * Empty: as `order` says.
	 */
	struct str collation;
	/* A column of which entries have a hash in the value's place: its number and 1; 0: none. */
	uint32_t hashed;
	/*
	 * So many more columns lie behind these in `columns`, which are no part of keys: entries
	 * carry values of all of them where they are short enough. INDEX_COLUMNS counts them, too.
	 */
	uint32_t carried;
	/*
	 * Columns (by bits) at whose paths a document has had an array: only there may a document
	 * have several entries. The same 32 bits higher: columns that a value was cut in, so that
	 * entries need not be in the order of its values (index_def_arrays(), index_def_cuts()).
	 */
	uint64_t many;

	/* Only in a set: what the form has made of the filter and the collation; NULL: nothing. */
	void *opened;
};

enum {
	INDEX_CUTS_SHIFT = 32, /* of the bits of columns with cut values, in `many` */
};

static inline uint32_t
index_def_arrays(const struct index_def *def)
{
	return (uint32_t)def->many;
}

static inline uint32_t
index_def_cuts(const struct index_def *def)
{
	return (uint32_t)(def->many >> INDEX_CUTS_SHIFT);
}

/* The format that the definition is stored in: the least that has all of it. */
unsigned index_def_format(const struct index_def *def);

/* True for an index that is there for its owner, be it out of use until it is built again. */
static inline bool
index_def_is_live(const struct index_def *def)
{
	return def->state == INDEX_BUILDING || def->state == INDEX_READY ||
	       def->state == INDEX_STALE;
}

/* The indexes of a database at one moment, by number. */
struct index_set {
	const struct index_def *defs;
	size_t count;
	/* Those that a writer keeps: BUILDING and READY of this process's collation. */
	const struct index_def **kept;
	size_t kept_count;
	bool any_unique; /* of the kept ones */
	bool any_rev;    /* one of the kept ones may look at a document's revision */
	bool any_stale;  /* BUILDING or READY, of another collation than this process's */
};

/*
 * The indexes of an opened database; NULL if it has none. As the description, this is what the
 * transaction that opened the database sees, and perhaps some that are DROPPED and were forgotten
 * meanwhile.
 */
static inline const struct index_set *
index_set_of(const struct catalog_db *db)
{
	const void *(*of)(const void *) = db->kind ? db->kind->extension_indexes : NULL;

	assert(!db->bare);
	return of ? of(db->extension) : db->extension;
}

/* True if writers have to look at the indexes: some are kept, or are to be put out of use. */
static inline bool
index_set_has_writers(const struct index_set *set)
{
	return set && (set->kept_count || set->any_stale);
}

/*
 * True if one of the indexes that are kept is BUILDING, and its build is to enter the document of
 * this Sequence: whoever gives that document another Sequence has to enter it.
 */
bool index_set_builds(const struct index_set *set, const struct catalog_seq *seq);

/* False if a writer who knew of the index has written the document of this Sequence. */
bool index_build_wants(const struct index_def *def, const struct catalog_seq *seq);

/* NULL if there is none of this number. */
const struct index_def *index_find(const struct catalog_db *db, uint64_t number);

/* True if entries of the index answer questions: READY, and of this process's collation. */
bool index_is_readable(const struct index_def *def);

/* True if its entries are ordered by partition first. */
static inline bool
index_is_partitioned(const struct index_def *def)
{
	return def->flags & INDEX_PARTITIONED;
}

/* True if the index is of another ICU's texts, but in a state in which others may use it. */
bool index_is_stale(const struct index_def *def);

/*
 * What a kind of databases with indexes puts into its row (catalog/kind.h): reads the definitions,
 * one range, and frees them. STATUS_NEWER, explained, for a definition of a newer frond, which this
 * one could not keep; STATUS_UNAVAILABLE, explained, for a collation that ICU cannot open, although
 * it could make it; STATUS_CORRUPT; STATUS_NOMEM.
 */
MUST_USE enum status index_set_load(struct kv_tx *tx, const struct catalog_db *db, void **ret,
				    struct err *err);
void index_set_free(void *set);

/*
 * Whether the database has fewer definitions than `most`. What the transaction has opened may have
 * some that are forgotten since (index_forget()); only if it has that many they are read anew.
 */
MUST_USE enum status index_set_has_room(struct kv_tx *tx, const struct catalog_db *db, size_t most,
					bool *ret, struct err *err);

/*
 * ---- Changing definitions ----
 *
 * Each touches the metadata version, but for index_forget(); none commits.
 */

/*
 * Creates an index, in state BUILDING, or READY if the caller knows that no document can have
 * entries (an empty database). Of `terms`, form, number, created, collator, failure and opened are
 * not used. `*ret_number` gets its number. Reads one key. Two indexes may have the same name: the
 * caller looks at index_set_of() first.
 *
 * STATUS_INVALID, explained, for terms that no index can have (no columns, a filter that is
 * none, a collation without all of its members); STATUS_LIMIT, explained, past one of the
 * limits above; STATUS_UNAVAILABLE without the data of ICU.
 */
MUST_USE enum status index_create(struct kv_tx *tx, const struct catalog_db *db,
				  const struct index_def *terms, uint64_t *ret_number,
				  struct err *err);

/*
 * Puts the index, which is of the description that this transaction has opened, into another state.
 * `failure` is kept with FAILED. Reads nothing. From the commit on nobody keeps or reads an index
 * that is FAILED, DROPPED or STALE.
 */
MUST_USE enum status index_state_set(struct kv_tx *tx, const struct catalog_db *db,
				     const struct index_def *def, enum index_state state,
				     struct str failure);

/*
 * Gives the index, whose form has specs, another one. STATUS_LIMIT, explained, for one of more
 * than INDEX_SPEC_BYTES.
 */
MUST_USE enum status index_spec_set(struct kv_tx *tx, const struct catalog_db *db,
				    const struct index_def *def, struct str spec, struct err *err);

/*
 * Notes in the definition of the index that documents have arrays or long values at these
 * columns (`many`, a bit for each). Reads the definition first, since this transaction may have
 * noted other columns.
 */
MUST_USE enum status index_many_note(struct kv_tx *tx, const struct catalog_db *db,
				     const struct index_def *def, uint64_t many);

/* index_state_set() to DROPPED: its entries are cleared later, in the background. */
MUST_USE enum status index_drop(struct kv_tx *tx, const struct catalog_db *db,
				const struct index_def *def);

/* Drops the index, and creates another one of the same terms, BUILDING, of this collation. */
MUST_USE enum status index_renew(struct kv_tx *tx, const struct catalog_db *db,
				 const struct index_def *def, uint64_t *ret_number,
				 struct err *err);

/*
 * Clears the definition of an index that is DROPPED, with what its build has noted. The caller has
 * cleared its entries in earlier transactions or in this one, and counted them (index_clear()).
 *
 * This is done in the background, where no open transaction is to fail for it: the metadata version
 * stays. Caches go on having the index as a DROPPED one, which nobody keeps, reads or changes.
 */
MUST_USE enum status index_forget(struct kv_tx *tx, const struct catalog_db *db,
				  const struct index_def *def);

/* ---- The record (def_record.c), and keys ---- */

/*
 * Appends (format, state, flags, order, name, owner, collator, (Incarnation, versionstamp),
 * (((name…), descending)…), filter or null, failure), from format 2 on (spec, hashed, many) behind
 * it, in format 3 also (b"collation"), and in format 5 (carried): so many of the columns, the last
 * ones. The offset of the versionstamp in the value is returned, for a definition that is being
 * created.
 */
size_t index_def_put(struct buf *value, const struct index_def *def);

/*
 * Reads all but the number, into the arena; what is `opened` is NULL. STATUS_NEWER, explained;
 * STATUS_CORRUPT, also for the definition of another form; STATUS_LIMIT when the arena is full.
 */
MUST_USE enum status index_def_parse(const struct index_form *form, struct str value,
				     struct arena *arena, struct index_def *ret, struct err *err);

/*
 * STATUS_CORRUPT if the definition that was parsed has a filter or a collation of which its form
 * can make nothing. Other failures do not say what the definition is like. Uses the arena.
 */
MUST_USE enum status index_def_check(struct index_def *def, struct arena *arena, struct err *err);

/* (P, INDEXES, number), and (P, INDEXES, "build", number): forgets what the buffer held. */
void index_key_def(struct buf *key, const struct catalog_db *db, uint64_t number);
void index_key_build(struct buf *key, const struct catalog_db *db, uint64_t number);
/*
 * (P, INDEXES, "build", number, 16, b"id"): a mark that the document's writer has made its entries
 * in an index that is being built. With an empty `id`, the prefix of all marks of the index.
 */
void index_key_mark(struct buf *key, const struct catalog_db *db, uint64_t number, struct str id);

/*
 * The versions that this process orders texts by, and those of locales' rules, which follow the
 * version of ICU; empty if ICU's data cannot be read. Static.
 */
struct str index_collator(bool of_locales);

#endif
