/*
 * Attachments: each pointer below a revision has its data, each counter is the number of pointers,
 * and no data is there that nobody points to or is uploading.
 *
 * Pointers come in the order of documents and counters in the order of attachments, so that neither
 * can be counted beside the other. Instead both are added up to one fingerprint each; only if those
 * differ are the counters gone through in portions that fit into memory, with all pointers read
 * again for each portion.
 */
#include <stdlib.h>

#include "model/revisioned/verify_int.h"

enum {
	COUNTER_BYTES = 8,
	PORTION_COUNTERS = 50000,
	PORTION_BYTES = 4 * 1024 * 1024,
};

/* What one pointer to the attachment adds to the fingerprint. Ids are random already. */
static uint64_t
fingerprint(const uint8_t id[REV_ATT_ID_BYTES])
{
	uint64_t a, b;

	memcpy(&a, id, sizeof(a));
	memcpy(&b, id + sizeof(a), sizeof(b));
	return a ^ b * UINT64_C(0x9e3779b97f4a7c15);
}

/* ---- Pointers ---- */

/*
 * The last chunk is there and as long as it has to be. (The others are looked at in their place.)
 */
static enum status
check_data(struct verify *v, struct str key, const struct rev_att *att)
{
	struct kv_range_options options = { .limit = 2, .mode = KV_SNAPSHOT };
	uint64_t last = att->encoded_length ? (att->encoded_length - 1) / REV_ATT_CHUNK_BYTES : 0;
	uint64_t bytes = att->encoded_length - last * REV_ATT_CHUNK_BYTES;
	struct kv_future *f;
	struct kv_range range;
	bool good;

	rev_key_att(&v->value, v->db, REV_ATT_SPACE_DATA, att->id);
	buf_append_byte(&v->value, REV_KEY_LAST);
	rev_key_att(&v->key, v->db, REV_ATT_SPACE_DATA, att->id);
	tuple_put_u64(&v->key, last);
	TRY(buf_status(&v->key));
	TRY(buf_status(&v->value));
	TRY(verify_get_range(v, buf_str(&v->key), buf_str(&v->value), &options, &f));
	range = kv_future_range(f);
	if (att->encoded_length == 0)
		good = range.count == 0;
	else
		good = range.count == 1 && str_eq(range.pairs[0].key, buf_str(&v->key)) &&
		       range.pairs[0].value.len == bytes;
	if (!good)
		verify_found(v, REV_FINDING_ATT, key,
			     "its data is not there, or not the %llu bytes that it should be",
			     (unsigned long long)att->encoded_length);
	kv_future_free(f);
	return STATUS_OK;
}

enum status
verify_pointer(struct verify *v, struct str key, struct str path, struct str value)
{
	struct rev_att att;
	uint64_t order;
	enum status status;

	arena_clear(v->scratch);
	status = rev_att_parse(path, value, v->scratch, &att, &order);
	if (status == STATUS_CORRUPT) {
		verify_found(v, REV_FINDING_VALUE, key, "not an attachment's name and description");
		return STATUS_OK;
	}
	TRY(status);
	v->pointers += fingerprint(att.id);
	return check_data(v, key, &att);
}

/* ---- Data and counters ---- */

/* A key of ATTACHMENTS. */
struct att_key {
	bool data;
	const uint8_t *id;
	uint64_t chunk; /* of data */
};

static bool
key_parse(struct str tail, struct att_key *ret)
{
	struct tuple_reader r = tuple_reader(tail);
	struct tuple_elem space, id;

	if (tuple_next(&r, &space) != STATUS_OK || space.kind != TUPLE_STRING ||
	    tuple_next(&r, &id) != STATUS_OK || id.kind != TUPLE_UUID)
		return false;
	ret->id = (const uint8_t *)id.raw.ptr;
	ret->data = str_eq(space.raw, REV_ATT_SPACE_DATA);
	if (ret->data)
		return tuple_next_u64(&r, &ret->chunk) == STATUS_OK && r.rest.len == 0;
	return str_eq(space.raw, REV_ATT_SPACE_REFS) && r.rest.len == 0;
}

