/* Texts of expressions: their limit, and other types as texts. */
#ifndef FROND_MQL_EXPR_TEXT_H
#define FROND_MQL_EXPR_TEXT_H

#include "mql/expr/expr_int.h"

enum {
	MQL_STRING_BYTES = 16 << 20, /* a string is shorter than this */
};

/* A string that borrows the bytes; fails if there are MQL_STRING_BYTES of them or more. */
MUST_USE enum status mql_expr_text(struct mql *q, struct str text, struct bson_value *ret);
/* Keeps a buffer's bytes in the arena, as a string; releases the buffer. */
MUST_USE enum status mql_expr_keep_text(struct mql *q, struct buf *b, struct bson_value *ret);

/* As a text for $toLower, $substr, $strcasecmp: numbers, dates; "" of what is null or missing. */
MUST_USE enum status mql_expr_coerce_text(struct mql *q, const struct bson_value *v,
					  struct str *ret);

/* "2024-01-31T10:20:30.123Z"; fails for years that do not have up to four digits. */
MUST_USE enum status mql_expr_date_text(struct mql *q, int64_t ms, struct str *ret);

/* A number towards 0, a Decimal128 to the nearest; MongoDB's 31109 where no int64_t holds it. */
MUST_USE enum status mql_expr_coerce_long(struct mql *q, const struct bson_value *v, int64_t *ret);

/* Bytes of the character that the text begins with, at least 1 unless it is empty. */
size_t mql_char_bytes(struct str text);
size_t mql_count_chars(struct str text);

#endif
