/*
 * Documents before and after events, kept as long as these. A short image lies under its event, in
 * parts. A long one was written ahead under an id of its own, and its event refers to that.
 */
#include <assert.h>

#include "base/steady.h"
#include "base/rand.h"
#include "model/plain/plain_int.h"

enum {
	IMAGE_BEFORE = 1, /* stored: never renumber */
	IMAGE_AFTER = 2,
	IMAGE_REF_FORMAT = 1,
	IMAGE_STAGE_PARTS = 20, /* that one transaction writes */
};

/* ---- Keys ---- */

/* (P, IMAGES, text): the parts of an image that was written ahead lie below. */
void
plain_key_image_text(const struct catalog_db *db, const uint8_t text[PLAIN_TEXT_ID_BYTES],
		     struct buf *ret)
{
	plain_key_space(ret, db, PLAIN_SPACE_IMAGES);
	tuple_put_uuid(ret, text);
}

/* (P, IMAGES, true): references to such images, by their events. These are behind all the rest. */
static void
key_refs(const struct catalog_db *db, struct buf *ret)
{
	plain_key_space(ret, db, PLAIN_SPACE_IMAGES);
	tuple_put_bool(ret, true);
}

/* ---- Writing ---- */

/* (P, IMAGES, Incarnation, versionstamp, before or after, n): the nth part of a document. */
static enum status
image_write_parts(struct plain *p, const uint8_t stamp[KV_VERSIONSTAMP_BYTES], uint64_t which,
		  struct str image)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	size_t offset;

	for (uint64_t n = 0; image.len; n++) {
		struct str part = image;

		if (part.len > PLAIN_IMAGE_PART_BYTES)
			part.len = PLAIN_IMAGE_PART_BYTES;
		plain_key_space(&key, p->db, PLAIN_SPACE_IMAGES);
		tuple_put_u64(&key, p->db->incarnation);
		offset = tuple_put_versionstamp(&key, stamp);
		tuple_put_u64(&key, which);
		tuple_put_u64(&key, n);
		TRY(catalog_key_status(&key));
		TRY(kv_set_versionstamped_key(p->tx, buf_str(&key), offset, part));
		image = str_skip(image, part.len);
	}
	return STATUS_OK;
}

/*
 * (P, IMAGES, true, Incarnation, versionstamp, before or after) = (format, text, length). Whether
 * the parts are there is not read: this transaction may have begun before they were written, and
 * the sweep leaves them alone for longer than any transaction lives.
 */
static enum status
image_write_ref(struct plain *p, const uint8_t stamp[KV_VERSIONSTAMP_BYTES], uint64_t which,
		const struct plain_doc *image)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	size_t offset;

	plain_key_staged(p->db, image->text, &key);
	TRY(catalog_key_status(&key));
	TRY(kv_clear(p->tx, buf_str(&key)));
	key_refs(p->db, &key);
	tuple_put_u64(&key, p->db->incarnation);
	offset = tuple_put_versionstamp(&key, stamp);
	tuple_put_u64(&key, which);
	TRY(catalog_key_status(&key));
	tuple_put_u64(&value, IMAGE_REF_FORMAT);
	tuple_put_uuid(&value, image->text);
	tuple_put_u64(&value, image->bytes.len);
	TRY(buf_status(&value));
	return kv_set_versionstamped_key(p->tx, buf_str(&key), offset, buf_str(&value));
}

static enum status
image_write(struct plain *p, const uint8_t stamp[KV_VERSIONSTAMP_BYTES], uint64_t which,
	    const struct plain_doc *image)
{
	if (image->staged)
		return image_write_ref(p, stamp, which, image);
	assert(image->bytes.len <= PLAIN_AHEAD_BYTES);
	return image_write_parts(p, stamp, which, image->bytes);
}

/* Images are of one event. */
enum status
plain_images_write(struct plain *p, const uint8_t stamp[KV_VERSIONSTAMP_BYTES],
		   const struct plain_event *event)
{
	struct plain_doc before = p->before, after = p->after;

	p->before = p->after = plain_doc_of(STR(""));
	TRY(image_write(p, stamp, IMAGE_BEFORE, &before));
	/* An event of a whole document has it already. */
	if (event->detail.len && event->kind != PLAIN_EVENT_UPDATE)
		return STATUS_OK;
	return image_write(p, stamp, IMAGE_AFTER, &after);
}

/* ---- Ahead ---- */

/* One transaction's part of an image. */
struct image_stage {
	const struct catalog_db *db;
	struct plain_doc *doc;
	uint64_t first; /* part */
	struct err *err;
};

static enum status
stage_body(struct kv_tx *tx, void *arg)
{
	struct image_stage *s = arg;
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	uint64_t last = s->first + IMAGE_STAGE_PARTS;
	struct str rest = s->doc->bytes;

	/* A collection that was dropped meanwhile gets no more keys. */
	TRY(catalog_db_check_now(tx, s->db, s->err));
	plain_key_staged(s->db, s->doc->text, &key);
	TRY(catalog_key_status(&key));
	/* The time is that of the latest part. */
	tuple_put_u64(&value, steady_ms());
	TRY(buf_status(&value));
	TRY(kv_set(tx, buf_str(&key), buf_str(&value)));
	for (uint64_t n = s->first; n < last && n * PLAIN_IMAGE_PART_BYTES < rest.len; n++) {
		struct str part = str_skip(rest, n * PLAIN_IMAGE_PART_BYTES);

		if (part.len > PLAIN_IMAGE_PART_BYTES)
			part.len = PLAIN_IMAGE_PART_BYTES;
		plain_key_image_text(s->db, s->doc->text, &key);
		tuple_put_u64(&key, n);
		TRY(catalog_key_status(&key));
		TRY(kv_set(tx, buf_str(&key), part));
	}
	return STATUS_OK;
}

