/*
 * Checks attachments: the data of each pointer record are there, each counter equals the number of
 * pointer records, and all data belong to a pointer record or to an upload.
 *
 * Pointer records come in the order of documents and counters in the order of attachments, so they
 * cannot be compared one by one. Instead each side is added up to a fingerprint. Only if the two
 * fingerprints differ are the counters compared in portions that fit into memory. For each portion
 * all pointer records are read again.
 */
#include <stdlib.h>

#include "model/revisioned/record.h"
#include "model/revisioned/verify_int.h"

enum {
	COUNTER_BYTES = 8,
	PORTION_COUNTERS = 50000,
	PORTION_BYTES = 4 * 1024 * 1024,
};

/* What one pointer record adds to the fingerprint. Ids are random, so no hash is needed. */
static uint64_t
att_fingerprint(const uint8_t id[REV_ATT_ID_BYTES])
{
	uint64_t a, b;

	memcpy(&a, id, sizeof(a));
	memcpy(&b, id + sizeof(a), sizeof(b));
	return a ^ b * UINT64_C(0x9e3779b97f4a7c15);
}

/* ---- Pointers ---- */

/* Checks the last chunk and its length. verify_data_chunk() checks the chunks before it. */
static enum status
verify_data_is_whole(struct catalog_verify *v, struct str key, const uint8_t id[REV_ATT_ID_BYTES],
		     uint64_t length)
{
	struct kv_range_options options = { .limit = 2, .mode = KV_SNAPSHOT };
	uint64_t last = length ? (length - 1) / REV_ATT_CHUNK_BYTES : 0;
	uint64_t bytes = length - last * REV_ATT_CHUNK_BYTES;
	struct kv_future *f;
	struct kv_range range;
	bool good;

	rev_key_att(&v->value, v->db, REV_ATT_SPACE_DATA, id);
	buf_append_byte(&v->value, CATALOG_KEY_LAST);
	rev_key_att(&v->key, v->db, REV_ATT_SPACE_DATA, id);
	tuple_put_u64(&v->key, last);
	TRY(buf_status(&v->key));
	TRY(buf_status(&v->value));
	TRY(catalog_verify_get_range(v, buf_str(&v->key), buf_str(&v->value), &options, &f));
	range = kv_future_range(f);
	if (length == 0)
		good = range.count == 0;
	else
		good = range.count == 1 && str_eq(range.pairs[0].key, buf_str(&v->key)) &&
		       range.pairs[0].value.len == bytes;
	if (!good)
		catalog_verify_found(
			v, REV_FINDING_ATT, key,
			"its data is not there, or not the %llu bytes that it should be",
			(unsigned long long)length);
	kv_future_free(f);
	return STATUS_OK;
}

enum status
verify_pointer(struct catalog_verify *v, struct str key, struct str path, struct str value,
	       struct rev_sizes *sizes)
{
	struct err err = { 0 };
	struct rev_att att;
	uint64_t order;
	enum status status;

	arena_clear(v->scratch);
	status = rev_att_parse(path, value, v->scratch, &att, &order, &err);
	if (status == STATUS_CORRUPT || status == STATUS_NEWER) {
		catalog_verify_unreadable(v, status, &err, key,
					  "not an attachment's name and description");
		return STATUS_OK;
	}
	TRY(status);
	rev_verify_of(v)->pointers += att_fingerprint(att.id);
	sizes->external += att.length;
	sizes->active += att.encoded_length;
	return verify_data_is_whole(v, key, att.id, att.encoded_length);
}

enum status
verify_text_pointer(struct catalog_verify *v, struct str key, const struct doc_root *root)
{
	AUTO(buf_release) struct buf prefix = CATALOG_KEY_INIT;

	rev_verify_of(v)->pointers += att_fingerprint(root->text_id);
	TRY(verify_data_is_whole(v, key, root->text_id, root->text_bytes));
	rev_key_att(&prefix, v->db, REV_ATT_SPACE_DATA, root->text_id);
	TRY(catalog_key_status(&prefix));
	return verify_text(v, key, buf_str(&prefix), root->text_bytes);
}

/* ---- Data and counters ---- */

/* A key of ATTACHMENTS. */
struct verify_att_key {
	bool data;
	const uint8_t *id;
	uint64_t chunk; /* of data */
};

