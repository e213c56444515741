/*
 * Views: rows that the functions of design documents make of documents, kept in order, with partial
 * results of reduces over them. README.md has the design.
 *
 * A group is the views of one design document. It is named by the signature of what makes its rows
 * (design.h), so design documents with equal views share one group. A group is behind the documents
 * until somebody asks: view_update() brings it to a Sequence, and then it is read in transactions
 * of the reader's own (read.h).
 *
 *     view_design_parse(text, partitioned, arena, &design, err);
 *     view_update(engine, &target, &least, deadline_ns, stop, arena, &error, err);
 *     in a transaction, and again in each further one of a long reading:
 *             view_group_open(tx, db, &design, arena, &group, err);
 *             view_range_make(db, &group, map, &question, &work, &range, err);
 *             view_rows_begin(...) or view_groups_begin(...)              // read.h
 *
 * Threading: an engine is used from any thread and fiber. What takes a transaction belongs to the
 * thread of that, leaves the commit to its caller, and may be called again in the next attempt.
 */
#ifndef FROND_INDEX_VIEW_VIEW_H
#define FROND_INDEX_VIEW_VIEW_H

#include "base/arena.h"
#include "catalog/catalog.h"
#include "catalog/seq.h"
#include "index/view/design.h"
#include "index/view/functions.h"
#include "loop/wait.h"

/* Limits. What passes one is left out of a view, and told (struct view_refusal). */
enum {
	VIEW_KEY_BYTES = 6000, /* of a row's key, as it is in the key of the store */
	VIEW_ROW_BYTES =
		8500000, /* of a row's key and value as JSON texts: a whole document fits */
	VIEW_DOC_BYTES = 64000000, /* of the rows of one document while they are written */
	VIEW_REFUSALS_SHOWN = 20,  /* the newest that a group remembers by name */
	VIEW_GROUPS_MOST = 1000,   /* groups of one database that one cleanup clears */
	VIEW_UPDATERS_MOST = 8,    /* groups that a process updates at once; others wait */
	VIEW_FAILED_KEPT = 64,     /* failed updates that a process remembers */
	VIEW_WAITERS_MOST = 10000, /* that wait for one process's updates */
};

/* ---- Bringing a view up to date ---- */

struct view_engine;

/* A row, or all rows of a document, that a limit has kept out. */
struct view_refusal {
	struct str id;    /* of the document */
	struct str view;  /* the view's name; empty: all rows of the document */
	struct str limit; /* "view_key_bytes", "view_row_bytes", "view_doc_bytes", "not_json" */
	uint64_t rows;    /* how many; 0: not told (it is not stored with a group's newest) */
};

struct view_engine_config {
	struct kv_store *store; /* outlives the engine */
	/* Called for what a limit keeps out, for the log; on the engine's threads. Or NULL. */
	void (*refused)(void *arg, struct str db_name, struct str design,
			const struct view_refusal *refusal);
	void *arg;
};

/* Starts nothing yet: no thread, no memory to speak of. STATUS_NOMEM. */
MUST_USE enum status view_engine_new(const struct view_engine_config *config,
				     struct view_engine **ret, struct err *err);
/* Ends updates under way, whose waiters get STATUS_CANCELLED, and waits for them. NULL is fine. */
void view_engine_free(struct view_engine *engine);

/* Which group, and by whose functions. The engine copies what it needs beyond the call. */
struct view_target {
	enum catalog_space space;
	struct str db_name;
	uint64_t db_number; /* since another database may get the name */
	struct str name;    /* of the design document, for people: "_design/name" */
	const struct view_design *design;
	const struct view_functions *functions; /* static */
	void *arg;                              /* of the functions; see their `retain` */
};

/*
 * Waits until the group covers all changes up to `least`; `least` NULL: begins an update to
 * what is there now (update=lazy), behind one that is under way, and returns at once. One update of
 * a group is under way in a process; all who ask wait for that one, and it goes on when they have
 * gone.
 *
 * STATUS_FUNCTION: a function of the design document failed, and `*ret_error` says why (in the
 * arena). STATUS_TIMEOUT: the deadline passed. STATUS_CANCELLED: `stop` was set (it may be NULL),
 * or the engine ends. STATUS_NOT_FOUND: the database has gone. STATUS_TOO_MANY: VIEW_WAITERS_MOST
 * wait.
 * STATUS_UNAVAILABLE while the database is being moved. The failures of kv_run(), and those of the
 * functions.
 */
