/* What happens to databases; see revisioned.h for what of it is written down. */
#include <stdlib.h>

#include "kv/keyspace.h"
#include "model/revisioned/revisioned_int.h"

/* ---- Keys ---- */

/* Its own value is the stamp of the newest event: what feeds watch. */
static void
events_key(struct buf *key)
{
	buf_clear(key);
	tuple_put_u64(key, KV_ROOT);
	tuple_put_u64(key, KV_ROOT_EVENTS);
}

static void
incarnation_key(struct buf *key)
{
	buf_clear(key);
	tuple_put_u64(key, KV_ROOT);
	tuple_put_u64(key, KV_ROOT_INCARNATION);
}

enum status
rev_store_incarnation(struct kv_tx *tx, uint8_t *ret)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;
	struct kv_future *f;
	struct str value;
	uint64_t n = 0;

	incarnation_key(&key);
	TRY(rev_key_status(&key));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (kv_future_value(f, &value)) {
		struct tuple_reader r = tuple_reader(value);

		TRY(tuple_next_u64(&r, &n));
	}
	if (n > UINT8_MAX)
		return STATUS_CORRUPT;
	*ret = (uint8_t)n;
	return STATUS_OK;
}

enum status
rev_store_incarnation_set(struct kv_tx *tx, uint8_t incarnation)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(16);

	incarnation_key(&key);
	tuple_put_u64(&value, incarnation);
	TRY(rev_key_status(&key));
	TRY(buf_status(&value));
	return kv_set(tx, buf_str(&key), buf_str(&value));
}

/* ---- Writing events ---- */

enum status
rev_event_put(struct kv_tx *tx, struct str name, enum rev_event_kind kind, uint8_t incarnation)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(64);
	uint8_t stamp[KV_VERSIONSTAMP_BYTES];
	size_t offset;

	rev_stamp(0, stamp);
	events_key(&key);
	TRY(rev_key_status(&key));
	TRY(kv_set_versionstamped_value(tx, buf_str(&key), str_of(stamp, sizeof(stamp)), 0));
	tuple_put_str(&key, name);
	tuple_put_u64(&value, REV_FORMAT);
	tuple_put_u64(&value, kind);
	tuple_put_u64(&value, incarnation);
	offset = tuple_put_versionstamp(&value, stamp);
	TRY(rev_key_status(&key));
	TRY(buf_status(&value));
	return kv_set_versionstamped_value(tx, buf_str(&key), buf_str(&value), offset);
}

/* ---- The catalog ---- */

struct reading {
	struct arena *arena;
	struct rev_catalog *catalog;
	size_t cap;
};

static enum status
take_db(void *arg, struct tuple_reader key, struct str value)
{
	struct reading *reading = arg;
	struct rev_catalog *c = reading->catalog;
	struct rev_db db;
	struct str name;

	TRY(rev_next_text(&key, TUPLE_STRING, reading->arena, true, &name));
	TRY(rev_description_parse(value, &db));
	TRY(rev_array_grow(reading->arena, (void **)&c->dbs, sizeof(*c->dbs), c->dbs_count,
			   &reading->cap));
	c->dbs[c->dbs_count++] = (struct rev_catalog_db){ name, db.number };
	return STATUS_OK;
}

static enum status
take_event(void *arg, struct tuple_reader key, struct str value)
{
	struct reading *reading = arg;
	struct rev_catalog *c = reading->catalog;
	struct tuple_reader r = tuple_reader(value);
	struct rev_event event = { 0 };
	const uint8_t *stamp;
	uint64_t kind, incarnation;

	if (!key.rest.len) /* what feeds watch */
		return STATUS_OK;
	TRY(rev_next_text(&key, TUPLE_STRING, reading->arena, true, &event.name));
	TRY(rev_next_format(&r));
	TRY(tuple_next_u64(&r, &kind));
	TRY(tuple_next_u64(&r, &incarnation));
	TRY(tuple_next_versionstamp(&r, &stamp));
	if ((kind != REV_EVENT_CREATED && kind != REV_EVENT_DELETED) || incarnation > UINT8_MAX)
		return STATUS_CORRUPT;
	event.kind = (enum rev_event_kind)kind;
	event.seq.bytes[0] = (uint8_t)incarnation;
	memcpy(event.seq.bytes + 1, stamp, KV_VERSIONSTAMP_BYTES);
	TRY(rev_array_grow(reading->arena, (void **)&c->events, sizeof(*c->events), c->events_count,
			   &reading->cap));
	c->events[c->events_count++] = event;
	return STATUS_OK;
}

enum status
rev_catalog_read(struct kv_tx *tx, struct arena *arena, struct rev_catalog *ret)
{
	struct rev_catalog catalog = { 0 };
	struct reading dbs = { arena, &catalog, 0 };
	struct reading events = { arena, &catalog, 0 };

	TRY(kv_get_metadata_version(tx, catalog.version));
	TRY(rev_root_scan(tx, KV_ROOT_DATABASES, take_db, &dbs));
	TRY(rev_root_scan(tx, KV_ROOT_EVENTS, take_event, &events));
	*ret = catalog;
	return STATUS_OK;
}

