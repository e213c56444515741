/* Checks what all databases in time have: the schema, the clock, the past. */
#include "model/timed/timed_int.h"

#define TIMED_FINDING_HISTORY "row_history" /* a record of the past that cannot be one */
#define TIMED_FINDING_SCHEMA  "row_schema"  /* none, or one that cannot be read */

enum status
timed_verify_entry(struct catalog_verify *v, const char *finding, struct str key, uint64_t ms)
{
	AUTO(buf_release) struct buf entry = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct str ignored;

	if (!ms)
		return STATUS_OK;
	TRY(timed_key_expiry(v->db, key, ms, &entry));
	TRY(catalog_verify_get(v, buf_str(&entry), &f));
	if (!kv_future_value(f, &ignored))
		catalog_verify_found(v, finding, key, "it expires, and no entry says so");
	kv_future_free(f);
	return STATUS_OK;
}

enum status
timed_verify_single(struct catalog_verify *v, enum timed_space space,
		    bool (*is_good)(struct str value))
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };

	TRY(catalog_verify_cursor_open(v, &c, space));
	while (!c.done) {
		if (c.tail.len || !is_good)
			catalog_verify_found(v, CATALOG_FINDING_KEY, c.pair.key,
					     "nothing can be at this place");
		else if (!is_good(c.pair.value))
			catalog_verify_found(v, CATALOG_FINDING_VALUE, c.pair.key,
					     "not what this key can hold");
		TRY(catalog_verify_cursor_next(v, &c));
	}
	return STATUS_OK;
}

/* The value has been read before: without a schema nothing else can be checked. */
static bool
schema_is_good(struct str value)
{
	return value.len > 0;
}

static bool
clock_is_good(struct str value)
{
	uint64_t us;

	return timed_clock_parse(value, &us) == STATUS_OK;
}

static bool
stamp_is_good(struct str value)
{
	return value.len == KV_VERSIONSTAMP_BYTES;
}

/* The buckets that there are; the number of the newest, 0 without a history. */
static enum status
verify_buckets(struct catalog_verify *v, uint64_t *ret_newest)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };
	struct history_state state;
	struct err err = { 0 };
	enum status status;

	TRY(catalog_verify_cursor_open(v, &c, TIMED_SPACE_HISTORY));
	while (!c.done) {
		status = history_state_parse(c.pair.value, &state, &err);
		if (c.tail.len)
			catalog_verify_found(v, CATALOG_FINDING_KEY, c.pair.key,
					     "nothing can be at this place");
		else if (status != STATUS_OK)
			catalog_verify_unreadable(v, status, &err, c.pair.key,
						  "not the state of a history");
		else
			*ret_newest = state.buckets[state.count - 1].number;
		TRY(catalog_verify_cursor_next(v, &c));
	}
	return STATUS_OK;
}

/* Records of the past; those of a history that was switched off may be left for a while. */
static enum status
verify_records(struct catalog_verify *v, uint64_t newest)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };

	TRY(catalog_verify_cursor_open(v, &c, TIMED_SPACE_UNDO));
	while (!c.done) {
		struct tuple_reader r = tuple_reader(c.tail);
		uint64_t bucket;

		if (tuple_next_u64(&r, &bucket) != STATUS_OK || (newest && bucket > newest))
			catalog_verify_found(v, TIMED_FINDING_HISTORY, c.pair.key,
					     "no bucket can have this number");
		else if (!history_record_is_good(r.rest, c.pair.value))
			catalog_verify_found(v, TIMED_FINDING_HISTORY, c.pair.key,
					     "not a record of what a key held");
		TRY(catalog_verify_cursor_next(v, &c));
	}
	return STATUS_OK;
}

static enum status
verify_history(struct catalog_verify *v)
{
	uint64_t newest = 0;

	TRY(verify_buckets(v, &newest));
	return verify_records(v, newest);
}

enum status
timed_verify(struct catalog_verify *v)
{
	const struct catalog_db *given = v->db;
	struct catalog_db opened = *given;
	struct err err = { 0 };
	enum status status;

	/* The description may be one of a list, which has no schema with it. */
	status = timed_extend(v->tx, given, &opened.extension, &err);
	if (status == STATUS_CORRUPT || status == STATUS_NEWER) {
		timed_key_space(&v->key, given, TIMED_SPACE_SCHEMA);
		TRY(catalog_key_status(&v->key));
		catalog_verify_found(v, TIMED_FINDING_SCHEMA, buf_str(&v->key), "%s", err.text);
		return STATUS_OK;
	}
	TRY(status);
	v->db = &opened;
	status = timed_kind_of(given)->verify(v);
	if (status == STATUS_OK)
		status = timed_verify_single(v, TIMED_SPACE_SCHEMA, schema_is_good);
	if (status == STATUS_OK)
		status = timed_verify_single(v, TIMED_SPACE_CLOCK, clock_is_good);
	if (status == STATUS_OK)
		status = timed_verify_single(v, TIMED_SPACE_CHANGED, stamp_is_good);
	if (status == STATUS_OK)
		status = verify_history(v);
	v->db = given;
	timed_extension_free(opened.extension);
	return status;
}
