/* What a first gives its standbys: where it is, records of its log, copies (kv/log.h). */
#include <string.h>

#include "base/big_endian.h"
#include "base/clock.h"
#include "base/mem.h"
#include "kv/embedded/handle.h"
#include "kv/embedded/kept.h"

enum {
	PROMOTED_BYTES = KV_LOG_HISTORY_BYTES + sizeof(uint64_t),
	BYTE_BITS = 8,
	OP_PUT = 1,
	VARINT_BITS = 7,
	VARINT_MORE = 0x80,
};

static enum status
first_check(const struct kv_store *base, struct err *err)
{
	if (base->engine == &kv_engine_embedded)
		return STATUS_OK;
	return err_set(
		err, STATUS_UNSUPPORTED,
		"stores of the engine \"%s\" have no log for standbys: a cluster keeps copies "
		"itself",
		base->engine->scheme);
}

static enum status
first_keeps(const struct emb_store *store, struct err *err)
{
	if (store->kept && store->kept->log_bytes)
		return STATUS_OK;
	return err_set(err, STATUS_FORBIDDEN,
		       "this server keeps no log for standbys: [frond] keep_log_bytes is not set");
}

uint64_t
kv_log_published(struct kv_store *base)
{
	struct emb_store *store = (struct emb_store *)base;
	uint64_t published;

	if (base->engine != &kv_engine_embedded)
		return 0;
	pthread_mutex_lock(&store->versions.lock);
	published = store->versions.published;
	pthread_mutex_unlock(&store->versions.lock);
	return published;
}

static enum status
position_read(struct emb_store *store, struct kv_log_position *ret, struct err *err)
{
	uint8_t promoted[PROMOTED_BYTES];
	size_t len = sizeof(ret->history);
	char follows[sizeof(uint64_t)];

	TRY(emb_handle_read(store, EMB_KEY_HISTORY, (char *)ret->history, &len, err));
	len = sizeof(follows);
	TRY(emb_handle_read(store, EMB_KEY_FOLLOWS, follows, &len, err));
	ret->follows = len != 0;
	ret->promotes = len && follows[0] == KEPT_PROMOTES;
	ret->replaced = len && follows[0] == KEPT_REPLACED;
	len = sizeof(promoted);
	TRY(emb_handle_read(store, EMB_KEY_PROMOTED, (char *)promoted, &len, err));
	if (len != sizeof(promoted))
		return STATUS_OK;
	memcpy(ret->before, promoted, KV_LOG_HISTORY_BYTES);
	ret->promoted_at = big_endian_64(promoted + KV_LOG_HISTORY_BYTES);
	return STATUS_OK;
}

enum status
kv_log_position(struct kv_store *base, struct kv_log_position *ret, struct err *err)
{
	struct emb_store *store = (struct emb_store *)base;
	struct gate_pass pass;
	enum status status;

	TRY(first_check(base, err));
	*ret = (struct kv_log_position){ .version = kv_log_published(base) };
	TRY(emb_handle_use(store, &pass, err));
	status = position_read(store, ret, err);
	gate_leave(pass);
	return status;
}

enum status
kv_log_replaced(struct kv_store *base, struct err *err)
{
	static const char value[sizeof(uint64_t)] = { KEPT_REPLACED };
	struct emb_store *store = (struct emb_store *)base;
	const struct str key = EMB_KEY_FOLLOWS;
	struct gate_pass pass;
	char *error = NULL;

	TRY(first_check(base, err));
	TRY(emb_handle_use(store, &pass, err));
	rocksdb_put(store->db, store->write_options, key.ptr, key.len, value, sizeof(value),
		    &error);
	gate_leave(pass);
	return error ? emb_error(error, "marking the store", err) : STATUS_OK;
}

/* ---- The log ---- */

/*
 * With the lock held: the follower of that name, or a place for it; the one that has been away for
 * longest makes room. NULL: all are being answered.
 */
