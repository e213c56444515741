/* What sweeps do with a database, for probes (probe.h) of rows and of tables. */
#ifndef FROND_TESTS_MODEL_TIMED_SWEEP_PROBE_H
#define FROND_TESTS_MODEL_TIMED_SWEEP_PROBE_H

#include "model/timed/timed_int.h"
#include "probe.h"

/* An entry, if it is due; says what has become of it. */
static inline enum status
sweep_due(struct probe *p, struct timed *t, struct str entry)
{
	const struct timed_kind *kind = timed_kind_of(t->db);
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct tuple_reader r = tuple_reader(str_skip(entry, t->db->prefix.len));
	struct timed_due_swept swept = { 0 };
	struct timed_due due;
	uint64_t space, shard;

	TRY(tuple_next_u64(&r, &space));
	TRY(tuple_next_u64(&r, &shard));
	TRY(tuple_next_u64(&r, &due.ms));
	if (due.ms > t->now_us / TIMED_US_PER_MS)
		return STATUS_OK;
	due.tail = r.rest;
	timed_key_space(&key, t->db, TIMED_SPACE_ROWS);
	buf_append_str(&key, r.rest);
	TRY(catalog_key_status(&key));
	due.key = buf_str(&key);
	TRY(kind->due_sweep(t, &due, kind->due_ask ? kind->due_ask(t, &due) : NULL, p->arena,
			    &swept));
	buf_printf(&p->said, "%llu %d %d %d|", (unsigned long long)due.ms, swept.done, swept.stays,
		   swept.more);
	return STATUS_OK;
}

/* All entries that are due. */
static inline enum status
sweep_dues(struct probe *p, struct timed *t)
{
	const struct kv_range_options all = { .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct kv_range range;

	TRY(timed_now(t));
	timed_key_space(&begin, t->db, TIMED_SPACE_EXPIRY);
	timed_key_space(&end, t->db, TIMED_SPACE_EXPIRY + 1);
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	f = kv_get_range(t->tx, buf_str(&begin), buf_str(&end), &all);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	for (size_t i = 0; i < range.count; i++)
		TRY(sweep_due(p, t, range.pairs[i].key));
	return STATUS_OK;
}

/* What was left for later, before a sweep looks at entries. */
static inline enum status
sweep_left(struct probe *p, struct timed *t)
{
	uint64_t done = 0;
	bool more = false;

	TRY(timed_now(t));
	TRY(timed_kind_of(t->db)->tend(t, &done, &more));
	buf_printf(&p->said, "%llu %d", (unsigned long long)done, more);
	return STATUS_OK;
}

#endif
