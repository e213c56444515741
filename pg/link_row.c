/*
 * Numbers for the hidden keys of tables without a primary key. A backend takes a block of them from
 * a counter in frond, in a transaction of its own, and counts on by itself.
 *
 * A number is what a ctid can hold: 32 bits of the block, and 16 bits that are never 0.
 */
#include "frond_pg.h"

#include "storage/itemptr.h"

#define COUNTER_SCHEMA "frond_pg"
#define COUNTER_TABLE  "counters"
#define COUNTER_NAME   "rows"

enum {
	BLOCK_BITS = 16,
	ATTEMPTS = 1000, /* while other backends take blocks, too */
};

static Oid block_server;
static int64 next, last; /* `next` is past `last`: the block is used up */

static bool
failed_with(struct frows *c, const char *state)
{
	return strcmp(frows_failure(c)->state, state) == 0;
}

static void
counter_make(struct frows *c)
{
	const struct frows_new columns[] = {
		{ .name = "name", .kind = FROWS_TEXT, .role = FROWS_RANGE },
		{ .name = "value", .kind = FROWS_INT8, .role = FROWS_REGULAR },
	};

	if (!frows_schema_create(c, COUNTER_SCHEMA) && !failed_with(c, "42P06"))
		frond_fail(c);
	if (!frows_table_create(c, COUNTER_SCHEMA, COUNTER_TABLE, columns, lengthof(columns),
				NULL) &&
	    !failed_with(c, "42P07"))
		frond_fail(c);
}

/* The counter's column, which is there when this returns. */
static uint32
counter_column(struct frows *c)
{
	struct frows_table t;
	uint32 id;

	if (!frows_table(c, COUNTER_SCHEMA, COUNTER_TABLE, &t)) {
		if (!failed_with(c, "42P01") && !failed_with(c, "3F000"))
			frond_fail(c);
		counter_make(c);
		if (!frows_table(c, COUNTER_SCHEMA, COUNTER_TABLE, &t))
			frond_fail(c);
	}
	id = t.count > 1 ? t.columns[1].id : 0;
	frows_table_free(&t);
	return id;
}

/* Reads the counter and writes it, greater by one. False: another backend was faster. */
static bool
counter_try(struct frows *c, uint32 column, int64 *ret)
{
	const struct frows_of of = { COUNTER_SCHEMA, COUNTER_TABLE, NULL };
	const struct frows_value key = { COUNTER_NAME, sizeof(COUNTER_NAME) - 1 };
	struct frows_value value;
	uint8 bytes[8];
	bool found;

	if (!frows_begin(c, false))
		frond_fail(c);
	frows_get(c, &of, &column, 1);
	frows_get_key(c, &key, 1);
	if (frows_get_run(c) && frows_get_row(c, &found, &value)) {
		*ret = found && value.len > 0 ? frows_int(value) + 1 : 1;
		frows_put_int(bytes, *ret, sizeof(bytes));
		value = (struct frows_value){ bytes, sizeof(bytes) };
		frows_write(c, &of, &column, 1);
		frows_write_row(c, FROWS_PUT, &key, 1, &value);
		if (frows_write_run(c) && frows_commit(c, NULL))
			return true;
	}
	if (!failed_with(c, "40001")) {
		struct frows_failure failure = *frows_failure(c);

		(void)frows_rollback(c);
		ereport(ERROR, errcode(ERRCODE_FDW_ERROR),
			errmsg("frond: no number for a row: %s", failure.text));
	}
	/* A conflict at COMMIT has ended the transaction, one before has not. */
	if (!frows_rollback(c) && !failed_with(c, "25P01"))
		frond_fail(c);
	return false;
}

int64
frond_next_row(Oid server, Oid user)
{
	struct frows *c;
	uint32 column;
	int64 block;

	if (block_server == server && next <= last)
		return next++;
	c = frond_link_beside(server, user);
	column = counter_column(c);
	for (int i = 0; !counter_try(c, column, &block); i++)
		if (i == ATTEMPTS)
			ereport(ERROR, errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				errmsg("frond: the counter of rows is in use all the time"));
	if (block >= InvalidBlockNumber)
		ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			errmsg("frond: all numbers of rows without a primary key are used up"));
	block_server = server;
	next = (block << BLOCK_BITS) + 1;
	last = (block << BLOCK_BITS) + PG_UINT16_MAX;
	return next++;
}
