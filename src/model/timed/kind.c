/* What the catalog has to know of databases of rows. */
#include "base/quote.h"
#include "kv/tuple.h"
#include "model/timed/item.h"
#include "model/timed/timed_int.h"

static enum status
timed_check_name(struct str name, struct err *err)
{
	bool good = name.len && name.len <= TIMED_DB_NAME_BYTES;

	for (size_t i = 0; good && i < name.len; i++) {
		char c = name.ptr[i];

		good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		       c == '_' || c == '-' || c == '.';
	}
	if (good)
		return STATUS_OK;
	return err_set(err, STATUS_INVALID,
		       "no database of rows can be called \"%s\": a name has 1 to %d letters, "
		       "digits, and _ - . only",
		       QUOTE_SHOW(name), TIMED_DB_NAME_BYTES);
}

/* A row of a table has a cell of its own only if it was inserted, so rows are not counted here. */
static bool
timed_is_document(struct str key)
{
	struct tuple_reader r = tuple_reader(key);
	struct tuple_elem e;
	uint64_t space;

	return tuple_next_u64(&r, &space) == STATUS_OK && space == TIMED_SPACE_ROWS &&
	       tuple_next(&r, &e) == STATUS_OK && tuple_next(&r, &e) == STATUS_OK && !r.rest.len;
}

const struct catalog_kind timed_kind = {
	.number = CATALOG_KIND_TIMED,
	.name = "rows",
	.space = CATALOG_SPACE_ROWS,
	.check_name = timed_check_name,
	.extend = timed_extend,
	.extension_free = timed_extension_free,
	.watch_key = timed_changed_key,
	.wake = timed_changed_write,
	.space_name = timed_space_name,
	.draw_pair = timed_draw_pair,
	.verify = timed_verify,
	.is_document = timed_is_document,
};

enum status
timed_create(struct kv_tx *tx, struct str name, const struct timed_schema *schema,
	     uint64_t default_ttl_ms, struct err *err)
{
	return timed_create_of(tx, &timed_kind, name, schema, default_ttl_ms, err);
}

/* ---- Databases of items ---- */

/* Numbers, as SELECT has them. */
static enum status
redis_check_name(struct str name, struct err *err)
{
	uint64_t n;

	if (str_to_u64(name, &n) && n < TIMED_REDIS_DATABASES && (name.ptr[0] != '0' || n == 0) &&
	    name.len <= 2)
		return STATUS_OK;
	return err_set(err, STATUS_INVALID,
		       "no database of Redis's door can be called \"%s\": they have numbers below "
		       "%d (TIMED_REDIS_DATABASES)",
		       QUOTE_SHOW(name), TIMED_REDIS_DATABASES);
}

const struct catalog_kind timed_redis_kind = {
	.number = CATALOG_KIND_REDIS,
	.name = "redis",
	.space = CATALOG_SPACE_REDIS,
	.check_name = redis_check_name,
	.extend = timed_extend,
	.extension_free = timed_extension_free,
	.watch_key = timed_changed_key,
	.wake = timed_changed_write,
	.space_name = timed_space_name,
	.draw_pair = timed_items_draw_pair,
	.verify = timed_verify,
	.is_document = timed_is_document,
};

void
timed_register(void)
{
	catalog_kind_register(&timed_kind);
	catalog_kind_register(&timed_redis_kind);
}
