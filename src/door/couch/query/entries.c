#include "door/couch/query/entries.h"

#include "door/couch/wire/error.h"
#include "index/plan/walk.h"
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

/* Names of partitions that are too long for a key may look alike there. */
static bool
entry_is_of_partition(const struct entries *e, const struct index_entry *entry)
{
	struct str partition;

	return !e->partition.ptr || !entry->cut ||
	       (rev_partition_of(entry->id, &partition) && str_eq(partition, e->partition));
}

enum status
entries_read(struct couch_req *r, struct kv_tx *tx, const struct entries *e, size_t *ret_count)
{
	struct index_scan scans[ENTRIES_SCANS];
	struct key_walk_terms terms = {
		.tx = tx,
		.db = r->db,
		.ranges = e->read->keys.items,
		.count = e->read->keys.count,
		.options = { .reverse = e->reverse,
			     .mode = KV_SNAPSHOT,
			     .after = e->after.len ? e->after : (struct str){ NULL, 0 },
			     /* Entries of other partitions do not count. */
			     .limit = e->partition.ptr ? 0 : e->most },
		.scans = scans,
		.together = ENTRIES_SCANS,
	};
	struct index_work w = { .arena = r->arena };
	struct index_entry entry;
	struct key_walk walk;
	enum status status;

	*ret_count = 0;
	TRY(entries_find_def(r, e, &terms.def));
	status = key_walk_init(&walk, &terms);
	while (status == STATUS_OK && *ret_count < e->most) {
		status = key_walk_next(&walk, &w, &entry);
		if (status != STATUS_OK || !entry_is_of_partition(e, &entry))
			continue;
		++*ret_count;
		status = e->take(e->arg, terms.def, &entry);
	}
	key_walk_release(&walk);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}
