/* What files of values share. */
#ifndef FROND_CQL_VALUE_INT_H
#define FROND_CQL_VALUE_INT_H

#include "cql/value.h"

/* Magnitude and sign of two's complement; `scratch` has CQL_VARINT_BYTES. */
void cql_varint_scalar(struct str bytes, char *scratch, struct doc_scalar *ret);

/* Appends the key of a decimal; as doc_key_put(). */
MUST_USE enum status cql_decimal_put_key(struct buf *key, struct str bytes);

#endif
