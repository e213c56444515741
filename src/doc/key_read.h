/*
 * Keys of values (key.h), read back: the components of rows, each in the order of its own type.
 *
 * Plain functions on the caller's memory.
 */
#ifndef FROND_DOC_KEY_READ_H
#define FROND_DOC_KEY_READ_H

#include "base/arena.h"
#include "doc/key.h"

/*
 * Reads the component of DOC_KEY_TYPED that `key` begins with, and returns its length. The texts of
 * the scalar are in the arena. A number other than a double or a float comes back by its value
 * alone: as an INT64 if that holds it, else as an INTEGER of up to 600 digits, else as a DECIMAL
 * without zeros at its end. NaN and the infinities of a decimal128 come back as a decimal128, and a
 * symbol as a text. All other kinds come back as they were put. The key of what was read is the
 * component again.
 *
 * STATUS_INVALID for a component of a kind that rows do not have: a container, or what BSON alone
 * knows. STATUS_CORRUPT for bytes that doc_key_put() does not write. STATUS_LIMIT when the arena is
 * full; STATUS_NOMEM.
 */
MUST_USE enum status doc_key_read(struct str key, bool descending, struct arena *arena,
				  struct doc_scalar *ret, size_t *ret_len);

#endif
