#include "door/cql/flight.h"

#include "base/mem.h"

struct cql_flight *
flight_new(struct cql_client *c, const struct input_frame *f)
{
	struct arena *whole = net_stream_arena(c->stream);
	struct budget_part *part = arena_part(whole);
	struct cql_flight *fl = mem_zalloc(sizeof(*fl));

	if (!fl)
		return NULL;
	fl->body = BUF_INIT_OF(CQL_IN_FLIGHT_BYTES, part);
	fl->out = BUF_INIT_OF(CQL_REPLY_BYTES, part);
	fl->arena = arena_new(arena_limit_bytes(whole));
	buf_append_str(&fl->body, f->body);
	if (!fl->arena || buf_status(&fl->body) != STATUS_OK) {
		flight_free(fl);
		return NULL;
	}
	arena_set_part(fl->arena, part);
	return fl;
}

void
flight_free(struct cql_flight *fl)
{
	arena_free(fl->arena);
	buf_release(&fl->body);
	buf_release(&fl->out);
	mem_free(fl);
}

void
flight_push(struct cql_client *c, struct cql_flight *fl)
{
	fl->next = NULL;
	*c->flights_end = fl;
	c->flights_end = &fl->next;
	c->flight_count++;
}

struct cql_flight *
flight_pop(struct cql_client *c)
{
	struct cql_flight *fl = c->flights;

	if (!fl)
		return NULL;
	c->flights = fl->next;
	if (!c->flights)
		c->flights_end = &c->flights;
	c->flight_count--;
	return fl;
}