enum status
plain_stage_image(struct kv_store *store, const struct catalog_db *db, struct str bytes,
		  struct plain_doc *ret, struct err *err)
{
	struct image_stage s = { .db = db, .doc = ret, .err = err };

	*ret = plain_doc_of(bytes);
	rand_bytes(ret->text, sizeof(ret->text));
	for (; s.first * PLAIN_IMAGE_PART_BYTES < bytes.len; s.first += IMAGE_STAGE_PARTS)
		TRY(kv_run(store, stage_body, &s, NULL, err));
	ret->staged = true;
	return STATUS_OK;
}

/* ---- Reading ---- */

enum status
plain_image_ref_parse(struct str value, struct plain_image_ref *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	struct tuple_elem e;
	uint64_t format;

	if (tuple_next_u64(&r, &format) != STATUS_OK)
		return STATUS_CORRUPT;
	if (format != IMAGE_REF_FORMAT)
		return err_set(err, STATUS_NEWER,
			       "an image was written by a newer frond, in format %llu",
			       (unsigned long long)format);
	if (tuple_next(&r, &e) != STATUS_OK || e.kind != TUPLE_UUID)
		return STATUS_CORRUPT;
	memcpy(ret->text, e.raw.ptr, sizeof(ret->text));
	if (tuple_next_u64(&r, &ret->length) != STATUS_OK || r.rest.len)
		return STATUS_CORRUPT;
	return STATUS_OK;
}

/* All parts under a key, one behind the other; none: STATUS_NOT_FOUND. */
static enum status
parts_read(struct plain *p, struct str key, struct arena *arena, struct str *ret)
{
	const struct kv_range_options options = { .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf image = BUF_INIT(BSON_DOCUMENT_BYTES);
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct kv_pair pair;
	enum status status;

	TRY(plain_key_end(key, &end));
	TRY(kv_scan_init(&scan, p->tx, key, buf_str(&end), &options));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK)
		buf_append_str(&image, pair.value);
	if (status != STATUS_NOT_FOUND)
		return status;
	TRY(buf_status(&image));
	if (!image.len)
		return STATUS_NOT_FOUND;
	if (bson_length(buf_str(&image)) != image.len)
		return plain_fail_corrupt(p, key, "a document of an event");
	*ret = buf_dup(&image, arena);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

static void
put_event(struct buf *key, const struct catalog_seq *seq, bool after)
{
	tuple_put_u64(key, seq->bytes[0]);
	tuple_put_versionstamp(key, seq->bytes + 1);
	tuple_put_u64(key, after ? IMAGE_AFTER : IMAGE_BEFORE);
}

enum status
plain_image_read(struct plain *p, const struct catalog_seq *seq, bool after, struct arena *arena,
		 struct str *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct plain_image_ref ref;
	enum status status;
	struct kv_future *f;
	struct str value;

	plain_key_space(&key, p->db, PLAIN_SPACE_IMAGES);
	put_event(&key, seq, after);
	TRY(catalog_key_status(&key));
	status = parts_read(p, buf_str(&key), arena, ret);
	if (status != STATUS_NOT_FOUND)
		return status;
	key_refs(p->db, &key);
	put_event(&key, seq, after);
	TRY(catalog_key_status(&key));
	f = kv_get(p->tx, buf_str(&key), KV_SNAPSHOT);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_NOT_FOUND;
	status = plain_image_ref_parse(value, &ref, p->err);
	if (status == STATUS_CORRUPT)
		return plain_fail_corrupt(p, buf_str(&key), "an image");
	TRY(status);
	plain_key_image_text(p->db, ref.text, &key);
	TRY(catalog_key_status(&key));
	status = parts_read(p, buf_str(&key), arena, ret);
	if (status == STATUS_NOT_FOUND || (status == STATUS_OK && ret->len != ref.length))
		return plain_fail_corrupt(p, buf_str(&key), "a document of an event");
	return status;
}

/* ---- Clearing ---- */

enum status
plain_image_clear_text(struct plain *p, const uint8_t text[PLAIN_TEXT_ID_BYTES])
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	plain_key_image_text(p->db, text, &begin);
	TRY(catalog_key_status(&begin));
	TRY(plain_key_end(buf_str(&begin), &end));
	return kv_clear_range(p->tx, buf_str(&begin), buf_str(&end));
}

/* Clears between two keys, the second one being the first one and an event. */
static enum status
clear_up_to(struct plain *p, const struct buf *begin, struct str event)
{
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	buf_append_buf(&end, begin);
	buf_append_str(&end, event);
	TRY(catalog_key_status(&end));
	return kv_clear_range(p->tx, buf_str(begin), buf_str(&end));
}

static enum status
clear_refs(struct plain *p, struct str event)
{
	const struct kv_range_options options = { .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct plain_image_ref ref;
	struct kv_pair pair;
	enum status status;

	key_refs(p->db, &begin);
	buf_append_buf(&end, &begin);
	buf_append_str(&end, event);
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	TRY(kv_scan_init(&scan, p->tx, buf_str(&begin), buf_str(&end), &options));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		status = plain_image_ref_parse(pair.value, &ref, p->err);
		if (status == STATUS_CORRUPT)
			return plain_fail_corrupt(p, pair.key, "an image");
		TRY(status);
		TRY(plain_image_clear_text(p, ref.text));
	}
	return status == STATUS_NOT_FOUND ? clear_up_to(p, &begin, event) : status;
}

enum status
plain_images_clear(struct plain *p, struct str event)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;

	plain_key_space(&begin, p->db, PLAIN_SPACE_IMAGES);
	TRY(catalog_key_status(&begin));
	TRY(clear_up_to(p, &begin, event));
	return clear_refs(p, event);
}
