#include "door/redis/txn/messages.h"

#include "catalog/check.h"
#include "catalog/format.h"
#include "catalog/keys.h"
#include "catalog/seq.h"
#include "kv/keyspace.h"
#include "loop/sort.h"

enum {
	MESSAGE_FORMAT = 1,
	MESSAGE_FORMAT_KEYS = 2, /* of MESSAGES_KEYS */
	MESSAGE_HEAD_BYTES = 64, /* of a message's record beside the channel and the message */
	MESSAGES_KEY_BYTES = 64,
};

#define MESSAGES_KEY_INIT BUF_SHORT(MESSAGES_KEY_BYTES)

/* ---- Keys ---- */

static void
messages_key_root(struct buf *key)
{
	buf_clear(key);
	tuple_put_u64(key, KV_ROOT);
	tuple_put_u64(key, KV_ROOT_MESSAGES);
}

static void
messages_key_shard(struct buf *key, unsigned shard)
{
	messages_key_root(key);
	tuple_put_u64(key, shard);
}

/* The key of a message; returns where its stamp is. */
static size_t
messages_key(struct buf *key, unsigned shard, const uint8_t stamp[KV_VERSIONSTAMP_BYTES])
{
	messages_key_shard(key, shard);
	return tuple_put_versionstamp(key, stamp);
}

/* From behind the place to the end of the shard. */
static enum status
messages_bounds(unsigned shard, const struct messages_place *after, struct buf *begin,
		struct buf *end)
{
	(void)messages_key(begin, shard, after->stamp);
	buf_append_byte(begin, CATALOG_KEY_NEXT);
	messages_key_shard(end, shard);
	buf_append_byte(end, CATALOG_KEY_LAST);
	TRY(buf_status(begin));
	return buf_status(end);
}

int
messages_place_cmp(const struct messages_place *a, const struct messages_place *b)
{
	return memcmp(a->stamp, b->stamp, sizeof(a->stamp));
}

static enum status
messages_key_place(struct str key, unsigned shard, struct messages_place *ret)
{
	AUTO(buf_release) struct buf space = MESSAGES_KEY_INIT;
	const uint8_t *stamp;
	struct tuple_reader r;

	messages_key_shard(&space, shard);
	TRY(buf_status(&space));
	r = tuple_reader(str_skip(key, space.len));
	TRY(tuple_next_versionstamp(&r, &stamp));
	memcpy(ret->stamp, stamp, sizeof(ret->stamp));
	return r.rest.len ? STATUS_CORRUPT : STATUS_OK;
}

/* ---- Records ---- */

static enum status
message_parse(struct str value, struct messages_message *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format, kind, channel;

	TRY(catalog_format_next(&r, "message", MESSAGE_FORMAT_KEYS, &format, err));
	TRY(tuple_next_u64(&r, &ret->origin));
	TRY(tuple_next_u64(&r, &kind));
	TRY(tuple_next_u64(&r, &channel));
	if (kind > MESSAGES_KEYS || channel > r.rest.len ||
	    (kind == MESSAGES_KEYS) != (format == MESSAGE_FORMAT_KEYS))
		return STATUS_CORRUPT;
	ret->kind = (enum messages_kind)kind;
	ret->channel = str_of(r.rest.ptr, (size_t)channel);
	ret->message = str_skip(r.rest, (size_t)channel);
	return STATUS_OK;
}

static void
message_put(const struct messages_message *m, struct buf *value)
{
	tuple_put_u64(value, m->kind == MESSAGES_KEYS ? MESSAGE_FORMAT_KEYS : MESSAGE_FORMAT);
	tuple_put_u64(value, m->origin);
	tuple_put_u64(value, m->kind);
	tuple_put_u64(value, m->channel.len);
	buf_append_str(value, m->channel);
	buf_append_str(value, m->message);
}

/* ---- Writing ---- */

