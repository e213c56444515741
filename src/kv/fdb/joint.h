/*
 * Views that several transactions read in, what these note meanwhile, and how several of them are
 * committed as one. Private to kv/fdb/.
 */
#ifndef FROND_KV_FDB_JOINT_H
#define FROND_KV_FDB_JOINT_H

#include "kv/fdb/fdb_int.h"

enum {
	FDB_NOTES_BYTES = 64 * 1024,     /* of a transaction */
	FDB_NOTES_KEPT_BYTES = 8 * 1024, /* of their memory, for the next transaction */

	FDB_JOINTS_UNDER_WAY = 4, /* at which others wait and join */
	FDB_JOINT_MEMBERS = 64,
	FDB_JOINT_BEHIND = 64,         /* that wait for its result; others are committed alone */
	FDB_JOINT_BYTES = 1024 * 1024, /* of the members' notes */
	FDB_JOINT_KEYS_FIRST = 64,
	FDB_JOINT_KEYS = 4096, /* that the members write */
	FDB_JOINT_RANGES = 64, /* likewise */
	FDB_JOINT_ORDERS = UINT16_MAX + 1,
	FDB_JOINT_APART = 100000, /* versions, of which there are a million in a second */
	FDB_FOLD_SLOTS = 64,      /* keys; what others get is done at once */
	FDB_FOLD_TABLE = 256,     /* more than these, so that a search ends */

	FDB_JOINT_WAIT_MS = 100,
	FDB_JOINT_DOUBTED = 16, /* transactions alone, after a refusal */
};

/* ---- Views (view.c) ---- */

/*
 * A read version that several transactions share, which have begun at nearly the same time, and the
 * transaction of the library's in which they read. The last of them to end gives it back.
 */
struct fdb_view {
	struct fdb_store *store;
	_Atomic uint32_t refs;
	FDBTransaction *tx; /* NULL once fdb_view_take_library() has given it away */
	uint64_t version;
	uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES];
};

/* With one reference, which is the caller's. STATUS_NOMEM, and what the library says. */
MUST_USE enum status fdb_view_new(struct fdb_store *store, struct fdb_view **ret);
void fdb_view_unref(struct fdb_view *view);

/*
 * For a transaction that commits: gives the caller the library's transaction of its view. NULL if
 * other transactions read in that view.
 */
FDBTransaction *fdb_view_take_library(struct fdb_tx *tx);

/*
 * Takes a transaction of the library's at that read version. With `reads_first` nothing is read in
 * it after a write, so the library does without what shows it its own writes. STATUS_NOMEM, and
 * what the library says.
 */
MUST_USE enum status fdb_view_library(uint64_t version, bool reads_first, struct fdb_store *store,
				      FDBTransaction **ret);

/*
 * Goes on at the same version in a library's transaction of its own, where it shares one. What it
 * has noted is done there.
 */
MUST_USE enum status fdb_view_leave(struct fdb_tx *tx);

/* Has it read and write in `library`; `shares`: so do others. */
void fdb_tx_put_library(struct fdb_tx *tx, FDBTransaction *library, bool shares);

/* ---- Notes of a transaction (notes.c) ---- */

enum fdb_note_kind {
	FDB_NOTE_SET,
	FDB_NOTE_SET_NO_CONFLICT,
	FDB_NOTE_CLEAR,
	FDB_NOTE_CLEAR_RANGE,
	FDB_NOTE_MUTATION,
	FDB_NOTE_READ_CONFLICT,
	FDB_NOTE_WRITE_CONFLICT,
};

/* With the parameters that the library's function for it has; keys as the cluster has them. */
struct fdb_note {
	enum fdb_note_kind kind;
	int mutation; /* FDB_MUTATION_ADD and so on */
	struct str first;
	struct str second;
};

/* True if there is room for a note whose two texts have so many bytes together. */
bool fdb_notes_fit(const struct fdb_tx *tx, size_t bytes);

/* Reserves room for a note that is added later, and gives the room back before it is. */
void fdb_notes_owe(struct fdb_tx *tx, size_t bytes);
void fdb_notes_pay(struct fdb_tx *tx, size_t bytes);

/* Keeps a copy. STATUS_NOMEM. */
MUST_USE enum status fdb_notes_add(struct fdb_tx *tx, struct fdb_note note);
MUST_USE enum status fdb_notes_add_key_conflict(struct fdb_tx *tx, struct str key);

/* Waits for the ranges that were asked for, and notes what of them it conflicts with. */
MUST_USE enum status fdb_tx_note_ranges(struct fdb_tx *tx);

/* The first of `rest`, which begins with all of a transaction's; false: there is none. */
bool fdb_notes_next(struct str *rest, struct fdb_note *ret);

/* What lies before the stamp in a template, which ends with the stamp's place. */
struct str fdb_note_before_stamp(struct str template);

/* Adds a number to the order of each stamp in the notes. */
void fdb_notes_raise_orders(struct fdb_tx *tx, uint32_t by);

/*
 * These return the library's code. The second adds the read conflict with the metadata version to
 * the transaction's notes, since all that read in views have one; the third is that conflict alone.
 */
int fdb_note_do(FDBTransaction *tx, const struct fdb_note *note);
int fdb_notes_do(struct fdb_tx *tx, FDBTransaction *library);
int fdb_notes_do_metadata(FDBTransaction *library);

/* ---- What several transactions change at one key (fold.c) ---- */

struct fdb_fold_slot {
	struct fdb_note note; /* what is to be done, if `pending`; `first` is the slot's key */
	bool pending;
	uint8_t number[FDB_NUMBER_BYTES]; /* the note's second text, but of a stamp */
};

struct fdb_fold {
	FDBTransaction *tx;
	struct fdb_fold_slot slots[FDB_FOLD_SLOTS];
	size_t count;
	uint8_t table[FDB_FOLD_TABLE]; /* by keys: the number of a slot, from 1 on; 0: none */
};

/*
 * Notes are then done in `tx` one after the other, or put off until fdb_fold_end(), before which
 * their texts must stay where they are. Both return the library's code.
 */
void fdb_fold_init(struct fdb_fold *fold, FDBTransaction *tx);
int fdb_fold_note(struct fdb_fold *fold, const struct fdb_note *note);
int fdb_fold_end(struct fdb_fold *fold);

/* ---- Commits of several transactions (joint.c) ---- */

/* True if a transaction that has written can be committed with others, now. */
bool fdb_joint_takes(struct fdb_tx *tx);

/* Completes tx->commit sooner or later, with others' or not. */
void fdb_joint_commit(struct fdb_tx *tx);

/*
 * Commits those that have waited for others' commits for FDB_JOINT_WAIT_MS. For a thread that calls
 * this now and then: what the cluster does not answer holds up nobody else for long.
 */
void fdb_joint_hurry(struct fdb_store *store, uint64_t now_ns);

/* NULL is fine. */
void fdb_joint_unref(struct fdb_joint *j);

/* That it was committed in. */
FDBTransaction *fdb_joint_library(const struct fdb_joint *j);

#endif