static bool
counter_parse(struct str value, uint64_t *ret)
{
	uint64_t n = 0;

	if (value.len != COUNTER_BYTES)
		return false;
	for (size_t i = 0; i < COUNTER_BYTES; i++)
		n |= (uint64_t)(uint8_t)value.ptr[i] << (8 * i);
	*ret = n;
	return n > 0 && n <= INT64_MAX;
}

static enum status
key_is_there(struct verify *v, bool *ret)
{
	struct kv_future *f;
	struct str value;

	TRY(rev_key_status(&v->key));
	TRY(verify_get(v, buf_str(&v->key), &f));
	*ret = kv_future_value(f, &value);
	kv_future_free(f);
	return STATUS_OK;
}

/* Whose chunks are being read. */
struct data {
	bool open;
	uint8_t id[REV_ATT_ID_BYTES];
	uint64_t chunks;
	size_t last_bytes; /* of the last one */
};

/* The first chunk of another attachment: somebody has a pointer to it, or is uploading it. */
static enum status
data_begin(struct verify *v, struct data *d, const struct att_key *k, struct str key)
{
	bool wanted;

	*d = (struct data){ .open = true };
	memcpy(d->id, k->id, sizeof(d->id));
	rev_key_att(&v->key, v->db, REV_ATT_SPACE_REFS, k->id);
	TRY(key_is_there(v, &wanted));
	if (!wanted) {
		rev_key_upload(&v->key, v->db->number, k->id);
		TRY(key_is_there(v, &wanted));
	}
	if (!wanted)
		verify_found(v, REV_FINDING_ATT_STRAY, key,
			     "no revision has these data, and nobody is uploading them");
	return STATUS_OK;
}

static enum status
data_pair(struct verify *v, struct data *d, const struct att_key *k, const struct kv_pair *pair)
{
	if (!d->open || memcmp(d->id, k->id, sizeof(d->id)) != 0)
		TRY(data_begin(v, d, k, pair->key));
	if (k->chunk != d->chunks)
		verify_found(v, REV_FINDING_ATT, pair->key, "chunk %llu should be here",
			     (unsigned long long)d->chunks);
	else if (k->chunk && d->last_bytes != REV_ATT_CHUNK_BYTES)
		verify_found(v, REV_FINDING_ATT, pair->key, "the chunk before it is not whole");
	if (pair->value.len == 0 || pair->value.len > REV_ATT_CHUNK_BYTES)
		verify_found(v, REV_FINDING_VALUE, pair->key, "no chunk has %zu bytes",
			     pair->value.len);
	d->chunks = k->chunk + 1;
	d->last_bytes = pair->value.len;
	return STATUS_OK;
}

/* ---- Counters that do not add up ---- */

struct counter {
	uint8_t id[REV_ATT_ID_BYTES]; /* first: compared by it */
	uint64_t stored;
	uint64_t counted;
};

struct portion {
	struct verify *v;
	struct counter *counters; /* PORTION_COUNTERS, in the order of their keys */
	size_t count;
	bool first; /* tells of attachments that have no counter at all */
};

static int
compare_ids(const void *a, const void *b)
{
	return memcmp(a, b, REV_ATT_ID_BYTES);
}

static enum status
portion_pointer(struct portion *p, struct str key, const struct rev_att *att)
{
	struct verify *v = p->v;
	struct counter *counter = NULL;
	bool there;

	if (p->count)
		counter = bsearch(att->id, p->counters, p->count, sizeof(*counter), compare_ids);
	if (counter)
		counter->counted++;
	if (!p->first || counter)
		return STATUS_OK;
	rev_key_att(&v->key, v->db, REV_ATT_SPACE_REFS, att->id);
	TRY(key_is_there(v, &there));
	if (!there)
		verify_found(v, REV_FINDING_ATT_COUNT, key, "the attachment has no counter");
	return STATUS_OK;
}

