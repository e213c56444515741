/*
 * A database in a store of its own, short ways to edit it, and a check of everything that must hold
 * between its subspaces.
 */
#ifndef FROND_TESTS_MODEL_FIXTURE_H
#define FROND_TESTS_MODEL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "index/engine/update.h"
#include "kv/kv.h"
#include "model/revisioned/revisioned.h"
#include "store.h"

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct kv_store *calm; /* the same without the faults that `store` may have */
	struct catalog_db *db;
	struct arena *arena;     /* lives as long as the test */
	struct kv_tx_stats cost; /* of the last edit */
};

/* cmocka's setup and teardown of one test: `*state` is a struct fixture. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

/* From now on the test's database is a partitioned one, "parts", which is made. */
void fixture_make_partitioned(struct fixture *f);

/* Of new databases: what FROND_TEST_SCHEME says. */
enum rev_scheme fixture_scheme(void);

/* Creates an index; f->db is replaced by a description that has it. */
void fixture_index(struct fixture *f, const struct index_def *terms);

/* The database's description as it is now; f->db is replaced. */
void fixture_reopen(struct fixture *f);

/* "3-abc": an opaque or hexadecimal hash. */
struct rev_id fixture_rev(struct fixture *f, const char *text);

/* As rev_id_write() shows it, NUL-terminated. */
const char *fixture_text(struct fixture *f, struct rev_id rev);

/* In leaves or packed, by its length: the model copes with both, whatever the scheme. */
struct doc fixture_doc(struct fixture *f, const char *json);

/* An interactive edit; `parent` NULL: none; `json` NULL: a deletion. */
struct rev_edit fixture_edit(struct fixture *f, const char *id, const char *parent,
			     const char *json);

/* A replicated one: `history` is "3-c b a", newest first. */
struct rev_edit fixture_copy(struct fixture *f, const char *id, const char *history, bool deleted,
			     const char *json);

/* One transaction for all of them; the transaction itself must succeed. */
void fixture_write(struct fixture *f, const struct rev_edit *edits, size_t count,
		   struct rev_result *ret_results);

/* Edits that must succeed: the new revision's text. */
const char *fixture_put(struct fixture *f, const char *id, const char *parent, const char *json);
const char *fixture_delete(struct fixture *f, const char *id, const char *parent);
const char *fixture_replicate(struct fixture *f, const char *id, const char *history, bool deleted,
			      const char *json);
/* Of one interactive edit. */
enum status fixture_try(struct fixture *f, const char *id, const char *parent, const char *json);

/* The branches, winner first: "2-b! 2-a 3-c#": ! the winner, # deleted, with ancestors if `full`:
 * "2-b(1-a)!". Empty when there are none. */
const char *fixture_tree(struct fixture *f, const char *id, bool full);

/* The winner's body as JSON; "deleted" or "missing". */
const char *fixture_body(struct fixture *f, const char *id);

/* A leaf's body as JSON; "missing". */
const char *fixture_leaf(struct fixture *f, const char *id, const char *rev, bool deleted);

/* The changes, oldest first: "a 2-x#, b 1-y" where # is a deleted winner. */
const char *fixture_changes(struct fixture *f);

/* A transaction that reads without faults; the caller frees it. */
struct kv_tx *fixture_begin(struct fixture *f);
/* Every change, however many. */
struct rev_change_range fixture_all_changes(void);

/* Checks the whole database (see fixture_check.c); fails the test if anything is wrong. */
void fixture_check(struct fixture *f);

#endif
