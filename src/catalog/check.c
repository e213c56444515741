/* Reading for a check: single keys and ranges, again where what is checked stands still. */
#include <stdarg.h>
#include <stdio.h>

#include "catalog/check.h"
#include "kv/tuple.h"
#include "loop/step.h"

enum {
	VERIFY_PROGRESS_KEYS = 1024,
	VERIFY_TEXT_BYTES = 1024,
	VERIFY_READ_BYTES = 256 * 1024, /* of a range at a time: several are open at once */
};

void
catalog_verify_found(struct catalog_verify *v, const char *kind, struct str key, const char *fmt,
		     ...)
{
	struct catalog_finding finding = { .kind = kind, .key = key };
	char text[VERIFY_TEXT_BYTES];
	va_list args;

	v->starved = v->starved || arena_is_starved(v->scratch);
	if (v->starved)
		return;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	finding.text = text;
	if (v->db) {
		finding.database = v->db->name;
		finding.of = v->db->kind;
	}
	v->sum.findings++;
	/* Without memory for it, it is told at once, and once more if the range is read again. */
	if (!v->held || !v->hold(v, &finding))
		v->options->found(&finding, v->options->arg);
}

bool
catalog_verify_parsed(struct catalog_verify *v, enum status status)
{
	v->starved = v->starved || status == STATUS_NOMEM;
	return status == STATUS_OK;
}

bool
catalog_verify_parsed_in(struct catalog_verify *v, enum status status, const struct arena *arena)
{
	return catalog_verify_parsed(v, arena_is_starved(arena) ? STATUS_NOMEM : status);
}

void
catalog_verify_unreadable(struct catalog_verify *v, enum status status, const struct err *err,
			  struct str key, const char *text)
{
	if (catalog_verify_parsed(v, status))
		return;
	if (status == STATUS_NEWER)
		catalog_verify_found(v, CATALOG_FINDING_NEWER, key, "%s", err->text);
	else
		catalog_verify_found(v, CATALOG_FINDING_VALUE, key, "%s", text);
}

bool
catalog_verify_text_next(struct tuple_reader *r, enum tuple_kind kind, struct str *ret)
{
	struct tuple_elem e;

	if (tuple_next(r, &e) != STATUS_OK || e.kind != kind || e.raw.len == 0)
		return false;
	*ret = e.encoding;
	return true;
}

bool
catalog_verify_seq_next(struct tuple_reader *r, struct catalog_seq *ret)
{
	const uint8_t *stamp;
	uint64_t incarnation;

	if (tuple_next_u64(r, &incarnation) != STATUS_OK || incarnation > UINT8_MAX ||
	    tuple_next_versionstamp(r, &stamp) != STATUS_OK)
		return false;
	ret->bytes[0] = (uint8_t)incarnation;
	memcpy(ret->bytes + 1, stamp, KV_VERSIONSTAMP_BYTES);
	return true;
}

enum status
catalog_verify_again(struct catalog_verify *v, unsigned *failures, enum status status)
{
	if (!v->still || ++*failures > KV_RETRY_LIMIT)
		return status;
	return kv_on_error(v->tx, status);
}

enum status
catalog_verify_get(struct catalog_verify *v, struct str key, struct kv_future **ret)
{
	unsigned failures = 0;

	for (;;) {
		struct kv_future *f = kv_get(v->tx, key, KV_SNAPSHOT);
		enum status status = kv_future_wait(f);

		if (status == STATUS_OK) {
			*ret = f;
			return STATUS_OK;
		}
		kv_future_free(f);
		TRY(catalog_verify_again(v, &failures, status));
	}
}

enum status
catalog_verify_get_range(struct catalog_verify *v, struct str begin, struct str end,
			 const struct kv_range_options *options, struct kv_future **ret)
{
	unsigned failures = 0;

	for (;;) {
		struct kv_future *f = kv_get_range(v->tx, begin, end, options);
		enum status status = kv_future_wait(f);

		if (status == STATUS_OK) {
			*ret = f;
			return STATUS_OK;
		}
		kv_future_free(f);
		TRY(catalog_verify_again(v, &failures, status));
	}
}

