/*
 * Counters in frond, each a row of a table there: a backend takes a block of numbers from one, in a
 * transaction of its own, and counts on by itself. The hidden keys of tables without a primary key
 * are such numbers, and so are those of sequences (sequence.c).
 *
 * A hidden key is what a ctid can hold: 32 bits of the block, and 16 bits that are never 0.
 */
#include "frond_pg.h"
#include "frond_lock.h"

#include "common/int.h"
#include "storage/itemptr.h"

#define COUNTER_SCHEMA "frond_pg"
#define COUNTER_TABLE  "counters"
#define COUNTER_ROWS   "rows" /* of hidden keys */

enum {
	BLOCK_BITS = 16,
	ATTEMPTS = 1000, /* while other backends take blocks, too */
	FORGET_AT_ONCE = 64,
	NAME_BYTES = 128, /* of a counter that is forgotten: more than any has */
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

/* What is added to a counter, and what it was before. */
struct counting {
	const char *name;
	int64 least; /* a counter that is less counts as this */
	int64 add;
	int64 before;
};

static const struct frows_of counters = { COUNTER_SCHEMA, COUNTER_TABLE, NULL };

/* Reads the counter and writes it. False: another backend was faster. */
static bool
counter_try(struct frows *c, uint32 column, struct counting *n)
{
	const struct frows_value key = { n->name, (int32_t)strlen(n->name) };
	struct frows_value value;
	uint8 bytes[8];
	int64 after;
	bool found;

	frows_begin_later(c, false);
	frows_get(c, &counters, &column, 1);
	frows_get_key(c, &key, 1);
	if (frows_get_run(c) && frows_get_row(c, &found, &value)) {
		n->before = found && value.len > 0 ? Max(frows_int(value), n->least) : n->least;
		if (pg_add_s64_overflow(n->before, n->add, &after))
			after = PG_INT64_MAX;
		frows_put_int(bytes, after, sizeof(bytes));
		value = (struct frows_value){ bytes, sizeof(bytes) };
		frows_write(c, &counters, &column, 1);
		frows_write_row(c, FROWS_PUT, &key, 1, &value);
		if (frows_write_later(c) && frows_commit(c, NULL))
			return true;
	}
	if (!failed_with(c, "40001")) {
		struct frows_failure failure = *frows_failure(c);

		(void)frows_rollback(c);
		ereport(ERROR, errcode(ERRCODE_FDW_ERROR),
			errmsg("frond: no numbers from a counter: %s", failure.text));
	}
	/* A conflict at COMMIT has ended the transaction, one before has not. */
	if (!frows_rollback(c) && !failed_with(c, "25P01"))
		frond_fail(c);
	return false;
}

int64
frond_counter_take(Oid server, Oid user, const char *name, int64 least, int64 add)
{
	struct counting n = { .name = name, .least = least, .add = add };
	struct frows *c = frond_link_beside(server, user);
	uint32 column = counter_column(c);
	bool locked;

	/* Sessions that begin together draw one after the other, and not all again and again. */
	locked = frond_lock_counter(name);
	for (int i = 0; !counter_try(c, column, &n); i++)
		if (i == ATTEMPTS)
			ereport(ERROR, errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				errmsg("frond: the counter \"%s\" is in use all the time", name));
	if (locked)
		frond_unlock_counter(name);
	return n.before;
}

void
frond_counter_forget(Oid server, Oid user, const char *name)
{
	const struct frows_value key = { name, (int32_t)strlen(name) };
	struct frows *c = frond_link_beside(server, user);

	(void)counter_column(c);
	frows_write(c, &counters, NULL, 0);
	frows_write_row(c, FROWS_DELETE_ANY, &key, 1, NULL);
	if (!frows_write_run(c))
		frond_fail(c);
}

/* Some of them. False: there are no more, or it cannot be done. */
static bool
counters_forget_some(struct frows *c, uint32 column, const struct frows_value *from,
		     const struct frows_value *to)
{
	static char names[FORGET_AT_ONCE][NAME_BYTES];
	struct frows_scan scan = { .of = counters,
				   .columns = &column,
				   .column_count = 1,
				   .from = { FROWS_INCLUSIVE, from, 1 },
				   .to = { FROWS_EXCLUSIVE, to, 1 },
				   .rows = FORGET_AT_ONCE };
	struct frows_value name, keys[FORGET_AT_ONCE];
	int count = 0;

	if (!frows_scan_page(c, &scan, false))
		return false;
	while (count < FORGET_AT_ONCE && frows_scan_row(c, &name)) {
		if (name.len <= 0 || name.len > NAME_BYTES)
			continue;
		keys[count] = (struct frows_value){ memcpy(names[count], name.ptr, name.len),
						    name.len };
		count++;
	}
	frows_write(c, &counters, NULL, 0);
	for (int i = 0; i < count; i++)
		frows_write_row(c, FROWS_DELETE_ANY, &keys[i], 1, NULL);
	return count && frows_write_run(c);
}

void
frond_counters_forget(struct frows *c, const char *from, const char *to)
{
	const struct frows_value first = { from, (int32_t)strlen(from) };
	const struct frows_value end = { to, (int32_t)strlen(to) };
	struct frows_table t;
	uint32 column;

	/* Nobody may ever have drawn a number. */
	if (!frows_table(c, COUNTER_SCHEMA, COUNTER_TABLE, &t))
		return;
	column = t.count ? t.columns[0].id : 0;
	frows_table_free(&t);
	while (counters_forget_some(c, column, &first, &end))
		;
}

int64
frond_next_row(Oid server, Oid user)
{
	int64 block;

	if (block_server == server && next <= last)
		return next++;
	block = frond_counter_take(server, user, COUNTER_ROWS, 0, 1) + 1;
	if (block >= InvalidBlockNumber)
		ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			errmsg("frond: all numbers of rows without a primary key are used up"));
	block_server = server;
	next = (block << BLOCK_BITS) + 1;
	last = (block << BLOCK_BITS) + PG_UINT16_MAX;
	return next++;
}
