/* Changing what a table is. */
#include "model/timed/tables/tables_int.h"

/* A schema while it is changed; its columns are a copy with room for more. */
struct alter {
	struct timed *t;
	struct arena *arena;
	struct table_schema schema;
	struct table_column *columns;
	struct table_dropped *dropped;
	bool drops;
};

static enum status
alter_begin(struct alter *a, const struct table_alteration *change)
{
	struct table_schema *s = &a->schema;

	if (change->add_count > TABLE_COLUMNS)
		return err_set(a->t->err, STATUS_INVALID,
			       "a table may have %d columns (TABLE_COLUMNS)", TABLE_COLUMNS);
	TRY(table_schema_read(a->t->tx, a->t->db, a->arena, s, a->t->err));
	a->columns = arena_alloc(a->arena,
				 (s->column_count + change->add_count) * sizeof(*a->columns));
	a->dropped = arena_alloc(a->arena,
				 (s->dropped_count + s->column_count) * sizeof(*a->dropped));
	if (!a->columns || !a->dropped)
		return STATUS_LIMIT;
	memcpy(a->columns, s->columns, s->column_count * sizeof(*a->columns));
	if (s->dropped_count)
		memcpy(a->dropped, s->dropped, s->dropped_count * sizeof(*a->dropped));
	s->columns = a->columns;
	s->dropped = a->dropped;
	return STATUS_OK;
}

/* Where the column is. STATUS_INVALID, explained, if there is none. */
static enum status
alter_find(struct alter *a, struct str name, size_t *ret)
{
	const struct table_column *c = table_column_named(&a->schema, name);

	if (!c)
		return err_set(a->t->err, STATUS_INVALID, "there is no column \"%.*s\"",
			       STR_ARG(name));
	*ret = (size_t)(c - a->schema.columns);
	return STATUS_OK;
}

static enum status
alter_rename(struct alter *a, const struct table_rename *rename)
{
	size_t at;

	TRY(alter_find(a, rename->from, &at));
	if (at >= a->schema.key_count)
		return err_set(a->t->err, STATUS_INVALID,
			       "only a column of the key can be renamed, and \"%.*s\" is none",
			       STR_ARG(rename->from));
	if (table_column_named(&a->schema, rename->to))
		return err_set(a->t->err, STATUS_INVALID, "there is a column \"%.*s\" already",
			       STR_ARG(rename->to));
	a->columns[at].name = rename->to;
	return STATUS_OK;
}

/* STATUS_INVALID, explained, if an index has the column. */
static enum status
check_unindexed(struct alter *a, const struct table_column *column)
{
	size_t count;
	const struct table_index *indexes = table_indexes_of(a->t->db, &count);

	for (size_t i = 0; i < count; i++)
		if (table_index_looks_at(&indexes[i], column->id))
			return err_set(a->t->err, STATUS_INVALID,
				       "Cannot drop column %.*s because it has dependent "
				       "secondary indexes (%.*s)",
				       STR_ARG(column->name), STR_ARG(indexes[i].name));
	return STATUS_OK;
}

static enum status
alter_drop(struct alter *a, struct str name)
{
	struct table_schema *s = &a->schema;
	size_t at;

	TRY(alter_find(a, name, &at));
	if (at < s->key_count)
		return err_set(a->t->err, STATUS_INVALID,
			       "the column \"%.*s\" of the key cannot be dropped", STR_ARG(name));
	TRY(check_unindexed(a, &a->columns[at]));
	a->dropped[s->dropped_count++] = (struct table_dropped){ a->columns[at],
								 timed_write_us(a->t) };
	s->static_count -= a->columns[at].kind == TABLE_STATIC;
	s->column_count--;
	memmove(&a->columns[at], &a->columns[at + 1], (s->column_count - at) * sizeof(*a->columns));
	a->drops = true;
	return STATUS_OK;
}

