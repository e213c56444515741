/*
 * What the log that a store has kept says behind a version: applied to a restored backup, or read
 * for the keys that it wrote. The log's directory need not be a store that can be opened.
 */
#include "kv/embedded/kept.h"
#include "kv/embedded/log_record.h"
#include "kv/embedded/upkeep.h"

enum {
	FORWARD_BYTES = KV_LOG_RECORD_BYTES + 2 * KV_LOG_ANSWER_BYTES, /* of records at a time */
};

/* Takes the records that were committed in time. `*ret_done`: others follow them. */
static enum status
forward_cut(struct buf *records, struct kv_restore_log *log, bool *ret_done, struct err *err)
{
	size_t at = 0;

	while (at < records->len) {
		struct str payload;
		uint64_t version, time_ms;

		TRY(kv_log_record(str_skip(buf_str(records), at), &version, &payload, err));
		time_ms = log_link_of(payload.ptr, payload.len).time_ms;
		if (time_ms > log->until_ms) {
			log->next_ms = time_ms;
			records->len = at;
			*ret_done = true;
			return STATUS_OK;
		}
		at += KV_LOG_HEADER_BYTES + payload.len;
		log->records++;
		log->last_ms = time_ms;
	}
	return STATUS_OK;
}

enum status
emb_log_forward(struct kv_store *base, struct kv_restore_log *log, struct err *err)
{
	AUTO(buf_release) struct buf records = BUF_INIT(FORWARD_BYTES);
	struct kept_place place = { .version = kv_log_published(base) };
	bool done = false;

	log->records = log->last_ms = log->next_ms = 0;
	while (!done) {
		buf_clear(&records);
		TRY(kept_read(log->path, &place, UINT64_MAX, KV_LOG_ANSWER_BYTES, &records, err));
		if (records.len == 0)
			break;
		TRY(forward_cut(&records, log, &done, err));
		TRY(kv_log_apply(base, buf_str(&records), err));
	}
	return STATUS_OK;
}

/* ---- Keys ---- */

enum status
kv_log_keys(struct kv_store *base, uint64_t after, kv_log_key_found *found, void *arg,
	    struct err *err)
{
	AUTO(buf_release) struct buf records = BUF_INIT(FORWARD_BYTES);
	struct kept_place place = { .version = after };
	const struct emb_store *store = (const struct emb_store *)base;
	struct kv_log_position position;

	TRY(kv_log_position(base, &position, err));
	do {
		struct str rest;

		buf_clear(&records);
		TRY(kept_read(store->path, &place, position.version, KV_LOG_ANSWER_BYTES, &records,
			      err));
		rest = buf_str(&records);
		while (rest.len) {
			struct str payload;
			struct log_link link;
			uint64_t version;

			TRY(kv_log_record(rest, &version, &payload, err));
			link = log_link_of(payload.ptr, payload.len);
			TRY(kept_tell_keys(str_skip(payload, KEPT_BATCH_HEADER_BYTES), &link, found,
					   arg, err));
			rest = str_skip(rest, KV_LOG_HEADER_BYTES + payload.len);
		}
	} while (records.len);
	return STATUS_OK;
}
