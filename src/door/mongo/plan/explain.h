/*
 * Plans as clients are told of them, in the shape that MongoDB draws: stages inside each other, the
 * one that reads innermost.
 *
 * What is drawn lies in the call's arena, so a query may be run, and closed, between drawing its
 * plan and telling what it has read.
 */
#ifndef FROND_DOOR_MONGO_PLAN_EXPLAIN_H
#define FROND_DOOR_MONGO_PLAN_EXPLAIN_H

#include "door/mongo/plan/query.h"

enum {
	EXPLAIN_STAGES = 10, /* of a tree */
};

/* A stage, and once it was run, what it has done. */
struct explain_stage {
	struct str fixed;  /* a document: its name and what is known of it before */
	uint64_t returned; /* documents, or entries */
	uint64_t keys, docs;
	bool has_keys, has_docs;
	const char *counter; /* the name of: */
	uint64_t counted;    /* what it counts; `counter` NULL: nothing */
};

struct explain_tree {
	struct call *call;
	struct explain_stage stages[EXPLAIN_STAGES]; /* the innermost one first */
	size_t count;
	struct str projection; /* of a find, which an index may do; or empty */
	bool by_id;            /* documents come by the index of `_id`: each has taken an entry */
	struct buf out;
	struct bson_builder b; /* of a stage that is being drawn */
};

/* The caller's until explain_fini(). */
void explain_init(struct explain_tree *t, struct call *c);
void explain_fini(struct explain_tree *t);

/* Draws a stage: its other members are put into `t->b` between the two. */
void explain_begin(struct explain_tree *t, const char *stage);
MUST_USE enum status explain_end(struct explain_tree *t);

/* The stages that read. `q` was planned; `fast`: it is a find by nothing but an `_id`. */
MUST_USE enum status explain_query(struct explain_tree *t, const struct query *q, bool by_id_order,
				   bool fast);

/* Sets the figures of the stages that read. */
void explain_count(struct explain_tree *t, const struct plan_figures *f);

/* Appends the tree as a member. `ran`: with figures. */
void explain_put(const struct explain_tree *t, struct bson_builder *b, struct str name, bool ran);

#endif
