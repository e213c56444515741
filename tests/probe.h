/*
 * Operations probed: how one answers when a call of the store fails, when its memory ends, and when
 * a value that it reads is cut or changed; and by what it conflicts with others.
 *
 * Each probe is a line of text, which the test compares with the one that it knows:
 *
 *     ok, conflicts 3 1+2; despite 4=ok; 1: CO/CO~ 2: C/C
 *
 * The operation's status. How many of its reads conflict with a change, and how many read and write
 * conflict ranges it adds. `despite`: failures that it does not hand on: of the fourth call, and
 * what it returned then; of its memory (`arena`), and the statuses that it returned; of the seventh
 * allocation (`allocation 7=ok`), where each one that an arena serves counts, too. Without such a
 * part each failing call ends the operation with that call's own status, and full memory ends it
 * with STATUS_LIMIT. A failed allocation ends it with STATUS_NOMEM or STATUS_LIMIT, or changes
 * nothing of what it does.
 *
 * Then the values that it reads. Left of the slash each is cut, at every length from 0 on; on the
 * right each of its bytes is inverted. A letter stands for all neighbours with the same outcome: O
 * is the outcome without the damage, ~ is STATUS_OK with other results, C is STATUS_CORRUPT, N
 * NEWER, I INVALID, L LIMIT, 0 NOT_FOUND, and ? anything else. What values that follow each other
 * have in common is said once, "1-5: …".
 *
 * So a line is a small specification: a record that has a C behind an O is read beyond its end, and
 * an operation that has lost a conflict range has another number. When it changes for a reason,
 * take over the line that the test prints, and read it.
 */
#ifndef FROND_TESTS_PROBE_H
#define FROND_TESTS_PROBE_H

#include "base/arena.h"
#include "base/buf.h"
#include "kv/kv.h"

struct kv_faulty_tap;

struct probe {
	struct kv_store *store;
	struct kv_tx *tx; /* which is never committed; NULL for operations that have their own */
	struct arena *arena;
	void *world;     /* the caller's */
	struct buf said; /* what the operation has found, so that other results are noticed */
	struct err err;
	struct kv_faulty_tap *tap; /* private */
	uint64_t failing;          /* private: the allocation that fails; 0: none does */
};

struct probe_op {
	const char *name;
	enum status (*run)(struct probe *p); /* calls probe_begin(), once, and does it */
	const char *line;
};

/* From here on the operation's calls count and fail: what was before is not probed. */
void probe_begin(struct probe *p);

/* Runs the check of the whole store (catalog/verify.h): what it has found is said. For a table. */
enum status probe_verify(struct probe *p);

/* Makes a store for probes beneath the directory: without faults but for those of the probes. */
void probe_store_url(const char *path, char *ret, size_t size);

/* Probes each in a transaction that is dropped. Fails the test if a line is another one. */
void probe_each(struct kv_store *store, void *world, const struct probe_op *ops, size_t count);

/* The same of operations that read much: all values are damaged, not only the first twelve. */
void probe_each_throughout(struct kv_store *store, void *world, const struct probe_op *ops,
			   size_t count);

/* The same of operations that read other values in each run: these are not damaged. */
void probe_each_undamaged(struct kv_store *store, void *world, const struct probe_op *ops,
			  size_t count);

/*
 * The same of operations with transactions of their own: before each run `prepare`, which may be
 * NULL, brings the world back to what it was.
 */
void probe_each_alone(struct kv_store *store, void *world, void (*prepare)(void *world),
		      const struct probe_op *ops, size_t count);

/* The same, and no values are damaged. */
void probe_each_alone_undamaged(struct kv_store *store, void *world, void (*prepare)(void *world),
				const struct probe_op *ops, size_t count);

/*
 * What a check finds in a store of which one pair is lost, or which has one that nobody wrote: with
 * the key of another and one more element behind it, and the same value. Each pair in turn, in the
 * order of keys; neighbours with the same outcome are one, "1-5: ~ 6: O". Fails the test if a line
 * is another one.
 */
void probe_pairs(struct kv_store *store, void *world, const struct probe_op *check,
		 const char *lost, const char *foreign);

#endif
