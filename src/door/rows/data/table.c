#include "door/rows/data/table.h"

#include "base/mem.h"

#define OWN_PREFIX     "frond."
#define ORDERED_PREFIX "ordered."

enum {
	TYPES_ARENA_BYTES = 16 * 1024 * 1024, /* of the types of a table's columns, parsed */
};

/* The types that CQL has, too. A kind is stored as the first that has it. */
static const struct {
	enum cql_type_kind type;
	const char *text;
	enum rows_kind kind;
	enum column_form form;
	bool ordered;
} native[] = {
	{ CQL_TYPE_BOOLEAN, "boolean", ROWS_BOOL, FORM_SAME, true },
	{ CQL_TYPE_SMALLINT, "smallint", ROWS_INT2, FORM_SAME, true },
	{ CQL_TYPE_INT, "int", ROWS_INT4, FORM_SAME, true },
	{ CQL_TYPE_BIGINT, "bigint", ROWS_INT8, FORM_SAME, true },
	{ CQL_TYPE_FLOAT, "float", ROWS_FLOAT4, FORM_SAME, true },
	{ CQL_TYPE_DOUBLE, "double", ROWS_FLOAT8, FORM_SAME, true },
	{ CQL_TYPE_TEXT, "text", ROWS_TEXT, FORM_SAME, true },
	{ CQL_TYPE_BLOB, "blob", ROWS_BYTES, FORM_SAME, true },
	{ CQL_TYPE_DATE, "date", ROWS_DATE, FORM_DATE, true },
	{ CQL_TYPE_TINYINT, NULL, ROWS_INT2, FORM_TINY, true },
	{ CQL_TYPE_ASCII, NULL, ROWS_TEXT, FORM_ASCII, true },
	{ CQL_TYPE_VARINT, NULL, ROWS_NUMERIC, FORM_VARINT, true },
	{ CQL_TYPE_DECIMAL, NULL, ROWS_NUMERIC, FORM_DECIMAL, true },
	{ CQL_TYPE_TIME, NULL, ROWS_TIME, FORM_TIME, true },
	{ CQL_TYPE_TIMESTAMP, NULL, ROWS_TIMESTAMPTZ, FORM_MOMENT, true },
	/* Cassandra orders UUIDs by version and time. */
	{ CQL_TYPE_UUID, NULL, ROWS_UUID, FORM_SAME, false },
	{ CQL_TYPE_TIMEUUID, NULL, ROWS_UUID, FORM_SAME, false },
	{ CQL_TYPE_INET, NULL, ROWS_INET, FORM_ADDRESS, false },
	{ CQL_TYPE_JSONB, NULL, ROWS_OTHER, FORM_SAME, false },
};

static const char *const own_texts[ROWS_KINDS] = {
	[ROWS_NUMERIC] = "'frond.numeric'",
	[ROWS_TIME] = "'frond.time'",
	[ROWS_TIMETZ] = "'frond.timetz'",
	[ROWS_TIMESTAMP] = "'frond.timestamp'",
	[ROWS_TIMESTAMPTZ] = "'frond.timestamptz'",
	[ROWS_INTERVAL] = "'frond.interval'",
	[ROWS_UUID] = "'frond.uuid'",
	[ROWS_INET] = "'frond.inet'",
	[ROWS_MACADDR] = "'frond.macaddr'",
	[ROWS_MACADDR8] = "'frond.macaddr8'",
	[ROWS_BITS] = "'frond.bits'",
	[ROWS_OTHER] = "'frond.other'",
};

/* Kinds whose ordered bytes are short, and tell the value exactly. */
static const char *const ordered_texts[ROWS_KINDS] = {
	[ROWS_TIMETZ] = "'frond.ordered.timetz'",
	[ROWS_TIMESTAMP] = "'frond.ordered.timestamp'",
	[ROWS_TIMESTAMPTZ] = "'frond.ordered.timestamptz'",
	[ROWS_INET] = "'frond.ordered.inet'",
};