/* All pointers of the database once more. */
static enum status
portion_count(struct portion *p)
{
	AUTO(verify_cursor_close) struct verify_cursor c = { .done = true };
	struct verify_rev rev;
	struct rev_att att;
	uint64_t order;

	TRY(verify_cursor_open(p->v, &c, REV_SUBSPACE_DOCUMENTS));
	while (!c.done) {
		arena_clear(p->v->scratch);
		if (verify_rev_parse(c.tail, &rev) && str_starts_with(rev.rest, REV_ATT_MARK) &&
		    rev_att_parse(rev.rest, c.pair.value, p->v->scratch, &att, &order) == STATUS_OK)
			TRY(portion_pointer(p, c.pair.key, &att));
		TRY(verify_cursor_next(p->v, &c));
	}
	return STATUS_OK;
}

static enum status
portion_end(struct portion *p)
{
	struct verify *v = p->v;

	TRY(portion_count(p));
	for (size_t i = 0; i < p->count; i++) {
		const struct counter *counter = &p->counters[i];

		if (counter->stored == counter->counted)
			continue;
		rev_key_att(&v->key, v->db, REV_ATT_SPACE_REFS, counter->id);
		TRY(buf_status(&v->key));
		verify_found(v, REV_FINDING_ATT_COUNT, buf_str(&v->key),
			     "the counter says %llu, and %llu revisions have the attachment",
			     (unsigned long long)counter->stored,
			     (unsigned long long)counter->counted);
	}
	p->count = 0;
	p->first = false;
	return STATUS_OK;
}

static enum status
find_wrong_counters(struct portion *p)
{
	AUTO(verify_cursor_close) struct verify_cursor c = { .done = true };
	struct att_key k;
	uint64_t n;

	TRY(verify_cursor_open(p->v, &c, REV_SUBSPACE_ATTACHMENTS));
	while (!c.done) {
		if (key_parse(c.tail, &k) && !k.data && counter_parse(c.pair.value, &n)) {
			struct counter *counter = &p->counters[p->count++];

			*counter = (struct counter){ .stored = n };
			memcpy(counter->id, k.id, sizeof(counter->id));
			if (p->count == PORTION_COUNTERS)
				TRY(portion_end(p));
		}
		TRY(verify_cursor_next(p->v, &c));
	}
	return p->count || p->first ? portion_end(p) : STATUS_OK;
}

static enum status
find_wrong(struct verify *v)
{
	struct arena *arena = arena_new(PORTION_BYTES);
	struct portion p = { .v = v, .first = true };
	enum status status = STATUS_NOMEM;

	if (arena)
		p.counters = arena_alloc(arena, PORTION_COUNTERS * sizeof(*p.counters));
	if (p.counters)
		status = find_wrong_counters(&p);
	arena_free(arena);
	return status;
}

/* ---- ATTACHMENTS ---- */

enum status
verify_attachments(struct verify *v)
{
	AUTO(verify_cursor_close) struct verify_cursor c = { .done = true };
	struct data data = { 0 };
	uint64_t counters = 0, n;
	struct att_key k;

	TRY(verify_cursor_open(v, &c, REV_SUBSPACE_ATTACHMENTS));
	while (!c.done) {
		if (!key_parse(c.tail, &k))
			verify_found(v, REV_FINDING_KEY, c.pair.key,
				     "not the key of an attachment");
		else if (k.data)
			TRY(data_pair(v, &data, &k, &c.pair));
		else if (counter_parse(c.pair.value, &n))
			counters += n * fingerprint(k.id);
		else
			verify_found(v, REV_FINDING_VALUE, c.pair.key, "not a counter");
		TRY(verify_cursor_next(v, &c));
	}
	return counters == v->pointers ? STATUS_OK : find_wrong(v);
}
