/*
 * Accumulators: {$sum: "$price"} over the documents of a group or a window.
 *
 * A state lies in an arena, which it takes memory from as it grows. Values are copied into it.
 */
#ifndef FROND_MQL_ACCUM_H
#define FROND_MQL_ACCUM_H

#include "mql/expr/expr.h"
#include "mql/sort.h"

struct mql_accumulator;
struct mql_accumulator_state;

/*
 * `spec` is a document such as {$sum: "$price"}, and `field` is its name in the answer. Windows
 * have some operators that groups have not; those are the window's own.
 */
MUST_USE enum status mql_accumulator_compile(struct mql *q, struct str field,
					     const struct bson_value *spec,
					     const struct mql_scope *scope,
					     struct mql_accumulator **ret);

/* True if there is an accumulator of that name, "$sum". */
bool mql_accumulator_is(struct str name);

size_t mql_accumulator_bytes(void);

/*
 * A state of mql_accumulator_bytes(). `env` is what the number of $firstN and its kin may depend
 * on: the group's `_id` as the root. `keep` is the state's arena; STATUS_LIMIT: it is full.
 */
MUST_USE enum status mql_accumulator_begin(const struct mql_accumulator *a, struct mql *q,
					   const struct mql_env *env, struct arena *keep,
					   struct mql_accumulator_state *state);

/*
 * The two halves of mql_accumulator_add(): what it needs of a document, which lies in the document
 * or in the arena of `q`, and taking that.
 */
MUST_USE enum status mql_accumulator_read(const struct mql_accumulator *a, struct mql *q,
					  const struct mql_env *env, struct bson_value *ret_value,
					  struct bson_value *ret_key);
MUST_USE enum status mql_accumulator_take(const struct mql_accumulator *a, struct mql *q,
					  const struct bson_value *value,
					  const struct bson_value *key, struct arena *keep,
					  struct mql_accumulator_state *state);

/*
 * Takes a document. `keep` is the arena of the state; that of `q` is for the moment. STATUS_LIMIT:
 * `keep` is full.
 */
MUST_USE enum status mql_accumulator_add(const struct mql_accumulator *a, struct mql *q,
					 const struct mql_env *env, struct arena *keep,
					 struct mql_accumulator_state *state);

/* The result lies in the arena of `q`, or in the state. It may be MQL_MISSING for none. */
MUST_USE enum status mql_accumulator_end(const struct mql_accumulator *a, struct mql *q,
					 const struct mql_accumulator_state *state,
					 struct bson_value *ret);

/* Puts the result into a document under the name, if there is one. */
MUST_USE enum status mql_accumulator_put(const struct mql_accumulator *a, struct mql *q,
					 const struct mql_accumulator_state *state, struct str name,
					 struct bson_builder *b);

/* A copy of a value in an arena. STATUS_LIMIT: the arena is full. */
MUST_USE enum status mql_value_keep(struct arena *arena, const struct bson_value *v,
				    struct bson_value *ret);

#endif
