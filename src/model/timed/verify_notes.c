/*
 * Checks that whoever changed a body has left a note at the item that the body belongs to.
 *
 * Only the header of an item says which body it has, and the records of bodies lie in the order of
 * the bodies. So changes are collected in memory until there is no more room, and compared with all
 * headers. Then the next changes are collected, until there are no others.
 */
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "model/timed/check.h"
#include "model/timed/versions.h"

enum {
	CHANGES_LEAST = 256,
};

struct change {
	uint64_t body; /* the hash of its id */
	uint64_t us;
};

struct changes {
	struct change *at;
	size_t count;
	size_t room;
	size_t most;
};

/* ---- Changes ---- */

static uint64_t
body_hash(struct str id)
{
	static const uint8_t seed[HASH_SEED_BYTES];

	return hash_seeded(seed, id);
}

static int
change_compare(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->body != y->body)
		return x->body < y->body ? -1 : 1;
	return (x->us > y->us) - (x->us < y->us);
}

/* A transaction that changes many elements of a body has left a record of each. */
static void
changes_sort(struct changes *c)
{
	size_t kept = 0;

	if (c->count)
		qsort(c->at, c->count, sizeof(*c->at), change_compare);
	for (size_t i = 0; i < c->count; i++)
		if (!kept || change_compare(&c->at[kept - 1], &c->at[i]) != 0)
			c->at[kept++] = c->at[i];
	c->count = kept;
}

/* STATUS_LIMIT: there is no room for another one. */
static enum status
changes_make_room(struct changes *c)
{
	size_t room = c->room ? 2 * c->room : CHANGES_LEAST;
	struct change *at;

	if (c->count < c->room)
		return STATUS_OK;
	changes_sort(c);
	if (c->room && c->count <= c->room / 2)
		return STATUS_OK;
	if (c->room == c->most)
		return STATUS_LIMIT;
	room = room < c->most ? room : c->most;
	at = mem_realloc(c->at, room * sizeof(*at));
	if (!at)
		return STATUS_NOMEM;
	c->at = at;
	c->room = room;
	return STATUS_OK;
}

/* The first change of this body or, where it has none, of one behind it. They are sorted. */
static size_t
changes_find(const struct changes *c, uint64_t body)
{
	size_t low = 0, high = c->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c->at[middle].body < body)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * The change that a record tells of, by its key from the body on. False: it is no record, which
 * another check tells.
 */
static bool
change_parse(struct str tail, struct change *ret)
{
	uint64_t kind;
	struct str key;
	size_t id;

	if (history_record_parse(tail, 0, &key, &ret->us, &kind) != STATUS_OK)
		return false;
	id = tuple_skip(key, 0, TUPLE_SKIP_TEXT);
	ret->body = body_hash(str_of(key.ptr, id));
	return id > 0;
}

/* ---- One item ---- */

struct owner {
	struct catalog_verify *v;
	const struct history_state *state;
	struct str row;  /* the header's key behind the subspace */
	struct str body; /* its id, as it is in keys */
};

/* The greatest number that VERSIONS has of the kind behind `tail`, in any era; 0: none. */
static enum status
latest(const struct owner *o, enum timed_version_key kind, struct str tail, uint64_t *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	const struct history_state *state = o->state;
	uint64_t last = timed_versions_era(state->buckets[state->count - 1].number);

	*ret = 0;
	for (uint64_t era = timed_versions_era(state->buckets[0].number); era <= last; era++) {
		struct kv_future *f;
		struct str value;
		uint64_t number;

		timed_versions_key(o->v->db, era, kind, &key);
		buf_append_str(&key, tail);
		TRY(catalog_key_status(&key));
		TRY(catalog_verify_get(o->v, buf_str(&key), &f));
		if (kv_future_value(f, &value) && timed_version_number(value, &number) &&
		    number > *ret)
			*ret = number;
		kv_future_free(f);
	}
	return STATUS_OK;
}

static enum status
horizon(const struct owner *o, enum timed_space space, struct str group, uint64_t *ret)
{
	AUTO(buf_release) struct buf tail = CATALOG_KEY_INIT;

	tuple_put_u64(&tail, space);
	buf_append_str(&tail, group);
	TRY(catalog_key_status(&tail));
	return latest(o, TIMED_VERSION_HORIZON, buf_str(&tail), ret);
}

