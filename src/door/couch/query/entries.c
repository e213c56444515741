#include "door/couch/query/entries.h"

#include "catalog/keys.h"
#include "door/couch/wire/error.h"
#include "model/revisioned/partition.h"

enum {
	ENTRIES_SCANS = 16, /* ranges that are asked for their first entries together */
};

/* The index, as the transaction's database has it. */
static enum status
entries_find_def(struct couch_req *r, const struct entries *e, const struct index_def **ret)
{
	*ret = r->db->number == e->plan->db_number ? index_find(r->db, e->read->number) : NULL;
	if (*ret && index_is_readable(*ret))
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_NO_USABLE_INDEX,
			      "The index was dropped while it was read.");
}

/* The range that is the `at`th one in the direction of reading. */
static const struct index_range *
entries_range(const struct entries *e, size_t at)
{
	const struct key_ranges *keys = &e->read->keys;

	return &keys->items[e->reverse ? keys->count - 1 - at : at];
}

/* How many ranges lie wholly in front of the place to go on from. */
static enum status
entries_count_passed(struct couch_req *r, const struct entries *e, size_t *ret)
{
	AUTO(buf_release) struct buf place = CATALOG_KEY_INIT;
	size_t lo = 0, hi = e->read->keys.count;

	*ret = 0;
	if (!e->after.len)
		return STATUS_OK;
	index_key_entries(&place, r->db, e->read->number);
	buf_append_str(&place, e->after);
	TRY(catalog_key_status(&place));
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct index_range *range = entries_range(e, mid);
		bool passed = e->reverse ? str_cmp(buf_str(&place), range->begin) <= 0
					 : str_cmp(buf_str(&place), range->end) >= 0;

		if (passed)
			lo = mid + 1;
		else
			hi = mid;
	}
	*ret = lo;
	return STATUS_OK;
}

/* Names of partitions that are too long for a key may look alike there. */
static bool
entry_is_of_partition(const struct entries *e, const struct index_entry *entry)
{
	struct str partition;

	return !e->partition.ptr || !entry->cut ||
	       (rev_partition_of(entry->id, &partition) && str_eq(partition, e->partition));
}

static enum status
entries_read_scan(const struct entries *e, const struct index_def *def, struct index_scan *scan,
		  struct index_work *w, size_t *count)
{
	while (*count < e->most) {
		struct index_entry entry;
		enum status status = index_scan_next(scan, w, &entry);

		if (status == STATUS_NOT_FOUND)
			return STATUS_OK;
		TRY(status);
		if (!entry_is_of_partition(e, &entry))
			continue;
		++*count;
		TRY(e->take(e->arg, def, &entry));
	}
	return STATUS_OK;
}

/* Reads up to ENTRIES_SCANS ranges from the `at`th on. */
static enum status
entries_read_some(struct couch_req *r, struct kv_tx *tx, const struct entries *e,
		  const struct index_def *def, size_t at, size_t *count)
{
	const struct index_scan_options options = {
		.reverse = e->reverse,
		.mode = KV_SNAPSHOT,
		.after = e->after.len ? e->after : (struct str){ NULL, 0 },
		/* Entries of other partitions do not count. */
		.limit = e->partition.ptr ? 0 : e->most - *count,
	};
	struct index_work w = { .arena = r->arena };
	struct index_scan scans[ENTRIES_SCANS];
	enum status status = STATUS_OK;
	size_t open = 0;

	while (open < ENTRIES_SCANS && at + open < e->read->keys.count && status == STATUS_OK) {
		status = index_scan_init(&scans[open], tx, r->db, def, entries_range(e, at + open),
					 &options);
		open += status == STATUS_OK;
	}
	for (size_t i = 0; i < open; i++) {
		if (status == STATUS_OK)
			status = entries_read_scan(e, def, &scans[i], &w, count);
		index_scan_release(&scans[i]);
	}
	return status;
}

enum status
entries_read(struct couch_req *r, struct kv_tx *tx, const struct entries *e, size_t *ret_count)
{
	const struct index_def *def;
	size_t at;

	*ret_count = 0;
	TRY(entries_find_def(r, e, &def));
	TRY(entries_count_passed(r, e, &at));
	for (; at < e->read->keys.count && *ret_count < e->most; at += ENTRIES_SCANS)
		TRY(entries_read_some(r, tx, e, def, at, ret_count));
	return STATUS_OK;
}