/* Those who read the shard look again; once in a transaction. */
static enum status
messages_tell(struct kv_tx *tx, struct messages_writer *w, unsigned shard)
{
	AUTO(buf_release) struct buf key = MESSAGES_KEY_INIT;
	uint8_t stamp[KV_VERSIONSTAMP_BYTES];

	if (w->shards & 1U << shard)
		return STATUS_OK;
	w->shards |= 1U << shard;
	messages_key_shard(&key, shard);
	TRY(buf_status(&key));
	catalog_stamp(0, stamp);
	return kv_set_versionstamped_value(tx, buf_str(&key), str_of(stamp, sizeof(stamp)), 0);
}

static enum status
message_append(struct kv_tx *tx, struct messages_writer *w, unsigned shard,
	       const struct messages_message *message)
{
	AUTO(buf_release) struct buf key = MESSAGES_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_SHORT(MESSAGE_HEAD_BYTES + MESSAGES_BYTES);
	uint8_t stamp[KV_VERSIONSTAMP_BYTES];
	size_t place;

	catalog_stamp((uint16_t)w->count++, stamp);
	place = messages_key(&key, shard, stamp);
	TRY(buf_status(&key));
	message_put(message, &value);
	TRY(buf_status(&value));
	TRY(kv_set_versionstamped_key(tx, buf_str(&key), place, buf_str(&value)));
	return messages_tell(tx, w, shard);
}

enum status
messages_put(struct kv_tx *tx, struct messages_writer *w, const struct messages_message *message,
	     struct err *err)
{
	unsigned shard = (unsigned)(str_hash(message->channel) % MESSAGES_SHARDS);

	if (message->channel.len + message->message.len > MESSAGES_BYTES)
		return err_set(err, STATUS_LIMIT,
			       "between the processes of a cluster a message may have %d bytes "
			       "together with its channel (MESSAGES_BYTES)",
			       MESSAGES_BYTES);
	if (w->count == MESSAGES_COUNT)
		return err_set(err, STATUS_LIMIT,
			       "a transaction may publish %d messages (MESSAGES_COUNT)",
			       MESSAGES_COUNT);
	return message_append(tx, w, shard, message);
}

/* ---- Keys ---- */

void
messages_keys_init(struct messages_keys *keys)
{
	*keys = (struct messages_keys){ .bytes = BUF_SHORT(MESSAGES_BYTES) };
}

void
messages_keys_release(struct messages_keys *keys)
{
	buf_release(&keys->bytes);
}

void
messages_keys_add(struct messages_keys *keys, struct str key)
{
	keys->any = true;
	if (!keys->all)
		tuple_put_bytes(&keys->bytes, key);
	keys->all |= buf_status(&keys->bytes) != STATUS_OK;
}

void
messages_keys_add_all(struct messages_keys *keys)
{
	keys->any = keys->all = true;
}

enum status
messages_put_keys(struct kv_tx *tx, struct messages_writer *w, uint64_t origin,
		  const struct messages_keys *keys)
{
	const struct messages_message message = {
		.origin = origin,
		.kind = MESSAGES_KEYS,
		.message = keys->all ? STR("") : buf_str(&keys->bytes),
	};

	/* MESSAGES_COUNT leaves room for one that is of no client's. */
	return keys->any ? message_append(tx, w, (unsigned)(origin % MESSAGES_SHARDS), &message)
			 : STATUS_OK;
}

enum status
messages_read_keys(const struct messages_message *message, struct arena *arena, struct str **ret,
		   size_t *ret_count)
{
	AUTO(buf_release) struct buf scratch = BUF_SHORT(MESSAGES_BYTES);
	struct tuple_reader r = tuple_reader(message->message);
	size_t cap = 0;

	*ret = NULL;
	*ret_count = 0;
	while (r.rest.len) {
		struct str key;

		TRY(tuple_next_bytes(&r, &scratch, &key));
		TRY(arena_room(arena, ret, *ret_count, &cap, sizeof(**ret)));
		TRY(arena_copy(arena, key, &(*ret)[*ret_count]));
		++*ret_count;
	}
	return STATUS_OK;
}

