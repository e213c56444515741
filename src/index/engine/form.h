/*
 * A form of documents: JSON and BSON each have one (index/json, index/bson). It knows what the
 * values of a document are, how they are ordered in keys, what a filter says and what an entry has
 * beside its key. The engine knows none of that; it finds the form in the row of the database's
 * kind (catalog/kind.h), and in each definition.
 *
 * Static and immutable. Threading: that of the caller's work and transaction.
 */
#ifndef FROND_INDEX_ENGINE_FORM_H
#define FROND_INDEX_ENGINE_FORM_H

#include "base/arena.h"
#include "base/buf.h"
#include "index/work.h"
#include "kv/tuple.h"

struct err;
struct index_def;
struct index_entry;
struct index_making;
struct index_source;

struct index_form {
	uint32_t flag;           /* of enum index_flag: stored with its definitions; 0: none is */
	uint32_t entry_flags;    /* enum index_entry_flag: what entries may have */
	unsigned format;         /* of definitions that have no collation (def.h) */
	size_t collation_bytes;  /* at most; 0: its texts have no collations */
	enum tuple_kind id_kind; /* TUPLE_STRING or TUPLE_BYTES: an id at the end of a key */
	/*
	 * Documents have revisions, and Sequences that tell a build which of them were written
	 * since the index is there. Of other documents, writers leave marks (build.h).
	 */
	bool has_revisions;

	/* ---- Definitions ---- */

	/*
	 * Makes def->opened, in the arena, of a filter, a collation or both; STATUS_INVALID,
	 * explained, for what is neither. The collation is left alone unless it `is_current`:
	 * another version of ICU's, or of an index that is being cleared, is not used. `close` (or
	 * NULL) is called of what was made, also when this fails.
	 */
	enum status (*open)(struct index_def *def, bool is_current, struct arena *arena,
			    struct err *err);
	void (*close)(void *opened);
	/* Of new, open terms: STATUS_INVALID, explained. NULL: there are no collations. */
	enum status (*check_collation)(const struct index_def *def, struct err *err);
	/*
	 * False if a stored filter, spec or collation is damaged, so that nothing may read it, not
	 * even to draw it. NULL: they are texts, which anything may read.
	 */
	bool (*is_whole)(struct str stored);
	/* Draws a filter or a collation, and an id, as people read them: the id as JSON. */
	void (*draw)(struct buf *ret, struct str stored);
	void (*draw_id)(struct buf *ret, struct str id);

	/* ---- Values ---- */

	/*
	 * Compares two of the form's values as keys do: *ret is <0, 0 or >0. `texts` is how texts
	 * are ordered, as the form has it; NULL: as where there is no collation.
	 */
	enum status (*compare)(const void *a, const void *b, const void *texts,
			       struct index_work *w, int *ret);
	/*
	 * Appends the component of one of the form's values in this column; as
	 * index_component_finish() for `ret_cut`.
	 */
	enum status (*put_component)(struct buf *key, const struct index_def *def, size_t column,
				     const void *value, struct index_work *w, bool *ret_cut);

	/* ---- Entries ---- */

	/*
	 * True if both documents have the same values in all columns, so that their entries are
	 * the same and no key has to be made. It may say false of such documents, too.
	 */
	enum status (*has_same_columns)(const struct index_def *def,
					const struct index_source *before,
					const struct index_source *after, struct index_work *w,
					bool *ret);
	/*
	 * Makes the entries of a document (index_making_add()), in any order, some perhaps twice.
	 * STATUS_UNSUPPORTED, with pairs->refusal: the index cannot have the document.
	 */
	enum status (*make_entries)(struct index_making *m);
	/*
	 * Finds the columns' values in an entry's value, unparsed. Returns false if it has none.
	 * The function is NULL where no entry has them in one text.
	 */
	bool (*find_values)(struct str value, struct str *ret);
	/* Reads what follows the flags in an entry's value, to its end. */
	enum status (*parse_values)(const struct index_def *def, struct tuple_reader *r,
				    uint64_t flags, struct arena *arena, struct index_entry *ret);

	/* Of a column's path in definitions of `format`, at most; 0: any number of names. */
	size_t path_names;
};

#endif
