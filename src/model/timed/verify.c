/* Checks what all databases in time have: the schema, the clock, the past. */
#include "model/timed/check.h"
#include "model/timed/versions.h"

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

/* The buckets that there are; none without a history. `tell`: what is wrong with them. */
static enum status
verify_buckets(struct catalog_verify *v, bool tell, struct history_state *ret, bool *ret_readable)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };
	struct history_state state;
	struct err err = { 0 };
	enum status status;

	*ret_readable = true;
	TRY(catalog_verify_cursor_open(v, &c, TIMED_SPACE_HISTORY));
	while (!c.done) {
		status = history_state_parse(c.pair.value, &state, &err);
		*ret_readable = *ret_readable && status == STATUS_OK;
		if (!tell)
			*ret = status == STATUS_OK ? state : (struct history_state){ 0 };
		else if (c.tail.len)
			catalog_verify_found(v, CATALOG_FINDING_KEY, c.pair.key,
					     "nothing can be at this place");
		else if (status != STATUS_OK)
			catalog_verify_unreadable(v, status, &err, c.pair.key,
						  "not the state of a history");
		else if (state.counts[state.count - 1] != (state.most_bytes > 0))
			catalog_verify_found(v, TIMED_FINDING_HISTORY, c.pair.key,
					     "bytes are counted without a bound, or not with one");
		else
			*ret = state;
		TRY(catalog_verify_cursor_next(v, &c));
	}
	return STATUS_OK;
}

/* What is kept of the bytes of buckets, and what their records are found to have. */
struct bytes_check {
	const struct history_state *state;
	bool kept[HISTORY_BUCKETS_MOST];
	uint64_t bytes[HISTORY_BUCKETS_MOST], found[HISTORY_BUCKETS_MOST];
	size_t partial; /* the bucket that is being counted; the count of buckets: none */
	struct buf place;
	/* What went in older buckets is listed up to here (weigh.c). 0: all of it. */
	uint64_t marked;
	struct buf mark;
};

/* Where the bucket is among those of the state; their count if it is not there. */
static size_t
bucket_at(const struct history_state *state, uint64_t number)
{
	size_t i = 0;

	while (i < state->count && state->buckets[i].number != number)
		i++;
	return i;
}

static enum status
verify_held_pair(struct catalog_verify *v, const struct catalog_verify_cursor *c,
		 struct bytes_check *b)
{
	struct tuple_reader r = tuple_reader(c->tail);
	uint64_t number, bytes;
	struct str place;
	size_t i;

	i = tuple_next_u64(&r, &number) == STATUS_OK && !r.rest.len ? bucket_at(b->state, number)
								    : b->state->count;
	if (i == b->state->count || !b->state->most_bytes) {
		catalog_verify_found(v, TIMED_FINDING_HISTORY, c->pair.key,
				     "bytes of no bucket, or without a bound");
		return STATUS_OK;
	}
	if (!history_held_parse(c->pair.value, &bytes, &place) ||
	    (place.len && b->partial < b->state->count)) {
		catalog_verify_found(v, TIMED_FINDING_HISTORY, c->pair.key,
				     "not the bytes of a bucket");
		return STATUS_OK;
	}
	b->kept[i] = true;
	b->bytes[i] = bytes;
	if (!place.len)
		return STATUS_OK;
	b->partial = i;
	buf_append_str(&b->place, place);
	return buf_status(&b->place);
}

static enum status
verify_held(struct catalog_verify *v, struct bytes_check *b)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };

	TRY(catalog_verify_cursor_open(v, &c, TIMED_SPACE_HELD));
	while (!c.done) {
		TRY(verify_held_pair(v, &c, b));
		TRY(catalog_verify_cursor_next(v, &c));
	}
	return STATUS_OK;
}

/* ---- Bodies that are gone ---- */

/* True if the entry of GONE is of a bucket that is read, and nothing is to be listed before it. */
static bool
gone_is_taken(const struct bytes_check *b, struct str tail, uint64_t bucket)
{
	return bucket >= b->marked || str_cmp(tail, buf_str(&b->mark)) <= 0;
}