/* ---- Reading ---- */

/* What has been cleared, as a place that was asked for. */
static enum status
messages_take_cleared(struct kv_future *f, struct messages_place *ret)
{
	struct str value;

	*ret = (struct messages_place){ 0 };
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_OK;
	if (value.len != sizeof(ret->stamp))
		return STATUS_CORRUPT;
	memcpy(ret->stamp, value.ptr, sizeof(ret->stamp));
	return STATUS_OK;
}

static enum status
messages_ask_cleared(struct kv_tx *tx, struct kv_future **ret)
{
	AUTO(buf_release) struct buf key = MESSAGES_KEY_INIT;

	messages_key_root(&key);
	TRY(buf_status(&key));
	*ret = kv_get(tx, buf_str(&key), KV_SNAPSHOT);
	return STATUS_OK;
}

static enum status
messages_ask(struct kv_tx *tx, const struct messages_place *after,
	     const struct kv_range_options *options, struct kv_future *ret[MESSAGES_SHARDS])
{
	for (unsigned i = 0; i < MESSAGES_SHARDS; i++) {
		AUTO(buf_release) struct buf begin = MESSAGES_KEY_INIT;
		AUTO(buf_release) struct buf end = MESSAGES_KEY_INIT;

		TRY(messages_bounds(i, after, &begin, &end));
		ret[i] = kv_get_range(tx, buf_str(&begin), buf_str(&end), options);
	}
	return STATUS_OK;
}

enum status
messages_end(struct kv_tx *tx, struct messages_place *ret)
{
	const struct kv_range_options options = { .limit = 1,
						  .reverse = true,
						  .mode = KV_SNAPSHOT };
	const struct messages_place start = { 0 };
	struct kv_future *last[MESSAGES_SHARDS], *cleared;

	TRY(messages_ask_cleared(tx, &cleared));
	TRY(messages_ask(tx, &start, &options, last));
	TRY(messages_take_cleared(cleared, ret));
	for (unsigned i = 0; i < MESSAGES_SHARDS; i++) {
		struct messages_place place;
		struct kv_range range;

		TRY(kv_future_wait(last[i]));
		range = kv_future_range(last[i]);
		if (!range.count)
			continue;
		TRY(messages_key_place(range.pairs[0].key, i, &place));
		if (messages_place_cmp(&place, ret) > 0)
			*ret = place;
	}
	return STATUS_OK;
}

static int
message_cmp(const void *a, const void *b)
{
	const struct messages_message *one = a, *other = b;

	return messages_place_cmp(&one->place, &other->place);
}

/*
 * Appends what a shard has. If it has more, nothing behind its last message can be told yet, since
 * that might come before others of this shard: `*until` is then no later than it.
 */
static enum status
messages_take(struct kv_future *f, unsigned shard, struct arena *arena, size_t *cap,
	      struct messages_page *page, struct messages_place *until, struct err *err)
{
	struct kv_range range;

	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	for (size_t i = 0; i < range.count; i++) {
		struct messages_message m;

		TRY(messages_key_place(range.pairs[i].key, shard, &m.place));
		TRY(message_parse(range.pairs[i].value, &m, err));
		page->messages = arena_grow(arena, page->messages, page->count, cap,
					    sizeof(*page->messages));
		if (!page->messages)
			return STATUS_LIMIT;
		page->messages[page->count++] = m;
	}
	if (!range.more || !range.count)
		return STATUS_OK;
	page->more = true;
	if (messages_place_cmp(&page->messages[page->count - 1].place, until) < 0)
		*until = page->messages[page->count - 1].place;
	return STATUS_OK;
}

