/*
 * Checks a partitioned database's ids, and the counters of its partitions in both directions. The
 * keys of PARTITIONS have the partition with its colon, so they come in the order of the documents:
 * both are gone through side by side, and memory does not grow with the number of partitions.
 */
#include "model/revisioned/verify_int.h"

enum status
verify_partitions_open(struct catalog_verify *v, struct verify_partitions *p)
{
	*p = (struct verify_partitions){ .prefix = CATALOG_KEY_INIT, .counters.done = true };
	if (!rev_db_is_partitioned(v->db))
		return STATUS_OK;
	p->active = true;
	return catalog_verify_cursor_open(v, &p->counters, REV_SUBSPACE_PARTITIONS);
}

void
verify_partitions_close(struct verify_partitions *p)
{
	catalog_verify_cursor_close(&p->counters);
	buf_release(&p->prefix);
}

/* ---- The counters ---- */

/* A pair of PARTITIONS. */
struct partition_pair {
	struct str prefix; /* the partition with its colon as it is encoded, without the end */
	uint64_t counter;
	uint64_t value;
};

/* If the pair under the cursor is no counter: a finding, and false. */
static bool
partition_pair_parse(struct catalog_verify *v, const struct catalog_verify_cursor *c,
		     struct partition_pair *ret)
{
	struct tuple_reader r = tuple_reader(c->tail);
	struct str value = c->pair.value;

	if (!catalog_verify_text_next(&r, TUPLE_STRING, &ret->prefix) || ret->prefix.len < 4 ||
	    ret->prefix.ptr[ret->prefix.len - 2] != ':' ||
	    tuple_next_u64(&r, &ret->counter) != STATUS_OK || r.rest.len ||
	    ret->counter >= REV_PARTITION_COUNTERS) {
		catalog_verify_found(v, CATALOG_FINDING_KEY, c->pair.key,
				     "not a counter of a partition");
		return false;
	}
	ret->prefix.len--; /* the NUL at the end */
	if (value.len != CATALOG_COUNTER_BYTES) {
		catalog_verify_found(v, CATALOG_FINDING_VALUE, c->pair.key, "not a counter");
		return false;
	}
	ret->value = 0;
	for (size_t i = 0; i < value.len; i++)
		ret->value |= (uint64_t)(uint8_t)value.ptr[i] << (8 * i);
	return true;
}

static void
partition_compare(struct catalog_verify *v, struct str key, uint64_t said, uint64_t counted)
{
	if (said != counted)
		catalog_verify_found(v, REV_FINDING_COUNTER, key,
				     "the counter says %lld, and there are %llu", (long long)said,
				     (unsigned long long)counted);
	else if (said == 0)
		catalog_verify_found(v, REV_FINDING_COUNTER, key,
				     "the counter is 0, and should have been cleared");
}

/* Reports the counters of this partition that are not there, though they should be. */
static enum status
partition_report_absent(struct catalog_verify *v, const struct verify_partitions *p,
			const bool seen[REV_PARTITION_COUNTERS])
{
	for (int c = 0; c < REV_PARTITION_COUNTERS; c++) {
		if (seen[c] || p->sums[c] == 0)
			continue;
		rev_key_space(&v->key, v->db, REV_SUBSPACE_PARTITIONS);
		buf_append_buf(&v->key, &p->prefix);
		buf_append_byte(&v->key, '\0');
		tuple_put_u64(&v->key, (uint64_t)c);
		TRY(buf_status(&v->key));
		partition_compare(v, buf_str(&v->key), 0, p->sums[c]);
	}
	return STATUS_OK;
}

