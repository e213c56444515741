/*
 * $accumulator: an accumulator whose functions are JavaScript. A state is the text that the
 * function has answered last, and the arguments of the calls that wait: they are made together.
 */
#ifndef FROND_MQL_ACCUM_SCRIPT_H
#define FROND_MQL_ACCUM_SCRIPT_H

#include "mql/expr/script.h"

enum {
	/* Calls of accumulate() that wait in one group, and the text of their arguments. */
	MQL_ACCUM_CALLS = 1000,
	MQL_ACCUM_BYTES = 16 * 1024,
};

struct mql_accum_script {
	const struct mql_script *script;
	struct mql_expr *init_args; /* NULL: none */
	struct mql_expr *args;
};

/* A text in an arena, whose memory is used again. */
struct mql_accum_text {
	char *ptr;
	size_t len, cap;
};

struct mql_accum_script_state {
	struct mql_accum_text state; /* or, before the first call, the arguments of init() */
	struct mql_accum_text calls; /* that wait: JSON arrays with commas between them */
	size_t count;
	bool begun; /* `state` is one */
};

/* `spec` is the value of $accumulator. */
MUST_USE enum status mql_accum_script_compile(struct mql *q, const struct bson_value *spec,
					      const struct mql_scope *scope,
					      struct mql_accum_script *ret);
/* States lie in `keep`; STATUS_LIMIT: it is full. */
MUST_USE enum status mql_accum_script_begin(const struct mql_accum_script *a, struct mql *q,
					    const struct mql_env *env, struct arena *keep,
					    struct mql_accum_script_state *s);
MUST_USE enum status mql_accum_script_take(const struct mql_accum_script *a, struct mql *q,
					   const struct bson_value *args, struct arena *keep,
					   struct mql_accum_script_state *s);
MUST_USE enum status mql_accum_script_end(const struct mql_accum_script *a, struct mql *q,
					  const struct mql_accum_script_state *s,
					  struct bson_value *ret);

#endif
