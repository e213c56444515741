/* What the catalog has to know of databases of items, and what sweeps and listings have. */
#include "base/quote.h"
#include "model/timed/check.h"
#include "model/timed/items/item_int.h"
#include "model/timed/items/items.h"

/* Numbers, as SELECT has them; and the one for functions. */
static enum status
redis_check_name(struct str name, struct err *err)
{
	uint64_t n;

	if (str_to_u64(name, &n) && n < TIMED_REDIS_DATABASES &&
	    (name.ptr[0] != '0' || name.len == 1))
		return STATUS_OK;
	if (str_eq(name, STR(TIMED_FUNCTIONS)))
		return STATUS_OK;
	return err_set(err, STATUS_INVALID,
		       "no database of Redis's door can be called \"%s\": they have numbers below "
		       "%d (TIMED_REDIS_DATABASES)",
		       QUOTE_SHOW(name), TIMED_REDIS_DATABASES);
}

/* True if the header of an item has expired. */
static enum status
items_has_expired(struct timed *t, struct str value, bool *ret)
{
	struct timed_header header;

	TRY(timed_header_parse(value, &header, t->err));
	*ret = header.expires_ms && header.expires_ms <= t->now_us / TIMED_US_PER_MS;
	return STATUS_OK;
}

static bool
items_own_hides(const struct catalog_db *db)
{
	(void)db;
	return true;
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
	.inspect = timed_items_inspect,
	.verify = timed_verify,
	.is_document = timed_is_document,
};

static const struct timed_kind items_in_time = {
	.catalog = &timed_redis_kind,
	.tells = true,
	.own_hides = items_own_hides,
	.schema_space = TIMED_SPACE_SCHEMA,
	/* First, while the transaction has written no stamps in bodies, which it could not read. */
	.tend = timed_gone_sweep,
	.due_sweep = timed_items_due_sweep,
	.body_of = timed_items_body_of,
	.left_by = timed_items_left_by,
	.has_expired = items_has_expired,
	.draw_key = timed_items_draw_key,
	.verify = timed_items_verify,
	.verify_in_ranges = timed_items_verify_in_ranges,
};

void
timed_items_register(void)
{
	timed_kind_register(&items_in_time);
}
