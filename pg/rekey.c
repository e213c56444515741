/*
 * A table that has rows gets another primary key, or none. The key is the place of a row in frond,
 * so the table is made anew: within frond's transaction, which reads all rows, takes the table out,
 * makes it with its key and writes the rows again. Whoever else changes it meanwhile meets this
 * transaction.
 */
#include "frond_pg.h"

#include "access/relation.h"
#include "access/xact.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

enum {
	REKEY_BYTES = 10 * 1024 *
		      1024,      /* of rows: what a transaction may have (KV_LIMIT_TX_BYTES) */
	SEND_BYTES = 256 * 1024, /* of a request, about */
	NUMBER_BYTES = 8,        /* of a hidden key */
};

/* The rows of a table, in memory. */
struct kept {
	const struct frows_value **rows; /* each by attnum - 1 */
	size_t count, room;
	size_t bytes;
};

static void
kept_add(struct kept *k, const struct frond_table *t, const struct frows_value *values)
{
	struct frows_value *row = palloc0((t->natts + 1) * sizeof(*row));
	int n = 0;

	for (int i = 0; i < t->natts; i++) {
		if (!t->columns[i].is_there)
			continue;
		row[i] = values[n++];
		if (row[i].len > 0)
			row[i].ptr = memcpy(palloc(row[i].len), row[i].ptr, row[i].len);
		k->bytes += sizeof(*row) + Max(row[i].len, 0);
	}
	if (k->bytes > REKEY_BYTES)
		ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			errmsg("the rows of \"%s\" are too many for another primary key", t->table),
			errdetail("They are written anew in one transaction, which may have %d "
				  "bytes.",
				  REKEY_BYTES),
			errhint("Make a table with the key, and copy the rows into it with "
				"frond.bulk_load = on."));
	if (k->count == k->room) {
		k->room = k->room ? 2 * k->room : 1024;
		k->rows = k->rows ? repalloc(k->rows, k->room * sizeof(*k->rows))
				  : palloc(k->room * sizeof(*k->rows));
	}
	k->rows[k->count++] = row;
}

static void
rows_keep(const struct frond_table *t, struct kept *ret)
{
	struct frows_value *values = palloc((t->natts + 1) * sizeof(*values));
	uint32 *columns = palloc((t->natts + 1) * sizeof(*columns));
	struct frows_scan scan = { .of = frond_table_of(t), .columns = columns };
	struct frows_value place = { NULL, 0 };
	bool more = true;

	*ret = (struct kept){ NULL };
	for (int i = 0; i < t->natts; i++)
		if (t->columns[i].is_there)
			columns[scan.column_count++] = t->columns[i].id;
	while (more) {
		struct frows *c = frond_link_inside(t->server, GetUserId(), false);

		CHECK_FOR_INTERRUPTS();
		if (!frows_scan_page_at(c, &scan, place))
			frond_fail(c);
		while (frows_scan_row(c, values))
			kept_add(ret, t, values);
		more = frows_has_more(c);
		place = frows_scan_place(c);
		place.ptr = memcpy(palloc(place.len + 1), place.ptr, place.len);
	}
}

static void
check_nulls(Relation rel, const struct frond_key_spec *key, const struct kept *k)
{
	ListCell *cell;

	foreach (cell, key->columns) {
		const char *name = strVal(lfirst(cell));
		AttrNumber attnum = get_attnum(RelationGetRelid(rel), name);

		for (size_t i = 0; attnum > 0 && i < k->count; i++)
			if (k->rows[i][attnum - 1].len < 0)
				ereport(ERROR, errcode(ERRCODE_NOT_NULL_VIOLATION),
					errmsg("column \"%s\" of relation \"%s\" contains null "
					       "values",
					       name, RelationGetRelationName(rel)));
	}
}

/* ---- Writing them again ---- */