/*
 * True in `*ret` if there need be no note of a change at that moment. Either nobody can read the
 * states before it any more, or its body belonged to the header of another item then.
 */
static enum status
is_excused(const struct owner *o, uint64_t us, bool *ret)
{
	uint64_t of_row, of_body, shared;

	TRY(horizon(o, TIMED_SPACE_ROWS, o->row, &of_row));
	TRY(horizon(o, TIMED_SPACE_BODY, o->body, &of_body));
	TRY(latest(o, TIMED_VERSION_SHARED, o->body, &shared));
	*ret = us <= of_row || us <= of_body || us <= shared;
	return STATUS_OK;
}

/* A note has the number of a bucket, which is never 0. */
static enum status
is_noted(const struct owner *o, uint64_t us, bool *ret)
{
	AUTO(buf_release) struct buf tail = CATALOG_KEY_INIT;
	uint64_t bucket;

	buf_append_str(&tail, o->row);
	tuple_put_u64(&tail, us);
	TRY(catalog_key_status(&tail));
	TRY(latest(o, TIMED_VERSION_NOTE, buf_str(&tail), &bucket));
	*ret = bucket != 0;
	return STATUS_OK;
}

static enum status
check_owner(const struct owner *o, struct str key, const struct changes *changes)
{
	uint64_t body = body_hash(o->body);

	for (size_t i = changes_find(changes, body);
	     i < changes->count && changes->at[i].body == body; i++) {
		uint64_t us = changes->at[i].us;
		bool good;

		TRY(is_noted(o, us, &good));
		if (!good)
			TRY(is_excused(o, us, &good));
		if (!good)
			catalog_verify_found(o->v, TIMED_FINDING_VERSIONS, key,
					     "no note says that what belongs to the item was "
					     "changed at %llu us",
					     (unsigned long long)us);
	}
	return STATUS_OK;
}

/* ---- All items ---- */

static enum status
check_headers(struct catalog_verify *v, const struct history_state *state, struct changes *changes)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };
	AUTO(buf_release) struct buf body = CATALOG_KEY_INIT;
	struct owner o = { .v = v, .state = state };
	struct err err = { 0 };
	struct timed t;
	uint64_t made_us;

	changes_sort(changes);
	if (!changes->count)
		return STATUS_OK;
	timed_init(&t, v->tx, v->db, NULL, &err);
	TRY(catalog_verify_cursor_open(v, &c, TIMED_SPACE_ROWS));
	while (!c.done) {
		buf_clear(&body);
		/* A header that cannot be parsed has been told. */
		if (timed_kind_of(v->db)->body_of(&t, c.pair.value, &body, &made_us) == STATUS_OK &&
		    body.len) {
			TRY(buf_status(&body));
			o.row = c.tail;
			o.body = buf_str(&body);
			TRY(check_owner(&o, c.pair.key, changes));
		}
		TRY(catalog_verify_cursor_next(v, &c));
	}
	changes->count = 0;
	return STATUS_OK;
}

static enum status
take_bucket(struct catalog_verify *v, const struct history_state *state, uint64_t bucket,
	    struct changes *changes)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };
	enum status status;

	timed_key_space(&v->key, v->db, TIMED_SPACE_UNDO);
	tuple_put_u64(&v->key, bucket);
	tuple_put_u64(&v->key, TIMED_SPACE_BODY);
	TRY(catalog_key_status(&v->key));
	TRY(catalog_verify_cursor_open_at(v, &c));
	while (!c.done) {
		struct change change;

		if (change_parse(c.tail, &change)) {
			status = changes_make_room(changes);
			if (status == STATUS_LIMIT)
				status = check_headers(v, state, changes);
			TRY(status);
			changes->at[changes->count++] = change;
		}
		TRY(catalog_verify_cursor_next(v, &c));
	}
	return STATUS_OK;
}

enum status
timed_verify_body_notes(struct catalog_verify *v, const struct history_state *state, size_t most)
{
	struct changes changes = { .most = most };
	enum status status = STATUS_OK;

	if (!state->count || !state->most_versions || !timed_kind_of(v->db)->body_of)
		return STATUS_OK;
	for (size_t i = 0; i < state->count && status == STATUS_OK; i++)
		if (state->buckets[i].number >= state->versions_from)
			status = take_bucket(v, state, state->buckets[i].number, &changes);
	if (status == STATUS_OK)
		status = check_headers(v, state, &changes);
	mem_free(changes.at);
	return status;
}