static struct kept_follower *
follower_find(struct kept *k, struct str name)
{
	struct kept_follower *oldest = NULL;

	for (size_t i = 0; i < KV_LOG_FOLLOWERS; i++) {
		struct kept_follower *f = &k->followers[i];

		if (f->name[0] && str_eq(str_from_cstr(f->name), name))
			return f->busy ? NULL : f;
		if (!f->busy && (!oldest || f->seen_ns < oldest->seen_ns))
			oldest = f;
	}
	if (!oldest)
		return NULL;
	*oldest = (struct kept_follower){ .equal_ns = clock_mono_ns() };
	memcpy(oldest->name, name.ptr, name.len);
	return oldest;
}

static enum status
follower_take(struct kept *k, struct str name, uint64_t after, uint64_t published,
	      struct kept_follower **ret, struct err *err)
{
	struct kept_follower *f;

	pthread_mutex_lock(&k->lock);
	f = follower_find(k, name);
	if (f) {
		f->busy = true;
		f->seen_ns = clock_mono_ns();
		f->acked = after;
		if (after == published)
			f->equal_ns = f->seen_ns;
	}
	pthread_mutex_unlock(&k->lock);
	*ret = f;
	return f ? STATUS_OK
		 : err_set(err, STATUS_BUSY,
			   "another standby of this name, or %d others, are being answered",
			   KV_LOG_FOLLOWERS);
}

enum status
kv_log_read(struct kv_store *base, struct str name, uint64_t after, size_t most, struct buf *ret,
	    struct err *err)
{
	struct emb_store *store = (struct emb_store *)base;
	uint64_t published = kv_log_published(base);
	struct kept_follower *f;
	struct kept_place place;
	enum status status;

	TRY(first_check(base, err));
	TRY(first_keeps(store, err));
	if (name.len == 0 || name.len > KV_LOG_NAME_BYTES || memchr(name.ptr, '\0', name.len))
		return err_set(err, STATUS_INVALID, "the name of a standby has 1 to %d bytes",
			       KV_LOG_NAME_BYTES);
	if (after > published)
		return err_set(err, STATUS_DOC_CONFLICT,
			       "the standby has version %llu, and the last one here is %llu",
			       (unsigned long long)after, (unsigned long long)published);
	TRY(follower_take(store->kept, name, after, published, &f, err));
	/* `busy` keeps the place from others while the lock is free. */
	place = f->place;
	if (place.version != after)
		place = (struct kept_place){ .version = after };
	status = kept_read(store->path, &place, published, most, ret, err);
	pthread_mutex_lock(&store->kept->lock);
	if (status == STATUS_OK)
		f->place = place;
	f->busy = false;
	pthread_mutex_unlock(&store->kept->lock);
	return status;
}

/* ---- A copy ---- */

struct kv_log_copy {
	struct emb_store *store;
	struct kv_tx *tx;
	uint64_t version;
	struct buf next; /* the first key that is still to be given */
	struct buf page; /* a write batch of puts */
};

enum status
kv_log_copy_begin(struct kv_store *base, struct kv_log_copy **ret, struct err *err)
{
	struct kv_log_copy *copy;
	enum status status;

	TRY(first_check(base, err));
	TRY(first_keeps((struct emb_store *)base, err));
	copy = mem_zalloc(sizeof(*copy));
	if (!copy)
		return err_set(err, STATUS_NOMEM, "out of memory");
	copy->store = (struct emb_store *)base;
	buf_init(&copy->next, 2 * KV_LIMIT_KEY_BYTES);
	buf_init(&copy->page, KV_LOG_RECORD_BYTES);
	status = kv_begin(base, KV_TX_READ_ONLY, &copy->tx);
	if (status == STATUS_OK)
		status = kv_get_read_version(copy->tx, &copy->version);
	if (status != STATUS_OK) {
		kv_log_copy_end(copy);
		return err_set(err, status, "the store cannot be copied now: %s",
			       status_name(status));
	}
	*ret = copy;
	return STATUS_OK;
}

