/*
 * Building indexes, and clearing dropped ones, in the background.
 *
 * An index that is created over existing documents begins as BUILDING: writers keep it from then
 * on, and a build gives entries to the documents that nobody has written since. All documents are
 * cut into stretches by id. A step is one transaction: it reads how far its stretch is, gives
 * entries to the next documents, and writes how far it is now. So a build goes on where it was when
 * a process ends at any moment, and two processes that build the same stretch conflict and do no
 * harm. A step skips documents with a Sequence greater than the index's `created`, because their
 * writers have made the entries. Where documents have no Sequences, a writer who changes entries of
 * an index that is being built leaves a mark with the document's id, by which it is skipped. A
 * document that is written over and over again is therefore in the way of a step once at most. If a
 * step fails because a writer changed what it had read, or because its transaction took too long,
 * the next attempt takes half as many documents, so that a build goes on beside any number of
 * writers, on any machine. A step that follows one without a failure takes several times as many
 * documents, up to limits of documents, of bytes written and of milliseconds: its entries are
 * written in the order of their keys, and the more there are, the less each of them costs.
 *
 * The threads of a process that build the same index each take another stretch
 * (builds.c): two at the same one would do everything twice. When all stretches are done, and
 * before the index is READY, the counters by range of its entries are split, so that whoever counts
 * entries has few to read from the beginning.
 *
 *     (P, INDEXES, "build", number, stretch)  how far a stretch is (build_record.c)
 *     (P, INDEXES, "build", number, 16, b"id")  a mark: the document's writer made its entries
 *     (ROOT, INDEX_WORK, P)                   the database has an index to be built or cleared
 *
 * The second key is how a chore finds its work without looking at every database. Whoever creates
 * or drops an index sets it in the same transaction; the chore clears it in a transaction that has
 * seen no work left.
 *
 * Threading: index_documents_register() before any other thread runs; the rest from any thread.
 */
#ifndef FROND_INDEX_ENGINE_BUILD_H
#define FROND_INDEX_ENGINE_BUILD_H

#include "index/engine/update.h"

struct chores;

enum {
	INDEX_BUILD_STRETCHES = 16,     /* that the documents of a database are cut into at most */
	INDEX_BUILD_STRETCH_DOCS = 512, /* documents that are worth a stretch of their own */
	/* The stretch that requests prefer: two threads of the chore, anywhere, prefer others. */
	INDEX_BUILD_OF_REQUESTS = INDEX_BUILD_STRETCHES / 4,
	INDEX_BUILD_STEP_DOCS = 1000, /* documents of the first step of a run at most */
	/*
	 * Each step has INDEX_BUILD_STEP_GROWTH times as many as the one before, unless an attempt
	 * failed: up to so many, or as many as are likely to write so many bytes (of
	 * KV_LIMIT_TX_BYTES), or to take so long.
	 */
	INDEX_BUILD_STEP_GROWTH = 4,
	INDEX_BUILD_STEP_MOST = 16000,
	INDEX_BUILD_STEP_BYTES = 4 * 1000 * 1000,
	INDEX_BUILD_STEP_MS = 400,
	INDEX_BUILD_VIOLATIONS = 20, /* documents of each stretch that a failure names at most */
	INDEX_BUILD_ARENA_BYTES = 64 * 1024 * 1024, /* of a step: documents, and their entries */
	INDEX_BUILD_MARKS = INDEX_BUILD_STRETCHES,  /* in a stretch's place: marks lie below */
	INDEX_CLEAR_ENTRIES = 5000,                 /* of a dropped index, in one transaction */
};

/* ---- What a model lends ---- */

/* Documents with after < id <= end. Either may be empty, which is no bound. */
struct index_stretch {
	struct str after;
	struct str end;
	size_t limit; /* documents that are passed at most, visited or not */
	/*
	 * Writers have been in the way: the transaction is to conflict with those of documents that
	 * are visited, and not with those of others between them, even if that costs more.
	 */
	bool exact;
};

/* How far a call of `visit` has come. */
struct index_passed {
	struct str last; /* the id of the last document passed; in the arena */
	uint64_t count;
	bool more; /* the limit ended it before the stretch did */
};

typedef enum status index_visitor(void *arg, const struct index_source *source);

/* One kind of databases whose documents can be indexed. Static. */
struct index_documents {
	uint64_t kind; /* struct catalog_kind's number */
	size_t list;   /* the list of the entries in the lists of the kind */
	/*
	 * Finds ids that cut all documents into at most `parts` parts of about the same size, each
	 * the greatest that a part may have, whether or not there is such a document: `*ret_count`
	 * of them, ascending, in the arena. `*ret_documents` is how many documents
	 * there are, roughly.
	 */
	enum status (*cut)(struct kv_tx *tx, const struct catalog_db *db, size_t parts,
			   struct arena *arena, const struct str **ret_ids, size_t *ret_count,
			   uint64_t *ret_documents);
	/*
	 * Visits, by id, each document of the stretch that may have entries and that
	 * index_build_wants(). The transaction then conflicts with edits of each visited document.
	 * A failure of the visitor is returned.
	 */
	enum status (*visit)(struct kv_tx *tx, const struct catalog_db *db,
			     const struct index_def *def, const struct index_stretch *stretch,
			     struct arena *arena, index_visitor *visitor, void *arg,
			     struct index_passed *ret);
	/*
	 * Or NULL. A document that is visited has the values of the entry with this key, in a
	 * UNIQUE index. `*ret_gone`: what has that entry was only left behind, and this has taken
	 * it out, so that the document can be entered.
	 */
	enum status (*make_way)(struct kv_tx *tx, const struct catalog_db *db, struct str taken,
				bool *ret_gone);
};

void index_documents_register(const struct index_documents *documents); /* again is fine */

