#include "door/cql/schema/table.h"

#include "door/cql/schema/options.h"

#include "base/hash.h"
#include "cql/statement.h"
#include "loop/sort.h"
#include "loop/step.h"

enum {
	PAGE_TABLES = 500, /* names that are read at once */
};

const struct schema_column *
schema_column_find(const struct schema_table *t, struct str name)
{
	for (size_t i = 0; i < t->count; i++)
		if (str_eq(t->columns[i].name, name))
			return &t->columns[i];
	return NULL;
}

/* ---- Types ---- */

struct schema_found {
	struct schema_found *next;
	const struct cql_type *type;
};

static enum status
type_make(struct cql *q, struct schema_types *types, const struct table_type *stored,
	  const struct cql_type **ret)
{
	struct str *fields = arena_alloc(q->arena, (stored->field_count + 1) * sizeof(*fields));
	const struct cql_type **args = arena_alloc(q->arena,
						   (stored->field_count + 1) * sizeof(*args));
	const struct cql_type *type;

	if (!fields || !args)
		return STATUS_LIMIT;
	for (size_t i = 0; i < stored->field_count; i++) {
		fields[i] = stored->fields[i].name;
		TRY(cql_type_parse(q, stored->fields[i].type, &type));
		TRY(cql_type_resolve(q, stored->keyspace, type, schema_type_find, types, &args[i]));
	}
	*ret = cql_type_udt(q, stored->keyspace, stored->name, false, fields, args,
			    stored->field_count);
	return *ret ? STATUS_OK : STATUS_LIMIT;
}

enum status
schema_type_find(void *arg, struct cql *q, struct str keyspace, struct str name,
		 const struct cql_type **ret)
{
	struct schema_types *types = arg;
	struct table_type stored;
	struct schema_found *f;
	enum status status;

	*ret = NULL;
	for (f = types->found; f; f = f->next) {
		if (str_eq(f->type->keyspace, keyspace) && str_eq(f->type->name, name)) {
			*ret = f->type;
			return STATUS_OK;
		}
	}
	status = table_type_read(types->tx, keyspace, name, types->arena, &stored, q->err);
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	f = arena_alloc(types->arena, sizeof(*f));
	if (!f)
		return STATUS_LIMIT;
	TRY(type_make(q, types, &stored, ret));
	*f = (struct schema_found){ .next = types->found, .type = *ret };
	types->found = f;
	return STATUS_OK;
}

/* ---- A table ---- */

static enum schema_kind
kind_of(enum table_column_kind kind)
{
	switch (kind) {
	case TABLE_HASH:
		return SCHEMA_PARTITION;
	case TABLE_RANGE:
		return SCHEMA_CLUSTERING;
	case TABLE_STATIC:
		return SCHEMA_STATIC;
	case TABLE_REGULAR:
		break;
	}
	return SCHEMA_REGULAR;
}

static int
compare_columns(const void *a, const void *b)
{
	const struct schema_column *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->kind <= SCHEMA_CLUSTERING)
		return (x->position > y->position) - (x->position < y->position);
	return str_cmp(x->name, y->name);
}

static enum status
column_make(struct cql *q, struct schema_types *types, struct str keyspace,
	    const struct table_column *stored, struct schema_column *ret)
{
	const struct cql_type *type;

	*ret = (struct schema_column){ .name = stored->name,
				       .kind = kind_of(stored->kind),
				       .descending = stored->descending,
				       .stored = stored };
	TRY(cql_type_parse(q, stored->type, &type));
	return cql_type_resolve(q, keyspace, type, schema_type_find, types, &ret->type);
}

/* `stored` are the columns of the schema, or copies of them: the table's borrow from these. */
static enum status
table_make(struct cql *q, struct schema_types *types, const struct catalog_db *db,
	   const struct table_column *stored, struct schema_table **ret)
{
	const struct table_schema *schema = table_schema_of(db);
	struct schema_table *t = arena_zalloc(q->arena, sizeof(*t));
	struct schema_column *columns = arena_alloc(q->arena,
						    (schema->column_count + 1) * sizeof(*columns));
	struct str name;

	if (!t || !columns)
		return STATUS_LIMIT;
	TRY(arena_copy(q->arena, db->name, &name));
	*t = (struct schema_table){ .columns = columns,
				    .count = schema->column_count,
				    .partition_count = schema->hash_count,
				    .key_count = schema->key_count,
				    .static_count = schema->static_count,
				    .counters = schema->counters };
	t->compact = table_property_of(schema, STR(OPTIONS_COMPACT)).ptr != NULL;
	table_name_split(name, &t->keyspace, &t->name);
	for (size_t i = 0; i < t->count; i++) {
		TRY(column_make(q, types, t->keyspace, &stored[i], &columns[i]));
		columns[i].position = (unsigned)(i < t->partition_count ? i
									: i - t->partition_count);
	}
	*ret = t;
	/* A schema has those outside of the key by their ids. */
	return sort_items_by(columns, t->count, sizeof(*columns), compare_columns, q->arena);
}

enum status
schema_table_of(struct cql *q, struct schema_types *types, struct catalog_db *db,
		struct schema_table **ret)
{
	const struct table_schema *schema = table_schema_of(db);
	struct schema_table *t;
	enum status status = table_make(q, types, db, schema->columns, &t);

	if (status != STATUS_OK) {
		catalog_db_unref(db);
		return status;
	}
	t->db = db;
	t->schema = schema;
	*ret = t;
	return STATUS_OK;
}

enum status
schema_table_apart(struct cql *q, struct schema_types *types, const struct catalog_db *db,
		   struct schema_table **ret)
{
	const struct table_schema *schema = table_schema_of(db);
	struct table_column *copies = arena_alloc(q->arena,
						  (schema->column_count + 1) * sizeof(*copies));

