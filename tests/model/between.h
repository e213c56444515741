/*
 * What one request does between the reads and the commit of another. A world is a database with a
 * few documents; an operation is what a request does there. between_cross() interrupts each of some
 * operations by each of others: the outcome has to be the one that the two have one after another,
 * the interrupting one first, since it commits first.
 */
#ifndef FROND_TESTS_MODEL_BETWEEN_H
#define FROND_TESTS_MODEL_BETWEEN_H

#include "fixture.h"

enum {
	BETWEEN_FILLERS = 10, /* documents "f0", "f1", … of one revision "1-f" */
	BETWEEN_SAID_BYTES = 64 * 1024,
};

struct between_world {
	struct fixture *f;
	char name[16]; /* of the database */
	unsigned worlds;
	struct catalog_db *known; /* a description that is old; NULL: there is none */
	uint64_t ready;           /* the number of an index that is kept */
	uint64_t building;        /* of one that is being built; 0: none is */
	bool checked;             /* also as soon as the second operation commits again */
	struct rev_upload *upload;
	struct rev_att_edit staged; /* what has been uploaded */
	struct buf said[2];         /* what the two operations have answered */
};

struct between_call;

typedef enum status between_body(struct between_call *c, struct kv_tx *tx,
				 const struct catalog_db *db);

/* What a request does. */
struct between_op {
	const char *name;
	/* Runs all of it, and says what it answers, nothing that another run may say otherwise. */
	void (*run)(struct between_world *w, const struct between_op *op, struct buf *said);
	const char *id;
	const char *rev; /* the parent, or the history of a copy */
	const char *json;
	const char *more; /* the history of another copy in the same transaction */
	/* What `note` reads and writes down. */
	enum status (*read)(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db,
			    struct buf *out);
};

/* The one transaction of an operation. */
struct between_call {
	struct between_world *w;
	const struct between_op *op;
	struct buf *said;
	between_body *body;
};

/* Runs it as a request does: it opens the database in the transaction that works on it. */
void between_call(struct between_world *w, const struct between_op *op, struct buf *said,
		  between_body *body);

/* Runs the body, whose argument is the world, in a transaction that has to succeed. */
void between_run(struct between_world *w, enum status (*body)(struct kv_tx *tx, void *arg));

/* The database as it is now, for what comes. */
void between_reopen(struct between_world *w);

/* Creates an index by the member "n" in the transaction. */
MUST_USE enum status between_index(struct kv_tx *tx, const struct catalog_db *db, uint32_t flags,
				   enum index_state state, uint64_t *ret_number);

/* Does some steps of the build of an index. */
enum index_state between_build(struct between_world *w, uint64_t number, unsigned steps);

/* An attachment with its data, under a new id; the texts are borrowed. */
struct rev_att_edit between_att(const char *name, const char *data);

/*
 * Interrupts each of the `seconds` by each of the `firsts`, before each of its commits that writes,
 * in a world of their own that `prepare` (or NULL) has changed. Fails the test if an outcome is
 * wrong, or if the database is.
 */
void between_cross(struct fixture *f, void (*prepare)(struct between_world *w),
		   const struct between_op *firsts, size_t firsts_count,
		   const struct between_op *seconds, size_t seconds_count);

#endif
