/*
 * Checks what is kept for a bound by versions: that every record of a header has its note and each
 * note is one of something; that what a horizon hides is on its way out; that items with too many
 * versions will be looked at.
 */
#include "model/timed/check.h"
#include "model/timed/versions.h"

enum {
	CHANGES_MOST = 1024 * 1024, /* of bodies, that are compared with notes at once: 16 MiB */
};

/* A row of two elements of bytes, of which `*ret_len` is the length. */
static bool
row_take(struct str tail, size_t *ret_len)
{
	size_t len = tuple_skip(tail, 0, TUPLE_SKIP_TEXT);

	*ret_len = len ? tuple_skip(tail, len, TUPLE_SKIP_TEXT) : 0;
	return *ret_len;
}

/* The header or the body that something is about. */
static bool
group_is_good(uint64_t space, struct str group)
{
	size_t len;

	if (space == TIMED_SPACE_ROWS)
		return row_take(group, &len) && len == group.len;
	len = tuple_skip(group, 0, TUPLE_SKIP_TEXT);
	return space == TIMED_SPACE_BODY && len && len == group.len;
}

/* ---- Single pairs ---- */

static bool
note_is_good(const struct history_state *state, uint64_t era, struct str tail, struct str value)
{
	struct tuple_reader r;
	uint64_t us, bucket;
	size_t len;

	if (!row_take(tail, &len))
		return false;
	r = tuple_reader(str_skip(tail, len));
	return tuple_next_u64(&r, &us) == STATUS_OK && us && !r.rest.len &&
	       timed_version_number(value, &bucket) && timed_versions_era(bucket) == era &&
	       bucket <= state->buckets[state->count - 1].number;
}

static bool
version_is_good(const struct history_state *state, struct str tail, struct str value)
{
	struct tuple_reader r = tuple_reader(tail);
	uint64_t era, kind, space = TIMED_SPACE_BODY, ignored;

	if (tuple_next_u64(&r, &era) != STATUS_OK || tuple_next_u64(&r, &kind) != STATUS_OK ||
	    era > timed_versions_era(state->buckets[state->count - 1].number))
		return false;
	if (kind == TIMED_VERSION_NOTE)
		return note_is_good(state, era, r.rest, value);
	if (kind == TIMED_VERSION_HORIZON && tuple_next_u64(&r, &space) != STATUS_OK)
		return false;
	return (kind == TIMED_VERSION_HORIZON || kind == TIMED_VERSION_SHARED) &&
	       group_is_good(space, r.rest) && timed_version_number(value, &ignored);
}

static bool
trim_is_good(struct str tail, struct str value)
{
	AUTO(buf_release) struct buf scratch = CATALOG_KEY_INIT;
	struct tuple_reader r = tuple_reader(tail);
	struct timed_trim_job job;
	uint64_t slot, space;

	if (tuple_next_u64(&r, &slot) != STATUS_OK)
		return false;
	if (slot)
		return group_is_good(TIMED_SPACE_ROWS, r.rest) && !value.len;
	return tuple_next_u64(&r, &space) == STATUS_OK && group_is_good(space, r.rest) &&
	       timed_trim_job_parse(value, &scratch, &job) && job.until_us;
}

/* ---- Notes against records ---- */

/* True in `*ret` if the key is there. */
static enum status
key_is_there(struct catalog_verify *v, const struct buf *key, bool *ret)
{
	struct kv_future *f;
	struct str ignored;

	TRY(catalog_key_status(key));
	TRY(catalog_verify_get(v, buf_str(key), &f));
	*ret = kv_future_value(f, &ignored);
	kv_future_free(f);
	return STATUS_OK;
}

enum status
timed_verify_noted(struct catalog_verify *v, const struct history_state *state, uint64_t bucket,
		   struct str tail, struct str record)
{
	AUTO(buf_release) struct buf note = CATALOG_KEY_INIT;
	struct tuple_reader r = tuple_reader(tail);
	uint64_t space, us;
	bool there;
	size_t len;

	if (!state->most_versions || bucket < state->versions_from ||
	    tuple_next_u64(&r, &space) != STATUS_OK || space != TIMED_SPACE_ROWS ||
	    !row_take(r.rest, &len))
		return STATUS_OK;
	timed_versions_key(v->db, timed_versions_era(bucket), TIMED_VERSION_NOTE, &note);
	buf_append(&note, r.rest.ptr, len);
	r = tuple_reader(str_skip(r.rest, len + 1)); /* the null that ends the key */
	if (tuple_next_u64(&r, &us) != STATUS_OK)
		return STATUS_OK;
	tuple_put_u64(&note, us);
	TRY(key_is_there(v, &note, &there));
	if (!there)
		catalog_verify_found(v, TIMED_FINDING_VERSIONS, record,
				     "no note says that its item was changed then");
	return STATUS_OK;
}

/* ---- Notes of one item against the bound ---- */

/* The item whose notes are gone through, in one era. */
struct item_notes {
	struct buf row;
	uint64_t era;
	uint64_t notes;
	struct buf first; /* the key of its first note */
};

