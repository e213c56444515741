/*
 * A look of a change stream: reads, in one transaction, what the logs of collections and the
 * notices have behind the stream's place, and puts it in one order.
 *
 * The name that a collection had when something happened to a document follows from the notices: it
 * is the one that it had before the next rename or drop, or the one that it has now.
 */
#include <assert.h>

#include "base/big_endian.h"
#include "base/clock.h"
#include "base/steady.h"
#include "catalog/events.h"
#include "door/mongo/txn/client.h"
#include "door/mongo/txn/run.h"
#include "door/mongo/watch/watch_int.h"
#include "loop/sort.h"

enum {
	LEAST_EVENTS = 10, /* of a collection, in one look */
	DAY_MS = 24 * 60 * 60 * 1000,
	BATCH_BYTES = 15 * 1024 * 1024,
};

/* ---- Which collections there are ---- */

void
look_init(struct look *l, struct call *c, struct watch *w, int64_t batch)
{
	*l = (struct look){ .call = c, .watch = w, .mark = arena_mark(c->arena) };
	l->most = batch > 0 && batch < WATCH_EVENTS ? (size_t)batch : WATCH_EVENTS;
}

void
look_release(struct look *l)
{
	for (size_t i = 0; i < l->key_count; i++)
		kv_future_free(l->keys[i]);
	for (size_t i = 0; i < l->collection_count; i++)
		if (l->collections[i].counted)
			catalog_db_unref(l->collections[i].db);
	l->key_count = l->collection_count = 0;
}

/* True if the stream tells of a collection of that name. */
static bool
watch_covers(const struct watch *w, struct str ns)
{
	struct str prefix = str_from_cstr(w->prefix);

	return w->scope == WATCH_COLLECTION ? str_eq(ns, prefix) : str_starts_with(ns, prefix);
}

/* The name of a database, as it begins the names of its collections. */
static bool
watch_covers_database(const struct watch *w, struct str db)
{
	struct str prefix = str_from_cstr(w->prefix);

	return w->scope == WATCH_ALL || (w->scope == WATCH_DATABASE && prefix.len == db.len + 1 &&
					 str_starts_with(prefix, db));
}

static bool
notice_is_wanted(void *arg, const struct plain_notice *n)
{
	const struct watch *w = arg;

	if (n->kind == PLAIN_NOTICE_DATABASE_DROPPED)
		return watch_covers_database(w, n->name);
	return watch_covers(w, n->name) || (n->to.len && watch_covers(w, n->to));
}

/* The stream ends with what the notice tells. */
static bool
notice_invalidates(const struct watch *w, const struct plain_notice *n)
{
	if (w->scope == WATCH_ALL)
		return false;
	if (w->scope == WATCH_DATABASE)
		return n->kind == PLAIN_NOTICE_DATABASE_DROPPED;
	return n->kind == PLAIN_NOTICE_DROPPED || n->kind == PLAIN_NOTICE_RENAMED;
}

static bool
notice_is_told(const struct watch *w, const struct plain_notice *n)
{
	return w->expanded || n->kind == PLAIN_NOTICE_DROPPED || n->kind == PLAIN_NOTICE_RENAMED ||
	       n->kind == PLAIN_NOTICE_DATABASE_DROPPED;
}

static enum status
look_add_open(struct look *l, struct kv_tx *tx, struct str name)
{
	struct watched *w = &l->collections[l->collection_count];

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, name, &w->db, &l->call->err));
	w->counted = true;
	l->collection_count++;
	plain_init(&w->plain, tx, w->db, 0, &l->call->err);
	return STATUS_OK;
}

static void
watched_note(struct watched *w, const struct plain_notice *n)
{
	w->dropped = n->kind == PLAIN_NOTICE_DROPPED;
	w->dropped_ms = w->dropped ? n->ms : 0;
}

