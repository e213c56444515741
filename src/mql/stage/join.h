/* What stages that read other collections share. */
#ifndef FROND_MQL_STAGE_JOIN_H
#define FROND_MQL_STAGE_JOIN_H

#include "mql/stage/stages_int.h"

/* A collection, and what is done with its documents. */
struct mql_join {
	struct str db; /* empty: that of the command */
	struct str collection;
	const struct mql_pipeline *pipeline; /* NULL: none */
};

/* Reads `from`. */
MUST_USE enum status mql_join_from(struct mql_stages *c, struct mql_join *j, struct str stage,
				   const struct bson_value *v);

/* {path: {$in: values}}; `regex`: there are regular expressions, which are to be compared only. */
MUST_USE enum status mql_join_filter(struct mql *q, struct str path, struct str values, bool regex,
				     struct str *ret);

/* Opens the documents that match a filter; in the stage's scratch memory, which has to stay. */
MUST_USE enum status mql_join_open(struct mql_stage_run *r, const struct mql_join *j,
				   struct str filter, const struct mql_bound *bound,
				   struct mql_source **ret);

/* The values of a stage's variables for a document, in front of those around the stage. */
MUST_USE enum status mql_join_let(struct mql_stage_run *r, struct mql_expr *const *let,
				  size_t count, struct str doc, const struct mql_bound **ret);

#endif
