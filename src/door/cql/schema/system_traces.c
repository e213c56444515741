/* What requests have done, as drivers ask for it: each sees its own, an administrator all. */
#include "base/big_endian.h"
#include "cql/time.h"
#include "door/cql/schema/system_int.h"
#include "door/cql/trace/trace.h"

enum {
	TICKS_PER_US = 10, /* of a timeuuid */
};

static bool
is_seen(const struct system_making *m, const struct trace *t)
{
	return m->server->admin || (str_eq(m->server->user, str_from_cstr(t->user)) &&
				    memcmp(m->server->user_key, t->key, sizeof(t->key)) == 0);
}

static enum status
put_copy(struct system_making *m, struct cql_value *row, const char *column, struct str bytes)
{
	struct str copy;

	TRY(arena_copy(m->q->arena, bytes, &copy));
	system_row_put(m, row, column, copy);
	return STATUS_OK;
}

static enum status
take_session(void *arg, const struct trace *t)
{
	struct system_making *m = arg;
	const struct schema_server *server = m->server;
	const struct str parameters[] = { STR("query"), str_of(t->text, t->text_len) };
	struct cql_value *row;

	if (!is_seen(m, t))
		return STATUS_OK;
	TRY(system_row_begin(m, &row));
	TRY(put_copy(m, row, "session_id", str_of(t->id, sizeof(t->id))));
	TRY(put_copy(m, row, "client", str_of(t->client, t->client_len)));
	system_row_put(m, row, "command", STR("QUERY"));
	system_row_put(m, row, "coordinator", str_of(server->address, server->address_len));
	TRY(system_row_put_int(m, row, "coordinator_port", server->port, 4));
	TRY(system_row_put_int(m, row, "duration",
			       (int32_t)(t->took_us < INT32_MAX ? t->took_us : INT32_MAX), 4));
	TRY(system_row_put_texts(m, row, "parameters", parameters, 2, true));
	TRY(put_copy(m, row, "request", str_from_cstr(t->message)));
	return system_row_put_int(m, row, "started_at", (int64_t)(t->began_us / 1000), 8);
}

enum status
system_sessions_rows(struct system_making *m)
{
	return traces_each(m->server->traces, take_session, m);
}

static enum status
take_event(struct system_making *m, const struct trace *t, size_t n)
{
	const struct trace_event *e = &t->events[n];
	int64_t ticks = (int64_t)((t->began_us + e->after_us) * TICKS_PER_US + n);
	const struct schema_server *server = m->server;
	struct cql_value *row;
	struct str bytes;

	TRY(system_row_begin(m, &row));
	TRY(put_copy(m, row, "session_id", str_of(t->id, sizeof(t->id))));
	TRY(cql_timeuuid_put(m->q, ticks, big_endian_64((const char *)t->id + 8), &bytes));
	system_row_put(m, row, "event_id", bytes);
	TRY(put_copy(m, row, "activity", str_from_cstr(e->text)));
	system_row_put(m, row, "source", str_of(server->address, server->address_len));
	TRY(system_row_put_int(m, row, "source_elapsed", (int32_t)e->after_us, 4));
	TRY(system_row_put_int(m, row, "source_port", server->port, 4));
	system_row_put(m, row, "thread", STR("fiber"));
	return STATUS_OK;
}

static enum status
take_events(void *arg, const struct trace *t)
{
	struct system_making *m = arg;

	for (size_t i = 0; is_seen(m, t) && i < t->event_count; i++)
		TRY(take_event(m, t, i));
	return STATUS_OK;
}

enum status
system_events_rows(struct system_making *m)
{
	return traces_each(m->server->traces, take_events, m);
}