/* A collection that was renamed or dropped: its log is read as long as it is there. */
static enum status
look_add_gone(struct look *l, struct kv_tx *tx, const struct plain_notice *n)
{
	struct arena *arena = l->call->arena;
	struct catalog_db *db = arena_zalloc(arena, sizeof(*db));
	struct watched *w = &l->collections[l->collection_count];
	AUTO(buf_release) struct buf prefix = CATALOG_KEY_INIT;

	if (!db)
		return STATUS_LIMIT;
	tuple_put_u64(&prefix, n->number);
	TRY(catalog_key_status(&prefix));
	db->name = n->to;
	db->number = n->number;
	db->kind = &plain_kind;
	db->incarnation = l->incarnation;
	db->prefix = buf_dup(&prefix, arena);
	memcpy(db->uuid, n->uuid, sizeof(db->uuid));
	if (!db->prefix.ptr)
		return STATUS_LIMIT;
	w->db = db;
	watched_note(w, n);
	plain_init(&w->plain, tx, db, 0, &l->call->err);
	l->collection_count++;
	return STATUS_OK;
}

static struct watched *
look_find(struct look *l, uint64_t number)
{
	for (size_t i = 0; i < l->collection_count; i++)
		if (l->collections[i].db->number == number)
			return &l->collections[i];
	return NULL;
}

static enum status
look_list(struct look *l, struct kv_tx *tx, struct name_page *ret)
{
	struct str prefix = str_from_cstr(l->watch->prefix);
	struct name_range range = { .begin = prefix,
				    .has_begin = prefix.len,
				    .has_end = prefix.len,
				    .limit = WATCH_COLLECTIONS + 1 };
	struct arena *arena = l->call->arena;

	if (l->watch->scope == WATCH_COLLECTION) {
		range.end = prefix;
	} else if (prefix.len) {
		/* The next text that does not begin with "db.". */
		range.exclusive_end = true;
		range.end = arena_dup(arena, prefix);
		if (!range.end.ptr)
			return STATUS_LIMIT;
		((char *)(uintptr_t)range.end.ptr)[prefix.len - 1] = '.' + 1;
	}
	return catalog_list(tx, CATALOG_SPACE_MONGO, &range, arena, ret);
}

static enum status
look_open(struct look *l, struct kv_tx *tx)
{
	struct name_page page;
	size_t most;

	TRY(look_list(l, tx, &page));
	most = page.count + l->notice_count;
	l->collections = arena_zalloc(l->call->arena, (most + 1) * sizeof(*l->collections));
	if (!l->collections)
		return STATUS_LIMIT;
	for (size_t i = 0; i < page.count; i++)
		TRY(look_add_open(l, tx, page.names[i]));
	for (size_t i = 0; i < l->notice_count; i++) {
		const struct plain_notice *n = &l->notices[i];
		struct watched *known = look_find(l, n->number);

		if (n->kind != PLAIN_NOTICE_DROPPED && n->kind != PLAIN_NOTICE_RENAMED)
			continue;
		if (!known && watch_covers(l->watch, n->name))
			TRY(look_add_gone(l, tx, n));
		if (known && !known->counted) {
			known->db->name = n->to;
			watched_note(known, n);
		}
	}
	if (page.more || l->collection_count > WATCH_COLLECTIONS)
		return call_fail(l->call, MONGO_EXCEEDED_MEMORY_LIMIT,
				 "a change stream follows %d collections at most "
				 "(WATCH_COLLECTIONS)",
				 WATCH_COLLECTIONS);
	return STATUS_OK;
}

/* ---- What has happened ---- */

/* The last byte of the store's Sequences may have been raised since the place was told. */
static struct catalog_seq
place_within(const struct look *l, uint8_t incarnation)
{
	struct catalog_seq after = l->watch->place.seq;

	if (after.bytes[0] > incarnation)
		after.bytes[0] = incarnation;
	/* Of an event that was told in part, the rest is still to come: the place is before it. */
	for (size_t i = sizeof(after.bytes); l->watch->place.fragment && i-- > 0;)
		if (after.bytes[i]-- > 0)
			break;
	return after;
}

