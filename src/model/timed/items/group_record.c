/* The records of groups of consumers, of their consumers and of entries that are pending. */
#include "catalog/format.h"
#include "model/timed/items/item_int.h"

enum {
	GROUP_FORMAT = 1,
	CONSUMER_FORMAT = 1,
	PENDING_FORMAT = 1,
};

void
timed_group_record_put(const struct timed_group *group, struct buf *value)
{
	tuple_put_u64(value, GROUP_FORMAT);
	tuple_put_bytes(value, str_of(group->id, sizeof(group->id)));
	tuple_put_u64(value, group->last.ms);
	tuple_put_u64(value, group->last.seq);
	tuple_put_u64(value, (uint64_t)(group->read + 1));
	if (group->name.len > TIMED_WHOLE_BYTES)
		buf_append_str(value, group->name);
}

/*
 * Takes the name that a record ends with. Only a name that is too long for its key is stored there;
 * where there is none, `ret` stays as it is.
 */
static enum status
name_take(struct str rest, struct str *ret)
{
	if (rest.len && rest.len <= TIMED_WHOLE_BYTES)
		return STATUS_CORRUPT;
	if (rest.len)
		*ret = rest;
	return STATUS_OK;
}

enum status
timed_group_record_parse(struct str value, struct timed_group *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	struct buf id = { .ptr = (char *)ret->id,
			  .cap = sizeof(ret->id),
			  .max_bytes = sizeof(ret->id) };
	struct tuple_elem e;
	uint64_t format, read;

	TRY(catalog_format_next(&r, "group of consumers", GROUP_FORMAT, &format, err));
	TRY(tuple_next_elem(&r, &e));
	if (e.kind != TUPLE_BYTES)
		return STATUS_CORRUPT;
	tuple_unescape(&e, &id);
	TRY(tuple_next_u64(&r, &ret->last.ms));
	TRY(tuple_next_u64(&r, &ret->last.seq));
	TRY(tuple_next_u64(&r, &read));
	ret->read = (int64_t)(read - 1);
	TRY(name_take(r.rest, &ret->name));
	return id.failed == STATUS_OK && id.len == sizeof(ret->id) ? STATUS_OK : STATUS_CORRUPT;
}

void
timed_consumer_record_put(const struct timed_consumer *consumer, struct buf *value)
{
	tuple_put_u64(value, CONSUMER_FORMAT);
	tuple_put_u64(value, consumer->seen_ms);
	if (consumer->name.len > TIMED_WHOLE_BYTES)
		buf_append_str(value, consumer->name);
}

enum status
timed_consumer_record_parse(struct str value, struct timed_consumer *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format;

	TRY(catalog_format_next(&r, "consumer of a group", CONSUMER_FORMAT, &format, err));
	TRY(tuple_next_u64(&r, &ret->seen_ms));
	return name_take(r.rest, &ret->name);
}

void
timed_pending_record_put(const struct timed_pending *entry, struct str cut, struct buf *value)
{
	tuple_put_u64(value, PENDING_FORMAT);
	tuple_put_u64(value, entry->delivered_ms);
	tuple_put_u64(value, entry->times);
	buf_append_str(value, cut);
}

enum status
timed_pending_record_parse(struct str value, struct timed_pending *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format;

	TRY(catalog_format_next(&r, "pending entry", PENDING_FORMAT, &format, err));
	TRY(tuple_next_u64(&r, &ret->delivered_ms));
	TRY(tuple_next_u64(&r, &ret->times));
	ret->consumer = r.rest;
	return STATUS_OK;
}
