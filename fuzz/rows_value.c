/*
 * Any bytes as a value of a kind of rows, and as ordered bytes: a value has ordered bytes that give
 * an equal one, and what is read as ordered bytes has them again.
 */
#include <stdlib.h>

#include "door/rows/wire/kind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
read_value(enum rows_kind kind, struct str value)
{
	struct buf ordered = BUF_SHORT(ROWS_ORDERED_BYTES), back = BUF_SHORT(ROWS_ORDERED_BYTES);

	if (rows_value_check(kind, value) && rows_kind_is_key(kind)) {
		if (rows_ordered_put(kind, value, &ordered) != STATUS_OK ||
		    rows_ordered_read(kind, buf_str(&ordered), &back) != STATUS_OK ||
		    !rows_value_check(kind, buf_str(&back)))
			abort();
	}
	buf_release(&ordered);
	buf_release(&back);
}

static void
read_ordered(enum rows_kind kind, struct str bytes)
{
	struct buf value = BUF_SHORT(ROWS_ORDERED_BYTES), again = BUF_SHORT(ROWS_ORDERED_BYTES);

	if (rows_ordered_read(kind, bytes, &value) == STATUS_OK) {
		if (!rows_value_check(kind, buf_str(&value)) ||
		    rows_ordered_put(kind, buf_str(&value), &again) != STATUS_OK ||
		    !str_eq(buf_str(&again), bytes))
			abort();
	}
	buf_release(&value);
	buf_release(&again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum rows_kind kind;

	if (!size)
		return 0;
	kind = (enum rows_kind)(data[0] % (ROWS_KINDS + 1));
	read_value(kind, str_of(data + 1, size - 1));
	read_ordered(kind, str_of(data + 1, size - 1));
	return 0;
}