	if (!copies)
		return STATUS_LIMIT;
	for (size_t i = 0; i < schema->column_count; i++) {
		copies[i] = schema->columns[i];
		TRY(arena_copy(q->arena, copies[i].name, &copies[i].name));
		TRY(arena_copy(q->arena, copies[i].type, &copies[i].type));
	}
	return table_make(q, types, db, copies, ret);
}

void
schema_table_close(struct schema_table *t)
{
	if (t)
		catalog_db_unref(t->db);
}

uint64_t
schema_table_hash(const struct schema_table *t)
{
	static const uint8_t seed[HASH_SEED_BYTES] = "frond cql schema";
	uint64_t hash = t->partition_count << 32 | t->key_count;

	for (size_t i = 0; i < t->count; i++) {
		const struct schema_column *c = &t->columns[i];

		hash = hash * 31 + hash_seeded(seed, c->name);
		if (c->stored)
			hash = hash * 31 + hash_seeded(seed, c->stored->type);
		hash = hash * 31 + (uint64_t)c->kind * 2 + c->descending;
	}
	return hash;
}

/* ---- Properties ---- */

void
schema_map_print(struct buf *out, const struct schema_pair *pairs, size_t count)
{
	buf_append_byte(out, '{');
	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_append_cstr(out, ", ");
		cql_text_print(out, pairs[i].name);
		buf_append_cstr(out, ": ");
		cql_text_print(out, pairs[i].value);
	}
	buf_append_byte(out, '}');
}

enum status
schema_map_read(struct cql *q, struct str text, struct schema_pair **ret, size_t *ret_count)
{
	struct cql_term *term;
	struct schema_pair *pairs;

	*ret = NULL;
	*ret_count = 0;
	if (!text.len)
		return STATUS_OK;
	TRY(cql_parse_term(q, text, &term));
	if (term->kind != CQL_TERM_MAP)
		return STATUS_OK;
	pairs = arena_alloc(q->arena, (term->count / 2 + 1) * sizeof(*pairs));
	if (!pairs)
		return STATUS_LIMIT;
	for (size_t i = 0; i + 1 < term->count; i += 2)
		pairs[i / 2] = (struct schema_pair){ .name = term->args[i]->text,
						     .value = term->args[i + 1]->text };
	*ret = pairs;
	*ret_count = term->count / 2;
	return STATUS_OK;
}

struct str
schema_property(const struct table_property *properties, size_t count, struct str name)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(properties[i].name, name))
			return properties[i].value;
	return (struct str){ 0 };
}

/* ---- All of it ---- */

static enum status
read_tables(struct cql *q, struct schema_types *types, struct schema_keyspace *k)
{
	struct str after = STR("");
	size_t cap = 0;

	for (;;) {
		struct name_page page;

		TRY(table_list(types->tx, k->name, after, PAGE_TABLES, q->arena, &page));
		for (size_t i = 0; i < page.count; i++) {
			struct catalog_db *db;

			TRY(step_count(1));
			after = page.names[i];
			TRY(catalog_open(types->tx, NULL, CATALOG_SPACE_TABLE, after, &db, q->err));
			if (arena_room(q->arena, &k->tables, k->table_count, &cap,
				       sizeof(struct schema_table *)) != STATUS_OK) {
				catalog_db_unref(db);
				return STATUS_LIMIT;
			}
			TRY(schema_table_of(q, types, db, &k->tables[k->table_count]));
			k->table_count++;
		}
		if (!page.more)
			return STATUS_OK;
	}
}

static enum status
read_keyspace(struct cql *q, struct schema_types *types, const struct table_keyspace *stored,
	      struct schema_keyspace *k)
{
	struct table_types all;

	*k = (struct schema_keyspace){ .name = stored->name, .stored = stored };
	TRY(table_type_list(types->tx, stored->name, q->arena, &all, q->err));
	k->types = all.types;
	k->type_count = all.count;
	return read_tables(q, types, k);
}

static enum status
read_one(struct cql *q, struct schema_types *types, struct str only, struct table_keyspaces *ret)
{
	struct table_keyspace *one = arena_alloc(q->arena, sizeof(*one));
	enum status status;

	if (!one)
		return STATUS_LIMIT;
	status = table_keyspace_read(types->tx, only, q->arena, one, NULL);
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	*ret = (struct table_keyspaces){ .keyspaces = one, .count = status == STATUS_OK };
	return STATUS_OK;
}

enum status
schema_read(struct cql *q, struct schema_types *types, struct str only, struct schema_all *ret)
{
	struct table_keyspaces stored;
	enum status status = STATUS_OK;

	*ret = (struct schema_all){ 0 };
	TRY(table_schemas_stamp(types->tx, ret->stamp));
	if (only.len)
		TRY(read_one(q, types, only, &stored));
	else
		TRY(table_keyspace_list(types->tx, q->arena, &stored, q->err));
	ret->keyspaces = arena_alloc(q->arena, (stored.count + 1) * sizeof(*ret->keyspaces));
	if (!ret->keyspaces)
		return STATUS_LIMIT;
	for (size_t i = 0; i < stored.count && status == STATUS_OK; i++) {
		ret->count++;
		status = read_keyspace(q, types, &stored.keyspaces[i], &ret->keyspaces[i]);
	}
	if (status != STATUS_OK)
		schema_close(ret);
	return status;
}

void
schema_close(struct schema_all *all)
{
	for (size_t i = 0; i < all->count; i++)
		for (size_t j = 0; j < all->keyspaces[i].table_count; j++)
			schema_table_close(all->keyspaces[i].tables[j]);
	all->count = 0;
}
