#include "door/redis/txn/trackers.h"

#include <string.h>

#include "base/clock.h"
#include "catalog/check.h"
#include "catalog/format.h"
#include "catalog/keys.h"
#include "door/redis/txn/messages.h"
#include "kv/keyspace.h"
#include "model/timed/timed.h"

enum {
	TRACKER_FORMAT = 1,
	TRACKER_BYTES = 64, /* of a key, and of a record */
};

#define TRACKER_INIT BUF_SHORT(TRACKER_BYTES)

/* ---- Keys and records ---- */

static void
tracker_key_root(struct buf *key)
{
	buf_clear(key);
	tuple_put_u64(key, KV_ROOT);
	tuple_put_u64(key, KV_ROOT_TRACKERS);
}

static enum status
tracker_key(struct buf *key, uint64_t id)
{
	tracker_key_root(key);
	tuple_put_u64(key, id);
	return buf_status(key);
}

static enum status
tracker_key_id(struct str key, uint64_t *ret)
{
	AUTO(buf_release) struct buf root = TRACKER_INIT;
	struct tuple_reader r;

	tracker_key_root(&root);
	TRY(buf_status(&root));
	r = tuple_reader(str_skip(key, root.len));
	TRY(tuple_next_u64(&r, ret));
	return r.rest.len ? STATUS_CORRUPT : STATUS_OK;
}

static enum status
tracker_parse(struct str value, uint64_t *ret_count, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format;

	TRY(catalog_format_next(&r, "record of a process whose clients track", TRACKER_FORMAT,
				&format, err));
	TRY(tuple_next_u64(&r, ret_count));
	return r.rest.len ? STATUS_CORRUPT : STATUS_OK;
}

static enum status
tracker_write(struct kv_tx *tx, struct str key, uint64_t count)
{
	AUTO(buf_release) struct buf value = TRACKER_INIT;

	tuple_put_u64(&value, TRACKER_FORMAT);
	tuple_put_u64(&value, count);
	TRY(buf_status(&value));
	return kv_set(tx, key, buf_str(&value));
}

/* STATUS_NOT_FOUND: there is none. It conflicts with whoever changes it. */
static enum status
tracker_read(struct kv_tx *tx, struct str key, uint64_t *ret_count)
{
	struct kv_future *f = kv_get(tx, key, KV_READ);
	struct err ignored = { 0 };
	struct str value;

	TRY(kv_future_wait(f));
	return kv_future_value(f, &value) ? tracker_parse(value, ret_count, &ignored)
					  : STATUS_NOT_FOUND;
}

/* ---- A process's own ---- */

enum status
trackers_put(struct kv_tx *tx, uint64_t id)
{
	AUTO(buf_release) struct buf key = TRACKER_INIT;

	TRY(tracker_key(&key, id));
	TRY(tracker_write(tx, buf_str(&key), 0));
	return kv_touch_metadata_version(tx);
}

enum status
trackers_remove(struct kv_tx *tx, uint64_t id)
{
	AUTO(buf_release) struct buf key = TRACKER_INIT;

	TRY(tracker_key(&key, id));
	TRY(kv_clear(tx, buf_str(&key)));
	return kv_touch_metadata_version(tx);
}

enum status
trackers_beat(struct kv_tx *tx, uint64_t id)
{
	AUTO(buf_release) struct buf key = TRACKER_INIT;
	uint64_t count;

	TRY(tracker_key(&key, id));
	TRY(tracker_read(tx, buf_str(&key), &count));
	return tracker_write(tx, buf_str(&key), count + 1);
}

/* ---- What writers know ---- */

void
trackers_known_init(struct trackers_known *known)
{
	memset(known, 0, sizeof(*known));
	pthread_mutex_init(&known->lock, NULL);
}

void
trackers_known_fini(struct trackers_known *known)
{
	pthread_mutex_destroy(&known->lock);
}

static bool
known_find(struct trackers_known *known, const uint8_t version[KV_VERSIONSTAMP_TX_BYTES],
	   bool *ret_any)
{
	bool found;

	pthread_mutex_lock(&known->lock);
	found = known->valid && memcmp(known->version, version, sizeof(known->version)) == 0;
	*ret_any = atomic_load_explicit(&known->any, memory_order_relaxed);
	pthread_mutex_unlock(&known->lock);
	return found;
}

static void
known_set(struct trackers_known *known, const uint8_t version[KV_VERSIONSTAMP_TX_BYTES], bool any)
{
	pthread_mutex_lock(&known->lock);
	known->valid = true;
	atomic_store_explicit(&known->any, any, memory_order_relaxed);
	memcpy(known->version, version, sizeof(known->version));
	pthread_mutex_unlock(&known->lock);
}

static struct kv_future *
trackers_ask(struct kv_tx *tx, size_t limit, enum kv_read mode, struct buf *begin, struct buf *end)
{
	const struct kv_range_options options = { .limit = limit, .mode = mode };

	tracker_key_root(begin);
	buf_append_byte(begin, CATALOG_KEY_NEXT);
	tracker_key_root(end);
	buf_append_byte(end, CATALOG_KEY_LAST);
	return kv_get_range(tx, buf_str(begin), buf_str(end), &options);
}

