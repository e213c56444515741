/* How a feed waits for changes and keeps its client's connection alive meanwhile. */
#include <assert.h>

#include "access/follow.h"
#include "base/clock.h"
#include "door/couch/admin/again.h"
#include "door/couch/list/feed.h"
#include "door/couch/list/feed_wait.h"
#include "door/couch/wire/state.h"
#include "door/couch/wire/stream.h"
#include "loop/wait.h"

void
couch_feed_wait_init(struct couch_feed_wait *w, struct couch_stream *stream,
		     const struct couch_changes_args *args)
{
	uint64_t now = clock_mono_ns();

	*w = (struct couch_feed_wait){
		.stream = stream, .args = args, .sent_ns = now, .idle_ns = now, .looked_ns = now
	};
}

void
couch_feed_sent(struct couch_feed_wait *w)
{
	w->sent_ns = clock_mono_ns();
}

void
couch_feed_stirred(struct couch_feed_wait *w)
{
	w->idle_ns = clock_mono_ns();
}

static uint64_t
feed_next_beat_ns(const struct couch_feed_wait *w)
{
	return w->sent_ns + w->args->heartbeat_ms * CLOCK_NS_PER_MS;
}

static bool
feed_beat_is_due(const struct couch_feed_wait *w)
{
	return w->args->heartbeat_ms && w->args->feed != COUCH_FEED_NORMAL &&
	       clock_mono_ns() >= feed_next_beat_ns(w);
}

static uint64_t
feed_next_look_ns(const struct couch_feed_wait *w)
{
	bool hears = w->stream->r->couch->config.news;

	/* Together with the look of access/follow.h it is a second. */
	return w->looked_ns +
	       (hears ? COUCH_AGAIN_MS - FOLLOW_LOOK_MS : COUCH_AGAIN_MS) * CLOCK_NS_PER_MS;
}

/* False if the user has lost the right to read, at the latest a second after that. */
static bool
feed_may_go_on(struct couch_feed_wait *w)
{
	if (clock_mono_ns() < feed_next_look_ns(w))
		return true;
	w->looked_ns = clock_mono_ns();
	return couch_may_still_read(w->stream->r);
}

/* ---- The feeds of a loop ---- */

/*
 * A process that follows people (access/follow.h) knows whether a right has changed. So of the
 * feeds of a loop that wait only the first wakes up twice a second for that, and wakes the others
 * if it is so: 10,000 idle feeds cost as much as one. A feed whose user has come by a token looks
 * by itself, since a token ends without a change.
 */
static bool
feed_is_listed(const struct couch_feed_wait *w)
{
	const struct couch_req *r = w->stream->r;

	return r->couch->config.news && r->user.method != AUTH_METHOD_JWT;
}

static void
feed_enlist(struct couch_feed_wait *w)
{
	struct couch_feed_list *list = &w->stream->r->loop->feeds;

	event_init(&w->nudged);
	if (!feed_is_listed(w))
		return;
	w->next = NULL;
	w->prev = list->last;
	if (list->last)
		list->last->next = w;
	else
		list->first = w;
	list->last = w;
}

/* The feed that is the first afterwards looks from now on, and must hear of it. */
static void
feed_delist(struct couch_feed_wait *w)
{
	struct couch_feed_list *list = &w->stream->r->loop->feeds;

	if (!feed_is_listed(w))
		return;
	if (w->next)
		w->next->prev = w->prev;
	else
		list->last = w->prev;
	if (w->prev) {
		w->prev->next = w->next;
		return;
	}
	assert(list->first == w);
	list->first = w->next;
	if (list->first)
		event_set(&list->first->nudged);
}

/*
 * True if this feed has to look at the user's rights at feed_next_look_ns(). One that is not the
 * first has to after a change that it has not seen: the first may have told of it while this one
 * was not waiting.
 */
static bool
feed_has_to_look(const struct couch_feed_wait *w)
{
	const struct couch_req *r = w->stream->r;

	return !feed_is_listed(w) || r->loop->feeds.first == w ||
	       people_news_count(r->couch->config.news) != r->rights_seen;
}