static enum status
verify_weigh_entry(struct catalog_verify *v, struct str tail, struct str key, bool weighed)
{
	AUTO(buf_release) struct buf entry = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct str ignored;

	timed_key_space(&entry, v->db, TIMED_SPACE_WEIGH);
	buf_append_str(&entry, tail);
	TRY(catalog_key_status(&entry));
	TRY(catalog_verify_get(v, buf_str(&entry), &f));
	if (kv_future_value(f, &ignored) == weighed)
		catalog_verify_found(v, TIMED_FINDING_HISTORY, key,
				     weighed ? "it is weighed, and is to be weighed again"
					     : "it is not weighed, and is not to be");
	kv_future_free(f);
	return STATUS_OK;
}

static enum status
verify_gone_bytes(struct catalog_verify *v, struct bytes_check *b)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };

	TRY(catalog_verify_cursor_open(v, &c, TIMED_SPACE_GONE));
	while (!c.done && b->state->most_bytes) {
		struct tuple_reader r = tuple_reader(c.tail);
		uint64_t bucket, bytes;
		struct str place;
		size_t i = tuple_next_u64(&r, &bucket) == STATUS_OK ? bucket_at(b->state, bucket)
								    : b->state->count;

		if (i < b->state->count && gone_is_taken(b, c.tail, bucket)) {
			if (!timed_weight_parse(c.pair.value, &bytes, &place) || place.len)
				catalog_verify_found(v, TIMED_FINDING_HISTORY, c.pair.key,
						     "not what a body can have");
			else
				b->found[i] += bytes;
			TRY(verify_weigh_entry(v, c.tail, c.pair.key, c.pair.value.len > 0));
		}
		TRY(catalog_verify_cursor_next(v, &c));
	}
	return STATUS_OK;
}

/* The mark, by which GONE is read afterwards; and that everything to be weighed is in GONE. */
static enum status
verify_weigh_pair(struct catalog_verify *v, const struct catalog_verify_cursor *c, void *arg)
{
	struct bytes_check *b = arg;
	AUTO(buf_release) struct buf gone = CATALOG_KEY_INIT;
	struct tuple_reader r = tuple_reader(c->tail);
	struct str place, ignored;
	uint64_t bucket, number;
	struct kv_future *f;

	if (tuple_next_u64(&r, &bucket) != STATUS_OK || !b->state->most_bytes ||
	    (!bucket && r.rest.len) || (bucket && bucket_at(b->state, bucket) == b->state->count) ||
	    !timed_weight_parse(c->pair.value, &number, &place)) {
		catalog_verify_found(v, TIMED_FINDING_HISTORY, c->pair.key,
				     "nothing that can be weighed");
		return STATUS_OK;
	}
	if (!bucket) {
		b->marked = number;
		buf_append_str(&b->mark, place);
		return buf_status(&b->mark);
	}
	timed_key_space(&gone, v->db, TIMED_SPACE_GONE);
	buf_append_str(&gone, c->tail);
	TRY(catalog_key_status(&gone));
	TRY(catalog_verify_get(v, buf_str(&gone), &f));
	if (!kv_future_value(f, &ignored))
		catalog_verify_found(v, TIMED_FINDING_HISTORY, c->pair.key,
				     "what is to be weighed is not gone");
	kv_future_free(f);
	return STATUS_OK;
}

/* `range`: NULL for all of it. */
static enum status
verify_weigh(struct catalog_verify *v, struct catalog_verify_range *range, struct bytes_check *b)
{
	const struct catalog_verify_walk walk = { TIMED_SPACE_WEIGH, "the entry", NULL,
						  verify_weigh_pair, b };

	return catalog_verify_walk(v, &walk, range);
}

/* ---- Records, and all bytes ---- */