static bool
verify_att_key_parse(struct str tail, struct verify_att_key *ret)
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
verify_att_counter_parse(struct str value, uint64_t *ret)
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
verify_key_exists(struct catalog_verify *v, bool *ret)
{
	struct kv_future *f;
	struct str value;

	TRY(catalog_key_status(&v->key));
	TRY(catalog_verify_get(v, buf_str(&v->key), &f));
	*ret = kv_future_value(f, &value);
	kv_future_free(f);
	return STATUS_OK;
}

/* Begins other data. Reports them unless a counter or the record of an upload names them. */
static enum status
verify_data_begin(struct catalog_verify *v, struct verify_data *d, const struct verify_att_key *k,
		  struct str key)
{
	bool wanted;

	*d = (struct verify_data){ .open = true };
	memcpy(d->id, k->id, sizeof(d->id));
	rev_key_att(&v->key, v->db, REV_ATT_SPACE_REFS, k->id);
	TRY(verify_key_exists(v, &wanted));
	if (!wanted) {
		rev_key_upload(&v->key, v->db->number, k->id);
		TRY(verify_key_exists(v, &wanted));
	}
	if (!wanted)
		catalog_verify_found(v, REV_FINDING_ATT_STRAY, key,
				     "no revision has these data, and nobody is uploading them");
	return STATUS_OK;
}

static enum status
verify_data_chunk(struct catalog_verify *v, struct verify_data *d, const struct verify_att_key *k,
		  const struct kv_pair *pair)
{
	if (!d->open || memcmp(d->id, k->id, sizeof(d->id)) != 0)
		TRY(verify_data_begin(v, d, k, pair->key));
	if (k->chunk != d->chunks)
		catalog_verify_found(v, REV_FINDING_ATT, pair->key, "chunk %llu should be here",
				     (unsigned long long)d->chunks);
	else if (k->chunk && d->last_bytes != REV_ATT_CHUNK_BYTES)
		catalog_verify_found(v, REV_FINDING_ATT, pair->key,
				     "the chunk before it is not whole");
	if (pair->value.len == 0 || pair->value.len > REV_ATT_CHUNK_BYTES)
		catalog_verify_found(v, CATALOG_FINDING_VALUE, pair->key, "no chunk has %zu bytes",
				     pair->value.len);
	d->chunks = k->chunk + 1;
	d->last_bytes = pair->value.len;
	return STATUS_OK;
}

/* ---- Counters that do not add up ---- */

struct verify_att_counter {
	uint8_t id[REV_ATT_ID_BYTES]; /* the first member: att_compare_ids() compares by it */
	uint64_t stored;
	uint64_t counted;
};

struct verify_counter_portion {
	struct catalog_verify *v;
	struct verify_att_counter *counters; /* PORTION_COUNTERS, in the order of their keys */
	size_t count;
	bool first; /* the first portion also reports data without any counter */
};

static int
att_compare_ids(const void *a, const void *b)
{
	return memcmp(a, b, REV_ATT_ID_BYTES);
}

static enum status
portion_count_pointer(struct verify_counter_portion *p, struct str key,
		      const uint8_t id[REV_ATT_ID_BYTES])
{
	struct catalog_verify *v = p->v;
	struct verify_att_counter *counter = NULL;
	bool there;

	if (p->count)
		counter = bsearch(id, p->counters, p->count, sizeof(*counter), att_compare_ids);
	if (counter)
		counter->counted++;
	if (!p->first || counter)
		return STATUS_OK;
	rev_key_att(&v->key, v->db, REV_ATT_SPACE_REFS, id);
	TRY(verify_key_exists(v, &there));
	if (!there)
		catalog_verify_found(v, REV_FINDING_ATT_COUNT, key,
				     "the data that this refers to have no counter");
	return STATUS_OK;
}

/* Reads all pointer records of the database again, and counts those of the portion. */
static enum status
portion_count_pointers(struct verify_counter_portion *p)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };
	struct verify_rev rev;
	struct doc_root root;
	struct rev_att att;
	uint64_t order;

	TRY(catalog_verify_cursor_open(p->v, &c, REV_SUBSPACE_DOCUMENTS));
	while (!c.done) {
		bool known = verify_rev_parse(c.tail, &rev);

		arena_clear(p->v->scratch);
		if (known && str_starts_with(rev.rest, REV_ATT_MARK) &&
		    rev_att_parse(rev.rest, c.pair.value, p->v->scratch, &att, &order, NULL) ==
			    STATUS_OK)
			TRY(portion_count_pointer(p, c.pair.key, att.id));
		if (known && rev.rest.len == 0 &&
		    doc_root_read(c.pair.value, &root, NULL) == STATUS_OK &&
		    root.form == DOC_FORM_CHUNKED)
			TRY(portion_count_pointer(p, c.pair.key, root.text_id));
		TRY(catalog_verify_cursor_next(p->v, &c));
	}
	return STATUS_OK;
}