static enum status
alter_add(struct alter *a, const struct table_column *column)
{
	struct table_schema *s = &a->schema;
	struct table_column *c = &a->columns[s->column_count];

	if (column->kind != TABLE_STATIC && column->kind != TABLE_REGULAR)
		return err_set(a->t->err, STATUS_INVALID,
			       "the column \"%.*s\" cannot join the key of a table",
			       STR_ARG(column->name));
	*c = *column;
	c->id = s->next_id++;
	s->static_count += c->kind == TABLE_STATIC;
	s->column_count++;
	return STATUS_OK;
}

static enum status
alter_columns(struct alter *a, const struct table_alteration *change)
{
	for (size_t i = 0; i < change->rename_count; i++)
		TRY(alter_rename(a, &change->rename[i]));
	for (size_t i = 0; i < change->drop_count; i++)
		TRY(alter_drop(a, change->drop[i]));
	for (size_t i = 0; i < change->add_count; i++)
		TRY(alter_add(a, &change->add[i]));
	if (a->schema.dropped_count > TABLE_DROPPED) {
		a->schema.dropped += a->schema.dropped_count - TABLE_DROPPED;
		a->schema.dropped_count = TABLE_DROPPED;
	}
	return STATUS_OK;
}

static enum status
alter(struct alter *a, const struct table_alteration *change)
{
	struct table_schema *s = &a->schema;
	struct timed *t = a->t;

	TRY(alter_begin(a, change));
	TRY(alter_columns(a, change));
	TRY(table_check_properties(change->properties, change->property_count, t->err));
	TRY(table_properties_merge(s->properties, s->property_count, change->properties,
				   change->property_count, a->arena, &s->properties,
				   &s->property_count));
	/* What was packed stays so where INSERT no longer packs. */
	s->packed = s->packed || table_schema_asks_to_pack(s);
	s->whole = s->whole && table_schema_may_be_whole(s);
	if (change->sets_ttl && change->ttl_ms && s->counters)
		return err_set(t->err, STATUS_INVALID, "counters do not expire");
	/* What expires by itself nobody tells. */
	s->counted = s->counted && !(change->sets_ttl && change->ttl_ms);
	TRY(table_schema_write(t->tx, t->db, s, t->err));
	if (a->drops)
		TRY(table_dropped_begin(t));
	if (change->sets_ttl && change->ttl_ms != timed_ttl_ms(t->db))
		TRY(timed_ttl_set(t, change->ttl_ms));
	TRY(table_schemas_touch(t->tx));
	return kv_touch_metadata_version(t->tx);
}

enum status
table_alter(struct timed *t, const struct table_alteration *change)
{
	struct alter a = { .t = t };
	enum status status;

	TRY(timed_write_begin(t));
	a.arena = arena_new(TABLE_RECORD_ARENA_BYTES);
	if (!a.arena)
		return STATUS_NOMEM;
	status = alter(&a, change);
	arena_free(a.arena);
	return status;
}

/* ---- What writers do for the first time ---- */

/* False: it is so already. */
static bool
schema_change(struct table_schema *schema, enum table_first first)
{
	bool *flag = first == TABLE_FIRST_STAMP  ? &schema->stamped
		     : first == TABLE_FIRST_LEAF ? &schema->whole
						 : &schema->counted;
	bool value = first == TABLE_FIRST_STAMP;

	if (*flag == value)
		return false;
	*flag = value;
	if (first == TABLE_FIRST_STAMP)
		schema->whole = false;
	return true;
}

static enum status
note_change(struct kv_tx *tx, const struct catalog_db *db, enum table_first first,
	    struct arena *arena, struct err *err)
{
	struct table_schema schema;

	TRY(catalog_db_check_writable(db, err));
	TRY(table_schema_read(tx, db, arena, &schema, err));
	if (!schema_change(&schema, first))
		return STATUS_OK;
	TRY(table_schema_write(tx, db, &schema, err));
	return kv_touch_metadata_version(tx);
}

