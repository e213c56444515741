/* What happens to databases; see events.h for what of it is written down. */
#include <assert.h>
#include <stdlib.h>

#include "kv/keyspace.h"
#include "catalog/catalog_int.h"
#include "catalog/events.h"
#include "catalog/records.h"
#include "loop/step.h"

enum {
	EVENTS_DB_STEPS = 20,                 /* steps (loop/step.h) of looking at one database */
	EVENTS_NAME_STEPS = 10,               /* and of a name with an event */
	EVENTS_NAMES_BYTES = 2 * 1024 * 1024, /* for the names of the events that are kept */
	/* So many events are gathered before those beyond the wanted number are dropped. */
	EVENTS_GATHERED = 2 * CATALOG_EVENTS_MOST + 3 * CATALOG_EVENTS_PAGE,
};

/* An event that was found. */
struct event_entry {
	struct catalog_seq seq;
	uint8_t kind;
	uint16_t name_bytes;
	uint32_t name_at; /* offset of the name in `names` */
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

/* ---- What was found ---- */

static struct event_entry *
events_entries(const struct catalog_events *s)
{
	return (struct event_entry *)(void *)s->entries.ptr;
}

static size_t
events_found(const struct catalog_events *s)
{
	return s->entries.len / sizeof(struct event_entry);
}

void
catalog_events_init(struct catalog_events *s, const struct catalog_events_wanted *wanted,
		    struct arena *arena, struct budget_part *part)
{
	memset(s, 0, sizeof(*s));
	s->wanted = *wanted;
	s->arena = arena;
	s->entries = BUF_INIT_OF(EVENTS_GATHERED * sizeof(struct event_entry), part);
	s->names = BUF_INIT_OF(
		2 * EVENTS_NAMES_BYTES + 3 * CATALOG_EVENTS_PAGE * CATALOG_NAME_BYTES, part);
	s->last_event = CATALOG_KEY_INIT;
	s->last_db = CATALOG_KEY_INIT;
	assert(wanted->most && wanted->most <= CATALOG_EVENTS_MOST);
}

void
catalog_events_release(struct catalog_events *s)
{
	buf_release(&s->entries);
	buf_release(&s->names);
	buf_release(&s->last_event);
	buf_release(&s->last_db);
}

/*
 * True for an event that is newer than the beginning of the search, in the Incarnation that was
 * then the newest (versions of another Incarnation are of another store). Such events are left to
 * the next search. If this search returned one, a reader would continue behind it and miss older
 * events in pages that were read before they happened.
 */
static bool
events_is_too_new(const struct catalog_events *s, const struct catalog_seq *seq,
		  uint8_t incarnation)
{
	if (seq->bytes[0] != incarnation)
		return seq->bytes[0] > incarnation;
	return catalog_seq_version(seq) > s->version;
}

static enum status
events_add(struct catalog_events *s, const struct catalog_event *event, uint8_t incarnation)
{
	struct event_entry entry = {
		.seq = event->seq,
		.kind = (uint8_t)event->kind,
		.name_bytes = (uint16_t)event->name.len,
		.name_at = (uint32_t)s->names.len,
	};

	if (catalog_seq_cmp(&event->seq, &s->wanted.after) <= 0 ||
	    catalog_seq_cmp(&event->seq, &s->wanted.before) >= 0 ||
	    events_is_too_new(s, &event->seq, incarnation))
		return STATUS_OK;
	buf_append_str(&s->names, event->name);
	buf_append(&s->entries, &entry, sizeof(entry));
	TRY(buf_status(&s->names));
	return buf_status(&s->entries);
}

static int
compare_oldest_first(const void *a, const void *b)
{
	const struct event_entry *ea = a, *eb = b;

	return catalog_seq_cmp(&ea->seq, &eb->seq);
}

static int
compare_newest_first(const void *a, const void *b)
{
	return compare_oldest_first(b, a);
}

static int
compare_places(const void *a, const void *b)
{
	const struct event_entry *ea = a, *eb = b;

	return (ea->name_at > eb->name_at) - (ea->name_at < eb->name_at);
}

/* Drops the events beyond the wanted number, and their names. */
static void
events_trim(struct catalog_events *s)
{
	struct event_entry *entries = events_entries(s);
	size_t found = events_found(s), count = 0, len = 0;

	if (found <= s->wanted.most && s->names.len <= EVENTS_NAMES_BYTES)
		return;
	qsort(entries, found, sizeof(*entries),
	      s->wanted.newest_first ? compare_newest_first : compare_oldest_first);
	while (count < found && count < s->wanted.most && len <= EVENTS_NAMES_BYTES)
		len += entries[count++].name_bytes;
	s->left_out = s->left_out || count < found;
	len = 0;
	s->entries.len = count * sizeof(*entries);
	qsort(entries, count, sizeof(*entries), compare_places);
	for (size_t i = 0; i < count; i++) {
		assert(entries[i].name_at >= len);
		memmove(s->names.ptr + len, s->names.ptr + entries[i].name_at,
			entries[i].name_bytes);
		entries[i].name_at = (uint32_t)len;
		len += entries[i].name_bytes;
	}
	s->names.len = len;
}

void
catalog_events_sort(struct catalog_events *s)
{
	events_trim(s);
	s->count = events_found(s);
	if (s->count)
		qsort(s->entries.ptr, s->count, sizeof(struct event_entry),
		      s->wanted.newest_first ? compare_newest_first : compare_oldest_first);
}

struct catalog_event
catalog_events_at(const struct catalog_events *s, size_t at)
{
	const struct event_entry *e = &events_entries(s)[at];

	assert(at < s->count);
	return (struct catalog_event){
		.seq = e->seq,
		.name = str_of(s->names.ptr + e->name_at, e->name_bytes),
		.kind = (enum catalog_event_kind)e->kind,
	};
}

/* ---- A page ---- */

/* Reads a page of the pairs in that part of the root, behind the key `last`. */
static enum status
events_page_range(struct kv_tx *tx, const struct catalog_events *s, uint64_t part,
		  const struct buf *last, struct kv_future **ret, size_t *ret_prefix_len)
{
	const struct kv_range_options options = { .limit = CATALOG_EVENTS_PAGE,
						  .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;

	catalog_key_names(&lo, part, s->wanted.space);
	catalog_key_names(&hi, part, s->wanted.space);
	*ret_prefix_len = lo.len;
	buf_append_byte(&lo, CATALOG_KEY_STRINGS);
	buf_append_byte(&hi, CATALOG_KEY_STRINGS_END);
	if (last->len) {
		buf_clear(&lo);
		buf_append_buf(&lo, last);
		buf_append_byte(&lo, CATALOG_KEY_NEXT);
	}
	TRY(catalog_key_status(&lo));
	TRY(catalog_key_status(&hi));
	*ret = kv_get_range(tx, buf_str(&lo), buf_str(&hi), &options);
	return STATUS_OK;
}

static enum status
events_name(const struct catalog_events *s, struct str key, size_t prefix_len, struct str *ret)
{
	struct tuple_reader r = tuple_reader(str_skip(key, prefix_len));

	return catalog_next_text(&r, TUPLE_STRING, s->arena, false, ret);
}

/* Takes the events of creations and deletions in a page. */
static enum status
events_take_names(struct catalog_events *s, struct kv_range range, size_t prefix_len,
		  struct err *err)
{
	for (size_t i = 0; i < range.count; i++) {
		struct catalog_event event = { 0 };

		TRY(step_count(EVENTS_NAME_STEPS));
		TRY(events_name(s, range.pairs[i].key, prefix_len, &event.name));
		TRY(catalog_event_record_parse(range.pairs[i].value, &event, err));
		TRY(events_add(s, &event, s->incarnation));
	}
	return STATUS_OK;
}

static enum status
events_read_newest(struct kv_tx *tx, struct kv_range range, struct catalog_db *dbs,
		   struct kv_future **wave, struct err *err)
{
	for (size_t i = 0; i < range.count; i++) {
		TRY(catalog_description_parse(range.pairs[i].value, &dbs[i], err));
		wave[i] = NULL;
		if (dbs[i].kind->newest_read)
			TRY(dbs[i].kind->newest_read(tx, dbs[i].number, &wave[i]));
	}
	return STATUS_OK;
}

/* Reads the newest changes of these databases, all at the same time. */
static enum status
events_take_dbs(struct kv_tx *tx, struct catalog_events *s, struct kv_range range,
		size_t prefix_len, struct err *err)
{
	struct catalog_db *dbs = arena_zalloc(s->arena, (range.count + 1) * sizeof(*dbs));
	struct kv_future **wave = arena_alloc(s->arena, (range.count + 1) * sizeof(*wave));

	if (!dbs || !wave)
		return STATUS_LIMIT;
	TRY(events_read_newest(tx, range, dbs, wave, err));
	for (size_t i = 0; i < range.count; i++) {
		struct catalog_event event = { .kind = CATALOG_EVENT_UPDATED };

		TRY(step_count(EVENTS_DB_STEPS));
		if (s->watched && s->dbs_count + i < CATALOG_EVENTS_WATCHED)
			s->watched[s->dbs_count + i] = (struct catalog_watched){ dbs[i].number,
										 dbs[i].kind };
		if (!wave[i])
			continue;
		TRY(kv_future_wait(wave[i]));
		if (kv_future_range(wave[i]).count) {
			TRY(dbs[i].kind->newest_parse(kv_future_range(wave[i]).pairs[0].key,
						      &event.seq));
			TRY(events_name(s, range.pairs[i].key, prefix_len, &event.name));
			TRY(events_add(s, &event, dbs[i].incarnation));
		}
		kv_future_free(wave[i]);
	}
	return STATUS_OK;
}

/* Asks for both lists before it waits for either. */
static enum status
events_read_page(struct kv_tx *tx, struct catalog_events *s, struct kv_range *ret_events,
		 struct kv_range *ret_dbs, struct err *err)
{
	struct kv_future *events = NULL, *dbs = NULL;
	size_t events_prefix = 0, dbs_prefix = 0;

	if (!s->events_done)
		TRY(events_page_range(tx, s, KV_ROOT_EVENTS, &s->last_event, &events,
				      &events_prefix));
	if (!s->dbs_done)
		TRY(events_page_range(tx, s, KV_ROOT_DATABASES, &s->last_db, &dbs, &dbs_prefix));
	if (events) {
		TRY(kv_future_wait(events));
		*ret_events = kv_future_range(events);
		TRY(events_take_names(s, *ret_events, events_prefix, err));
	}
	if (dbs) {
		TRY(kv_future_wait(dbs));
		*ret_dbs = kv_future_range(dbs);
		TRY(events_take_dbs(tx, s, *ret_dbs, dbs_prefix, err));
	}
	return STATUS_OK;
}

/* Remembers the last key of a page; the next page begins behind it. */
static enum status
events_pass(struct buf *last, struct kv_range range, bool *ret_done)
{
	*ret_done = *ret_done || !range.more;
	if (range.count == 0)
		return STATUS_OK;
	buf_clear(last);
	buf_append_str(last, range.pairs[range.count - 1].key);
	return buf_status(last);
}

enum status
catalog_events_page(struct kv_tx *tx, struct catalog_events *s, struct err *err)
{
	struct arena_mark mark = arena_mark(s->arena);
	struct kv_range events = { 0 }, dbs = { 0 };
	enum status status;

	assert(!s->done);
	s->entries.len = s->settled_entries;
	s->names.len = s->settled_names;
	if (!s->begun) {
		TRY(kv_get_read_version(tx, &s->version));
		TRY(catalog_store_incarnation(tx, &s->incarnation));
	}
	status = events_read_page(tx, s, &events, &dbs, err);
	arena_reset(s->arena, mark);
	TRY(status);
	TRY(events_pass(&s->last_event, events, &s->events_done));
	TRY(events_pass(&s->last_db, dbs, &s->dbs_done));
	s->dbs_count += dbs.count;
	s->done = s->events_done && s->dbs_done;
	if (events_found(s) > 2 * s->wanted.most + CATALOG_EVENTS_PAGE ||
	    s->names.len > 2 * EVENTS_NAMES_BYTES)
		events_trim(s);
	s->settled_entries = s->entries.len;
	s->settled_names = s->names.len;
	s->begun = true;
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
catalog_watch_name(struct kv_tx *tx, enum catalog_space space, struct str name,
		   struct kv_future **ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	catalog_key_name(&key, KV_ROOT_DATABASES, space, name);
	TRY(catalog_key_status(&key));
	*ret = kv_watch(tx, buf_str(&key));
	return STATUS_OK;
}

enum status
catalog_watch_db(struct kv_tx *tx, const struct catalog_watched *db, struct kv_future **ret)
{
	AUTO(buf_release) struct buf prefix = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	tuple_put_u64(&prefix, db->number);
	TRY(buf_status(&prefix));
	TRY(db->kind->watch_key(buf_str(&prefix), &key));
	*ret = kv_watch(tx, buf_str(&key));
	return STATUS_OK;
}