/* Those of the database's kind; NULL if its documents cannot be indexed. */
const struct index_documents *index_documents_of(const struct catalog_db *db);

/* ---- Side by side in a process (builds.c) ---- */

struct index_build_key;

/*
 * For build.c. True: no other thread of this process is at the stretch of this build, and none that
 * asks will be until index_builds_leave(); also where too many are claimed to note it. Any thread.
 */
bool index_builds_claim(const struct index_build_key *key, uint64_t stretch);
void index_builds_leave(const struct index_build_key *key, uint64_t stretch);

/* ---- Where to cut (cut.c) ---- */

/*
 * Cuts begin <= key < end into at most `parts` parts of about as many bytes each, where the store
 * knows only how much is where (kv_estimate_bytes()): by keys that lie about evenly between the
 * first and the last one. `ret_keys` has room for `parts` - 1 keys, which are there, ascending, in
 * the arena. Snapshot reads; may block, as reads do.
 */
MUST_USE enum status index_cut_range(struct kv_tx *tx, struct str begin, struct str end,
				     size_t parts, struct arena *arena, struct str *ret_keys,
				     size_t *ret_count);

/* ---- Steps ---- */

/* Which index. The database has its number, too, since another one may get its name. */
struct index_build_key {
	enum catalog_space space;
	struct str db_name;
	uint64_t db_number;
	uint64_t number; /* of the index */
	/* Leaves alone what other threads of the process are at that do so, too. */
	bool claims;
};

/*
 * Does up to `steps` steps of the build of an index, and finishes it when no stretch is left.
 * `preferred` is the stretch to begin with: several threads that build side by side each have
 * another one. When others of the process are at all that is left, it waits for a moment and does
 * nothing. A request calls this, too, so that the index of a small database is READY when the
 * request that created it is answered. `*ret_state` is the state of the index afterwards, which is
 * DROPPED if it is gone.
 *
 * Returns STATUS_UNAVAILABLE while the database is being moved; STATUS_NOMEM; the failures of
 * kv_run().
 */
MUST_USE enum status index_build_run(struct kv_store *store, const struct index_build_key *key,
				     uint64_t preferred, unsigned steps,
				     enum index_state *ret_state, struct err *err);

/* An index that is being built, for _active_tasks. Texts are in the arena. */
struct index_progress {
	struct str db_name;
	struct str owner;
	struct str name;
	uint64_t done;       /* documents passed */
	uint64_t total;      /* when the build began */
	uint64_t started_ms; /* since 1970 */
	uint64_t updated_ms;
};

/* At most `most` of them, of all databases. Snapshot reads. */
MUST_USE enum status index_progress_list(struct kv_tx *tx, size_t most, struct arena *arena,
					 struct index_progress **ret, size_t *ret_count);

/* ---- The chore (builder.c) ---- */

struct index_builder_options {
	struct kv_store *store;
	unsigned threads; /* that build side by side */
	/*
	 * The part of its time that each of them works, in percent, 1 to 100; it sleeps for the
	 * rest, so that others have the disk and the processor.
	 */
	unsigned percent;
};

#define INDEX_CHORE_BUILD "build_indexes"

/*
 * Adds the chore INDEX_CHORE_BUILD. The store outlives the registry. In its first turn the chore
 * also restarts the builds of indexes that were made with another version of the collation than
 * this process has.
 */
void index_chores_add(struct chores *chores, const struct index_builder_options *options);

/* ---- Work that is waiting (build_work.c) ---- */

/* Notes that the database has an index to be built or cleared. Reads nothing. */
MUST_USE enum status index_work_note(struct kv_tx *tx, const struct catalog_db *db);

/*
 * Notes it if the database has such an index: one to be built, to be begun anew or to be cleared.
 * For a description without an extension, of a database that was looked up or copied.
 */
MUST_USE enum status index_work_survey(struct kv_tx *tx, const struct catalog_db *db,
				       struct err *err);

/* A database with work. */
struct index_work_entry {
	enum catalog_space space;
	struct str db_name; /* in the arena */
	uint64_t db_number;
};

/* At most `most` of them behind `after` (a database's number; 0: from the first). */
MUST_USE enum status index_work_list(struct kv_tx *tx, uint64_t after, size_t most,
				     struct arena *arena, struct index_work_entry **ret,
				     size_t *ret_count);

MUST_USE enum status index_work_clear(struct kv_tx *tx, uint64_t db_number);

/* ---- Records of stretches (build_record.c) ---- */

struct index_build_record {
	struct str after; /* the last id that was passed; empty: none */
	struct str end;   /* the id at which the next stretch begins; empty: there is none */
	bool done;
	uint64_t passed; /* documents */
	uint64_t total;  /* documents of the database when the build began */
	uint64_t started_ms;
	uint64_t updated_ms;
	uint64_t violations;
	struct str examples; /* ids of documents that violate, as a JSON text without brackets */
};

void index_key_stretch(struct buf *key, const struct catalog_db *db, uint64_t number,
		       uint64_t stretch);
void index_build_record_put(struct buf *value, const struct index_build_record *record);
/* Texts are in the arena. STATUS_NEWER, explained; STATUS_CORRUPT; STATUS_LIMIT. */
MUST_USE enum status index_build_record_parse(struct str value, struct arena *arena,
					      struct index_build_record *ret, struct err *err);

/*
 * All stretches of a build. With `mode` KV_READ the transaction conflicts with its steps. Texts are
 * in the arena.
 */
MUST_USE enum status index_build_records(struct kv_tx *tx, const struct catalog_db *db,
					 uint64_t number, enum kv_read mode, struct arena *arena,
					 struct index_build_record ret[INDEX_BUILD_STRETCHES],
					 size_t *ret_count);

#endif
