/* What happens to databases; see events.h for what of it is written down. */
#include <stdlib.h>

#include "kv/keyspace.h"
#include "catalog/catalog_int.h"
#include "catalog/events.h"
#include "catalog/records.h"

enum {
	EVENTS_WAVE = 1000, /* databases whose newest change is read at once */
};

/* ---- Keys ---- */

/* Its own value is the stamp of the newest event: what feeds watch. */
static void
events_key(struct buf *key)
{
	buf_clear(key);
	tuple_put_u64(key, KV_ROOT);
	tuple_put_u64(key, KV_ROOT_EVENTS);
}

/* ---- Writing events ---- */

enum status
catalog_event_put(struct kv_tx *tx, const struct catalog_kind *kind, struct str name,
		  enum catalog_event_kind event, uint8_t incarnation)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(64);
	uint8_t stamp[KV_VERSIONSTAMP_BYTES];
	size_t offset;

	catalog_stamp(0, stamp);
	events_key(&key);
	TRY(catalog_key_status(&key));
	TRY(kv_set_versionstamped_value(tx, buf_str(&key), str_of(stamp, sizeof(stamp)), 0));
	catalog_key_name(&key, KV_ROOT_EVENTS, kind->space, name);
	offset = catalog_event_record_put(event, incarnation, kind, &value);
	TRY(catalog_key_status(&key));
	TRY(buf_status(&value));
	return kv_set_versionstamped_value(tx, buf_str(&key), buf_str(&value), offset);
}

/* ---- The catalog ---- */

struct view_reading {
	struct arena *arena;
	struct catalog_view *catalog;
	size_t cap;
	struct err *err;
};

static enum status
view_take_db(void *arg, struct tuple_reader key, struct str value)
{
	struct view_reading *reading = arg;
	struct catalog_view *c = reading->catalog;
	struct catalog_db db;
	struct str name, prefix;

	TRY(catalog_next_text(&key, TUPLE_STRING, reading->arena, true, &name));
	TRY(catalog_description_parse(value, &db, reading->err));
	TRY(catalog_array_grow(reading->arena, (void **)&c->dbs, sizeof(*c->dbs), c->dbs_count,
			       &reading->cap));
	TRY(catalog_prefix_put(db.number, reading->arena, &prefix));
	c->dbs[c->dbs_count++] = (struct catalog_view_db){ name, prefix, db.number, db.kind };
	return STATUS_OK;
}

static enum status
view_take_event(void *arg, struct tuple_reader key, struct str value)
{
	struct view_reading *reading = arg;
	struct catalog_view *c = reading->catalog;
	struct catalog_event event = { 0 };

	TRY(catalog_next_text(&key, TUPLE_STRING, reading->arena, true, &event.name));
	TRY(catalog_event_record_parse(value, &event, reading->err));
	TRY(catalog_array_grow(reading->arena, (void **)&c->events, sizeof(*c->events),
			       c->events_count, &reading->cap));
	c->events[c->events_count++] = event;
	return STATUS_OK;
}

enum status
catalog_view_read(struct kv_tx *tx, enum catalog_space space, struct arena *arena,
		  struct catalog_view *ret, struct err *err)
{
	struct catalog_view catalog = { 0 };
	struct view_reading dbs = { arena, &catalog, 0, err };
	struct view_reading events = { arena, &catalog, 0, err };

	TRY(kv_get_metadata_version(tx, catalog.version));
	TRY(catalog_names_scan(tx, KV_ROOT_DATABASES, space, view_take_db, &dbs));
	TRY(catalog_names_scan(tx, KV_ROOT_EVENTS, space, view_take_event, &events));
	*ret = catalog;
	return STATUS_OK;
}

/* ---- Events ---- */

static int
compare_events(const void *a, const void *b)
{
	const struct catalog_event *ea = a;
	const struct catalog_event *eb = b;
	int c = catalog_seq_cmp(&ea->seq, &eb->seq);

	return c ? c : str_cmp(ea->name, eb->name);
}

/* The updates of a stretch of databases, all read at once; `wave` has room for as many futures. */
static enum status
read_updates(struct kv_tx *tx, const struct catalog_view_db *dbs, size_t count,
	     const struct catalog_seq *since, struct kv_future **wave, struct catalog_event *events,
	     size_t *events_count)
{
	for (size_t i = 0; i < count; i++) {
		wave[i] = NULL;
		if (dbs[i].kind->newest_read)
			TRY(dbs[i].kind->newest_read(tx, dbs[i].number, &wave[i]));
	}
	for (size_t i = 0; i < count; i++) {
		struct catalog_event event = { .name = dbs[i].name, .kind = CATALOG_EVENT_UPDATED };
		bool found;

		if (!wave[i])
			continue;
		TRY(kv_future_wait(wave[i]));
		found = kv_future_range(wave[i]).count > 0;
		if (found)
			TRY(dbs[i].kind->newest_parse(kv_future_range(wave[i]).pairs[0].key,
						      &event.seq));
		if (found && catalog_seq_cmp(&event.seq, since) > 0)
			events[(*events_count)++] = event;
	}
	return STATUS_OK;
}

enum status
catalog_events_read(struct kv_tx *tx, const struct catalog_view *catalog,
		    const struct catalog_seq *since, struct arena *arena,
		    struct catalog_event **ret, size_t *ret_count)
{
	struct catalog_event *events = arena_alloc(
		arena, (catalog->dbs_count + catalog->events_count + 1) * sizeof(*events));
	struct kv_future **wave = arena_alloc(arena, EVENTS_WAVE * sizeof(struct kv_future *));
	size_t count = 0;

	if (!events || !wave)
		return STATUS_LIMIT;
	for (size_t i = 0; i < catalog->events_count; i++) {
		if (catalog_seq_cmp(&catalog->events[i].seq, since) > 0)
			events[count++] = catalog->events[i];
	}
	for (size_t i = 0; i < catalog->dbs_count; i += EVENTS_WAVE) {
		size_t n = catalog->dbs_count - i;

		TRY(read_updates(tx, catalog->dbs + i, n < EVENTS_WAVE ? n : EVENTS_WAVE, since,
				 wave, events, &count));
	}
	qsort(events, count, sizeof(*events), compare_events);
	*ret = events;
	*ret_count = count;
	return STATUS_OK;
}

/* ---- Watches ---- */

enum status
catalog_watch(struct kv_tx *tx, struct kv_future **ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	events_key(&key);
	TRY(catalog_key_status(&key));
	*ret = kv_watch(tx, buf_str(&key));
	return STATUS_OK;
}

enum status
catalog_watch_db(struct kv_tx *tx, const struct catalog_view_db *db, struct kv_future **ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	TRY(db->kind->watch_key(db->prefix, &key));
	*ret = kv_watch(tx, buf_str(&key));
	return STATUS_OK;
}
