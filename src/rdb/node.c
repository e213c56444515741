/* The container that a value is read from. */
#include "rdb/value_int.h"

enum status
rdb_node_open(struct rdb_value *v, enum rdb_pack_kind kind, struct str node)
{
	if (rdb_pack_begin(kind, node, &v->pack) != STATUS_OK)
		return rdb_invalid(v->in, "a container is damaged");
	return STATUS_OK;
}

enum status
rdb_node_number(struct rdb_value *v, int64_t *ret)
{
	struct rdb_entry entry;

	if (rdb_pack_next(&v->pack, &entry) != STATUS_OK || !entry.is_number)
		return rdb_invalid(v->in, "a container lacks a number");
	*ret = entry.number;
	return STATUS_OK;
}

enum status
rdb_node_next_text(struct rdb_value *v, struct str *ret)
{
	struct rdb_entry entry;
	enum status status = rdb_pack_next(&v->pack, &entry);

	if (status == STATUS_INVALID)
		return rdb_invalid(v->in, "a container is damaged");
	TRY(status);
	*ret = entry.text;
	if (!entry.is_number)
		return STATUS_OK;
	*ret = arena_printf(v->in->arena, "%lld", (long long)entry.number);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

enum status
rdb_node_text(struct rdb_value *v, struct str *ret)
{
	enum status status = rdb_node_next_text(v, ret);

	return status == STATUS_NOT_FOUND ? rdb_invalid(v->in, "a container lacks an entry")
					  : status;
}