/* ---- Events ---- */

/* Asks for the newest change. */
static enum status
newest_read(struct kv_tx *tx, const struct rev_catalog_db *db, struct buf *lo, struct buf *hi,
	    struct kv_future **ret)
{
	const struct kv_range_options options = { .limit = 1,
						  .reverse = true,
						  .mode = KV_SNAPSHOT };

	buf_clear(lo);
	buf_clear(hi);
	tuple_put_u64(lo, db->number);
	tuple_put_u64(lo, REV_SUBSPACE_CHANGES);
	buf_append_str(hi, buf_str(lo));
	buf_append_byte(hi, REV_KEY_LAST);
	TRY(rev_key_status(lo));
	TRY(rev_key_status(hi));
	*ret = kv_get_range(tx, buf_str(lo), buf_str(hi), &options);
	return STATUS_OK;
}

static int
compare_events(const void *a, const void *b)
{
	const struct rev_event *ea = a;
	const struct rev_event *eb = b;
	int c = rev_seq_cmp(&ea->seq, &eb->seq);

	return c ? c : str_cmp(ea->name, eb->name);
}

/* (P, CHANGES, incarnation, stamp) */
static enum status
newest_parse(struct str key, struct rev_seq *ret)
{
	struct tuple_reader r = tuple_reader(key);
	uint64_t number, space, incarnation;
	const uint8_t *stamp;

	TRY(tuple_next_u64(&r, &number));
	TRY(tuple_next_u64(&r, &space));
	TRY(tuple_next_u64(&r, &incarnation));
	TRY(tuple_next_versionstamp(&r, &stamp));
	if (incarnation > UINT8_MAX)
		return STATUS_CORRUPT;
	ret->bytes[0] = (uint8_t)incarnation;
	memcpy(ret->bytes + 1, stamp, KV_VERSIONSTAMP_BYTES);
	return STATUS_OK;
}

/* The updates of a stretch of databases, all read at once; `wave` has room for as many futures. */
static enum status
read_updates(struct kv_tx *tx, const struct rev_catalog_db *dbs, size_t count,
	     const struct rev_seq *since, struct kv_future **wave, struct rev_event *events,
	     size_t *events_count)
{
	AUTO(buf_release) struct buf lo = REV_KEY_INIT;
	AUTO(buf_release) struct buf hi = REV_KEY_INIT;

	for (size_t i = 0; i < count; i++)
		TRY(newest_read(tx, &dbs[i], &lo, &hi, &wave[i]));
	for (size_t i = 0; i < count; i++) {
		struct rev_event event = { .name = dbs[i].name, .kind = REV_EVENT_UPDATED };
		bool found;

		TRY(kv_future_wait(wave[i]));
		found = kv_future_range(wave[i]).count > 0;
		if (found)
			TRY(newest_parse(kv_future_range(wave[i]).pairs[0].key, &event.seq));
		if (found && rev_seq_cmp(&event.seq, since) > 0)
			events[(*events_count)++] = event;
	}
	return STATUS_OK;
}

enum status
rev_events_read(struct kv_tx *tx, const struct rev_catalog *catalog, const struct rev_seq *since,
		struct arena *arena, struct rev_event **ret, size_t *ret_count)
{
	struct rev_event *events = arena_alloc(
		arena, (catalog->dbs_count + catalog->events_count + 1) * sizeof(*events));
	struct kv_future **wave = arena_alloc(arena, REV_DIFF_WAVE * sizeof(struct kv_future *));
	size_t count = 0;

	if (!events || !wave)
		return STATUS_LIMIT;
	for (size_t i = 0; i < catalog->events_count; i++) {
		if (rev_seq_cmp(&catalog->events[i].seq, since) > 0)
			events[count++] = catalog->events[i];
	}
	for (size_t i = 0; i < catalog->dbs_count; i += REV_DIFF_WAVE) {
		size_t n = catalog->dbs_count - i;

		TRY(read_updates(tx, catalog->dbs + i, n < REV_DIFF_WAVE ? n : REV_DIFF_WAVE, since,
				 wave, events, &count));
	}
	qsort(events, count, sizeof(*events), compare_events);
	*ret = events;
	*ret_count = count;
	return STATUS_OK;
}

/* ---- Watches ---- */

enum status
rev_catalog_watch(struct kv_tx *tx, struct kv_future **ret)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;

	events_key(&key);
	TRY(rev_key_status(&key));
	*ret = kv_watch(tx, buf_str(&key));
	return STATUS_OK;
}

enum status
rev_catalog_watch_db(struct kv_tx *tx, const struct rev_catalog_db *db, struct kv_future **ret)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;

	tuple_put_u64(&key, db->number);
	tuple_put_u64(&key, REV_SUBSPACE_STATS);
	tuple_put_str(&key, REV_STAT_CHANGED);
	TRY(rev_key_status(&key));
	*ret = kv_watch(tx, buf_str(&key));
	return STATUS_OK;
}
