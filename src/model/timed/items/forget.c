/* What is to be known of items where versions of them are forgotten (trim.c of the room above). */
#include "model/timed/items/item_int.h"

enum {
	ID_TIME_BYTES = TIMED_ID_BYTES - 8, /* of the moment in the id of a body */
};

enum status
timed_items_body_of(struct timed *t, struct str value, struct buf *ret_body, uint64_t *ret_made_us)
{
	struct timed_header h;

	TRY(timed_header_parse(value, &h, t->err));
	*ret_made_us = 0;
	if (!h.has_body)
		return STATUS_OK;
	tuple_put_bytes(ret_body, str_of(h.id, sizeof(h.id)));
	for (size_t i = 0; i < ID_TIME_BYTES; i++)
		*ret_made_us |= (uint64_t)h.id[TIMED_ID_BYTES - ID_TIME_BYTES + i] << 8 * i;
	return STATUS_OK;
}

/* The number of a part, and what follows it; 0: it is a member. */
static enum status
part_take(struct tuple_reader *r, uint64_t *ret)
{
	*ret = 0;
	if (tuple_skip(r->rest, 0, TUPLE_SKIP_TEXT))
		return STATUS_OK;
	return tuple_next_u64(r, ret);
}

/* A group whose owner was cleared has gone. */
static enum status
group_left(struct tuple_reader r, struct str id, struct buf *ret)
{
	size_t len = tuple_skip(r.rest, 0, TUPLE_SKIP_TEXT);
	struct str gid = str_of(r.rest.ptr, len);
	uint64_t part;

	if (!len)
		return STATUS_CORRUPT;
	r.rest = str_skip(r.rest, len);
	TRY(tuple_next_u64(&r, &part));
	if (part != TIMED_GROUP_OWNER || r.rest.len)
		return STATUS_OK;
	buf_append_str(ret, id);
	tuple_put_u64(ret, TIMED_PART_OF_GROUP);
	buf_append_str(ret, gid);
	return STATUS_OK;
}

/*
 * Leaves and groups have ids that no other ones get. A leaf that is written again has other pieces;
 * an owner is written once and cleared once. So what a record names went with that change.
 */
enum status
timed_items_left_by(struct timed *t, const struct history_record *record, struct buf *ret)
{
	struct tuple_reader r = tuple_reader(record->key);
	struct timed_leaf_record leaf;
	struct err ignored = { 0 };
	enum status status;
	struct str id;
	uint64_t space, part;
	size_t len;

	if (!record->there)
		return STATUS_OK;
	TRY(tuple_next_u64(&r, &space));
	len = tuple_skip(r.rest, 0, TUPLE_SKIP_TEXT);
	if (!len)
		return STATUS_CORRUPT;
	id = str_of(r.rest.ptr, len);
	r.rest = str_skip(r.rest, len);
	TRY(part_take(&r, &part));
	if (part == TIMED_PART_OF_GROUP)
		return group_left(r, id, ret);
	if ((part && part != TIMED_PART_ORDER) || timed_is_run(record->value))
		return STATUS_OK;
	status = timed_leaf_parse(record->value, &leaf, part ? &ignored : t->err);
	/*
	 * In the order of a sorted set there are scores and names. If they look like pieces, no
	 * entry of GONE has these, since such an id is drawn at random.
	 */
	if (part && status != STATUS_OK)
		return STATUS_OK;
	TRY(status);
	if (!leaf.pieces.there)
		return STATUS_OK;
	buf_append_str(ret, id);
	tuple_put_u64(ret, TIMED_PART_PIECES);
	tuple_put_bytes(ret, str_of(leaf.pieces.id, sizeof(leaf.pieces.id)));
	return STATUS_OK;
}
