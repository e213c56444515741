/*
 * The check of a database's indexes (catalog/check.h), for every model that has some. In both
 * directions: every document's entries are there, as the document makes them, and there are no
 * others. The second is seen by the number of entries; only where that is wrong, or an entry is
 * missing, each entry is compared with its document.
 *
 * While an index is being built, documents may lack their entries. One that is FAILED, DROPPED or
 * STALE has entries that nobody keeps, and one of another collation cannot be compared.
 */
#ifndef FROND_INDEX_VERIFY_H
#define FROND_INDEX_VERIFY_H

#include "catalog/check.h"
#include "index/engine/entry.h"
#include "index/engine/source.h"

/* What the functions of a model are given. */
struct index_verify_on {
	struct catalog_verify *v;
	struct catalog_db db; /* with its definitions */
	struct arena *arena;  /* of one document and its entries */
	bool again;           /* the definitions were checked before: nothing is told of them */
};

struct index_verify_model {
	const char *finding;       /* an entry that is not as its document has it */
	const char *finding_stray; /* an entry that no document has */
	size_t arena_bytes;
	uint64_t documents; /* the subspace that has a key for each document */

	/* Loads the definitions into on->db.extension, and frees them, as the kind does. */
	enum status (*load)(struct index_verify_on *on, struct err *err);
	void (*unload)(void *extension);
	/*
	 * The id of the document with this key, as entries have it, in the arena; the key is given
	 * from behind the subspace's prefix. False: it is not the first one of a document with
	 * entries. Asked once for each key, in their order, from a new beginning after load().
	 */
	bool (*id)(struct index_verify_on *on, struct str tail, struct str *ret);
	/*
	 * Reads a document. STATUS_NOT_FOUND also for one that cannot be read, which the check of
	 * documents tells. Any other failure is asked about with catalog_verify_again().
	 */
	enum status (*source)(struct index_verify_on *on, struct str id, struct index_source *ret);
};

/* `*ret_entries`: how many entries there are of all indexes, strays as well. */
MUST_USE enum status index_verify(struct catalog_verify *v, const struct index_verify_model *model,
				  uint64_t *ret_entries);

/*
 * The same in ranges (catalog_verify_ranges()), while others write: documents with their entries,
 * and every entry with its document. How many entries there are is not told.
 */
MUST_USE enum status index_verify_in_ranges(struct catalog_verify *v,
					    const struct index_verify_model *model);

/*
 * Checks (P, space, INDEX_STAT_ENTRIES), the counter of all entries, which is alone there. Compares
 * it with `*entries`; NULL: how many there are is not known.
 */
MUST_USE enum status index_verify_total(struct catalog_verify *v,
					const struct index_verify_model *model, uint64_t space,
					const uint64_t *entries);

#endif