static enum status
fail_history(struct look *l)
{
	return call_fail(l->call, MONGO_HISTORY_LOST,
			 "Resume of change stream was not possible, as the resume point may no "
			 "longer be in the log, which is kept for a day.");
}

/* Fails where events behind the place may have been cleared. */
static enum status
check_history(struct look *l, struct watched *w, const struct catalog_seq *after)
{
	static const struct catalog_seq start;
	uint64_t now_ms = steady_ms();
	struct plain_event *first;
	size_t count;

	if (l->watch->place.ms + WATCH_SURE_MS > now_ms || w->db->created_ms + DAY_MS > now_ms)
		return STATUS_OK;
	if (w->dropped && w->dropped_ms + DAY_MS <= now_ms)
		return fail_history(l);
	TRY(plain_log_read(&w->plain, &start, 1, l->call->arena, &first, &count));
	if (!count || catalog_seq_cmp(&first->seq, after) <= 0)
		return STATUS_OK;
	return fail_history(l);
}

/* The same of notices: as long as none has been cleared, the oldest is new. */
static enum status
check_notices(struct look *l, struct kv_tx *tx, const struct catalog_seq *after)
{
	uint64_t now_ms = steady_ms();
	struct plain_notice first = { 0 };
	enum status status;

	if (l->watch->place.ms + WATCH_SURE_MS > now_ms)
		return STATUS_OK;
	status = plain_notices_first(tx, l->call->arena, &first, &l->call->err);
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	if (first.ms + DAY_MS > now_ms || catalog_seq_cmp(&first.seq, after) <= 0)
		return STATUS_OK;
	return fail_history(l);
}

static struct happened *
look_append(struct look *l)
{
	l->events = arena_grow(l->call->arena, l->events, l->count, &l->cap, sizeof(*l->events));
	if (!l->events)
		return NULL;
	l->events[l->count] = (struct happened){ 0 };
	return &l->events[l->count++];
}

static enum status
look_read_notices(struct look *l, struct kv_tx *tx)
{
	struct watch *w = l->watch;
	struct catalog_seq from = place_within(l, l->incarnation);
	enum status status;

	l->notices = NULL;
	l->notice_count = 0;
	if (!w->begun)
		return STATUS_OK;
	TRY(check_notices(l, tx, &from));
	status = plain_notices_read(tx, &from, WATCH_NOTICES, notice_is_wanted, w, l->call->arena,
				    &l->notices, &l->notice_count, &l->call->err);
	if (status == STATUS_LIMIT)
		return call_fail(l->call, MONGO_EXCEEDED_MEMORY_LIMIT,
				 "too much has become of collections since that time: a stream "
				 "reads %d notices at most (WATCH_NOTICES)",
				 WATCH_NOTICES);
	TRY(status);
	for (size_t i = 0; i < l->notice_count; i++) {
		const struct plain_notice *n = &l->notices[i];
		bool is_here = catalog_seq_cmp(&n->seq, &from) == 0;
		struct happened *h;

		if (!is_here && notice_is_told(w, n)) {
			h = look_append(l);
			if (!h)
				return STATUS_LIMIT;
			h->notice = n;
			h->seq = n->seq;
			h->ns = n->name;
		}
		/* A stream that goes on behind a drop itself ends there; not one behind its end. */
		if (notice_invalidates(w, n) && !(is_here && w->place.ended)) {
			h = look_append(l);
			if (!h)
				return STATUS_LIMIT;
			h->notice = n;
			h->seq = n->seq;
			h->invalidates = true;
			return STATUS_OK;
		}
	}
	return STATUS_OK;
}