void
kv_log_copy_end(struct kv_log_copy *copy)
{
	if (!copy)
		return;
	kv_tx_free(copy->tx);
	buf_release(&copy->next);
	buf_release(&copy->page);
	mem_free(copy);
}

void
kv_log_copy_put_end(const struct kv_log_copy *copy, struct buf *ret)
{
	kept_put_record(ret, copy->version, STR(""));
}

static void
page_put_slice(struct buf *page, struct str s)
{
	size_t rest = s.len;

	for (; rest >= VARINT_MORE; rest >>= VARINT_BITS)
		buf_append_byte(page, (char)(uint8_t)(rest | VARINT_MORE));
	buf_append_byte(page, (char)(uint8_t)rest);
	buf_append_str(page, s);
}

/* Fills a page with the pairs from `next` on, and moves `next`. */
static uint32_t
copy_fill(struct kv_log_copy *copy, rocksdb_iterator_t *it, size_t most)
{
	uint32_t count = 0;
	struct str key, value;

	for (; rocksdb_iter_valid(it); rocksdb_iter_next(it)) {
		key.ptr = rocksdb_iter_key(it, &key.len);
		value.ptr = rocksdb_iter_value(it, &value.len);
		if (copy->page.len >= most) {
			buf_clear(&copy->next);
			buf_append_str(&copy->next, key);
			return count;
		}
		if (str_eq(key, EMB_KEY_FOLLOWS))
			continue;
		buf_append_byte(&copy->page, OP_PUT);
		page_put_slice(&copy->page, key);
		page_put_slice(&copy->page, value);
		count++;
	}
	/* Behind every key. */
	buf_clear(&copy->next);
	buf_append_byte(&copy->next, (char)UINT8_MAX);
	buf_append_byte(&copy->next, (char)UINT8_MAX);
	return count;
}

/* Inside the gate. */
static enum status
copy_read_page(struct kv_log_copy *copy, size_t most, uint32_t *ret_count, struct err *err)
{
	struct emb_tx *tx = (struct emb_tx *)copy->tx;
	rocksdb_readoptions_t *options;
	struct emb_snapshot *snapshot;
	rocksdb_iterator_t *it;
	char *error = NULL;

	TRY(emb_tx_snapshot(tx, &snapshot));
	if (!snapshot->snapshot)
		return err_set(err, STATUS_TX_TOO_OLD,
			       "the store has been opened again meanwhile: the copy has to begin "
			       "anew");
	options = rocksdb_readoptions_create();
	rocksdb_readoptions_set_snapshot(options, snapshot->snapshot);
	rocksdb_readoptions_set_total_order_seek(options, 1);
	rocksdb_readoptions_set_fill_cache(options, 0);
	it = rocksdb_create_iterator(copy->store->db, options);
	rocksdb_iter_seek(it, copy->next.ptr ? copy->next.ptr : "", copy->next.len);
	*ret_count = copy_fill(copy, it, most);
	rocksdb_iter_get_error(it, &error);
	rocksdb_iter_destroy(it);
	rocksdb_readoptions_destroy(options);
	if (error)
		return emb_error(error, "copying the store", err);
	return buf_status(&copy->page);
}

enum status
kv_log_copy_next(struct kv_log_copy *copy, size_t most, struct buf *ret, bool *ret_done,
		 struct err *err)
{
	static const char header[KEPT_BATCH_HEADER_BYTES];
	struct gate_pass pass;
	enum status status;
	uint32_t count = 0;

	buf_clear(&copy->page);
	buf_append(&copy->page, header, sizeof(header));
	TRY(emb_handle_use(copy->store, &pass, err));
	status = copy_read_page(copy, most, &count, err);
	gate_leave(pass);
	TRY(status);
	for (size_t i = 0; i < sizeof(count); i++)
		copy->page.ptr[KEPT_COUNT_AT + i] = (char)(uint8_t)(count >> (BYTE_BITS * i));
	*ret_done = count == 0;
	if (count)
		kept_put_record(ret, 0, buf_str(&copy->page));
	return buf_status(ret);
}