static enum status
portion_report(struct verify_counter_portion *p)
{
	struct catalog_verify *v = p->v;

	TRY(portion_count_pointers(p));
	for (size_t i = 0; i < p->count; i++) {
		const struct verify_att_counter *counter = &p->counters[i];

		if (counter->stored == counter->counted)
			continue;
		rev_key_att(&v->key, v->db, REV_ATT_SPACE_REFS, counter->id);
		TRY(buf_status(&v->key));
		catalog_verify_found(v, REV_FINDING_ATT_COUNT, buf_str(&v->key),
				     "the counter says %llu, and %llu revisions refer to the data",
				     (unsigned long long)counter->stored,
				     (unsigned long long)counter->counted);
	}
	p->count = 0;
	p->first = false;
	return STATUS_OK;
}

static enum status
portions_compare_counters(struct verify_counter_portion *p)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };
	struct verify_att_key k;
	uint64_t n;

	TRY(catalog_verify_cursor_open(p->v, &c, REV_SUBSPACE_ATTACHMENTS));
	while (!c.done) {
		if (verify_att_key_parse(c.tail, &k) && !k.data &&
		    verify_att_counter_parse(c.pair.value, &n)) {
			struct verify_att_counter *counter = &p->counters[p->count++];

			*counter = (struct verify_att_counter){ .stored = n };
			memcpy(counter->id, k.id, sizeof(counter->id));
			if (p->count == PORTION_COUNTERS)
				TRY(portion_report(p));
		}
		TRY(catalog_verify_cursor_next(p->v, &c));
	}
	return p->count || p->first ? portion_report(p) : STATUS_OK;
}

static enum status
verify_find_wrong_counters(struct catalog_verify *v)
{
	struct arena *arena = arena_new(PORTION_BYTES);
	struct verify_counter_portion p = { .v = v, .first = true };
	enum status status = STATUS_NOMEM;

	if (arena)
		p.counters = arena_alloc(arena, PORTION_COUNTERS * sizeof(*p.counters));
	if (p.counters)
		status = portions_compare_counters(&p);
	arena_free(arena);
	return status;
}

/* ---- ATTACHMENTS ---- */

/* A pair of ATTACHMENTS. Adds what a counter says to `*counters`. */
static enum status
verify_att_pair(struct catalog_verify *v, struct verify_data *data,
		const struct catalog_verify_cursor *c, uint64_t *counters)
{
	struct verify_att_key k;
	uint64_t n;

	if (!verify_att_key_parse(c->tail, &k))
		catalog_verify_found(v, CATALOG_FINDING_KEY, c->pair.key,
				     "not the key of an attachment");
	else if (k.data)
		return verify_data_chunk(v, data, &k, &c->pair);
	else if (verify_att_counter_parse(c->pair.value, &n))
		*counters += n * att_fingerprint(k.id);
	else
		catalog_verify_found(v, CATALOG_FINDING_VALUE, c->pair.key, "not a counter");
	return STATUS_OK;
}

enum status
verify_attachments(struct catalog_verify *v)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };
	struct verify_data data = { 0 };
	uint64_t counters = 0;

	TRY(catalog_verify_cursor_open(v, &c, REV_SUBSPACE_ATTACHMENTS));
	while (!c.done) {
		TRY(verify_att_pair(v, &data, &c, &counters));
		TRY(catalog_verify_cursor_next(v, &c));
	}
	return counters == rev_verify_of(v)->pointers ? STATUS_OK : verify_find_wrong_counters(v);
}

/*
 * Chunks are written once, in their order, and cleared together. So an attachment may go on in the
 * next range, at a later version.
 */
enum status
verify_attachments_range(struct catalog_verify *v, struct catalog_verify_range *range)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };
	struct verify_data data = *(struct verify_data *)range->arg;
	uint64_t counters = 0;

	TRY(catalog_verify_cursor_open_from(v, &c, REV_SUBSPACE_ATTACHMENTS,
					    buf_str(&range->from)));
	while (!c.done && !catalog_verify_range_is_full(range)) {
		TRY(verify_att_pair(v, &data, &c, &counters));
		TRY(catalog_verify_cursor_next(v, &c));
	}
	range->more = !c.done;
	if (range->more)
		buf_append_str(&range->next, c.tail);
	*(struct verify_data *)range->arg = data;
	return STATUS_OK;
}
