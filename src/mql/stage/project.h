/*
 * Projections: which members of a document go on, and what is computed beside them.
 *
 * One kind of tree does for `find`'s projections and for the stages $project, $addFields and
 * $unset. A projection includes members, or excludes them, or adds to all of them.
 */
#ifndef FROND_MQL_PROJECT_H
#define FROND_MQL_PROJECT_H

#include "mql/expr/expr.h"
#include "mql/match/match.h"

struct mql_projection;

/*
 * A projection of find: also $slice, $elemMatch and "a.$". `filter` is the query's, or NULL where
 * "a.$" has no query to tell an element.
 */
MUST_USE enum status mql_projection_compile(struct mql *q, struct str spec,
					    const struct mql_match *filter,
					    const struct mql_scope *scope,
					    struct mql_projection **ret);

/* The stages. $unset takes a name or an array of names. */
MUST_USE enum status mql_projection_compile_project(struct mql *q, const struct bson_value *spec,
						    const struct mql_scope *scope,
						    struct mql_projection **ret);
MUST_USE enum status mql_projection_compile_set(struct mql *q, struct str stage,
						const struct bson_value *spec,
						const struct mql_scope *scope,
						struct mql_projection **ret);
MUST_USE enum status mql_projection_compile_unset(struct mql *q, const struct bson_value *spec,
						  struct mql_projection **ret);

/*
 * `position` is what mql_match_run() has told, and `let` has the values of the scope. The document
 * that is returned lies in the arena of `q`.
 */
MUST_USE enum status mql_projection_run(const struct mql_projection *p, struct mql *q,
					struct str doc, int64_t position,
					const struct mql_bound *let, struct str *ret);

/* Adds the paths that the projection looks at; names are made in the arena of `q`. */
MUST_USE enum status mql_projection_paths(const struct mql_projection *p, struct mql *q,
					  struct mql_paths *ret);

/*
 * True if a member of that name goes through the projection unchanged, whatever is in it: a filter
 * on its paths may be asked before the projection as well.
 */
bool mql_projection_keeps(const struct mql_projection *p, struct str name);

#endif