enum status
messages_read(struct kv_tx *tx, const struct messages_place *after, struct arena *arena,
	      struct messages_page *ret, struct err *err)
{
	const struct kv_range_options options = { .limit_bytes = MESSAGES_READ_BYTES,
						  .mode = KV_SNAPSHOT };
	struct kv_future *shards[MESSAGES_SHARDS], *asked;
	struct messages_page page = { .end = *after };
	struct messages_place cleared, until;
	size_t cap = 0;

	memset(&until, 0xff, sizeof(until));
	TRY(messages_ask_cleared(tx, &asked));
	TRY(messages_ask(tx, after, &options, shards));
	TRY(messages_take_cleared(asked, &cleared));
	page.lost = messages_place_cmp(after, &cleared) < 0;
	for (unsigned i = 0; i < MESSAGES_SHARDS; i++)
		TRY(messages_take(shards[i], i, arena, &cap, &page, &until, err));
	TRY(sort_items_by(page.messages, page.count, sizeof(*page.messages), message_cmp, arena));
	while (page.count && messages_place_cmp(&page.messages[page.count - 1].place, &until) > 0)
		page.count--;
	if (page.count)
		page.end = page.messages[page.count - 1].place;
	if (messages_place_cmp(&page.end, &cleared) < 0)
		page.end = cleared;
	*ret = page;
	return STATUS_OK;
}

enum status
messages_watch(struct kv_tx *tx, unsigned shard, struct kv_future **ret)
{
	AUTO(buf_release) struct buf key = MESSAGES_KEY_INIT;

	messages_key_shard(&key, shard);
	TRY(buf_status(&key));
	*ret = kv_watch(tx, buf_str(&key));
	return STATUS_OK;
}

/* ---- Clearing ---- */

enum status
messages_clear(struct kv_tx *tx, const struct messages_place *until)
{
	AUTO(buf_release) struct buf begin = MESSAGES_KEY_INIT;
	AUTO(buf_release) struct buf end = MESSAGES_KEY_INIT;

	for (unsigned i = 0; i < MESSAGES_SHARDS; i++) {
		messages_key_shard(&begin, i);
		buf_append_byte(&begin, CATALOG_KEY_NEXT);
		(void)messages_key(&end, i, until->stamp);
		buf_append_byte(&end, CATALOG_KEY_NEXT);
		TRY(buf_status(&begin));
		TRY(buf_status(&end));
		TRY(kv_clear_range(tx, buf_str(&begin), buf_str(&end)));
	}
	messages_key_root(&begin);
	TRY(buf_status(&begin));
	/* It only moves on, also where two processes clear. */
	return kv_atomic(tx, KV_BYTE_MAX, buf_str(&begin),
			 str_of(until->stamp, sizeof(until->stamp)));
}

/* ---- The check ---- */

static void
messages_verify(struct catalog_verify *v, struct tuple_reader key, const struct kv_pair *pair)
{
	struct messages_message message;
	struct err err = { 0 };
	const uint8_t *stamp;
	enum status status;
	uint64_t shard;

	if (key.rest.len &&
	    (tuple_next_u64(&key, &shard) != STATUS_OK || shard >= MESSAGES_SHARDS)) {
		catalog_verify_found(v, CATALOG_FINDING_KEY, pair->key, "not a shard of messages");
		return;
	}
	if (!key.rest.len) {
		if (pair->value.len != KV_VERSIONSTAMP_BYTES)
			catalog_verify_found(v, CATALOG_FINDING_VALUE, pair->key,
					     "not a versionstamp");
		return;
	}
	if (tuple_next_versionstamp(&key, &stamp) != STATUS_OK || key.rest.len) {
		catalog_verify_found(v, CATALOG_FINDING_KEY, pair->key, "not a message's place");
		return;
	}
	status = message_parse(pair->value, &message, &err);
	if (status != STATUS_OK)
		catalog_verify_unreadable(v, status, &err, pair->key, "not a message");
}

void
messages_register(void)
{
	catalog_verify_register(KV_ROOT_MESSAGES, messages_verify);
}
