/*
 * Mends the catalog of a store that was put together from the remains of a damaged one
 * (kv/salvage.h). What the catalog has lost is made anew, so that every database has a name and can
 * be opened. Reading what is left in a database is the work of its kind (`dump`).
 *
 * Nobody else uses the store. Threading: any thread that may wait.
 */
#ifndef FROND_CATALOG_SALVAGE_H
#define FROND_CATALOG_SALVAGE_H

#include "catalog/catalog.h"

/* Told of an entry, a document or a key, say, that cannot be read, or not as a whole. */
struct catalog_broken {
	void (*tell)(void *arg, struct str entry, const char *why);
	void *arg;
};

/* What a kind adds to its table (kind.h) for damaged databases. Static. */
struct catalog_salvage_kind {
	const struct catalog_kind *kind;
	/*
	 * A subspace in which a database of this kind has keys as soon as something is in it, and
	 * one of another kind never.
	 */
	uint64_t own_space;
	/*
	 * Guesses the options of a database whose description is lost by what is in it, and makes
	 * anew what it needs to be opened and does not have. `db` has a number, a prefix, a name.
	 * `*ret_made`: what was made, for people; or NULL.
	 */
	enum status (*adopt)(struct kv_tx *tx, const struct catalog_db *db,
			     uint64_t options[CATALOG_OPTIONS], const char **ret_made,
			     struct err *err);
	/* As kind->dump with `revs`, past everything that cannot be read; or NULL. */
	enum status (*dump)(const struct catalog_dump *dump, const struct catalog_broken *broken);
};

/* Told what was made anew, or is lost with a whole database. */
typedef void catalog_salvage_told(void *arg, const char *text);

/*
 * `has_format`: the store knows its format. `kinds` ends with NULL; a database without a
 * description is of the first of them whose own subspace it has.
 */
MUST_USE enum status catalog_salvage(struct kv_store *store, bool has_format,
				     const struct catalog_salvage_kind *const *kinds,
				     catalog_salvage_told *told, void *arg, struct err *err);

#endif
