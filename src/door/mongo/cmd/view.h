/*
 * Views: names of pipelines. A view is kept as a collection without documents, whose options have
 * `viewOn`, the name of a collection or of another view in its database, and `pipeline`, an array.
 * So whatever copies, checks and lists collections knows views, too.
 *
 * A command that reads is first run as for a collection. data_open() refuses a view with
 * MONGO_NOT_ON_VIEW (unless d->takes_views), and then the command is run again as a pipeline. So
 * reading a collection costs nothing more than without views.
 */
#ifndef FROND_DOOR_MONGO_CMD_VIEW_H
#define FROND_DOOR_MONGO_CMD_VIEW_H

#include "base/arena.h"
#include "door/mongo/txn/command.h"

enum {
	VIEW_DEPTH = 20,  /* views on views; likewise those that are open inside each other */
	VIEWS_MOST = 100, /* collections and views that one pipeline may come by */
};

/* A view, and the views below it. */
struct view {
	struct str ns;        /* "db.view" */
	struct str base;      /* "db.collection", which is none */
	struct str pipeline;  /* an array: from the collection's documents to those of the view */
	struct str collation; /* a document, or empty */
	int depth;            /* views below it, and itself */
};

/* The views that a pipeline reads, those that they read included. */
struct views {
	struct view *list;
	size_t count;
	struct str *known; /* names that were looked at */
	size_t known_count;
	struct str collation; /* of the first of them, if it is a collection; or empty */
};

/*
 * Looks at a name: if it is that of a view, adds that and what its pipeline reads. All lies in the
 * arena. Fails where views go on for too long, or read what the person may not.
 */
MUST_USE enum status views_add(struct views *v, struct call *c, struct arena *arena, struct str ns);
/* The same for what a pipeline reads beside its own collection, which is one of the database. */
struct mql_pipeline;
MUST_USE enum status views_add_reads(struct views *v, struct call *c, struct arena *arena,
				     const struct mql_pipeline *p, struct str db);
/* NULL: it is no view. */
const struct view *views_find(const struct views *v, struct str ns);

/* Two arrays of stages as one, in the arena. */
MUST_USE enum status view_concat(struct str first, struct str second, struct arena *arena,
				 struct str *ret);

/* ---- Making them ---- */

/* Members of `create` and `collMod` that are for a view. */
struct view_ask {
	struct str on; /* ptr NULL: it was not given */
	struct str pipeline;
	struct str collation; /* with all its members; or empty */
};

/* True in `*ret_known` for such a member, which is then read. */
MUST_USE enum status view_read(struct call *c, const struct bson_element *e, struct view_ask *ask,
			       bool *ret_known);
/* Checks what was asked for; the view's options, in the call's arena. */
MUST_USE enum status view_options(struct call *c, const struct view_ask *ask, struct str *ret);
/* Another view's options, with the collation that the view has. */
MUST_USE enum status view_options_keep(struct call *c, struct str old, struct str options,
				       struct str *ret);
/* Fails for a view that would read itself. Not in a transaction. */
MUST_USE enum status view_check(struct call *c, const struct view_ask *ask);

/* ---- Reading them (cmd_view.c) ---- */

struct aggregate;
/* Its documents that match the command's `query`. mongo_aggregate_free() also after a failure. */
MUST_USE enum status view_query(struct call *c, struct str ns, struct aggregate **ret);
MUST_USE enum status view_find(struct call *c, struct str ns);
MUST_USE enum status view_count(struct call *c, struct str ns, uint64_t *ret);

#endif
