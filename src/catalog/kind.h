/*
 * Kinds of databases. The catalog knows which databases there are and nothing of what is in them:
 * each model registers a kind, a table of what has to be done differently for its databases.
 *
 * Threading: catalog_kind_register() before any other thread runs; the rest from any thread.
 */
#ifndef FROND_CATALOG_KIND_H
#define FROND_CATALOG_KIND_H

#include "base/arena.h"
#include "base/buf.h"
#include "catalog/seq.h"
#include "catalog/space.h"
#include "kv/kv.h"
#include "kv/tuple.h"

struct catalog_db;
struct catalog_verify;
struct index_form;
struct catalog_tally_list;

enum {
	CATALOG_KIND_REVISIONED = 1, /* stored: never renumber; that of descriptions without one */
	CATALOG_KIND_TIMED = 2,      /* stored likewise, as all of them */
	CATALOG_KIND_REDIS = 3,
	CATALOG_KIND_PLAIN = 4,
	CATALOG_KIND_TABLE = 5,
	CATALOG_KINDS = 8, /* that can be registered */
	CATALOG_KEPT_SPACES = 3,
	CATALOG_OPTIONS = 3, /* numbers of a description that mean what its kind says */
};

/* Draws all keys that begin with the prefix. */
typedef enum status catalog_draw_prefix(void *arg, struct str prefix);

/* What a database is dumped to. Everything is the caller's. */
struct catalog_dump {
	struct kv_tx *tx; /* one snapshot for all of it */
	struct catalog_db *db;
	bool revs;       /* also what is no longer shown, with its history */
	struct buf *out; /* the end of what was written; what is before may have gone */
	/* The text may be written out now; a line ends here. STATUS_IO, explained in `err`. */
	enum status (*ready)(void *arg, struct err *err);
	enum status (*end_line)(void *arg, struct err *err);
	/* Something is not dumped as it would be shown; the dump goes on. */
	void (*warn)(void *arg, const char *text);
	void *arg;
	struct err *err;
};

/* One kind. Static: it stays for as long as the process lives. */
struct catalog_kind {
	uint64_t number; /* stored */
	const char *name;
	enum catalog_space space; /* where the names of its databases are */

	/* Lists whose keys are counted by ranges (tally.h). */
	const struct catalog_tally_list *lists;
	size_t lists_count;

	/* STATUS_INVALID, explained, if no database of this kind can have the name. */
	enum status (*check_name)(struct str name, struct err *err);
	/* Or NULL. STATUS_CORRUPT if no description of this kind can have these options. */
	enum status (*check_options)(const uint64_t options[CATALOG_OPTIONS]);

	/*
	 * Or both NULL. Reads what is kept in memory with each description of a database, such as
	 * the definitions of its indexes, when the description is read; and frees it with the
	 * description. `*ret` NULL: there is nothing to keep. What the kind reads here must change
	 * only together with the store's metadata version.
	 */
	enum status (*extend)(struct kv_tx *tx, const struct catalog_db *db, void **ret,
			      struct err *err);
	void (*extension_free)(void *extension);
	/*
	 * The set of indexes (index/engine/def.h) that an extension, which may be NULL, has; NULL
	 * if it has none. Where there is no such function, the extension is the set.
	 */
	const void *(*extension_indexes)(const void *extension);
	/*
	 * How values of its documents become entries of indexes (index/engine/form.h). NULL: its
	 * databases have no indexes.
	 */
	const struct index_form *index_form;

	/*
	 * The key that every change of a database's contents writes, which feeds watch. `prefix`:
	 * what all keys of the database begin with.
	 */
	enum status (*watch_key)(struct str prefix, struct buf *key);
	/* Writes that key, so that whoever watches looks again: the database is gone. */
	enum status (*wake)(struct kv_tx *tx, struct str prefix);
	/*
	 * Asks for the newest change, by a range of one key; then the Sequence in that key. NULL:
	 * databases of this kind have no changes.
	 */
	enum status (*newest_read)(struct kv_tx *tx, uint64_t number, struct kv_future **ret);
	enum status (*newest_parse)(struct str key, struct catalog_seq *ret);

	/*
	 * How long some subspaces outlive their database, in milliseconds, for feeds that have not
	 * read them yet; 0: nothing does. They are those of `kept_spaces`, ascending, up to a zero.
	 */
	uint64_t kept_ms;
	uint64_t kept_spaces[CATALOG_KEPT_SPACES];

	/* Checks v->db, its subspaces and counters (check.h). Findings are no failure. */
	enum status (*verify)(struct catalog_verify *v);
	/* The part of the root that is this kind's own, and the check of its records; or NULL. */
	uint64_t root_part;
	void (*verify_root)(struct catalog_verify *v, struct tuple_reader key,
			    const struct kv_pair *pair);

	/* What a heading says of a database; NULL: the kind's name. */
	const char *(*summary)(const struct catalog_db *db);
	/* The name of a subspace in what is drawn; NULL: it has none. */
	const char *(*space_name)(uint64_t space);
	/*
	 * May be NULL. Draws the part of a key behind its subspace, in parentheses, with the help
	 * of the value, which has what the key has lost. False, with nothing appended, if there is
	 * no better drawing than that of a tuple.
	 */
	bool (*draw_key)(uint64_t space, struct str tail, struct str value, struct buf *ret);
	/* Draws a value (draw.h). False: it is drawn as the tuple that it is. */
	bool (*draw_value)(uint64_t space, struct str key, struct str value, struct buf *ret);
	/*
	 * May be NULL. Draws a pair of an opened database as a whole, in the kind's own notation;
	 * `tail` is the key behind its subspace. False, with nothing appended: by the two above.
	 */
	bool (*draw_pair)(const struct catalog_db *db, uint64_t space, struct str tail,
			  struct str value, struct buf *ret);
	/* Or NULL. Gives the prefixes of all keys beneath one entry of the database, such as a
	 * document, to be drawn. */
	enum status (*inspect)(struct kv_tx *tx, const struct catalog_db *db, struct str id,
			       struct arena *arena, catalog_draw_prefix *draw, void *arg);
	/* Or NULL. Writes what is in the database, a line each. */
	enum status (*dump)(const struct catalog_dump *dump);

	/*
	 * Called before a database is copied; NULL if the kind has nothing to do then. It clears
	 * what belongs to the database and lies outside of its own keys. The database is only read
	 * from now on.
	 */
	enum status (*move_prepare)(struct kv_store *store, uint64_t number, struct err *err);
	/*
	 * Called in the transaction that gives a copied database its name; NULL if the kind has
	 * nothing to do then. It makes what lies outside of the database's own keys, which were not
	 * copied. The description is the copy's, and has no extension.
	 */
	enum status (*move_arrive)(struct kv_tx *tx, const struct catalog_db *db, struct err *err);
	/* Whether this pair of a database, by its key without the number, stands for a document. */
	bool (*is_document)(struct str key);
	/*
	 * Called before a copied database is handed over, and again before it gets its name; NULL
	 * if the kind has nothing to do then. Makes at the other store what databases of the kind
	 * share and this one needs, unless it is there. Fails, explained, if something else is. The
	 * description is the source's, and has no extension.
	 */
	enum status (*move_share)(struct kv_store *from, struct kv_store *to,
				  const struct catalog_db *db, struct err *err);
};

void catalog_kind_register(const struct catalog_kind *kind); /* again is fine */

/* NULL if no such kind is registered. */
const struct catalog_kind *catalog_kind_find(uint64_t number);

/* All that are registered, one after the other; NULL behind the last. */
const struct catalog_kind *catalog_kind_at(size_t at);

#endif