const char *
rows_column_type_text(enum rows_kind kind, bool is_key)
{
	if (!is_key && ordered_texts[kind])
		return ordered_texts[kind];
	if (own_texts[kind])
		return own_texts[kind];
	for (size_t i = 0; i < sizeof(native) / sizeof(native[0]); i++)
		if (native[i].kind == kind)
			return native[i].text;
	return "";
}

/* ---- Types of its own ---- */

/* False for any other type. `*ret_ordered`: values outside of keys are ordered bytes, too. */
static bool
own_type_read(struct str type, enum rows_kind *ret, bool *ret_ordered)
{
	struct str name;

	if (!str_starts_with(type, STR(OWN_PREFIX)))
		return false;
	name = str_skip(type, sizeof(OWN_PREFIX) - 1);
	*ret_ordered = str_starts_with(name, STR(ORDERED_PREFIX));
	if (*ret_ordered)
		name = str_skip(name, sizeof(ORDERED_PREFIX) - 1);
	return rows_kind_named(name, ret) && (!*ret_ordered || ordered_texts[*ret]);
}

bool
rows_type_has(struct str type, bool in_key, struct str bytes)
{
	AUTO(buf_release) struct buf value = BUF_SHORT(ROWS_ORDERED_BYTES);
	enum rows_kind kind;
	bool ordered;

	if (!own_type_read(type, &kind, &ordered))
		return false;
	if (!in_key && !ordered)
		return rows_value_check(kind, bytes);
	return rows_ordered_read(kind, bytes, &value) == STATUS_OK;
}

/* ---- Columns ---- */

static void
column_of_native(struct column *c)
{
	for (size_t i = 0; i < sizeof(native) / sizeof(native[0]); i++) {
		if (native[i].type == c->type->kind) {
			c->kind = native[i].kind;
			c->form = native[i].form;
			c->ordered = native[i].ordered;
		}
	}
}

/* A native type, whose text is told without parsing it. NULL: it is none of those that a kind is
 * stored as. */
static const struct cql_type *
native_type_of(struct str text)
{
	for (size_t i = 0; i < sizeof(native) / sizeof(native[0]); i++)
		if (native[i].text && str_eq(text, str_from_cstr(native[i].text)))
			return &cql_native_types[native[i].type];
	return NULL;
}

static enum status
column_init(struct cql *q, const struct table_column *stored, struct column *c)
{
	enum status status;
	bool in_order;

	*c = (struct column){ .stored = stored, .type = native_type_of(stored->type) };
	status = c->type ? STATUS_OK : cql_type_parse(q, stored->type, &c->type);
	if (status == STATUS_INVALID)
		return err_set(q->err, STATUS_CORRUPT, "the type of the column \"%.*s\" is none",
			       STR_ARG(stored->name));
	TRY(status);
	if (stored->storage != TABLE_SINGLE)
		return STATUS_OK;
	if (c->type->kind == CQL_TYPE_CUSTOM) {
		c->ordered = own_type_read(c->type->name, &c->kind, &in_order);
		if (!c->ordered)
			c->kind = ROWS_NONE;
		else
			c->form = in_order ? FORM_ORDERED : FORM_OWN;
		return STATUS_OK;
	}
	if (c->type->kind < CQL_NATIVE_COUNT)
		column_of_native(c);
	return STATUS_OK;
}

/* The columns, which are made once of a description of the table, and stay with it. */
struct table_columns {
	struct table_note note; /* first: what the model keeps */
	struct arena *arena;    /* of types that are not native */
	size_t hidden;
	struct column columns[];
};

static void
table_columns_free(struct table_note *note)
{
	struct table_columns *columns = (struct table_columns *)note;

	arena_free(columns->arena);
	mem_free(columns);
}

static enum status
columns_init(struct rows_request *r, const struct table_schema *schema, struct table_columns *ret)
{
	struct cql q = { .arena = ret->arena, .err = &r->err };
	const struct table_column *first = &schema->columns[0];

	for (size_t i = 0; i < schema->column_count; i++)
		TRY(column_init(&q, &schema->columns[i], &ret->columns[i]));
	ret->hidden = schema->hash_count == 1 && schema->key_count > 1 &&
		      str_eq(first->name, STR(HIDDEN_COLUMN)) &&
		      str_eq(first->type, STR(HIDDEN_TYPE));
	return STATUS_OK;
}

