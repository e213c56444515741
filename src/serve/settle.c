#include "serve/settle.h"

#include "net/session.h"

void
settle_buffer(struct buf *b)
{
	if (b->cap > SETTLE_KEPT_BYTES)
		buf_release(b);
	buf_clear(b);
}

void
settle_request(struct clients_entry *e)
{
	clients_leave(e);
	budget_settle(&net_stream_session(e->stream)->part);
}
