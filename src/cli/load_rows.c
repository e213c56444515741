/* Rows of a dump (dump_rows.c): each is cleared, and then written cell by cell. */
#include "cli/load_timed.h"

static const struct timed_path no_path;

struct row_load {
	struct timed *t;
	const struct timed_schema *schema;
	const struct load_line *line;
	struct timed_key key;
	enum timed_type type;
};

/* What "expires_ms" of these members says. */
static enum status
expiry_read(const struct load_line *members, enum timed_expiry_kind otherwise,
	    struct timed_expiry *ret)
{
	*ret = (struct timed_expiry){ .kind = otherwise };
	if (!json_value_find(members->members, members->count, "expires_ms"))
		return STATUS_OK;
	TRY(load_line_u64(members, "expires_ms", &ret->ms));
	ret->kind = ret->ms ? TIMED_EXPIRY_AT : TIMED_EXPIRY_NEVER;
	return STATUS_OK;
}

/* The row's own cell, instead of all that there was. */
static enum status
own_load(struct row_load *r)
{
	const struct load_line *line = r->line;
	const struct json_value *value = json_value_find(line->members, line->count, "value");
	struct timed_expiry expiry;
	struct doc_scalar scalar;
	uint64_t write_us = 0;

	TRY(timed_clear(r->t, &r->key, &no_path));
	if (r->type == TIMED_LEAF)
		return STATUS_OK;
	TRY(load_line_u64(line, "written_us", &write_us));
	TRY(expiry_read(line, TIMED_EXPIRY_DEFAULT, &expiry));
	TRY(timed_written_at(r->t, write_us));
	if (r->type == TIMED_INSERTED)
		return timed_insert(r->t, &r->key, expiry);
	if (r->type != TIMED_VALUE)
		return timed_add(r->t, &r->key, r->type, NULL, 0, expiry);
	if (!value)
		return err_set(line->err, STATUS_INVALID, "\"value\" is missing");
	TRY(rows_scalar_read(value, line->arena, &scalar, line->err));
	return timed_set(r->t, &r->key, &scalar, expiry);
}

static enum status
leaf_load(struct row_load *r, const struct json_value *leaf)
{
	struct load_line fields = *r->line;
	const struct json_value *value;
	struct timed_value written = { .path = no_path };
	struct timed_expiry expiry;
	struct timed_path path;
	uint64_t write_us = 0;

	TRY(json_value_members(leaf, fields.arena, &fields.members, &fields.count, fields.err));
	TRY(rows_path_read(r->schema, json_value_find(fields.members, fields.count, "path"),
			   fields.arena, &path, fields.err));
	value = json_value_find(fields.members, fields.count, "value");
	if (!value || !path.count)
		return err_set(fields.err, STATUS_INVALID, "a leaf needs a path and a value");
	TRY(rows_scalar_read(value, fields.arena, &written.value, fields.err));
	TRY(load_line_u64(&fields, "written_us", &write_us));
	TRY(expiry_read(&fields, TIMED_EXPIRY_DEFAULT, &expiry));
	TRY(timed_written_at(r->t, write_us));
	if (r->schema->column_count)
		return timed_put(r->t, &r->key, &path, &written, 1, expiry);
	written.path = path;
	return timed_add(r->t, &r->key, r->type, &written, 1,
			 (struct timed_expiry){ .kind = TIMED_EXPIRY_NEVER });
}

/* True if rows of the database can have this type, and leaves if there are any. */
static bool
type_fits(const struct row_load *r, size_t leaves)
{
	if (r->schema->column_count)
		return r->type == TIMED_LEAF || r->type == TIMED_INSERTED;
	return r->type == TIMED_HASH || r->type == TIMED_SET || (r->type == TIMED_VALUE && !leaves);
}

enum status
load_rows_line(struct timed *t, const struct load_line *line)
{
	struct row_load r = { .t = t, .schema = timed_schema_of(t->db), .line = line };
	const struct json_value *key = json_value_find(line->members, line->count, "key");
	const struct json_value *leaves = json_value_find(line->members, line->count, "leaves");
	struct json_member *fields;
	struct json_value *items = NULL;
	size_t count, leaf_count = 0;

	if (!key)
		return err_set(line->err, STATUS_INVALID, "\"key\" is missing");
	TRY(json_value_members(key, line->arena, &fields, &count, line->err));
	TRY(rows_key_read(r.schema, fields, count, line->arena, &r.key, line->err));
	TRY(rows_key_check(r.schema, &r.key, r.schema->key_count, line->err));
	if (leaves)
		TRY(json_value_items(leaves, line->arena, &items, &leaf_count, line->err));
	r.type = rows_type_read(json_value_find(line->members, line->count, "type"));
	if (!type_fits(&r, leaf_count))
		return err_set(line->err, STATUS_INVALID, "no row here can have this \"type\"");
	if (!json_value_find(line->members, line->count, "more"))
		TRY(own_load(&r));
	for (size_t i = 0; i < leaf_count; i++)
		TRY(leaf_load(&r, &items[i]));
	return STATUS_OK;
}
