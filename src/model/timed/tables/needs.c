/* What a table needs besides itself: its keyspace, and the types that its columns name. */
#include "model/timed/tables/tables_int.h"

/* ---- Which types are needed ---- */

static bool
is_word_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/* True if the word stands in the text of a type. A word in quotes counts, too. */
static bool
text_has_word(struct str text, struct str word)
{
	for (size_t at = 0; at + word.len <= text.len; at++) {
		if (memcmp(text.ptr + at, word.ptr, word.len) != 0)
			continue;
		if ((at && is_word_byte(text.ptr[at - 1])) ||
		    (at + word.len < text.len && is_word_byte(text.ptr[at + word.len])))
			continue;
		return true;
	}
	return false;
}

static bool
columns_name(const struct table_schema *schema, struct str type)
{
	for (size_t i = 0; i < schema->column_count; i++)
		if (text_has_word(schema->columns[i].type, type))
			return true;
	return false;
}

static bool
fields_name(const struct table_type *user, struct str type)
{
	for (size_t i = 0; i < user->field_count; i++)
		if (text_has_word(user->fields[i].type, type))
			return true;
	return false;
}

/* The type is named by a column, or by a type that is needed. */
static bool
type_is_needed(const struct table_schema *schema, const struct table_types *all, const bool *needed,
	       size_t at)
{
	if (columns_name(schema, all->types[at].name))
		return true;
	for (size_t i = 0; i < all->count; i++)
		if (needed[i] && i != at && fields_name(&all->types[i], all->types[at].name))
			return true;
	return false;
}

static enum status
types_choose(const struct table_schema *schema, const struct table_types *all, struct arena *arena,
	     struct table_needs *ret)
{
	struct table_type *types = arena_alloc(arena, all->count * sizeof(*types) + 1);
	bool *needed = arena_zalloc(arena, all->count + 1);
	bool found = true;

	if (!types || !needed)
		return STATUS_LIMIT;
	while (found) {
		found = false;
		for (size_t i = 0; i < all->count; i++) {
			if (needed[i] || !type_is_needed(schema, all, needed, i))
				continue;
			needed[i] = found = true;
		}
	}
	ret->types = types;
	ret->type_count = 0;
	for (size_t i = 0; i < all->count; i++)
		if (needed[i])
			types[ret->type_count++] = all->types[i];
	return STATUS_OK;
}

enum status
table_needs_read(struct kv_tx *tx, const struct catalog_db *db, struct arena *arena,
		 struct table_needs *ret, struct err *err)
{
	struct str keyspace, table;
	struct table_types all;
	enum status status;

	*ret = (struct table_needs){ 0 };
	table_name_split(db->name, &keyspace, &table);
	status = table_keyspace_read(tx, keyspace, arena, &ret->keyspace, err);
	if (status == STATUS_NOT_FOUND) /* it is lost: the table can be read without it */
		ret->keyspace = (struct table_keyspace){ .name = keyspace };
	else
		TRY(status);
	TRY(table_type_list(tx, keyspace, arena, &all, err));
	return types_choose(table_schema_of(db), &all, arena, ret);
}

/* ---- Making them ---- */

static bool
types_equal(const struct table_type *a, const struct table_type *b)
{
	if (a->field_count != b->field_count)
		return false;
	for (size_t i = 0; i < a->field_count; i++)
		if (!str_eq(a->fields[i].name, b->fields[i].name) ||
		    !str_eq(a->fields[i].type, b->fields[i].type))
			return false;
	return true;
}

static enum status
type_ensure(struct kv_tx *tx, const struct table_type *type, struct arena *arena, struct err *err)
{
	struct table_type there;
	enum status status = table_type_read(tx, type->keyspace, type->name, arena, &there, err);

	if (status == STATUS_NOT_FOUND)
		return table_type_put(tx, type, false, err);
	TRY(status);
	if (types_equal(type, &there))
		return STATUS_OK;
	return err_set(err, STATUS_INVALID,
		       "the type \"%.*s\" of the keyspace \"%.*s\" has other fields there",
		       STR_ARG(type->name), STR_ARG(type->keyspace));
}

enum status
table_needs_ensure(struct kv_tx *tx, struct str keyspace, const struct table_needs *needs,
		   struct arena *arena, struct err *err)
{
	struct table_keyspace made = needs->keyspace, there;
	enum status status;

	made.name = keyspace;
	status = table_keyspace_read(tx, keyspace, arena, &there, err);
	if (status == STATUS_NOT_FOUND)
		status = table_keyspace_create(tx, &made, err);
	TRY(status);
	for (size_t i = 0; i < needs->type_count; i++) {
		struct table_type type = needs->types[i];

		type.keyspace = keyspace;
		TRY(type_ensure(tx, &type, arena, err));
	}
	return STATUS_OK;
}

/* ---- From one store to another ---- */

struct needs_share {
	const struct catalog_db *db;
	struct arena *arena;
	struct table_needs needs;
	struct err *err;
};

static enum status
share_read_body(struct kv_tx *tx, void *arg)
{
	struct needs_share *s = arg;
	struct catalog_db *db;
	enum status status;

	arena_clear(s->arena);
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, s->db->name, &db, s->err));
	status = table_needs_read(tx, db, s->arena, &s->needs, s->err);
	catalog_db_unref(db);
	return status;
}

static enum status
share_write_body(struct kv_tx *tx, void *arg)
{
	struct needs_share *s = arg;
	struct arena_mark mark = arena_mark(s->arena);
	struct str keyspace, table;
	enum status status;

	table_name_split(s->db->name, &keyspace, &table);
	status = table_needs_ensure(tx, keyspace, &s->needs, s->arena, s->err);
	arena_reset(s->arena, mark);
	return status;
}

enum status
table_needs_share(struct kv_store *from, struct kv_store *to, const struct catalog_db *db,
		  struct err *err)
{
	struct needs_share s = { .db = db,
				 .arena = arena_new(TABLE_NEEDS_ARENA_BYTES),
				 .err = err };
	enum status status = s.arena ? kv_run_read(from, share_read_body, &s, err) : STATUS_NOMEM;

	if (status == STATUS_OK)
		status = kv_run(to, share_write_body, &s, NULL, err);
	arena_free(s.arena);
	return status;
}