/* Compares the counters of the partition whose documents have all been read, and those before. */
static enum status
partition_end(struct catalog_verify *v, struct verify_partitions *p)
{
	bool seen[REV_PARTITION_COUNTERS] = { false };
	struct partition_pair pair;

	while (!p->counters.done) {
		bool good = partition_pair_parse(v, &p->counters, &pair);
		int order = good ? str_cmp(pair.prefix, buf_str(&p->prefix)) : -1;

		if (order > 0)
			break;
		if (good && order < 0)
			partition_compare(v, p->counters.pair.key, pair.value, 0);
		if (order == 0) {
			seen[pair.counter] = true;
			partition_compare(v, p->counters.pair.key, pair.value,
					  p->sums[pair.counter]);
		}
		TRY(catalog_verify_cursor_next(v, &p->counters));
	}
	return partition_report_absent(v, p, seen);
}

/* ---- Documents, in the order of their ids ---- */

enum status
verify_partitions_document(struct catalog_verify *v, struct verify_partitions *p, struct str id,
			   struct str key)
{
	AUTO(buf_release) struct buf plain = BUF_INIT(KV_LIMIT_KEY_BYTES);
	struct tuple_reader r = tuple_reader(id);
	const char *colon, *fault;
	struct str decoded, prefix;

	if (!p->active)
		return STATUS_OK;
	TRY(tuple_next_str(&r, &plain, &decoded));
	fault = rev_partition_id_fault(decoded);
	/* A range of documents is not a partition. */
	p->counts = !fault && !rev_id_has_no_partition(decoded) && !v->held;
	if (fault)
		catalog_verify_found(v, REV_FINDING_PARTITION, key,
				     "no document of a partitioned database can have this id: %s",
				     fault);
	if (!p->counts)
		return STATUS_OK;
	colon = memchr(id.ptr, ':', id.len);
	if (!colon)
		return STATUS_CORRUPT; /* cannot happen: a colon is not escaped */
	prefix = str_of(id.ptr, (size_t)(colon - id.ptr) + 1);
	if (str_eq(prefix, buf_str(&p->prefix)))
		return STATUS_OK;
	if (p->prefix.len)
		TRY(partition_end(v, p));
	memset(p->sums, 0, sizeof(p->sums));
	buf_clear(&p->prefix);
	buf_append_str(&p->prefix, prefix);
	return buf_status(&p->prefix);
}

void
verify_partitions_deleted(struct verify_partitions *p)
{
	if (p->active && p->counts)
		p->sums[REV_PARTITION_DELETED]++;
}

void
verify_partitions_head(struct catalog_verify *v, struct verify_partitions *p, struct str key,
		       const struct rev_sizes *said, bool has_sizes, const struct rev_sizes *found)
{
	if (has_sizes != p->active)
		catalog_verify_found(v, REV_FINDING_PARTITION, key,
				     p->active ? "the branch does not know the sizes of its head"
					       : "the branch has sizes, in a database without "
						 "partitions");
	else if (has_sizes && (said->external != found->external || said->active != found->active))
		catalog_verify_found(
			v, REV_FINDING_PARTITION, key,
			"the branch says that its head takes %llu and %llu bytes, and "
			"it takes %llu and %llu",
			(unsigned long long)said->external, (unsigned long long)said->active,
			(unsigned long long)found->external, (unsigned long long)found->active);
	if (!p->active)
		return;
	p->all.external += said->external;
	p->all.active += said->active;
	if (!p->counts)
		return;
	p->sums[REV_PARTITION_EXTERNAL] += said->external;
	p->sums[REV_PARTITION_ACTIVE] += said->active;
}

enum status
verify_partitions_end(struct catalog_verify *v, struct verify_partitions *p)
{
	if (!p->active)
		return STATUS_OK;
	if (p->prefix.len)
		TRY(partition_end(v, p));
	/* Those that are left are of partitions without documents. */
	memset(p->sums, 0, sizeof(p->sums));
	buf_clear(&p->prefix);
	buf_append_byte(&p->prefix, CATALOG_KEY_LAST);
	TRY(buf_status(&p->prefix));
	TRY(partition_end(v, p));
	rev_verify_of(v)->sizes = p->all;
	return STATUS_OK;
}
