#include "door/redis/txn/acl_log.h"

#include "base/clock.h"
#include "base/mem.h"
#include "door/redis/txn/redis_int.h"

enum {
	CLIENT_TEXT_BYTES = 8 * 1024, /* of a client as text: its names have limits */
	PARTS = 3,
};

struct acl_entry {
	struct recent_entry entry; /* first */
	uint64_t count;
	uint64_t time_ms;
	enum acl_denial denial;
	const char *context;
	struct str object; /* the bytes of all three texts lie behind the struct */
	struct str user;
	struct str client;
};

/* A client as CLIENT LIST shows it, and the name of its user. */
struct described {
	struct buf text;
	char user[CLIENTS_USER_BYTES];
};

static void
describe(void *arg, struct clients_entry *e)
{
	struct described *d = arg;

	client_describe((struct client *)e, &d->text);
	memcpy(d->user, e->user, sizeof(d->user));
}

static struct acl_entry *
entry_new(const struct acl_refusal *refusal, struct str user, struct str client)
{
	struct str from[PARTS] = { refusal->object, user, client };
	struct acl_entry *e;
	struct str *to[PARTS];
	char *bytes;
	size_t len = 0;

	for (size_t i = 0; i < PARTS - 1; i++)
		if (from[i].len > ACL_LOG_OBJECT_BYTES)
			from[i].len = ACL_LOG_OBJECT_BYTES;
	for (size_t i = 0; i < PARTS; i++)
		len += from[i].len;
	e = mem_zalloc(sizeof(*e) + len);
	if (!e)
		return NULL;
	*e = (struct acl_entry){ .count = 1,
				 .time_ms = clock_wall_ms(),
				 .denial = refusal->denial,
				 .context = refusal->context };
	to[0] = &e->object;
	to[1] = &e->user;
	to[2] = &e->client;
	bytes = (char *)(e + 1);
	for (size_t i = 0; i < PARTS; i++) {
		if (from[i].len)
			memcpy(bytes, from[i].ptr, from[i].len);
		*to[i] = str_of(bytes, from[i].len);
		bytes += from[i].len;
	}
	return e;
}

/* Equal refusals within ACL_LOG_GROUP_MS are one entry. */
static bool
entry_join(struct recent_entry *entry, const struct recent_entry *older)
{
	struct acl_entry *a = (struct acl_entry *)entry;
	const struct acl_entry *b = (const struct acl_entry *)older;
	uint64_t apart = a->time_ms > b->time_ms ? a->time_ms - b->time_ms
						 : b->time_ms - a->time_ms;

	if (a->denial != b->denial || strcmp(a->context, b->context) != 0 ||
	    apart > ACL_LOG_GROUP_MS || !str_eq(a->object, b->object) || !str_eq(a->user, b->user))
		return false;
	a->count += b->count;
	return true;
}

/* A login that was refused has a line already. */
static void
acl_audit(const struct client *c, const struct acl_refusal *refusal)
{
	const struct command *command = atomic_load(&c->last_command);

	if (refusal->denial == ACL_DENIED_COMMAND)
		visit_refuse(&c->entry, refusal->object, STR(""));
	else if (refusal->denial != ACL_DENIED_AUTH)
		visit_refuse(&c->entry, str_from_cstr(command ? command->name : ""),
			     refusal->object);
}

void
acl_log_add(struct client *c, const struct acl_refusal *refusal)
{
	struct described d = { .text = BUF_SHORT(CLIENT_TEXT_BYTES) };
	uint64_t most = atomic_load(&c->redis->acl_log_max);
	struct acl_entry *e = NULL;

	acl_audit(c, refusal);
	if (!most) {
		recent_clear(&c->redis->acl_log);
		return;
	}
	clients_see(&c->entry, describe, &d);
	if (buf_status(&d.text) == STATUS_OK)
		e = entry_new(refusal, refusal->user.ptr ? refusal->user : str_from_cstr(d.user),
			      buf_str(&d.text));
	buf_release(&d.text);
	if (e)
		recent_add(&c->redis->acl_log, &e->entry, most, entry_join, ACL_LOG_GROUP_ENTRIES);
}

/* An answer of ACL LOG, as of a time. */
struct showing {
	struct reply *reply;
	uint64_t now_ms;
};

static void
show_begin(void *arg, size_t count)
{
	reply_array(((struct showing *)arg)->reply, count);
}

static void
show_entry(void *arg, const struct recent_entry *entry)
{
	static const char *const reasons[] = { [ACL_ALLOWED] = "",
					       [ACL_DENIED_COMMAND] = "command",
					       [ACL_DENIED_KEY] = "key",
					       [ACL_DENIED_CHANNEL] = "channel",
					       [ACL_DENIED_AUTH] = "auth" };
	const struct acl_entry *e = (const struct acl_entry *)entry;
	uint64_t now_ms = ((struct showing *)arg)->now_ms;
	struct reply *r = ((struct showing *)arg)->reply;

	reply_map(r, 7);
	reply_bulk_cstr(r, "count");
	reply_int(r, (int64_t)e->count);
	reply_bulk_cstr(r, "reason");
	reply_bulk_cstr(r, reasons[e->denial]);
	reply_bulk_cstr(r, "context");
	reply_bulk_cstr(r, e->context);
	reply_bulk_cstr(r, "object");
	reply_bulk(r, e->object);
	reply_bulk_cstr(r, "username");
	reply_bulk(r, e->user);
	reply_bulk_cstr(r, "age-seconds");
	reply_double(r, now_ms > e->time_ms ? (double)(now_ms - e->time_ms) / 1000 : 0);
	reply_bulk_cstr(r, "client-info");
	reply_bulk(r, e->client);
}

void
acl_log_get(struct redis *r, int64_t most, struct reply *reply)
{
	struct showing s = { .reply = reply, .now_ms = clock_wall_ms() };

	recent_show(&r->acl_log, most < 0 ? 0 : (uint64_t)most, show_begin, show_entry, &s);
}