/* For the first feed: wakes the others if a right has changed. */
static void
feed_tell_others(struct couch_feed_wait *w)
{
	struct couch_req *r = w->stream->r;
	uint64_t changes = people_news_count(r->couch->config.news);

	if (!feed_is_listed(w) || r->loop->feeds.first != w || r->loop->feeds.told == changes)
		return;
	r->loop->feeds.told = changes;
	for (struct couch_feed_wait *other = w->next; other; other = other->next)
		event_set(&other->nudged);
}

/* ---- Waiting ---- */

enum status
couch_feed_beat(struct couch_feed_wait *w)
{
	if (!feed_may_go_on(w))
		return STATUS_FORBIDDEN;
	if (!feed_beat_is_due(w))
		return STATUS_OK;
	buf_append_cstr(&w->stream->out, w->args->feed == COUCH_FEED_EVENTSOURCE
						 ? "event: heartbeat\ndata: \n\n"
						 : "\n");
	couch_feed_sent(w);
	return couch_stream_push(w->stream, true);
}

static enum status
feed_wait_listed(struct couch_feed_wait *w, struct event **events, size_t n, uint64_t end,
		 enum couch_wake *ret)
{
	bool beats = w->args->heartbeat_ms != 0;
	uint64_t over = w->idle_ns + w->args->timeout_ms * CLOCK_NS_PER_MS;
	enum status status;

	for (;;) {
		uint64_t deadline = beats ? feed_next_beat_ns(w) : over;
		size_t found;

		if (end < deadline)
			deadline = end;
		if (feed_has_to_look(w) && feed_next_look_ns(w) < deadline)
			deadline = feed_next_look_ns(w);
		found = event_wait_any(events, n + COUCH_FEED_EVENTS, deadline);
		if (found == n)
			return STATUS_CANCELLED;
		/* Only fibers of this thread set it, so none does meanwhile. */
		if (found == n + 2)
			event_init(&w->nudged);
		*ret = found == n + 1 ? COUCH_WAKE_OVER : COUCH_WAKE_CHANGED;
		feed_tell_others(w);
		/* A user who may not read any more gets the feed's end, and no further change. */
		if (!feed_may_go_on(w)) {
			*ret = COUCH_WAKE_OVER;
			return STATUS_OK;
		}
		if (found < n + 2)
			return STATUS_OK;
		if (!beats && clock_mono_ns() >= over) {
			*ret = COUCH_WAKE_OVER;
			return STATUS_OK;
		}
		if (clock_mono_ns() >= end)
			return STATUS_OK;
		if (!feed_beat_is_due(w))
			continue;
		/* The client may not read for long, and others must not depend on that. */
		feed_delist(w);
		status = couch_feed_beat(w);
		feed_enlist(w);
		TRY(status);
	}
}

enum status
couch_feed_park(struct couch_feed_wait *w, struct event **events, size_t n, uint64_t at_most_ms,
		enum couch_wake *ret)
{
	struct http_exchange *x = w->stream->r->x;
	uint64_t end = at_most_ms == WAIT_FOREVER ? WAIT_FOREVER : clock_after_ms(at_most_ms);
	enum status status;

	events[n] = http_closed_event(x);
	events[n + 1] = http_stopping_event(x);
	events[n + 2] = &w->nudged;
	feed_enlist(w);
	status = feed_wait_listed(w, events, n, end, ret);
	feed_delist(w);
	return status;
}

enum status
couch_feed_pause(struct couch_feed_wait *w, uint64_t ms, enum couch_wake *ret)
{
	struct http_exchange *x = w->stream->r->x;
	struct event *const events[] = { http_closed_event(x), http_stopping_event(x) };

	switch (event_wait_any(events, 2, clock_after_ms(ms))) {
	case 0:
		return STATUS_CANCELLED;
	case 1:
		*ret = COUCH_WAKE_OVER;
		break;
	default:
		break;
	}
	return STATUS_OK;
}

void
couch_seq_write(const struct catalog_seq *seq, struct buf *out)
{
	buf_append_byte(out, '"');
	catalog_seq_write(seq, out);
	buf_append_byte(out, '"');
}
