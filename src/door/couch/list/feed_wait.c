/* How a feed waits for changes and keeps its client's connection alive meanwhile. */
#include "base/clock.h"
#include "door/couch/admin/again.h"
#include "door/couch/list/feed.h"
#include "door/couch/list/feed_wait.h"
#include "door/couch/wire/stream.h"
#include "loop/wait.h"

void
couch_feed_wait_init(struct couch_feed_wait *w, struct couch_stream *stream,
		     const struct couch_changes_args *args)
{
	uint64_t now = clock_mono_ns();

	*w = (struct couch_feed_wait){ stream, args, now, now, now };
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

static uint64_t
feed_next_look_ns(const struct couch_feed_wait *w)
{
	return w->looked_ns + COUCH_AGAIN_MS * CLOCK_NS_PER_MS;
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

enum status
couch_feed_beat(struct couch_feed_wait *w)
{
	if (!feed_may_go_on(w))
		return STATUS_FORBIDDEN;
	if (!w->args->heartbeat_ms || w->args->feed == COUCH_FEED_NORMAL ||
	    clock_mono_ns() < feed_next_beat_ns(w))
		return STATUS_OK;
	buf_append_cstr(&w->stream->out, w->args->feed == COUCH_FEED_EVENTSOURCE
						 ? "event: heartbeat\ndata: \n\n"
						 : "\n");
	couch_feed_sent(w);
	return couch_stream_push(w->stream, true);
}

enum status
couch_feed_park(struct couch_feed_wait *w, struct event **events, size_t n, uint64_t at_most_ms,
		enum couch_wake *ret)
{
	struct http_exchange *x = w->stream->r->x;
	uint64_t end = at_most_ms == WAIT_FOREVER ? WAIT_FOREVER : clock_after_ms(at_most_ms);
	bool beats = w->args->heartbeat_ms != 0;
	uint64_t over = w->idle_ns + w->args->timeout_ms * CLOCK_NS_PER_MS;

	events[n] = http_closed_event(x);
	events[n + 1] = http_stopping_event(x);
	for (;;) {
		uint64_t deadline = beats ? feed_next_beat_ns(w) : over;
		size_t found;

		if (end < deadline)
			deadline = end;
		if (feed_next_look_ns(w) < deadline)
			deadline = feed_next_look_ns(w);
		found = event_wait_any(events, n + 2, deadline);
		if (found == n)
			return STATUS_CANCELLED;
		*ret = found == n + 1 ? COUCH_WAKE_OVER : COUCH_WAKE_CHANGED;
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
		TRY(couch_feed_beat(w));
	}
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