struct noting {
	struct str table;
	enum table_first first;
	struct err *err;
};

static enum status
note_body(struct kv_tx *tx, void *arg)
{
	const struct noting *f = arg;
	struct catalog_db *db;
	enum status status = catalog_open(tx, NULL, CATALOG_SPACE_TABLE, f->table, &db, f->err);
	struct arena *arena;

	/* Dropped meanwhile: the writer finds that, too. */
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	arena = arena_new(TABLE_RECORD_ARENA_BYTES);
	status = arena ? note_change(tx, db, f->first, arena, f->err) : STATUS_NOMEM;
	arena_free(arena);
	catalog_db_unref(db);
	return status;
}

enum status
table_schema_note(struct timed *t, enum table_first first)
{
	struct noting f = { .table = t->db->name, .first = first, .err = t->err };

	TRY(kv_run(kv_tx_store(t->tx), note_body, &f, NULL, t->err));
	return STATUS_TX_CONFLICT;
}

enum status
table_leaves_begin(struct timed *t)
{
	struct arena *arena = arena_new(TABLE_RECORD_ARENA_BYTES);
	enum status status = STATUS_NOMEM;

	if (arena)
		status = note_change(t->tx, t->db, TABLE_FIRST_LEAF, arena, t->err);
	arena_free(arena);
	return status;
}

/* ---- Values in pieces ---- */

/*
 * Changes the description so that values may lie in pieces in all columns that get a long value by
 * the write. Does nothing where that is so already.
 */
static enum status
allow_pieces(struct alter *a, const struct table_write *write)
{
	const struct table_alteration nothing = { 0 };
	bool any = false;

	TRY(alter_begin(a, &nothing));
	for (size_t i = 0; i < write->change_count; i++) {
		const struct table_change *change = &write->changes[i];
		const struct table_column *c = table_column_by_id(&a->schema, change->column);

		if (!c || c->has_pieces || !table_change_is_long(change))
			continue;
		a->columns[c - a->schema.columns].has_pieces = true;
		any = true;
	}
	if (!any)
		return STATUS_OK;
	TRY(table_schema_write(a->t->tx, a->t->db, &a->schema, a->t->err));
	return kv_touch_metadata_version(a->t->tx);
}

static enum status
allow_pieces_by(struct timed *t, const struct table_write *write)
{
	struct alter a = { .t = t };
	enum status status;

	TRY(catalog_db_check_writable(t->db, t->err));
	a.arena = arena_new(TABLE_RECORD_ARENA_BYTES);
	if (!a.arena)
		return STATUS_NOMEM;
	status = allow_pieces(&a, write);
	arena_free(a.arena);
	return status;
}

struct allowing {
	struct str table;
	const struct table_write *write;
	struct err *err;
};

static enum status
allow_body(struct kv_tx *tx, void *arg)
{
	const struct allowing *a = arg;
	struct catalog_db *db;
	enum status status = catalog_open(tx, NULL, CATALOG_SPACE_TABLE, a->table, &db, a->err);
	struct timed t;

	/* Dropped meanwhile: the writer finds that, too. */
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	timed_init(&t, tx, db, NULL, a->err);
	status = allow_pieces_by(&t, a->write);
	catalog_db_unref(db);
	return status;
}

enum status
table_write_allow_pieces(struct timed *t, const struct table_write *write)
{
	const struct table_schema *schema = table_schema_of(t->db);
	struct allowing a = { .table = t->db->name, .write = write, .err = t->err };
	bool any = false;

	for (size_t i = 0; !any && i < write->change_count; i++)
		any = table_change_is_long(&write->changes[i]) &&
		      !table_column_by_id(schema, write->changes[i].column)->has_pieces;
	if (!any)
		return STATUS_OK;
	TRY(kv_run(kv_tx_store(t->tx), allow_body, &a, NULL, t->err));
	return STATUS_TX_CONFLICT;
}