static void
fail_equal(Relation rel, const struct frond_table *t, const struct frows_value *row)
{
	StringInfoData names, values;

	initStringInfo(&names);
	initStringInfo(&values);
	for (int i = 0; i < t->key_count; i++) {
		const struct frond_column *c = frond_key_column(t, i);
		Oid out;
		bool varlena;

		getTypeOutputInfo(c->type, &out, &varlena);
		appendStringInfo(&names, "%s%s", i ? ", " : "",
				 get_attname(t->relid, t->key[i].attnum, false));
		appendStringInfo(
			&values, "%s%s", i ? ", " : "",
			OidOutputFunctionCall(out, frond_value_get(c, row[t->key[i].attnum - 1])));
	}
	ereport(ERROR, errcode(ERRCODE_UNIQUE_VIOLATION),
		errmsg("could not create unique index \"%s_pkey\"", RelationGetRelationName(rel)),
		errdetail("Key (%s)=(%s) is duplicated.", names.data, values.data));
}

static void
put_row(struct frows *c, const struct frond_table *t, const struct frows_value *row)
{
	struct frows_value *values = palloc((t->natts + 1) * sizeof(*values));
	struct frows_value key[FROWS_KEY_COLUMNS];
	uint8 number[NUMBER_BYTES];
	int count = 0;

	for (int i = 0; i < t->key_count; i++)
		if (t->key[i].attnum)
			key[i] = row[t->key[i].attnum - 1];
	if (t->has_hidden_key) {
		frows_put_int(number, frond_next_row(t->server, GetUserId()), sizeof(number));
		key[0] = (struct frows_value){ number, sizeof(number) };
	}
	for (int i = 0; i < t->natts; i++)
		if (t->columns[i].is_there && !t->columns[i].is_key)
			values[count++] = row[i];
	frows_write_row(c, FROWS_INSERT, key, t->key_count, values);
	pfree(values);
}

/* Writes rows from `first` on, as many as a request takes. Returns the one behind them. */
static size_t
rows_put(Relation rel, const struct frond_table *t, const struct kept *k, size_t first)
{
	struct frows *c = frond_link_inside(t->server, GetUserId(), true);
	uint32 *columns = palloc((t->natts + 1) * sizeof(*columns));
	const struct frows_of of = frond_table_of(t);
	size_t i = first, count = 0;

	for (int j = 0; j < t->natts; j++)
		if (t->columns[j].is_there && !t->columns[j].is_key)
			columns[count++] = t->columns[j].id;
	frows_write(c, &of, columns, count);
	while (i < k->count && frows_request_bytes(c) < SEND_BYTES)
		put_row(c, t, k->rows[i++]);
	if (frows_write_run(c))
		return i;
	if (strcmp(frows_failure(c)->state, "23505") == 0 && frows_failure(c)->row >= 0 &&
	    first + (size_t)frows_failure(c)->row < k->count)
		fail_equal(rel, t, k->rows[first + (size_t)frows_failure(c)->row]);
	frond_fail(c);
}

void
frond_rekey(Oid relid, const struct frond_key_spec *key)
{
	const struct frond_table *t = frond_table_get(relid, GetUserId());
	Relation rel = relation_open(relid, AccessExclusiveLock);
	struct kept kept;

	if (t->index_count)
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("the primary key of a table in frond that has rows and indexes "
			       "stays"),
			errhint("Drop the indexes first, and make them behind it."));
	/* All of it is a part of one transaction, whatever frond.bulk_load says. */
	(void)frond_link_define_within(t->server, GetUserId());
	rows_keep(t, &kept);
	check_nulls(rel, key, &kept);
	frond_table_make(rel, key, true, true);
	/* Other backends have the old one's id. */
	CacheInvalidateRelcache(rel);
	frond_table_forget();
	CommandCounterIncrement();
	t = frond_table_get(relid, GetUserId());
	for (size_t i = 0; i < kept.count;)
		i = rows_put(rel, t, &kept, i);
	frond_table_wrote(t, (int)kept.count, 0);
	relation_close(rel, NoLock);
}