MUST_USE enum status view_update(struct view_engine *engine, const struct view_target *target,
				 const struct catalog_seq *least, uint64_t deadline_ns,
				 struct event *stop, struct arena *arena,
				 struct view_error *ret_error, struct err *err);

/* An update under way in this process, for _active_tasks. Texts are in the arena. */
struct view_progress {
	struct str db_name;
	struct str design; /* the design document that asked: "_design/name" */
	uint64_t done;     /* changes, or rows that are being summed up */
	uint64_t total;
	uint64_t started_ms; /* since 1970 */
	uint64_t updated_ms;
	bool summing;
};

/* At most `most`; how many. */
size_t view_progress_list(struct view_engine *engine, size_t most, struct arena *arena,
			  struct view_progress *ret);

/* What this process does for one group now. */
struct view_activity {
	bool updating;
	uint64_t waiting; /* requests */
};

void view_activity_get(struct view_engine *engine, uint64_t db_number,
		       const uint8_t signature[VIEW_SIGNATURE_BYTES], struct view_activity *ret);

/*
 * True if the group's last update in this process failed because of a function of the design
 * document. The process remembers the last VIEW_FAILED_KEPT failures.
 */
bool view_update_has_failed(struct view_engine *engine, uint64_t db_number,
			    const uint8_t signature[VIEW_SIGNATURE_BYTES]);

/* ---- What a database has of views ---- */

enum view_phase {
	/* Stored: never renumber. */
	VIEW_PHASE_ROWS = 1,  /* first build: rows are being made; nothing is read yet */
	VIEW_PHASE_SUMS = 2,  /* first build: rows are being summed up; likewise */
	VIEW_PHASE_READY = 3, /* it is read, and follows the changes */
};

/* A group as it is stored. Everything is in the arena. */
struct view_group {
	uint64_t number;
	uint8_t signature[VIEW_SIGNATURE_BYTES];
	uint8_t seed[16]; /* of the hashes of its rows' keys */
	enum view_phase phase;
	struct catalog_seq covers;    /* all changes up to here are in its rows */
	struct catalog_seq purge_seq; /* all purges up to here */
	bool partitioned;
	size_t map_count;
	uint64_t rows[VIEW_VIEWS_MOST]; /* of each map */
	unsigned tops[VIEW_VIEWS_MOST]; /* the highest level that each map's sums have */
	/* Documents that have rows which are not in the rows of each map now (left_out.h). */
	uint64_t lacking[VIEW_VIEWS_MOST];
	/* Documents of whose rows a part has been written: until this is 0 again, readers wait. */
	uint64_t halves;
	/* A limit has kept out rows when that was not noted by document: `refusals` names some. */
	bool unnoted;
	bool large;                    /* has had what fronds with lower limits cannot read */
	uint64_t refused;              /* rows and documents that limits have kept out, in all */
	struct view_refusal *refusals; /* the newest of them, the newest last */
	size_t refusal_count;
};

/*
 * The group of a design document as the transaction sees it, by snapshot reads (two keys).
 * STATUS_NOT_FOUND: nobody has begun to build it; a reader that does not want an update finds no
 * rows then, and none unless the phase is VIEW_PHASE_READY.
 */
MUST_USE enum status view_group_open(struct kv_tx *tx, const struct catalog_db *db,
				     const struct view_design *design, struct arena *arena,
				     struct view_group *ret, struct err *err);

/* The engine's estimate of the bytes that a group takes. */
MUST_USE enum status view_group_bytes(struct kv_tx *tx, const struct catalog_db *db,
				      const struct view_group *group, uint64_t *ret);

/*
 * Clears the groups of a database whose signatures are none of `live`, VIEW_GROUPS_MOST at most, in
 * transactions of bounded size (_view_cleanup). `*ret_cleared` is how many groups were cleared. A
 * group that is not in `live` is cleared also while it is being built: its build then begins anew.
 */
MUST_USE enum status view_cleanup(struct kv_store *store, enum catalog_space space,
				  struct str db_name, const uint8_t (*live)[VIEW_SIGNATURE_BYTES],
				  size_t live_count, uint64_t *ret_cleared, struct err *err);

#endif
