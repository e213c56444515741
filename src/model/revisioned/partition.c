/* Partitions: the rules of their names, what writers count of them, and summing one up. */
#include <stdlib.h>

#include "base/utf8.h"
#include "model/revisioned/partition_int.h"

static const char id_form[] = "Doc id must be of form partition:id";

bool
rev_partition_of(struct str id, struct str *ret)
{
	const char *colon = id.len ? memchr(id.ptr, ':', id.len) : NULL;

	if (!colon)
		return false;
	*ret = str_of(id.ptr, (size_t)(colon - id.ptr));
	return true;
}

bool
rev_id_has_no_partition(struct str id)
{
	return str_starts_with(id, STR("_design/")) || str_starts_with(id, STR("_local/"));
}

/* What the rest of an id, behind the partition, must not be, as if it were an id of its own. */
static const char *
partition_rest_fault(struct str rest)
{
	if (rest.len == 0)
		return "Document id must not be empty";
	if (str_eq(rest, STR("_design/")))
		return "Illegal document id `_design/`";
	if (str_eq(rest, STR("_local/")))
		return "Illegal document id `_local/`";
	if (rest.ptr[0] == '_' && !rev_id_has_no_partition(rest))
		return "Only reserved document ids may start with underscore.";
	return NULL;
}

const char *
rev_partition_id_fault(struct str id)
{
	struct str partition;
	const char *fault;

	if (rev_id_has_no_partition(id))
		return NULL;
	if (!rev_partition_of(id, &partition))
		return id_form;
	fault = rev_partition_name_fault(partition);
	return fault ? fault : partition_rest_fault(str_skip(id, partition.len + 1));
}

const char *
rev_partition_name_fault(struct str partition)
{
	struct str before;

	if (partition.len == 0)
		return "Partition must not be empty";
	if (partition.ptr[0] == '_')
		return "Partition must not start with an underscore";
	if (utf8_valid_prefix(partition) != partition.len)
		return "Partition must be valid UTF-8";
	return rev_partition_of(partition, &before) ? "Partition must not contain a colon" : NULL;
}

enum status
rev_partition_range(struct str partition, struct arena *arena, struct name_range *ret)
{
	/* ';' follows ':', so it is greater than every id of the partition, and no other lies
	 * between. */
	struct str begin = arena_printf(arena, "%.*s:", STR_ARG(partition));
	struct str end = arena_printf(arena, "%.*s;", STR_ARG(partition));

	if (!begin.ptr || !end.ptr)
		return STATUS_LIMIT;
	*ret = (struct name_range){
		.has_begin = true,
		.begin = begin,
		.has_end = true,
		.exclusive_end = true,
		.end = end,
	};
	return STATUS_OK;
}

/* ---- Counting ---- */

void
rev_key_partition(struct buf *key, const struct catalog_db *db, struct str partition,
		  enum rev_partition_counter counter)
{
	rev_key_named(key, db, REV_SUBSPACE_PARTITIONS, partition);
	/* The colon comes in front of the NUL that ends the string. */
	if (buf_reserve(key, 1)) {
		key->ptr[key->len - 1] = ':';
		buf_append_byte(key, '\0');
	}
	tuple_put_u64(key, counter);
}

enum status
rev_partition_count(struct rev_writer *w, struct str id, int64_t deleted,
		    const struct rev_sizes *sizes, int sign)
{
	struct rev_partition_delta *d;
	struct str partition = STR("");

	if (!rev_db_is_partitioned(w->db))
		return STATUS_OK;
	/* Design documents count for the database alone. */
	if (!rev_id_has_no_partition(id))
		(void)rev_partition_of(id, &partition);
	d = w->partitions_count ? &w->partitions[w->partitions_count - 1] : NULL;
	if (!d || !str_eq(d->partition, partition)) {
		TRY(catalog_array_grow(w->arena, (void **)&w->partitions, sizeof(*w->partitions),
				       w->partitions_count, &w->partitions_cap));
		d = &w->partitions[w->partitions_count++];
		*d = (struct rev_partition_delta){ .partition = partition };
	}
	d->by[REV_PARTITION_DELETED] += deleted;
	if (sizes) {
		d->by[REV_PARTITION_EXTERNAL] += sign * (int64_t)sizes->external;
		d->by[REV_PARTITION_ACTIVE] += sign * (int64_t)sizes->active;
	}
	return STATUS_OK;
}

static int
partition_deltas_compare(const void *a, const void *b)
{
	const struct rev_partition_delta *x = a, *y = b;

	return str_cmp(x->partition, y->partition);
}

