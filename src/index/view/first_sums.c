/*
 * Summing up a group whose rows are all there for the first time: map by map and level by level,
 * each in one ordered pass over the level below, in steps.
 */
#include "index/view/build.h"
#include "index/view/keys.h"
#include "index/view/sums.h"

struct summing {
	const struct view_build *build;
	struct arena *arena;
	struct view_step *step;

	struct kv_tx *tx;
	struct catalog_db *db;
	struct view_record record;
	struct index_work w;
	const struct view_step_size *size;
	size_t taken; /* rows and sums of this step */
};

/* The scan over the level below, from the place of the sum that is to be made next. */
static enum status
below_open(struct summing *m, struct kv_scan *scan, size_t *ret_prefix_len)
{
	const struct kv_range_options options = { .ahead = true, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;

	view_key_level(&lo, m->db, m->record.group.number, m->record.work_map,
		       m->record.work_level - 1);
	TRY(catalog_key_status(&lo));
	*ret_prefix_len = lo.len;
	TRY(view_prefix_end(buf_str(&lo), &hi));
	buf_append_str(&lo, m->record.work_place);
	TRY(buf_status(&lo));
	return kv_scan_init(scan, m->tx, buf_str(&lo), buf_str(&hi), &options);
}

/* Makes sums until the level ends or the step has had enough, which is in front of a sum. */
static enum status
level_make(struct summing *m, struct sums_batch *b, struct kv_scan *scan, size_t prefix_len,
	   bool *ret_end)
{
	struct view_record *r = &m->record;
	struct kv_pair pair;
	enum status status;

	*ret_end = false;
	TRY(sums_batch_job(b, r->work_place));
	while ((status = kv_scan_next(scan, &pair)) == STATUS_OK) {
		struct str place = str_skip(pair.key, prefix_len);

		if (!str_eq(place, r->work_place) &&
		    view_place_level(r->group.seed, place) >= b->level) {
			TRY(arena_copy(m->arena, place, &r->work_place));
			if (r->group.tops[r->work_map] < b->level)
				r->group.tops[r->work_map] = b->level;
			if (m->taken >= m->size->most ||
			    kv_tx_stats(m->tx).size_bytes > VIEW_STEP_BYTES)
				return STATUS_OK;
			TRY(sums_batch_job(b, place));
		}
		TRY(sums_batch_child(b, place, pair.value));
		m->taken++;
		if (b->level == 1)
			r->done++;
	}
	*ret_end = status == STATUS_NOT_FOUND;
	return *ret_end ? STATUS_OK : status;
}

static enum status
level_run(struct summing *m, bool *ret_end)
{
	struct view_record *r = &m->record;
	const struct view_map *map = &m->build->design->maps[r->work_map];
	const struct sums s = sums_of(m->tx, m->db, &r->group, r->work_map, &m->w);
	const struct reduce_run run = view_build_reduces(m->build, &m->w, &m->step->error, s.err);
	struct sums_batch batch;
	struct kv_scan scan;
	size_t prefix_len;
	enum status status;

	TRY(sums_batch_begin(&batch, &s, map, &run, r->work_level));
	TRY(below_open(m, &scan, &prefix_len));
	status = level_make(m, &batch, &scan, prefix_len, ret_end);
	kv_scan_release(&scan);
	if (status == STATUS_OK)
		status = sums_batch_flush(&batch);
	sums_batch_release(&batch);
	return status;
}

static enum status
sums_all(struct summing *m)
{
	struct view_record *r = &m->record;
	bool end = true;

	while (m->taken < m->size->most && r->work_map < r->group.map_count) {
		TRY(level_run(m, &end));
		/* The level above is made of what functions have yet to answer. */
		if (!end || m->build->asked->count)
			break;
		r->work_place = STR("");
		if (++r->work_level > VIEW_LEVELS) {
			r->work_level = 1;
			r->work_map++;
		}
	}
	if (r->work_map == r->group.map_count) {
		r->group.phase = VIEW_PHASE_READY;
		r->done = r->total = 0;
	}
	return STATUS_OK;
}

static enum status
sums_body(struct kv_tx *tx, void *arg)
{
	struct summing *m = arg;
	enum status status;

	m->tx = tx;
	TRY(view_build_open_db(m->build, tx, &m->db, kv_tx_err(tx)));
	TRY(catalog_db_check_writable(m->db, kv_tx_err(tx)));
	status = view_build_read(tx, m->db, m->build->design, KV_READ, m->arena, &m->record,
				 kv_tx_err(tx));
	if (status == STATUS_NOT_FOUND)
		return STATUS_BUSY;
	TRY(status);
	if (m->record.group.phase != VIEW_PHASE_SUMS)
		return STATUS_BUSY;
	TRY(sums_all(m));
	if (m->build->asked->count)
		return STATUS_BUSY;
	return view_build_write(tx, m->db, &m->record);
}

enum status
view_step_sums(const struct view_build *build, struct view_step_size *size, struct arena *arena,
	       struct view_step *ret, struct err *err)
{
	struct summing m = {
		.build = build, .arena = arena, .step = ret, .w = { .arena = arena }, .size = size
	};
	enum status status;

	*ret = (struct view_step){ 0 };
	status = view_step_run(build->store, sums_body, &m, size, err);
	ret->covers = m.record.group.covers;
	ret->phase = m.record.group.phase;
	ret->done = m.record.done;
	ret->total = m.record.total;
	catalog_db_unref(m.db);
	return status;
}
