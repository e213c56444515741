#ifndef FROND_TESTS_MODEL_TIMED_TABLES_RANDOM_TABLE_H
#define FROND_TESTS_MODEL_TIMED_TABLES_RANDOM_TABLE_H

/* The table of the random tests, and its long values, for which a model has numbers. */
#include <string.h>

#include "model/timed/tables/row.h"

enum {
	LONG_EVERY = 6, /* of so many values one lies in pieces */
	LONG_MOST = 250 * 1000,
	LONG_CHANGES = 16, /* of a write, at most */
};

#define TEXT(literal)                                                                              \
	{                                                                                          \
		"" literal, sizeof(literal) - 1                                                    \
	}

/* (h, first, second descending): a static column and a static map; v, w, a map and a list. */
static const struct table_column columns[] = {
	{ .name = TEXT("h"), .kind = TABLE_HASH },
	{ .name = TEXT("first"), .kind = TABLE_RANGE },
	{ .name = TEXT("second"), .kind = TABLE_RANGE, .descending = true },
	{ .name = TEXT("s"), .kind = TABLE_STATIC },
	{ .name = TEXT("sm"), .kind = TABLE_STATIC, .storage = TABLE_MAP },
	{ .name = TEXT("v"), .kind = TABLE_REGULAR },
	{ .name = TEXT("w"), .kind = TABLE_REGULAR },
	{ .name = TEXT("m"), .kind = TABLE_REGULAR, .storage = TABLE_MAP },
	{ .name = TEXT("l"), .kind = TABLE_REGULAR, .storage = TABLE_LIST },
};

enum {
	FIRST = 2,
	S = 4,
	SM,
	V,
	W,
	M,
	L,
};

/* ---- Values in pieces ---- */

/* The bytes of the value that a number stands for; 0: it is short. They begin and end with it. */
static inline size_t
long_bytes(int64_t n)
{
	return n % LONG_EVERY ? 0 : 95000 + (size_t)n * 7919 % (LONG_MOST - 95000);
}

static inline struct doc_scalar
long_value(int64_t n, char room[LONG_MOST])
{
	size_t len = long_bytes(n);

	memset(room, 'x', len);
	memcpy(room, &n, sizeof(n));
	memcpy(room + len - sizeof(n), &n, sizeof(n));
	return (struct doc_scalar){ .kind = DOC_BYTES, .text = str_of(room, len) };
}

/* The number that a value stands for. */
static inline int64_t
number_of(const struct doc_scalar *value)
{
	int64_t n, end;

	if (value->kind != DOC_BYTES)
		return value->n;
	memcpy(&n, value->text.ptr, sizeof(n));
	memcpy(&end, value->text.ptr + value->text.len - sizeof(n), sizeof(n));
	assert_int_equal(n, end);
	assert_int_equal(value->text.len, long_bytes(n));
	/* Each of the bytes between is as the one before it. */
	assert_int_equal(value->text.ptr[sizeof(n)], 'x');
	assert_memory_equal(value->text.ptr + sizeof(n), value->text.ptr + sizeof(n) + 1,
			    value->text.len - 2 * sizeof(n) - 1);
	return n;
}

/* Writes, with some of the values of columns that have no numbers in pieces. */
static inline enum status
write_long(struct timed *t, struct table_write write)
{
	static char rooms[LONG_CHANGES][LONG_MOST];
	struct table_change changes[LONG_CHANGES];

	for (size_t i = 0; i < write.change_count; i++) {
		const struct table_column *column;

		changes[i] = write.changes[i];
		column = table_column_by_id(table_schema_of(t->db), changes[i].column);
		if (column->storage != TABLE_SET && column->storage != TABLE_COUNTER &&
		    changes[i].value.kind != DOC_NULL && long_bytes(changes[i].value.n))
			changes[i].value = long_value(changes[i].value.n, rooms[i]);
	}
	write.changes = changes;
	return table_write(t, &write);
}

#endif
