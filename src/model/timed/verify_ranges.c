/* The check in ranges of a database in time: its schema may be another one in each of them. */
#include "model/timed/check.h"

struct with_schema {
	catalog_verify_range_body *body;
	void *arg;
};

static enum status
with_schema_body(struct catalog_verify *v, struct catalog_verify_range *range)
{
	struct with_schema *with = range->arg;
	const struct catalog_db *given = v->db;
	struct catalog_db opened = *given;
	struct err err = { 0 };
	enum status status = given->kind->extend(v->tx, given, &opened.extension, &err);

	if (status == STATUS_CORRUPT || status == STATUS_NEWER)
		return STATUS_OK;
	TRY(status);
	v->db = &opened;
	range->arg = with->arg;
	status = with->body(v, range);
	range->arg = with;
	v->db = given;
	given->kind->extension_free(opened.extension);
	return status;
}

enum status
timed_verify_ranges(struct catalog_verify *v, catalog_verify_range_body *body, void *arg)
{
	struct with_schema with = { body, arg };

	return catalog_verify_ranges(v, with_schema_body, &with);
}

static enum status
pairs_body(struct catalog_verify *v, struct catalog_verify_range *range)
{
	return catalog_verify_walk(v, range->arg, range);
}

enum status
timed_verify_pairs(struct catalog_verify *v, const struct catalog_verify_walk *walk)
{
	struct catalog_verify_walk copy = *walk;

	return timed_verify_ranges(v, pairs_body, &copy);
}

enum status
timed_verify_once(struct catalog_verify *v, catalog_verify_part *part, const char *what)
{
	struct catalog_verify_whole whole = { part, what };

	return timed_verify_ranges(v, catalog_verify_whole_body, &whole);
}

size_t
timed_verify_row(const struct catalog_verify *v, const struct catalog_verify_cursor *c)
{
	size_t len;

	return timed_key_row_bytes(v->db, c->pair.key, &len) == STATUS_OK ? len - c->prefix_len : 0;
}
