#include "door/cql/run/page.h"

#include "base/hash.h"

enum {
	FORMAT = 2,
};

uint64_t
page_owner(const struct run *run)
{
	static const uint8_t seed[HASH_SEED_BYTES] = "frond cql paging";
	uint64_t hash = hash_seeded(seed, run->statement->text);

	for (size_t i = 0; i < run->scope.marker_count; i++)
		hash = hash * 31 + (uint64_t)run->markers[i].presence +
		       (run->markers[i].presence == CQL_SET
				? hash_seeded(seed, run->markers[i].bytes)
				: 0);
	if (run->table->schema)
		hash = hash * 31 +
		       hash_seeded(seed, str_of(run->table->schema->id, TABLE_ID_BYTES));
	hash = hash * 31 + hash_seeded(seed, run->table->name);
	return hash * 31 + hash_seeded(seed, run->table->keyspace);
}

void
page_put(struct buf *out, uint64_t owner, const struct page *p)
{
	buf_append_byte(out, FORMAT);
	frame_put_i64(out, (int64_t)owner);
	frame_put_i64(out, (int64_t)p->index);
	frame_put_i32(out, (int32_t)p->partition);
	frame_put_i32(out, (int32_t)p->range);
	frame_put_i64(out, (int64_t)p->left);
	frame_put_i64(out, (int64_t)p->part_left);
	frame_put_i64(out, (int64_t)p->skip);
	frame_put_i64(out, (int64_t)p->at_us);
	frame_put_i64(out, p->token);
	frame_put_short(out, p->place);
}

enum status
page_read(struct str state, uint64_t owner, struct page *ret)
{
	struct frame_in in = frame_in_of(state);
	unsigned format = frame_u8(&in);
	uint64_t of;

	of = (uint64_t)frame_i64(&in);
	*ret = (struct page){ .index = (uint64_t)frame_i64(&in) };
	ret->partition = (uint32_t)frame_i32(&in);
	ret->range = (uint32_t)frame_i32(&in);
	ret->left = (uint64_t)frame_i64(&in);
	ret->part_left = (uint64_t)frame_i64(&in);
	ret->skip = (uint64_t)frame_i64(&in);
	ret->at_us = (uint64_t)frame_i64(&in);
	ret->token = frame_i64(&in);
	ret->place = frame_short(&in);
	if (in.bad || in.rest.len || format != FORMAT || of != owner)
		return STATUS_INVALID;
	return STATUS_OK;
}

bool
page_read_index(struct str state, uint64_t *ret)
{
	struct frame_in in = frame_in_of(state);

	if (frame_u8(&in) != FORMAT)
		return false;
	(void)frame_i64(&in);
	*ret = (uint64_t)frame_i64(&in);
	return !in.bad;
}

void
page_put_places(struct buf *out, struct str in_index, struct str in_partition)
{
	frame_put_short(out, in_index);
	frame_put_short(out, in_partition);
}

enum status
page_read_places(struct str place, struct str *ret_in_index, struct str *ret_in_partition)
{
	struct frame_in in = frame_in_of(place);

	*ret_in_index = *ret_in_partition = STR("");
	if (!place.len)
		return STATUS_OK;
	*ret_in_index = frame_short(&in);
	*ret_in_partition = frame_short(&in);
	return in.bad || in.rest.len ? STATUS_INVALID : STATUS_OK;
}