void
catalog_verify_count(struct catalog_verify *v, const struct kv_pair *pair)
{
	v->sum.keys++;
	v->sum.bytes += pair->key.len + pair->value.len;
	if (v->options->progress && v->sum.keys % VERIFY_PROGRESS_KEYS == 0)
		v->options->progress(&v->sum, v->options->arg);
}

enum status
catalog_verify_cursor_next(struct catalog_verify *v, struct catalog_verify_cursor *c)
{
	enum status status = kv_scan_next(&c->scan, &c->pair);
	unsigned failures = 0;

	while (v->still && status != STATUS_OK && status != STATUS_NOT_FOUND) {
		TRY(failures++ < KV_RETRY_LIMIT ? kv_scan_retry(&c->scan, status) : status);
		status = kv_scan_next(&c->scan, &c->pair);
	}
	c->done = status == STATUS_NOT_FOUND;
	if (c->done)
		return STATUS_OK;
	TRY(status);
	TRY(step_count(1));
	c->tail = str_skip(c->pair.key, c->prefix_len);
	catalog_verify_count(v, &c->pair);
	return STATUS_OK;
}

/* What begins with the bytes in v->key, from `from` behind them on. */
static enum status
cursor_open(struct catalog_verify *v, struct catalog_verify_cursor *c, struct str from)
{
	struct kv_range_options options = { .limit_bytes = VERIFY_READ_BYTES, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	TRY(buf_status(&v->key));
	TRY(tuple_prefix_end(buf_str(&v->key), &end));
	TRY(buf_status(&end));
	*c = (struct catalog_verify_cursor){ .prefix_len = v->key.len };
	buf_append_str(&v->key, from);
	TRY(buf_status(&v->key));
	if (v->still)
		TRY(kv_begin(kv_tx_store(v->tx), KV_TX_READ_ONLY, &c->own));
	TRY(kv_scan_init(&c->scan, c->own ? c->own : v->tx, buf_str(&v->key), buf_str(&end),
			 &options));
	return catalog_verify_cursor_next(v, c);
}

enum status
catalog_verify_cursor_open_at(struct catalog_verify *v, struct catalog_verify_cursor *c)
{
	return cursor_open(v, c, STR(""));
}

enum status
catalog_verify_cursor_open_from(struct catalog_verify *v, struct catalog_verify_cursor *c,
				uint64_t space, struct str from)
{
	buf_clear(&v->key);
	buf_append_str(&v->key, v->db->prefix);
	tuple_put_u64(&v->key, space);
	return cursor_open(v, c, from);
}

enum status
catalog_verify_cursor_open(struct catalog_verify *v, struct catalog_verify_cursor *c,
			   uint64_t space)
{
	return catalog_verify_cursor_open_from(v, c, space, STR(""));
}

void
catalog_verify_cursor_close(struct catalog_verify_cursor *c)
{
	kv_scan_release(&c->scan);
	kv_tx_free(c->own);
}

/* The first key with begin <= key < end, copied to `ret`. STATUS_NOT_FOUND. */
enum status
catalog_verify_first_key(struct catalog_verify *v, struct str begin, struct str end,
			 struct buf *ret)
{
	struct kv_range_options options = { .limit = 1, .mode = KV_SNAPSHOT };
	struct kv_future *f;
	struct kv_range range;
	enum status status;

	buf_clear(ret);
	TRY(catalog_verify_get_range(v, begin, end, &options, &f));
	range = kv_future_range(f);
	if (range.count)
		buf_append_str(ret, range.pairs[0].key);
	status = range.count ? buf_status(ret) : STATUS_NOT_FOUND;
	kv_future_free(f);
	return status;
}
