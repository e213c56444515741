#include "door/redis/acl_log.h"

#include "base/clock.h"
#include "base/mem.h"
#include "door/redis/redis_int.h"

enum {
	CLIENT_TEXT_BYTES = 8 * 1024, /* of a client as text: its names have limits */
	PARTS = 3,
};

struct acl_entry {
	uint64_t count;
	uint64_t time_ms;
	enum acl_denial denial;
	const char *context;
	struct str object; /* the bytes of all three texts lie behind the struct */
	struct str user;
	struct str client;
};

struct acl_log {
	pthread_mutex_t lock;
	struct acl_entry *entries[ACL_LOG_ENTRIES]; /* the newest first */
	size_t count;
};

struct acl_log *
acl_log_new(void)
{
	struct acl_log *log = mem_zalloc(sizeof(*log));

	if (log)
		pthread_mutex_init(&log->lock, NULL);
	return log;
}

/* The lock is held, or nobody else has the log. */
static void
log_cut(struct acl_log *log, uint64_t most)
{
	while (log->count > most)
		mem_free(log->entries[--log->count]);
}

void
acl_log_free(struct acl_log *log)
{
	if (!log)
		return;
	log_cut(log, 0);
	pthread_mutex_destroy(&log->lock);
	mem_free(log);
}

void
acl_log_clear(struct acl_log *log)
{
	pthread_mutex_lock(&log->lock);
	log_cut(log, 0);
	pthread_mutex_unlock(&log->lock);
}

/* Writes the client as CLIENT LIST shows it, and the name of its user. */
static enum status
describe(struct client *c, struct buf *text, struct buf *user)
{
	pthread_mutex_lock(&c->redis->clients_lock);
	client_describe(c, text);
	buf_append_str(user, buf_str(&c->user_name));
	pthread_mutex_unlock(&c->redis->clients_lock);
	TRY(buf_status(text));
	return buf_status(user);
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

static bool
entries_match(const struct acl_entry *a, const struct acl_entry *b)
{
	uint64_t apart = a->time_ms > b->time_ms ? a->time_ms - b->time_ms
						 : b->time_ms - a->time_ms;

	return a->denial == b->denial && strcmp(a->context, b->context) == 0 &&
	       apart <= ACL_LOG_GROUP_MS && str_eq(a->object, b->object) &&
	       str_eq(a->user, b->user);
}

/* Takes an equal entry out of the log, and adds its count to `e`. The lock is held. */
static void
log_join(struct acl_log *log, struct acl_entry *e)
{
	size_t i = 0;

	while (i < log->count && i < ACL_LOG_GROUP_ENTRIES && !entries_match(log->entries[i], e))
		i++;
	if (i == log->count || i == ACL_LOG_GROUP_ENTRIES)
		return;
	e->count += log->entries[i]->count;
	mem_free(log->entries[i]);
	log->count--;
	memmove(&log->entries[i], &log->entries[i + 1],
		(log->count - i) * sizeof(struct acl_entry *));
}

void
acl_log_add(struct acl_log *log, struct client *c, const struct acl_refusal *refusal, uint64_t most)
{
	AUTO(buf_release) struct buf text = BUF_INIT(CLIENT_TEXT_BYTES);
	AUTO(buf_release) struct buf user = BUF_INIT(CLIENT_NAME_BYTES);
	struct acl_entry *e;

	if (!most)
		acl_log_clear(log);
	if (!most || describe(c, &text, &user) != STATUS_OK)
		return;
	e = entry_new(refusal, refusal->user.ptr ? refusal->user : buf_str(&user), buf_str(&text));
	if (!e)
		return;
	pthread_mutex_lock(&log->lock);
	log_join(log, e);
	log_cut(log, (most < ACL_LOG_ENTRIES ? most : ACL_LOG_ENTRIES) - 1);
	memmove(&log->entries[1], log->entries, log->count * sizeof(struct acl_entry *));
	log->entries[0] = e;
	log->count++;
	pthread_mutex_unlock(&log->lock);
}

static void
entry_answer(const struct acl_entry *e, uint64_t now_ms, struct reply *r)
{
	static const char *const reasons[] = { [ACL_ALLOWED] = "",
					       [ACL_DENIED_COMMAND] = "command",
					       [ACL_DENIED_KEY] = "key",
					       [ACL_DENIED_CHANNEL] = "channel",
					       [ACL_DENIED_AUTH] = "auth" };

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
acl_log_get(struct acl_log *log, int64_t most, struct reply *reply)
{
	uint64_t now_ms = clock_wall_ms();
	size_t count;

	pthread_mutex_lock(&log->lock);
	count = most < 0 ? 0 : (uint64_t)most < log->count ? (size_t)most : log->count;
	reply_array(reply, count);
	for (size_t i = 0; i < count; i++)
		entry_answer(log->entries[i], now_ms, reply);
	pthread_mutex_unlock(&log->lock);
}