/* Adds to the counter under `key`, and clears it if that has made it 0. */
static enum status
partition_counter_add(struct kv_tx *tx, const struct buf *key, int64_t change)
{
	static const char zero[CATALOG_COUNTER_BYTES];

	if (change == 0)
		return STATUS_OK;
	TRY(catalog_counter_add(tx, key, change));
	if (change > 0)
		return STATUS_OK;
	return kv_atomic(tx, KV_COMPARE_AND_CLEAR, buf_str(key), str_of(zero, sizeof(zero)));
}

enum status
rev_partitions_settle(struct rev_writer *w)
{
	struct rev_partition_delta all = { .partition = STR("") };
	size_t count = w->partitions_count;

	if (count == 0)
		return STATUS_OK;
	qsort(w->partitions, count, sizeof(*w->partitions), partition_deltas_compare);
	for (size_t i = 0; i < count;) {
		struct rev_partition_delta sum = w->partitions[i];

		for (i++; i < count && str_eq(sum.partition, w->partitions[i].partition); i++)
			for (int c = 0; c < REV_PARTITION_COUNTERS; c++)
				sum.by[c] += w->partitions[i].by[c];
		for (int c = 0; c < REV_PARTITION_COUNTERS; c++) {
			all.by[c] += sum.by[c];
			if (sum.partition.len == 0)
				continue;
			rev_key_partition(&w->key, w->db, sum.partition,
					  (enum rev_partition_counter)c);
			TRY(partition_counter_add(w->tx, &w->key, sum.by[c]));
		}
	}
	TRY(rev_stat_add(w->tx, w->db, REV_STAT_EXTERNAL, all.by[REV_PARTITION_EXTERNAL], &w->key));
	return rev_stat_add(w->tx, w->db, REV_STAT_ACTIVE, all.by[REV_PARTITION_ACTIVE], &w->key);
}

/* ---- Reading ---- */

enum status
rev_partition_ask(struct kv_tx *tx, const struct catalog_db *db, struct str partition,
		  enum rev_partition_counter counter, struct buf *key, struct kv_future **ret)
{
	rev_key_partition(key, db, partition, counter);
	TRY(catalog_key_status(key));
	*ret = kv_get(tx, buf_str(key), KV_SNAPSHOT);
	return STATUS_OK;
}

/* Counts the documents by the two ends of their range. */
static enum status
partition_count_docs(struct kv_tx *tx, const struct catalog_db *db, struct str partition,
		     uint64_t *ret)
{
	AUTO(buf_release) struct buf id = CATALOG_KEY_INIT;
	struct name_range range = { .has_begin = true };
	uint64_t before_begin, before_end;

	buf_append_str(&id, partition);
	buf_append_byte(&id, ':');
	TRY(catalog_key_status(&id));
	range.begin = buf_str(&id);
	TRY(rev_all_docs_offset(tx, db, &range, &before_begin));
	id.ptr[id.len - 1] = ';';
	TRY(rev_all_docs_offset(tx, db, &range, &before_end));
	*ret = before_end - before_begin;
	return STATUS_OK;
}

enum status
rev_partition_info(struct kv_tx *tx, const struct catalog_db *db, struct str partition,
		   struct rev_partition_info *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *futures[REV_PARTITION_COUNTERS];
	struct rev_partition_info info = { 0 };

	/* No document can be in a partition whose name is longer than an id. */
	if (partition.len >= REV_DOC_ID_BYTES) {
		*ret = info;
		return STATUS_OK;
	}
	for (int c = 0; c < REV_PARTITION_COUNTERS; c++)
		TRY(rev_partition_ask(tx, db, partition, (enum rev_partition_counter)c, &key,
				      &futures[c]));
	TRY(catalog_counter_wait(futures[REV_PARTITION_DELETED], &info.doc_del_count));
	TRY(catalog_counter_wait(futures[REV_PARTITION_EXTERNAL], &info.sizes.external));
	TRY(catalog_counter_wait(futures[REV_PARTITION_ACTIVE], &info.sizes.active));
	TRY(partition_count_docs(tx, db, partition, &info.doc_count));
	*ret = info;
	return STATUS_OK;
}

enum status
rev_partitions_sizes(struct kv_tx *tx, const struct catalog_db *db, struct rev_sizes *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *external, *active;

	rev_key_named(&key, db, REV_SUBSPACE_STATS, REV_STAT_EXTERNAL);
	TRY(catalog_key_status(&key));
	external = kv_get(tx, buf_str(&key), KV_SNAPSHOT);
	rev_key_named(&key, db, REV_SUBSPACE_STATS, REV_STAT_ACTIVE);
	TRY(catalog_key_status(&key));
	active = kv_get(tx, buf_str(&key), KV_SNAPSHOT);
	TRY(catalog_counter_wait(external, &ret->external));
	return catalog_counter_wait(active, &ret->active);
}