/* True in `*ret` if the item will be looked at, or is. Goes through TRIM. */
static enum status
item_is_marked(struct catalog_verify *v, struct str row, bool *ret)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };

	*ret = false;
	TRY(catalog_verify_cursor_open(v, &c, TIMED_SPACE_TRIM));
	while (!c.done && !*ret) {
		struct tuple_reader r = tuple_reader(c.tail);
		uint64_t slot, space = TIMED_SPACE_ROWS;

		*ret = tuple_next_u64(&r, &slot) == STATUS_OK &&
		       (slot || tuple_next_u64(&r, &space) == STATUS_OK) &&
		       space == TIMED_SPACE_ROWS && str_eq(r.rest, row);
		TRY(catalog_verify_cursor_next(v, &c));
	}
	return STATUS_OK;
}

static enum status
item_finish(struct catalog_verify *v, const struct history_state *state, struct item_notes *item)
{
	AUTO(buf_release) struct buf walk = CATALOG_KEY_INIT;
	bool marked = true;

	if (item->notes > state->most_versions) {
		TRY(timed_walk_key(v->db, TIMED_SPACE_RETRIM, &walk));
		TRY(key_is_there(v, &walk, &marked));
		if (!marked)
			TRY(item_is_marked(v, buf_str(&item->row), &marked));
	}
	if (!marked)
		catalog_verify_found(v, TIMED_FINDING_VERSIONS, buf_str(&item->first),
				     "there are %llu notes of an item, which nobody will look at",
				     (unsigned long long)item->notes);
	item->notes = 0;
	return STATUS_OK;
}

static enum status
item_take(struct catalog_verify *v, const struct history_state *state,
	  const struct catalog_verify_cursor *c, struct item_notes *item)
{
	struct tuple_reader r = tuple_reader(c->tail);
	uint64_t era, kind;
	struct str row;
	size_t len;

	if (tuple_next_u64(&r, &era) != STATUS_OK || tuple_next_u64(&r, &kind) != STATUS_OK ||
	    kind != TIMED_VERSION_NOTE || !row_take(r.rest, &len))
		return STATUS_OK;
	row = str_of(r.rest.ptr, len);
	/* No item has an empty row, as it is before the first note. */
	if (era != item->era || !str_eq(row, buf_str(&item->row))) {
		TRY(item_finish(v, state, item));
		buf_clear(&item->row);
		buf_append_str(&item->row, row);
		buf_clear(&item->first);
		buf_append_str(&item->first, c->pair.key);
		TRY(buf_status(&item->row));
		TRY(buf_status(&item->first));
	}
	item->era = era;
	item->notes++;
	return STATUS_OK;
}

struct versions_check {
	const struct history_state *state;
	struct item_notes *item; /* NULL: notes are not counted */
};

static enum status
version_pair(struct catalog_verify *v, const struct catalog_verify_cursor *c, void *arg)
{
	const struct versions_check *check = arg;
	const struct history_state *state = check->state;

	if (!state->count || !history_state_forgets(state) ||
	    !version_is_good(state, c->tail, c->pair.value))
		catalog_verify_found(v, TIMED_FINDING_VERSIONS, c->pair.key,
				     "nothing that versions of items can have");
	else if (state->most_versions && check->item)
		return item_take(v, state, c, check->item);
	return STATUS_OK;
}

static enum status
verify_version_pairs(struct catalog_verify *v, struct versions_check *check,
		     struct catalog_verify_range *range)
{
	const struct catalog_verify_walk walk = { TIMED_SPACE_VERSIONS, "the pair", NULL,
						  version_pair, check };

	return catalog_verify_walk(v, &walk, range);
}

enum status
timed_verify_versions_range(struct catalog_verify *v, const struct history_state *state,
			    struct catalog_verify_range *range)
{
	struct versions_check check = { state, NULL };

	return verify_version_pairs(v, &check, range);
}

static enum status
trim_pair(struct catalog_verify *v, const struct catalog_verify_cursor *c, void *arg)
{
	const struct versions_check *check = arg;

	if (!check->state->most_versions || !trim_is_good(c->tail, c->pair.value))
		catalog_verify_found(v, TIMED_FINDING_VERSIONS, c->pair.key,
				     "no item that is to be looked at");
	return STATUS_OK;
}

enum status
timed_verify_trim(struct catalog_verify *v, const struct history_state *state,
		  struct catalog_verify_range *range)
{
	struct versions_check check = { state, NULL };
	const struct catalog_verify_walk walk = { TIMED_SPACE_TRIM, "the pair", NULL, trim_pair,
						  &check };

	return catalog_verify_walk(v, &walk, range);
}

enum status
timed_verify_versions(struct catalog_verify *v, const struct history_state *state)
{
	struct item_notes item = { .row = CATALOG_KEY_INIT, .first = CATALOG_KEY_INIT };
	struct versions_check check = { state, &item };
	enum status status = verify_version_pairs(v, &check, NULL);

	if (status == STATUS_OK)
		status = item_finish(v, state, &item);
	buf_release(&item.row);
	buf_release(&item.first);
	if (status == STATUS_OK)
		status = timed_verify_trim(v, state, NULL);
	return status == STATUS_OK ? timed_verify_body_notes(v, state, CHANGES_MOST) : status;
}
