#include "door/redis/txn/notify.h"

#include "base/buf.h"
#include "door/redis/txn/redis_int.h"

/* The channel of a keyspace notification. */
static void
notify_channel(const char *prefix, unsigned db, struct str name, struct buf *ret)
{
	buf_clear(ret);
	buf_printf(ret, "%s@%u__:", prefix, db);
	buf_append_str(ret, name);
}

enum status
notify_each(struct redis *r, const struct effect *e, notify_take *take, void *arg)
{
	unsigned wanted = atomic_load_explicit(&r->events, memory_order_relaxed);
	AUTO(buf_release) struct buf channel = BUF_INIT(REDIS_REQUEST_BYTES);
	struct str event;

	if (!e->event || !(wanted & e->class))
		return STATUS_OK;
	event = str_from_cstr(e->event);
	if (wanted & EVENT_KEYSPACE) {
		notify_channel("__keyspace", e->db, e->key, &channel);
		TRY(buf_status(&channel));
		TRY(take(arg, buf_str(&channel), event));
	}
	if (wanted & EVENT_KEYEVENT) {
		notify_channel("__keyevent", e->db, event, &channel);
		TRY(buf_status(&channel));
		TRY(take(arg, buf_str(&channel), e->key));
	}
	return STATUS_OK;
}