enum status
trackers_any(struct kv_tx *tx, struct trackers_known *known, bool *ret)
{
	AUTO(buf_release) struct buf begin = TRACKER_INIT;
	AUTO(buf_release) struct buf end = TRACKER_INIT;
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES];
	struct kv_future *f;

	TRY(kv_get_metadata_version(tx, version));
	if (known_find(known, version, ret))
		return STATUS_OK;
	f = trackers_ask(tx, 1, KV_SNAPSHOT, &begin, &end);
	TRY(kv_future_wait(f));
	*ret = kv_future_range(f).count > 0;
	/* Both have been read at one version, whatever becomes of the transaction. */
	known_set(known, version, *ret);
	return STATUS_OK;
}

bool
trackers_were_any(const struct trackers_known *known)
{
	return atomic_load_explicit(&known->any, memory_order_relaxed);
}

/* ---- What expires ---- */

enum status
trackers_tell_removed(struct kv_tx *tx, const struct timed_expired *first)
{
	AUTO(buf_release) struct buf begin = TRACKER_INIT;
	AUTO(buf_release) struct buf end = TRACKER_INIT;
	struct kv_future *f = trackers_ask(tx, 1, KV_READ, &begin, &end);
	struct messages_writer writer = { 0 };
	struct messages_keys keys;
	enum status status;
	uint64_t db;

	TRY(kv_future_wait(f));
	if (!kv_future_range(f).count)
		return STATUS_OK;
	messages_keys_init(&keys);
	for (; first; first = first->next)
		if (str_to_u64(first->db, &db)) /* others are no databases of Redis's clients */
			messages_keys_add(&keys, first->key);
	status = messages_put_keys(tx, &writer, MESSAGES_NOBODY, &keys);
	messages_keys_release(&keys);
	return status;
}

/* ---- The chore ---- */

enum status
trackers_list(struct kv_tx *tx, struct trackers_seen *ret)
{
	AUTO(buf_release) struct buf begin = TRACKER_INIT;
	AUTO(buf_release) struct buf end = TRACKER_INIT;
	struct kv_future *f = trackers_ask(tx, TRACKERS_SEEN, KV_SNAPSHOT, &begin, &end);
	struct err ignored = { 0 };
	struct kv_range range;

	ret->count = 0;
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	for (size_t i = 0; i < range.count && ret->count < TRACKERS_SEEN; i++) {
		struct trackers_record *r = &ret->records[ret->count];

		*r = (struct trackers_record){ .id = 0 };
		/* One that a newer frond has written is left to newer ones. */
		if (tracker_key_id(range.pairs[i].key, &r->id) == STATUS_OK &&
		    tracker_parse(range.pairs[i].value, &r->count, &ignored) == STATUS_OK)
			ret->count++;
	}
	return STATUS_OK;
}

void
trackers_look(struct trackers_seen *seen, const struct trackers_seen *listed, uint64_t now_ns)
{
	struct trackers_seen next = { .count = listed->count };

	for (size_t i = 0; i < listed->count; i++) {
		next.records[i] = listed->records[i];
		next.records[i].at_ns = now_ns;
		for (size_t j = 0; j < seen->count; j++)
			if (seen->records[j].id == listed->records[i].id &&
			    seen->records[j].count == listed->records[i].count)
				next.records[i].at_ns = seen->records[j].at_ns;
	}
	*seen = next;
}

bool
trackers_next_dead(struct trackers_seen *seen, uint64_t now_ns, struct trackers_record *ret)
{
	for (size_t i = 0; i < seen->count; i++) {
		if (now_ns - seen->records[i].at_ns < TRACKERS_LEASE_MS * CLOCK_NS_PER_MS)
			continue;
		*ret = seen->records[i];
		seen->records[i] = seen->records[--seen->count];
		return true;
	}
	return false;
}

enum status
trackers_remove_dead(struct kv_tx *tx, const struct trackers_record *dead)
{
	AUTO(buf_release) struct buf key = TRACKER_INIT;
	enum status status;
	uint64_t count;

	TRY(tracker_key(&key, dead->id));
	status = tracker_read(tx, buf_str(&key), &count);
	if (status == STATUS_NOT_FOUND || (status == STATUS_OK && count != dead->count))
		return STATUS_OK;
	TRY(status);
	return trackers_remove(tx, dead->id);
}

/* ---- The check ---- */

static void
trackers_verify(struct catalog_verify *v, struct tuple_reader key, const struct kv_pair *pair)
{
	struct err err = { 0 };
	enum status status;
	uint64_t id, count;

	if (tuple_next_u64(&key, &id) != STATUS_OK || key.rest.len) {
		catalog_verify_found(v, CATALOG_FINDING_KEY, pair->key,
				     "not the record of a process whose clients track");
		return;
	}
	status = tracker_parse(pair->value, &count, &err);
	if (status != STATUS_OK)
		catalog_verify_unreadable(v, status, &err, pair->key,
					  "not the record of a process whose clients track");
}

void
trackers_register(void)
{
	catalog_verify_register(KV_ROOT_TRACKERS, trackers_verify);
}