static enum status
columns_make(struct rows_request *r, const struct table_schema *schema, struct table_note **ret)
{
	size_t bytes = schema->column_count * sizeof(struct column);
	struct table_columns *made = mem_zalloc(sizeof(*made) + bytes);
	enum status status = STATUS_NOMEM;

	if (!made)
		return STATUS_NOMEM;
	made->note.free = table_columns_free;
	made->arena = arena_new(TYPES_ARENA_BYTES);
	if (made->arena)
		status = columns_init(r, schema, made);
	if (status == STATUS_OK)
		*ret = &made->note;
	else
		table_columns_free(&made->note);
	return status;
}

/* Sets the columns of an opened table. Only the first transaction that opens it makes them. */
static enum status
columns_open(struct rows_request *r, struct table *t)
{
	const struct table_note *note = table_note_of(t->db);
	const struct table_columns *columns;
	struct table_note *made;

	if (!note) {
		TRY(columns_make(r, t->schema, &made));
		note = table_note_leave(t->db, made);
	}
	columns = (const struct table_columns *)note;
	t->columns = columns->columns;
	t->hidden = columns->hidden;
	return STATUS_OK;
}

/* ---- Tables ---- */

static enum status
fail_no_table(struct rows_request *r, const struct rows_table *wanted)
{
	return rows_fail(r, ROWS_STATE_TABLE, "the table \"%.*s.%.*s\" does not exist",
			 STR_ARG(wanted->schema), STR_ARG(wanted->name));
}

enum status
rows_table_open(struct rows_request *r, struct kv_tx *tx, struct catalog_cache *cache,
		const struct rows_table *wanted, struct arena *arena, struct table **ret)
{
	AUTO(buf_release) struct buf full = BUF_SHORT(CATALOG_NAME_BYTES);
	struct table *t = arena_zalloc(arena, sizeof(*t));
	enum status status;

	if (!t)
		return STATUS_LIMIT;
	if (table_name(wanted->schema, wanted->name, &full, NULL) != STATUS_OK)
		return fail_no_table(r, wanted);
	status = catalog_open(tx, cache, CATALOG_SPACE_TABLE, buf_str(&full), &t->db, &r->err);
	if (status == STATUS_NOT_FOUND)
		return fail_no_table(r, wanted);
	TRY(status);
	t->schema = table_schema_of(t->db);
	status = wanted->id.len && memcmp(wanted->id.ptr, t->schema->id, ROWS_ID_BYTES) != 0
			 ? rows_fail(r, ROWS_STATE_CHANGED,
				     "the table \"%.*s.%.*s\" was made anew since",
				     STR_ARG(wanted->schema), STR_ARG(wanted->name))
			 : columns_open(r, t);
	if (status != STATUS_OK) {
		catalog_db_unref(t->db);
		return status;
	}
	*ret = t;
	return STATUS_OK;
}

void
rows_table_close(struct table *t)
{
	if (t)
		catalog_db_unref(t->db);
}

static enum status
check_kind(struct rows_request *r, const struct column *c)
{
	if (c->kind != ROWS_NONE)
		return STATUS_OK;
	return rows_fail(r, ROWS_STATE_UNSUPPORTED,
			 "the column \"%.*s\" of type %.*s has no kind here",
			 STR_ARG(c->stored->name), STR_ARG(c->stored->type));
}

enum status
rows_table_column_find(struct rows_request *r, const struct table *t, uint32_t id,
		       const struct column **ret)
{
	const struct table_column *stored = table_column_by_id(t->schema, id);
	size_t at = stored ? (size_t)(stored - t->schema->columns) : 0;

	if (!stored || at < t->hidden)
		return rows_fail(r, ROWS_STATE_COLUMN, "the table has no column with the id %u",
				 (unsigned)id);
	*ret = &t->columns[at];
	return check_kind(r, *ret);
}

enum status
rows_table_check_key(struct rows_request *r, const struct table *t)
{
	for (size_t i = 0; i < t->schema->key_count; i++)
		TRY(check_kind(r, &t->columns[i]));
	return STATUS_OK;
}
