/* Numerics (number.c), for kind.c. */
#ifndef FROND_DOOR_ROWS_WIRE_KIND_INT_H
#define FROND_DOOR_ROWS_WIRE_KIND_INT_H

#include "door/rows/wire/kind.h"

bool rows_numeric_check(struct str text);
void rows_numeric_put(struct str text, struct buf *out);
MUST_USE enum status rows_numeric_read(struct str ordered, struct buf *out);

#endif
