/* What the files of mql/ share. */
#ifndef FROND_MQL_MQL_INT_H
#define FROND_MQL_MQL_INT_H

#include "loop/step.h"
#include "mql/mql.h"

/* Records a failure of the client's; the value is STATUS_INVALID. */
#define mql_fail(q, number, ...)                                                                   \
	({                                                                                         \
		(q)->code = (number);                                                              \
		err_set((q)->err, STATUS_INVALID, __VA_ARGS__);                                    \
	})

/* Why the arena gave no memory. Inline, so that the compiler sees that it is never STATUS_OK. */
MUST_USE static inline enum status
mql_full(struct mql *q)
{
	if (arena_is_starved(q->arena))
		return STATUS_NOMEM;
	return err_set(q->err, STATUS_LIMIT, "the memory of an operation, %zu bytes, is used up",
		       arena_limit_bytes(q->arena));
}

/* Refuses what MongoDB has, and frond has not. */
MUST_USE enum status mql_refuse(struct mql *q, struct str name);

/*
 * A value as MongoDB's errors show it, cut to MQL_TEXT_BYTES; with a name in front of it
 * ("$size: -1") unless that is empty. "" when the arena is full.
 */
const char *mql_text(struct mql *q, struct str name, const struct bson_value *v);

/* A buffer's bytes into the arena; releases the buffer. The buffer's failure is returned. */
MUST_USE enum status mql_keep(struct mql *q, struct buf *b, struct str *ret);

/* True if `name` is a position in an array: digits, without zeros in front. */
bool mql_is_position(struct str name, uint32_t *ret);

static inline bool
mql_is(struct str name, const char *text)
{
	return str_eq(name, str_from_cstr(text));
}

/* "name of a type" of a value, as errors have it; "missing" for NULL. */
static inline const char *
mql_type_name(const struct bson_value *v)
{
	return v ? bson_type_name(v->type) : "missing";
}

#endif