/* The bytes that are kept, beside those of the records and of bodies. */
static enum status
verify_bytes(struct catalog_verify *v, const struct bytes_check *b)
{
	const struct history h = { .prefix = v->db->prefix, .held_space = TIMED_SPACE_HELD };

	for (size_t i = 0; i < b->state->count; i++) {
		if (b->kept[i] ? b->bytes[i] == b->found[i]
			       : !b->state->most_bytes || !b->state->counts[i])
			continue;
		history_held_key(&h, b->state->buckets[i].number, &v->key);
		TRY(catalog_key_status(&v->key));
		catalog_verify_found(v, TIMED_FINDING_HISTORY, buf_str(&v->key),
				     "%llu bytes are kept, and the records have %llu",
				     (unsigned long long)b->bytes[i],
				     (unsigned long long)b->found[i]);
	}
	return STATUS_OK;
}

/* Records of the past; those of a history that was switched off may be left for a while. */
static enum status
record_pair(struct catalog_verify *v, const struct catalog_verify_cursor *c, void *arg)
{
	struct bytes_check *b = arg;
	const struct history h = { .prefix = v->db->prefix };
	const struct history_state *state = b->state;
	uint64_t newest = state->count ? state->buckets[state->count - 1].number : 0;
	struct tuple_reader r = tuple_reader(c->tail);
	uint64_t bucket;
	size_t i;

	if (tuple_next_u64(&r, &bucket) != STATUS_OK || (newest && bucket > newest)) {
		catalog_verify_found(v, TIMED_FINDING_HISTORY, c->pair.key,
				     "no bucket can have this number");
		return STATUS_OK;
	}
	if (!history_record_is_good(r.rest, c->pair.value)) {
		catalog_verify_found(v, TIMED_FINDING_HISTORY, c->pair.key,
				     "not a record of what a key held");
		return STATUS_OK;
	}
	i = bucket_at(state, bucket);
	if (i == state->count)
		return STATUS_OK;
	if (i != b->partial || str_cmp(r.rest, buf_str(&b->place)) <= 0)
		b->found[i] += history_record_bytes(&h, &c->pair);
	return timed_verify_noted(v, state, bucket, r.rest, c->pair.key);
}

/* `range`: NULL for all of them. */
static enum status
verify_records(struct catalog_verify *v, struct catalog_verify_range *range, struct bytes_check *b)
{
	const struct catalog_verify_walk walk = { TIMED_SPACE_UNDO, "the record", NULL, record_pair,
						  b };

	return catalog_verify_walk(v, &walk, range);
}

static enum status
verify_retrim(struct catalog_verify *v, const struct history_state *state)
{
	return timed_verify_single(v, TIMED_SPACE_RETRIM,
				   state->most_versions ? timed_walk_is_good : NULL);
}

static enum status
verify_history(struct catalog_verify *v)
{
	struct history_state state = { 0 };
	struct bytes_check b = { .state = &state,
				 .place = CATALOG_KEY_INIT,
				 .mark = CATALOG_KEY_INIT };
	enum status status;
	bool ignored;

	TRY(verify_buckets(v, true, &state, &ignored));
	b.partial = state.count;
	status = verify_held(v, &b);
	if (status == STATUS_OK)
		status = verify_weigh(v, NULL, &b);
	if (status == STATUS_OK)
		status = verify_gone_bytes(v, &b);
	if (status == STATUS_OK)
		status = verify_records(v, NULL, &b);
	if (status == STATUS_OK)
		status = verify_bytes(v, &b);
	if (status == STATUS_OK)
		status = timed_verify_versions(v, &state);
	if (status == STATUS_OK)
		status = verify_retrim(v, &state);
	buf_release(&b.place);
	buf_release(&b.mark);
	return status;
}

/* ---- What all kinds have, in ranges ---- */

enum past {
	PAST_SINGLES, /* read at once; what follows is a list */
	PAST_RECORDS,
	PAST_WEIGH,
	PAST_VERSIONS,
	PAST_TRIM,
};

static enum status
past_of_state(struct catalog_verify *v, struct catalog_verify_range *range, enum past past,
	      struct bytes_check *b)
{
	switch (past) {
	case PAST_SINGLES:
		TRY(verify_held(v, b));
		return verify_retrim(v, b->state);
	case PAST_RECORDS:
		return verify_records(v, range, b);
	case PAST_WEIGH:
		return verify_weigh(v, range, b);
	case PAST_VERSIONS:
		return timed_verify_versions_range(v, b->state, range);
	case PAST_TRIM:
		return timed_verify_trim(v, b->state, range);
	}
	return STATUS_OK;
}

