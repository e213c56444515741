#include "door/cql/conn/client.h"

#include <arpa/inet.h>
#include <assert.h>

#include "base/address.h"
#include "base/mem.h"
#include "base/metric.h"
#include "door/cql/people/role.h"
#include "door/cql/wire/frame.h"
#include "door/cql/wire/segment.h"
#include "net/memory.h"

enum {
	PACKED_BYTES = 128 * 1024, /* of segments before they are sent; one more may exceed it */
};

METRIC_COUNTER(losses, "frond_cql_events_lost_total", METRIC_NUMBER,
	       "Clients of Cassandra's protocol that were closed since they left more events "
	       "unread than there is room for (CQL_EVENTS_BYTES).");

static const char *const classes[CQL_CLASSES] = {
	[CQL_CLASS_CONNECTION] = "connection", [CQL_CLASS_PREPARE] = "prepare",
	[CQL_CLASS_SELECT] = "select",         [CQL_CLASS_INSERT] = "insert",
	[CQL_CLASS_UPDATE] = "update",         [CQL_CLASS_DELETE] = "delete",
	[CQL_CLASS_BATCH] = "batch",           [CQL_CLASS_SCHEMA] = "schema",
	[CQL_CLASS_OTHER] = "other",
};

OPS_DOOR(cql_ops, "cql", classes, LOG_LEVEL_WARN, clients_end_op_of);

struct cql_client *
cql_client_new(struct cql_door *door, struct net_stream *stream)
{
	struct cql_client *c = mem_zalloc(sizeof(*c));
	struct budget_part *part = arena_part(net_stream_arena(stream));

	if (!c)
		return NULL;
	c->door = door;
	c->stream = stream;
	c->flights.done_end = &c->flights.done;
	c->flights.waiting_end = &c->flights.waiting;
	c->flights.left_end = &c->flights.left;
	clients_entry_init(&c->entry, &door->clients, stream);
	/* A frame that is not whole lies in front of the payload that has its rest. */
	c->in = BUF_INIT_OF(FRAME_BYTES + FRAME_HEADER_BYTES + 2 * SEGMENT_PAYLOAD_BYTES, part);
	c->raw = BUF_INIT_OF(FRAME_BYTES, part);
	c->plain = BUF_INIT_OF(FRAME_BYTES + 1, part);
	c->out = BUF_INIT_OF(CQL_REPLY_BYTES, part);
	c->packed = BUF_INIT_OF(4 * PACKED_BYTES, part);
	net_memory_part_init(&c->events_part, part, false);
	c->events = BUF_INIT_OF(CQL_EVENTS_BYTES, &c->events_part);
	visit_reset(&c->entry);
	clients_add(&c->entry);
	return c;
}

void
cql_client_free(struct cql_client *c)
{
	/* Fibers of statements refer to it. */
	assert(!c->flights.count && !c->flights.done && !c->flights.waiting);
	clients_remove(&c->entry);
	buf_release(&c->in);
	buf_release(&c->raw);
	buf_release(&c->plain);
	buf_release(&c->out);
	buf_release(&c->packed);
	buf_release(&c->events);
	budget_part_release(&c->events_part);
	clients_entry_fini(&c->entry);
	mem_free(c);
}

/* The bytes of the address in a text with a port; of none, those of the machine itself. */
static void
address_bytes(const char *text, uint8_t ret[static 16], size_t *ret_len)
{
	static const uint8_t loopback[] = { 127, 0, 0, 1 };
	char host[ADDRESS_HOST_BYTES];
	uint16_t port;

	*ret_len = 4;
	if (address_parse(text, host, &port, NULL) == STATUS_OK) {
		if (inet_pton(AF_INET, host, ret) == 1)
			return;
		if (inet_pton(AF_INET6, host, ret) == 1) {
			*ret_len = 16;
			return;
		}
	}
	memcpy(ret, loopback, sizeof(loopback));
}

void
cql_client_address(const struct cql_client *c, uint8_t ret[static 16], size_t *ret_len)
{
	char text[NET_PEER_BYTES];

	net_stream_local(c->stream, text);
	address_bytes(text, ret, ret_len);
}

void
cql_client_peer(const struct cql_client *c, uint8_t ret[static 16], size_t *ret_len)
{
	address_bytes(c->entry.peer, ret, ret_len);
}

/* ---- Sending ---- */

enum status
cql_client_write(struct cql_client *c, struct str frames)
{
	struct segment_rest rest = { .frames = frames };
	bool compressed = c->compressor == CQL_COMPRESSOR_LZ4, more = true;

	if (!c->segmented)
		return net_stream_write(c->stream, frames);
	/* A long answer is not held twice. */
	while (more) {
		buf_clear(&c->packed);
		do
			more = segment_write_next(&c->packed, &rest, compressed);
		while (more && c->packed.len < PACKED_BYTES);
		TRY(buf_status(&c->packed));
		TRY(net_stream_write(c->stream, buf_str(&c->packed)));
	}
	return STATUS_OK;
}

static enum status
client_write(struct cql_client *c, struct str frames)
{
	if (!frames.len)
		return STATUS_OK;
	ops_moved(&c->entry.op, frames.len);
	return cql_client_write(c, frames);
}