/* The collection's name when its log got the event with that Sequence. */
static struct str
name_at(const struct look *l, const struct watched *w, const struct catalog_seq *seq)
{
	for (size_t i = 0; i < l->notice_count; i++) {
		const struct plain_notice *n = &l->notices[i];

		if (n->number == w->db->number && catalog_seq_cmp(&n->seq, seq) > 0 &&
		    (n->kind == PLAIN_NOTICE_RENAMED || n->kind == PLAIN_NOTICE_DROPPED))
			return n->name;
	}
	return w->db->name;
}

static enum status
look_read(struct look *l, struct watched *w)
{
	size_t limit = WATCH_EVENTS / l->collection_count;
	struct catalog_seq after = place_within(l, w->db->incarnation);
	struct plain_event *events;
	size_t count;

	if (limit < LEAST_EVENTS)
		limit = LEAST_EVENTS;
	TRY(check_history(l, w, &after));
	TRY(plain_log_read(&w->plain, &after, limit, l->call->arena, &events, &count));
	for (size_t i = 0; i < count; i++) {
		struct str ns = name_at(l, w, &events[i].seq);
		struct happened *h;

		if (!watch_covers(l->watch, ns))
			continue;
		h = look_append(l);
		if (!h)
			return STATUS_LIMIT;
		h->seq = events[i].seq;
		h->event = events[i];
		h->of = w;
		h->ns = ns;
	}
	if (count < limit)
		return STATUS_OK;
	l->cut = true;
	if (catalog_seq_cmp(&events[count - 1].seq, &l->until) < 0)
		l->until = events[count - 1].seq;
	return STATUS_OK;
}

static int
happened_cmp(const void *a, const void *b)
{
	const struct happened *one = a, *other = b;
	int order = catalog_seq_cmp(&one->seq, &other->seq);

	return order ? order : (int)one->invalidates - (int)other->invalidates;
}