/* By the state that the past has at the range's moment. */
static enum status
past_in_range(struct catalog_verify *v, struct catalog_verify_range *range, enum past past)
{
	struct history_state state = { 0 };
	struct bytes_check b = { .state = &state,
				 .place = CATALOG_KEY_INIT,
				 .mark = CATALOG_KEY_INIT };
	enum status status;
	bool readable;

	TRY(verify_buckets(v, past == PAST_SINGLES, &state, &readable));
	b.partial = state.count;
	status = readable ? past_of_state(v, range, past, &b) : STATUS_OK;
	buf_release(&b.place);
	buf_release(&b.mark);
	return status;
}

static enum status
past_range(struct catalog_verify *v, struct catalog_verify_range *range)
{
	return past_in_range(v, range, *(const enum past *)range->arg);
}

static enum status
verify_singles(struct catalog_verify *v)
{
	TRY(timed_verify_single(v, timed_kind_of(v->db)->schema_space, schema_is_good));
	TRY(timed_verify_single(v, TIMED_SPACE_CLOCK, clock_is_good));
	return timed_verify_single(v, TIMED_SPACE_CHANGED, stamp_is_good);
}

static enum status
once_all_have(struct catalog_verify *v)
{
	TRY(verify_singles(v));
	return past_in_range(v, NULL, PAST_SINGLES);
}

static enum status
schema_is_unreadable(struct catalog_verify *v, const struct err *err)
{
	timed_key_space(&v->key, v->db, timed_kind_of(v->db)->schema_space);
	TRY(catalog_key_status(&v->key));
	catalog_verify_found(v, TIMED_FINDING_SCHEMA, buf_str(&v->key), "%s", err->text);
	return STATUS_OK;
}

/* Tells if the schema cannot be read: then most else is not checked. */
static enum status
verify_schema(struct catalog_verify *v)
{
	void *extension = NULL;
	struct err err = { 0 };
	enum status status = v->db->kind->extend(v->tx, v->db, &extension, &err);

	v->db->kind->extension_free(extension);
	return status == STATUS_CORRUPT || status == STATUS_NEWER ? schema_is_unreadable(v, &err)
								  : status;
}

/*
 * How many bytes of the past are kept, and that each change of a body has its note, takes all of it
 * at one version, and is not told.
 */
static enum status
verify_in_ranges(struct catalog_verify *v)
{
	TRY(catalog_verify_once(v, verify_schema, "the schema"));
	TRY(timed_kind_of(v->db)->verify_in_ranges(v));
	TRY(timed_verify_once(v, once_all_have, "the schema and the clock"));
	for (enum past past = PAST_RECORDS; past <= PAST_TRIM; past++)
		TRY(timed_verify_ranges(v, past_range, &past));
	return STATUS_OK;
}

enum status
timed_verify(struct catalog_verify *v)
{
	const struct catalog_db *given = v->db;
	struct catalog_db opened = *given;
	unsigned failures = 0;
	enum status status;

	if (catalog_verify_needs_ranges(v))
		return verify_in_ranges(v);
	/* The description may be one of a list, which has no schema with it. */
	do {
		struct err err = { 0 };

		status = given->kind->extend(v->tx, given, &opened.extension, &err);
		if (status == STATUS_CORRUPT || status == STATUS_NEWER)
			return schema_is_unreadable(v, &err);
		if (status != STATUS_OK)
			TRY(catalog_verify_again(v, &failures, status));
	} while (status != STATUS_OK);
	v->db = &opened;
	status = timed_kind_of(given)->verify(v);
	if (status == STATUS_OK)
		status = verify_singles(v);
	if (status == STATUS_OK)
		status = verify_history(v);
	v->db = given;
	given->kind->extension_free(opened.extension);
	return status;
}
