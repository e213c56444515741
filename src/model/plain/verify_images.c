/* The check of documents before and after events. */
#include "catalog/check.h"
#include "model/plain/plain_int.h"

struct image_check {
	struct catalog_verify *v;
	uint64_t refs;                     /* to images that were written ahead */
	uint64_t texts;                    /* such images */
	uint8_t text[PLAIN_TEXT_ID_BYTES]; /* the one that is being read */
	uint64_t next;                     /* its next part */
	bool ended;                        /* its last part has come */
};

static enum status
read_event(struct tuple_reader *r, uint64_t *ret_which)
{
	const uint8_t *stamp;
	uint64_t incarnation;

	TRY(tuple_next_u64(r, &incarnation));
	TRY(tuple_next_versionstamp(r, &stamp));
	return tuple_next_u64(r, ret_which);
}

/* The last part of what an event refers to is there, and ends where it should. */
static enum status
check_ref(struct image_check *check, struct tuple_reader *r, const struct kv_pair *pair)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct catalog_verify *v = check->v;
	struct plain_image_ref ref;
	struct err err = { 0 };
	struct kv_future *f;
	enum status status;
	struct str value;
	uint64_t which, last;

	if (read_event(r, &which) != STATUS_OK || r->rest.len) {
		catalog_verify_found(v, CATALOG_FINDING_KEY, pair->key, "not of an image");
		return STATUS_OK;
	}
	status = plain_image_ref_parse(pair->value, &ref, &err);
	if (status != STATUS_OK || !ref.length) {
		catalog_verify_unreadable(v, status == STATUS_OK ? STATUS_CORRUPT : status, &err,
					  pair->key, "not an image");
		return STATUS_OK;
	}
	check->refs++;
	last = (ref.length - 1) / PLAIN_IMAGE_PART_BYTES;
	plain_key_image_text(v->db, ref.text, &key);
	tuple_put_u64(&key, last);
	TRY(catalog_key_status(&key));
	TRY(catalog_verify_get(v, buf_str(&key), &f));
	if (!kv_future_value(f, &value) || value.len != ref.length - last * PLAIN_IMAGE_PART_BYTES)
		catalog_verify_found(v, PLAIN_FINDING_EVENT, pair->key,
				     "parts of the image are missing");
	kv_future_free(f);
	return STATUS_OK;
}

/* Parts follow each other, and only the last one is short. */
static void
check_part(struct image_check *check, struct tuple_reader *r, struct str text,
	   const struct kv_pair *pair)
{
	uint64_t n;

	if (!check->texts || memcmp(check->text, text.ptr, sizeof(check->text)) != 0) {
		memcpy(check->text, text.ptr, sizeof(check->text));
		check->texts++;
		check->next = 0;
		check->ended = false;
	}
	if (tuple_next_u64(r, &n) != STATUS_OK || r->rest.len || n != check->next || check->ended ||
	    !pair->value.len || pair->value.len > PLAIN_IMAGE_PART_BYTES)
		catalog_verify_found(check->v, PLAIN_FINDING_EVENT, pair->key,
				     "a part that no image can have here");
	check->next = n + 1;
	check->ended = pair->value.len < PLAIN_IMAGE_PART_BYTES;
}

static enum status
check_pair(struct image_check *check, struct str tail, const struct kv_pair *pair)
{
	struct tuple_reader r = tuple_reader(tail), rest = r;
	struct tuple_elem e;
	uint64_t which, n;

	if (tuple_next(&rest, &e) == STATUS_OK && e.kind == TUPLE_UUID) {
		check_part(check, &rest, e.raw, pair);
		return STATUS_OK;
	}
	if (e.kind == TUPLE_TRUE)
		return check_ref(check, &rest, pair);
	if (read_event(&r, &which) != STATUS_OK || tuple_next_u64(&r, &n) != STATUS_OK ||
	    r.rest.len)
		catalog_verify_found(check->v, CATALOG_FINDING_KEY, pair->key,
				     "not a part of an image");
	return STATUS_OK;
}

/* An image that was written ahead, with all its parts; what refers to one is a pair. */
static size_t
image_unit(const struct catalog_verify *v, const struct catalog_verify_cursor *c)
{
	struct tuple_reader r = tuple_reader(c->tail);
	struct tuple_elem e;

	(void)v;
	return tuple_next(&r, &e) == STATUS_OK && e.kind == TUPLE_UUID ? c->tail.len - r.rest.len
								       : c->tail.len;
}

static enum status
image_check(struct catalog_verify *v, const struct catalog_verify_cursor *c, void *check)
{
	(void)v;
	return check_pair(check, c->tail, &c->pair);
}

/* `range`: NULL for all of them. */
static enum status
walk_images(struct catalog_verify *v, struct catalog_verify_range *range, struct image_check *check)
{
	const struct catalog_verify_walk walk = { PLAIN_SPACE_IMAGES, "the image", image_unit,
						  image_check, check };

	return catalog_verify_walk(v, &walk, range);
}

static enum status
images_range(struct catalog_verify *v, struct catalog_verify_range *range)
{
	struct image_check check = { .v = v };

	return walk_images(v, range, &check);
}

enum status
plain_verify_images_in_ranges(struct catalog_verify *v)
{
	return catalog_verify_ranges(v, images_range, NULL);
}

enum status
plain_verify_images(struct catalog_verify *v, uint64_t staged)
{
	struct image_check check = { .v = v };

	TRY(walk_images(v, NULL, &check));
	if (check.texts == check.refs + staged)
		return STATUS_OK;
	plain_key_space(&v->key, v->db, PLAIN_SPACE_IMAGES);
	TRY(catalog_key_status(&v->key));
	catalog_verify_found(v, PLAIN_FINDING_EVENT, buf_str(&v->key),
			     "%llu images were written ahead, and %llu are referred to or listed",
			     (unsigned long long)check.texts,
			     (unsigned long long)(check.refs + staged));
	return STATUS_OK;
}