/* The document as it is now, for an event that has no copy of it. */
static enum status
look_up(struct look *l, struct happened *h)
{
	enum status status = STATUS_NOT_FOUND;

	if (!h->of->dropped)
		status = plain_get(&h->of->plain, &h->event.id, KV_SNAPSHOT, l->call->arena,
				   &h->full);
	h->has_full = true;
	if (status == STATUS_NOT_FOUND)
		h->full = STR("");
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

bool
watch_has_description(const struct plain_event *e)
{
	return e->kind == PLAIN_EVENT_UPDATE && bson_find(e->detail, STR("updatedFields"), NULL) &&
	       bson_find(e->detail, STR("removedFields"), NULL);
}

/* A document that was kept with the event; empty in `*ret` if none was. */
static enum status
look_image(struct look *l, struct happened *h, bool after, enum watch_image wanted, struct str *ret)
{
	const char *what = after ? "post-image for all update events"
				 : "pre-image for all update, delete and replace events";
	enum status status = plain_image_read(&h->of->plain, &h->event.seq, after, l->call->arena,
					      ret);

	if (status != STATUS_NOT_FOUND)
		return status;
	*ret = STR("");
	if (wanted != WATCH_IMAGE_REQUIRED)
		return STATUS_OK;
	return call_fail(l->call, MONGO_NO_MATCHING_DOCUMENT,
			 "Change stream was configured to require a %s, but the %s was not found "
			 "for an event of %.*s",
			 what, after ? "post-image" : "pre-image", STR_ARG(h->ns));
}

static enum status
look_complete_full(struct look *l, struct happened *h)
{
	const struct plain_event *e = &h->event;
	enum watch_image wanted = l->watch->full;
	bool update = watch_has_description(e);

	if (e->kind == PLAIN_EVENT_DELETE || (update && wanted == WATCH_IMAGE_OFF))
		return STATUS_OK;
	h->has_full = true;
	if (!update && e->detail.len) {
		h->full = e->detail;
		return STATUS_OK;
	}
	if (update && wanted == WATCH_IMAGE_LOOKUP)
		return look_up(l, h);
	TRY(look_image(l, h, true, update ? wanted : WATCH_IMAGE_OFF, &h->full));
	/* A document that was too long for its event is looked up. */
	return h->full.len || update ? STATUS_OK : look_up(l, h);
}

static enum status
look_complete(struct look *l, struct happened *h)
{
	if (h->notice)
		return STATUS_OK;
	TRY(look_complete_full(l, h));
	h->has_before = l->watch->before != WATCH_IMAGE_OFF && h->event.kind != PLAIN_EVENT_INSERT;
	return h->has_before ? look_image(l, h, false, l->watch->before, &h->before) : STATUS_OK;
}

/* Sorts what was found, and keeps as much as an answer takes. */
static enum status
look_choose(struct look *l)
{
	size_t bytes = 0, n = 0;

	TRY(sort_items_by(l->events, l->count, sizeof(*l->events), happened_cmp, l->call->arena));
	while (n < l->count && n < l->most && bytes < BATCH_BYTES && !l->ends) {
		struct happened *h = &l->events[n];

		if (l->cut && catalog_seq_cmp(&h->seq, &l->until) > 0)
			break;
		TRY(look_complete(l, h));
		bytes += h->event.detail.len + h->full.len + h->before.len;
		l->ends = h->invalidates;
		n++;
	}
	l->cut = l->cut || n < l->count;
	l->count = n;
	return STATUS_OK;
}

/* What wakes the stream. */
static enum status
look_watch(struct look *l, struct kv_tx *tx)
{
	if (l->collection_count + 2 > WATCH_KEYS)
		return STATUS_OK;
	TRY(plain_notices_watch(tx, &l->keys[l->key_count]));
	l->key_count++;
	if (l->watch->scope == WATCH_COLLECTION)
		TRY(catalog_watch_name(tx, CATALOG_SPACE_MONGO, str_from_cstr(l->watch->prefix),
				       &l->keys[l->key_count]));
	else
		TRY(catalog_watch(tx, &l->keys[l->key_count]));
	l->key_count++;
	for (size_t i = 0; i < l->collection_count; i++) {
		const struct catalog_db *db = l->collections[i].db;

		TRY(catalog_watch_db(
			tx, &(struct catalog_watched){ .number = db->number, .kind = db->kind },
			&l->keys[l->key_count]));
		l->key_count++;
	}
	return STATUS_OK;
}

/* Behind all that was committed up to the version. */
static struct catalog_seq
seq_behind(uint8_t incarnation, uint64_t version)
{
	struct catalog_seq seq;

	memset(seq.bytes, 0xff, sizeof(seq.bytes));
	seq.bytes[0] = incarnation;
	big_endian_put_64(seq.bytes + 1, version);
	return seq;
}

struct watch_place
happened_place(const struct happened *h)
{
	return (struct watch_place){ .seq = h->seq,
				     .ms = h->notice ? h->notice->ms : h->event.ms,
				     .ended = h->invalidates };
}

static enum status
look_body(struct kv_tx *tx, void *arg)
{
	struct look *l = arg;
	struct watch *w = l->watch;
	uint64_t version;

	look_release(l);
	arena_reset(l->call->arena, l->mark);
	l->call->code = 0;
	l->events = NULL;
	l->count = l->cap = 0;
	l->cut = l->ends = false;
	memset(&l->until, 0xff, sizeof(l->until));
	TRY(kv_get_read_version(tx, &version));
	TRY(catalog_store_incarnation(tx, &l->incarnation));
	TRY(look_read_notices(l, tx));
	TRY(look_open(l, tx));
	for (size_t i = 0; w->begun && i < l->collection_count; i++)
		TRY(look_read(l, &l->collections[i]));
	TRY(look_choose(l));
	l->place = (struct watch_place){ .seq = seq_behind(l->incarnation, version),
					 .ms = steady_ms() };
	/* Drivers go on behind the last event of a batch or behind the batch: that is one place. */
	if (l->count)
		l->place = happened_place(&l->events[l->count - 1]);
	else if (l->cut || l->ends)
		l->place = w->place;
	l->place.fragment = !l->count && l->cut ? w->place.fragment : 0;
	l->place.ended = l->ends || (!l->count && l->cut && w->place.ended);
	return l->waits && !l->count ? look_watch(l, tx) : STATUS_OK;
}

enum status
watch_check_rights(struct call *c, const struct watch *w)
{
	if (w->scope != WATCH_ALL)
		return call_check_rights(c, c->db, RIGHT_READ);
	if (c->client->rights.any & RIGHT_READ)
		return STATUS_OK;
	return call_fail(c, MONGO_UNAUTHORIZED,
			 "not authorized to read the changes of all databases");
}

/* For visit_may(). */
static enum status
look_may(void *arg)
{
	struct look *l = arg;

	return watch_check_rights(l->call, l->watch);
}

/*
 * Waits until one of the keys has changed or the deadline has come. Where there were too many keys
 * to watch, none is, and it returns after WATCH_LOOK_MS. Looks as often whether the client is still
 * there.
 */
static enum status
look_wait(struct look *l, uint64_t deadline_ns)
{
	struct event *events[WATCH_KEYS + 1];
	size_t count = 0;

	assert(l->key_count <= WATCH_KEYS);
	events[count++] = net_stream_stopping_event(l->call->client->stream);
	for (size_t i = 0; i < l->key_count; i++) {
		struct event *e = kv_future_event(l->keys[i]);

		if (!e)
			return STATUS_OK; /* it has changed already */
		events[count++] = e;
	}
	for (;;) {
		uint64_t soon_ns = clock_after_ms(WATCH_LOOK_MS);
		uint64_t until_ns = deadline_ns < soon_ns ? deadline_ns : soon_ns;
		bool woken = event_wait_any(events, count, until_ns) < count;

		TRY(mongo_client_check_waiting(l->call->client));
		if (woken || !l->key_count || clock_mono_ns() >= deadline_ns)
			return STATUS_OK;
	}
}

/*
 * A look costs as much as some ten events, and every commit would wake the stream. So a stream that
 * has told all events waits for a while, so that others gather.
 */
static enum status
look_gather(struct look *l, uint64_t deadline_ns)
{
	uint64_t until_ns = l->watch->look_ns < deadline_ns ? l->watch->look_ns : deadline_ns;
	struct event *stops = net_stream_stopping_event(l->call->client->stream);

	if (clock_mono_ns() >= until_ns)
		return STATUS_OK;
	event_wait_any(&stops, 1, until_ns);
	return mongo_client_check_waiting(l->call->client);
}

static void
look_note_pace(struct look *l)
{
	uint64_t us = l->count * WATCH_PACE_US;

	if (us > WATCH_PACE_MOST_US)
		us = WATCH_PACE_MOST_US;
	l->watch->look_ns = l->cut ? 0 : clock_mono_ns() + us * 1000;
}

static enum status
look_repeatedly(struct look *l, uint64_t deadline_ns)
{
	struct call *c = l->call;

	for (;;) {
		TRY(look_gather(l, deadline_ns));
		TRY(visit_follow(&c->client->entry));
		TRY(watch_check_rights(c, l->watch));
		l->waits = clock_mono_ns() < deadline_ns;
		TRY(call_run(c, look_body, l));
		look_note_pace(l);
		if (l->count || l->cut || !l->waits)
			return STATUS_OK;
		TRY(mongo_client_last(c->client, &c->err));
		TRY(look_wait(l, deadline_ns));
	}
}

enum status
look_until(struct look *l, uint64_t deadline_ns)
{
	struct clients_entry *entry = &l->call->client->entry;
	enum status status;

	visit_may(entry, look_may, l);
	status = look_repeatedly(l, deadline_ns);
	visit_may(entry, NULL, NULL);
	return status;
}
