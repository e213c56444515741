#include "door/couch/query/id_range.h"

#include "model/revisioned/partition.h"

static void
range_raise_low(struct id_range *r, struct str id, bool exclusive)
{
	int c = r->has_low ? str_cmp(id, r->low) : 1;

	if (c < 0)
		return;
	r->low_exclusive = exclusive || (c == 0 && r->low_exclusive);
	r->low = id;
	r->has_low = true;
}

static void
range_lower_high(struct id_range *r, struct str id, bool exclusive)
{
	int c = r->has_high ? str_cmp(id, r->high) : -1;

	if (c > 0)
		return;
	r->high_exclusive = exclusive || (c == 0 && r->high_exclusive);
	r->high = id;
	r->has_high = true;
}

static void
range_settle(struct id_range *r)
{
	int c = r->has_low && r->has_high ? str_cmp(r->low, r->high) : -1;

	r->empty = r->empty || c > 0 || (c == 0 && (r->low_exclusive || r->high_exclusive));
}

/* Ids that begin with `prefix`. */
static enum status
id_range_of_prefix(struct str prefix, struct arena *arena, struct id_range *range)
{
	/* Ids are UTF-8, in which there is no such byte. */
	char *bytes = arena_bytes(arena, prefix.len + 1);

	if (!bytes)
		return STATUS_LIMIT;
	if (prefix.len)
		memcpy(bytes, prefix.ptr, prefix.len);
	bytes[prefix.len] = (char)0xff;
	range_raise_low(range, prefix, false);
	range_lower_high(range, str_of(bytes, prefix.len + 1), true);
	range_settle(range);
	return STATUS_OK;
}

enum status
id_range_of_partition(struct str partition, struct arena *arena, struct id_range *range)
{
	struct name_range names;

	TRY(rev_partition_range(partition, arena, &names));
	range_raise_low(range, names.begin, names.exclusive_begin);
	range_lower_high(range, names.end, names.exclusive_end);
	range_settle(range);
	return STATUS_OK;
}

/* Only strings narrow the range: what is said of other values is left to the selector. */
static enum status
range_narrow_by(const struct normal_node *n, struct arena *arena, struct id_range *range)
{
	struct str id = n->arg.string;

	if (n->negated || n->arg.kind != JSON_STRING)
		return STATUS_OK;
	switch (n->op) {
	case NORMAL_EQ:
		range_raise_low(range, id, false);
		range_lower_high(range, id, false);
		break;
	case NORMAL_GT:
	case NORMAL_GTE:
		range_raise_low(range, id, n->op == NORMAL_GT);
		break;
	case NORMAL_LT:
	case NORMAL_LTE:
		range_lower_high(range, id, n->op == NORMAL_LT);
		break;
	case NORMAL_BEGINS_WITH:
		return id_range_of_prefix(id, arena, range);
	case NORMAL_NE:
	case NORMAL_IN:
	case NORMAL_NIN:
	case NORMAL_EXISTS:
	case NORMAL_TYPE:
	case NORMAL_SIZE:
	case NORMAL_MOD:
	case NORMAL_REGEX:
	case NORMAL_ALL:
	case NORMAL_ELEM_MATCH:
	case NORMAL_ALL_MATCH:
	case NORMAL_KEY_MAP_MATCH:
		break;
	}
	range_settle(range);
	return STATUS_OK;
}

enum status
id_range_narrow(const struct normal_node *n, struct arena *arena, struct id_range *range)
{
	if (n->kind == NORMAL_FIELD && normal_path_is(&n->path, "_id"))
		return range_narrow_by(n, arena, range);
	if (n->kind != NORMAL_AND)
		return STATUS_OK;
	for (const struct normal_node *i = n->first; i; i = i->next)
		TRY(id_range_narrow(i, arena, range));
	return STATUS_OK;
}

struct name_range
id_range_names(const struct id_range *range, bool descending)
{
	const struct name_range names = {
		.begin = range->low,
		.has_begin = range->has_low,
		.exclusive_begin = range->low_exclusive,
		.end = range->high,
		.has_end = range->has_high,
		.exclusive_end = range->high_exclusive,
	};

	return name_range_turn(names, descending);
}

struct name_range
name_range_turn(struct name_range range, bool turn)
{
	if (!turn)
		return range;
	return (struct name_range){
		.begin = range.end,
		.has_begin = range.has_end,
		.exclusive_begin = range.exclusive_end,
		.end = range.begin,
		.has_end = range.has_begin,
		.exclusive_end = range.exclusive_begin,
		.descending = !range.descending,
	};
}
