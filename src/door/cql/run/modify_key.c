/* The keys of the rows that INSERT, UPDATE and DELETE are about. */
#include "cql/murmur3.h"
#include "door/cql/run/modify.h"

enum {
	PARTITION_KEY_MOST_BYTES = 4 * 1024 * 1024,
};

enum status
modify_key_of(struct modify *m, const struct where_partition *part, const struct where_range *range,
	      struct table_key *ret)
{
	const struct schema_table *t = m->run->table;
	struct doc_scalar *parts = arena_alloc(m->run->r->arena, t->key_count * sizeof(*parts));
	size_t count = range ? range->from.count : 0;

	if (!parts)
		return STATUS_LIMIT;
	memcpy(parts, part->scalars, t->partition_count * sizeof(*parts));
	if (count)
		memcpy(parts + t->partition_count, range->from.parts, count * sizeof(*parts));
	for (; range && t->compact && count < t->key_count - t->partition_count; count++)
		TRY(value_to_key(m->run->q, t->columns[t->partition_count + count].type, STR(""),
				 &parts[t->partition_count + count]));
	*ret = (struct table_key){ .token = part->token,
				   .parts = parts,
				   .count = t->partition_count + count };
	return STATUS_OK;
}

static enum status
insert_key(struct modify *m, struct table_key *ret)
{
	struct run *run = m->run;
	const struct schema_table *t = run->table;
	size_t count = m->of_statics ? t->partition_count : t->key_count;
	struct doc_scalar *parts = arena_alloc(run->r->arena, t->key_count * sizeof(*parts));
	struct str *bytes = arena_alloc(run->r->arena, t->key_count * sizeof(*bytes));
	AUTO(buf_release) struct buf key = cql_buf(run->q, PARTITION_KEY_MOST_BYTES);
	enum status status;

	if (!parts || !bytes)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		bytes[i] = m->key_values[i].bytes;
		TRY(value_to_key(run->q, t->columns[i].type, bytes[i], &parts[i]));
	}
	*ret = (struct table_key){ .parts = parts, .count = count };
	status = cql_partition_token(&key, bytes, t->partition_count, &ret->token);
	if (status == STATUS_INVALID)
		return request_fail(run->r, CQL_CODE_INVALID,
				    "Key length is longer than maximum of 65535");
	TRY(status);
	if (t->partition_count == 1 && !bytes[0].len)
		return request_fail(run->r, CQL_CODE_INVALID, "Key may not be empty");
	return STATUS_OK;
}

enum status
modify_key(struct modify *m, struct table_key *ret)
{
	if (m->kind == CQL_INSERT)
		return insert_key(m, ret);
	return modify_key_of(m, &m->plan.partitions[0], m->of_statics ? NULL : &m->plan.ranges[0],
			     ret);
}
