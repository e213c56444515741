#include <assert.h>

#include "catalog/lease.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"

enum status
lease_record_key(enum lease_space space, struct str name, struct buf *ret)
{
	buf_clear(ret);
	tuple_put_u64(ret, KV_ROOT);
	tuple_put_u64(ret, KV_ROOT_REPLICATOR);
	tuple_put_u64(ret, space);
	if (name.ptr)
		tuple_put_bytes(ret, name);
	return buf_status(ret);
}

enum status
lease_record_key_name(struct str key, size_t prefix_bytes, struct buf *scratch, struct str *ret)
{
	struct tuple_reader r;

	assert(key.len >= prefix_bytes);
	r = tuple_reader(str_skip(key, prefix_bytes));
	buf_clear(scratch);
	return tuple_next_bytes(&r, scratch, ret);
}

void
lease_record_put_beat(uint64_t count, uint64_t ms, struct buf *value)
{
	tuple_put_u64(value, count);
	if (ms != LEASE_MS)
		tuple_put_u64(value, ms);
}

uint64_t
lease_record_beat_ms(struct str value)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t count, ms;

	if (tuple_next_u64(&r, &count) != STATUS_OK || tuple_next_u64(&r, &ms) != STATUS_OK ||
	    ms > LEASE_MS)
		return LEASE_MS;
	return ms;
}

void
lease_record_put(const struct lease_record *lease, size_t texts, struct buf *value)
{
	assert(lease->process.len == LEASE_PROCESS_BYTES && texts <= LEASE_TEXTS_MAX);
	tuple_put_bytes(value, lease->process);
	for (size_t i = 0; i < texts; i++)
		tuple_put_bytes(value, lease->texts[i]);
}

static enum status
lease_record_parse_bytes(struct tuple_reader *r, struct arena *arena, struct buf *scratch,
			 struct str *ret)
{
	struct str text;

	buf_clear(scratch);
	TRY(tuple_next_bytes(r, scratch, &text));
	*ret = arena_dup(arena, text);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

enum status
lease_record_parse(struct str value, size_t texts, struct arena *arena, struct lease_record *ret,
		   uint64_t *ret_format)
{
	struct buf AUTO(buf_release) scratch = BUF_INIT(value.len);
	struct tuple_reader r = tuple_reader(value);
	struct tuple_reader first = r;

	assert(texts <= LEASE_TEXTS_MAX);
	if (tuple_next_u64(&first, ret_format) == STATUS_OK)
		return STATUS_NEWER;
	*ret_format = LEASE_FORMAT;
	TRY(lease_record_parse_bytes(&r, arena, &scratch, &ret->process));
	for (size_t i = 0; i < texts; i++)
		TRY(lease_record_parse_bytes(&r, arena, &scratch, &ret->texts[i]));
	return ret->process.len == LEASE_PROCESS_BYTES ? STATUS_OK : STATUS_CORRUPT;
}