enum status
cql_client_send(struct cql_client *c, struct buf *out)
{
	enum status status = buf_status(out);

	if (status == STATUS_OK)
		status = client_write(c, buf_str(out));
	buf_clear(out);
	return status;
}

enum status
cql_client_send_events(struct cql_client *c)
{
	struct buf events;
	enum status status;

	if (clients_signals(&c->entry) & CQL_CLIENT_LOST)
		return STATUS_CANCELLED;
	pthread_mutex_lock(&c->entry.lock);
	events = c->events;
	c->events = BUF_INIT_OF(CQL_EVENTS_BYTES, &c->events_part);
	c->entry.pending = false;
	pthread_mutex_unlock(&c->entry.lock);
	status = client_write(c, buf_str(&events));
	pthread_mutex_lock(&c->entry.lock);
	buf_release(&events);
	pthread_mutex_unlock(&c->entry.lock);
	return status;
}

/* ---- Events ---- */

void
cql_client_register(struct cql_client *c, unsigned kinds)
{
	pthread_mutex_lock(&c->entry.lock);
	c->registered |= kinds;
	pthread_mutex_unlock(&c->entry.lock);
}

void
cql_schema_change_put(struct buf *out, const struct cql_schema_change *change)
{
	frame_put_short(out, str_from_cstr(change->change));
	frame_put_short(out, str_from_cstr(change->target));
	frame_put_short(out, change->keyspace);
	if (change->object.len)
		frame_put_short(out, change->object);
}

/* It would not know its schema: it ends, and its driver asks for all of it anew. */
static void
client_lose(struct cql_client *c)
{
	metric_add(&losses, 1);
	buf_release(&c->events);
	c->entry.pending = false;
	clients_tell(&c->entry, CQL_CLIENT_LOST);
}

/* Keeps the event for a client that wants it. Its lock is held, and that of the list. */
static bool
entry_takes_change(void *arg, struct clients_entry *e)
{
	const struct cql_schema_change *change = arg;
	struct cql_client *c = (struct cql_client *)e;
	size_t from;

	if (!(c->registered & CQL_EVENT_SCHEMA) || clients_signals(e) & CQL_CLIENT_LOST)
		return false;
	from = frame_begin(&c->events, c->version, FRAME_EVENT_STREAM, FRAME_EVENT);
	frame_put_short(&c->events, STR("SCHEMA_CHANGE"));
	cql_schema_change_put(&c->events, change);
	frame_end(&c->events, from);
	if (buf_status(&c->events) == STATUS_OK) {
		e->pending = true;
		return true;
	}
	client_lose(c);
	return false;
}

void
cql_tell_schema_change(struct cql_door *door, const struct cql_schema_change *change)
{
	struct cql_schema_change arg = *change;

	(void)clients_signal_each(&door->clients, CQL_CLIENT_EVENTS, entry_takes_change, &arg);
}

static bool
entry_is_lost(void *arg, struct clients_entry *e)
{
	struct cql_client *c = (struct cql_client *)e;

	(void)arg;
	if (c->registered & CQL_EVENT_SCHEMA && !(clients_signals(e) & CQL_CLIENT_LOST))
		client_lose(c);
	return false;
}

void
cql_end_registered(struct cql_door *door)
{
	(void)clients_signal_each(&door->clients, CQL_CLIENT_EVENTS, entry_is_lost, NULL);
}

/* Somebody who has to log in first hears nothing. */
static void
client_forget_events(struct cql_client *c)
{
	pthread_mutex_lock(&c->entry.lock);
	c->registered = 0;
	buf_release(&c->events);
	c->entry.pending = false;
	pthread_mutex_unlock(&c->entry.lock);
}

/* ---- Who it is ---- */

/*
 * What a user may, by own roles and by those of the roles that these name, which may change without
 * the user's record.
 */
static enum status
client_know(struct clients_entry *e, const struct visitor_found *found, struct err *err)
{
	struct cql_client *c = (struct cql_client *)e;
	const struct cql_config *config = &c->door->config;
	const struct auth_user *user = &found->user;
	struct grants grants;

	grants_of_roles(&grants, user->roles, user->roles_count, user->admin, found->arena);
	TRY(role_follow_all(config->store, config->live, &grants, found->arena, err));
	c->grants = grants;
	return STATUS_OK;
}

static bool
client_has_roles(const struct clients_entry *e)
{
	return ((const struct cql_client *)e)->grants.role_count;
}

static void
client_forget(struct clients_entry *e)
{
	struct cql_client *c = (struct cql_client *)e;

	c->grants = (struct grants){ .everything = e->who.authenticated };
	if (!e->who.authenticated)
		client_forget_events(c);
}

struct visit_rules
cql_visit_rules(const struct cql_config *config)
{
	return (struct visit_rules){
		.door = "cql",
		.own = ROLE_DOOR,
		.store = config->store,
		.live = config->live,
		.news = config->news,
		.know = client_know,
		.forget = client_forget,
		.depends = client_has_roles,
	};
}

size_t
cql_client_stretch_bytes(const struct cql_client *c)
{
	return net_memory_stretch_bytes(net_stream_session(c->stream));
}
