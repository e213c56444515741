/* Keeping the sums over the rows of a map. */
#include "index/view/sums.h"

#include "loop/sort.h"

enum {
	SUMS_CHILDREN = 64, /* that are asked for at first: twice what a sum has on average */
};

/* ---- Computing sums ---- */

enum status
sums_batch_begin(struct sums_batch *b, const struct sums *s, const struct view_map *map,
		 const struct reduce_run *run, unsigned level)
{
	*b = (struct sums_batch){ .s = s, .map = map, .run = run, .level = level };
	b->jobs = arena_zalloc(s->w->arena, SUMS_JOBS * sizeof(*b->jobs));
	return b->jobs ? STATUS_OK : STATUS_LIMIT;
}

void
sums_batch_release(struct sums_batch *b)
{
	for (size_t i = 0; i < b->count; i++)
		for (size_t j = 0; j < b->map->reduce_count; j++)
			reduce_acc_release(&b->jobs[i].accs[j]);
	b->count = 0;
}

enum status
sums_batch_job(struct sums_batch *b, struct str place)
{
	struct sums_job *job;

	if (b->count == SUMS_JOBS)
		TRY(sums_batch_flush(b));
	job = &b->jobs[b->count];
	*job = (struct sums_job){ .place = arena_dup(b->s->w->arena, place) };
	job->accs = arena_zalloc(b->s->w->arena, (b->map->reduce_count + 1) * sizeof(*job->accs));
	if (!job->place.ptr || !job->accs)
		return STATUS_LIMIT;
	for (size_t i = 0; i < b->map->reduce_count; i++)
		reduce_acc_init(&job->accs[i], &b->map->reduces[i], b->s->w);
	b->count++;
	return STATUS_OK;
}

static enum status
job_take_row(struct sums_batch *b, struct sums_job *job, struct str place, struct str value)
{
	struct view_row_value row;
	struct view_place parts;

	job->rows++;
	if (b->map->reduce_count == 0)
		return STATUS_OK;
	TRY(sums_row_texts(b->s, place, value, &row));
	TRY(view_place_parse(place, b->s->group->partitioned, b->s->w->arena, &parts));
	for (size_t i = 0; i < b->map->reduce_count; i++)
		TRY(reduce_acc_row(&job->accs[i], row.key, parts.id, row.value));
	return STATUS_OK;
}

enum status
sums_batch_child(struct sums_batch *b, struct str place, struct str value)
{
	struct sums_job *job = &b->jobs[b->count - 1];
	struct view_sum sum;

	TRY(index_count(b->s->w, 1));
	if (b->level == 1)
		return job_take_row(b, job, place, value);
	TRY(view_sum_parse(value, b->s->w->arena, &sum, b->s->err));
	if (sum.count != b->map->reduce_count)
		return STATUS_CORRUPT;
	job->rows += sum.rows;
	for (size_t i = 0; sum.rows && i < sum.count; i++)
		TRY(reduce_acc_partial(&job->accs[i], sum.partials[i]));
	return STATUS_OK;
}

static enum status
job_write(struct sums_batch *b, struct sums_job *job, struct buf *key, struct buf *value)
{
	const struct sums *s = b->s;
	struct view_sum sum = { .rows = job->rows, .count = b->map->reduce_count };
	size_t bytes = 0;

	for (size_t i = 0; i < sum.count; i++) {
		TRY(reduce_acc_result(&job->accs[i], &sum.partials[i]));
		bytes += sum.partials[i].len;
	}
	/* So many reduces of so long results, which none of them alone is to blame for. */
	for (size_t i = 0; bytes > VIEW_PARTIALS_BYTES && i < sum.count; i++)
		sum.partials[i] = STR(REDUCE_OVERFLOW);
	view_key_level(key, s->db, s->group->number, s->map, b->level);
	buf_append_str(key, job->place);
	view_sum_put(value, &sum);
	TRY(catalog_key_status(key));
	TRY(buf_status(value));
	return kv_set(s->tx, buf_str(key), buf_str(value));
}

enum status
sums_batch_flush(struct sums_batch *b)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	size_t reduces = b->map->reduce_count, accs_count = b->count * reduces;
	struct reduce_acc *accs;

	if (accs_count) {
		/* All accumulators of one reduce side by side, for few calls. */
		accs = arena_alloc(b->s->w->arena, accs_count * sizeof(*accs));
		if (!accs)
			return STATUS_LIMIT;
		for (size_t i = 0; i < b->count; i++)
			for (size_t j = 0; j < reduces; j++)
				accs[j * b->count + i] = b->jobs[i].accs[j];
		TRY(reduce_run(b->run, accs, accs_count));
		for (size_t i = 0; i < b->count; i++)
			for (size_t j = 0; j < reduces; j++)
				b->jobs[i].accs[j] = accs[j * b->count + i];
	}
	for (size_t i = 0; !reduce_run_waits(b->run) && i < b->count; i++)
		TRY(job_write(b, &b->jobs[i], &key, &value));
	sums_batch_release(b);
	return STATUS_OK;
}

/* ---- Which sums change ---- */

static enum status
change_cmp(const void *arg, const void *a, const void *b, int *ret)
{
	(void)arg;
	return sort_compare_strs(((const struct sums_change *)a)->place,
				 ((const struct sums_change *)b)->place, ret);
}

/* Places, each once and in order. */
struct places {
	struct str *all;
	size_t count;
	size_t cap;
};

static enum status
places_add(struct places *p, struct arena *arena, struct str place)
{
	TRY(arena_room(arena, &p->all, p->count, &p->cap, sizeof(*p->all)));
	p->all[p->count++] = place;
	return STATUS_OK;
}

static enum status
places_sort(struct places *p, struct arena *arena)
{
	size_t kept = 0;

	if (p->count == 0)
		return STATUS_OK;
	TRY(sort_strs(p->all, p->count, arena));
	for (size_t i = 1; i < p->count; i++)
		if (!str_eq(p->all[kept], p->all[i]))
			p->all[++kept] = p->all[i];
	p->count = kept + 1;
	return STATUS_OK;
}

/*
 * Asks for the last sum of the level at or (`before`) in front of the place. It is known to be at
 * `floor` or behind: what lies in front of that need not be searched.
 */
static enum status
cover_ask(const struct sums *s, unsigned level, struct str floor, struct str place, bool before,
	  struct kv_future **ret)
{
	const struct kv_range_options options = { .limit = 1,
						  .reverse = true,
						  .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;

	view_key_level(&lo, s->db, s->group->number, s->map, level);
	buf_append_buf(&hi, &lo);
	buf_append_str(&hi, place);
	if (!before)
		buf_append_byte(&hi, CATALOG_KEY_NEXT);
	buf_append_str(&lo, floor);
	TRY(catalog_key_status(&lo));
	TRY(buf_status(&hi));
	*ret = kv_get_range(s->tx, buf_str(&lo), buf_str(&hi), &options);
	return STATUS_OK;
}

/* The place that was asked for; empty: the first sum of the level. */
static enum status
cover_wait(const struct sums *s, unsigned level, struct kv_future *f, struct str *ret)
{
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	struct str place = STR("");
	struct kv_range range;

	view_key_level(&lo, s->db, s->group->number, s->map, level);
	TRY(catalog_key_status(&lo));
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	if (range.count)
		place = arena_dup(s->w->arena, str_skip(range.pairs[0].key, lo.len));
	kv_future_free(f);
	if (!place.ptr)
		return STATUS_LIMIT;
	*ret = place;
	return index_count(s->w, 2);
}

/* The search for the sums that cover places, which are in order. */
struct covers {
	const struct sums *s;
	unsigned level;
	const struct str *places;
	size_t count;
	bool before;
	struct str *found; /* of each place; ptr NULL: not yet */
};

static enum status
covers_wait(struct covers *c, struct kv_future **futures, const size_t *at, size_t count)
{
	for (size_t i = 0; i < count; i++)
		TRY(cover_wait(c->s, c->level, futures[i], &c->found[at[i]]));
	return STATUS_OK;
}

/* Finds the sum of every `stride`th place, when that of every second one of them is known. */
static enum status
covers_round(struct covers *c, size_t stride)
{
	struct kv_future *futures[SUMS_WAVE];
	size_t at[SUMS_WAVE], wave = 0;

	for (size_t i = 0; i < c->count; i += stride) {
		struct str left = i ? c->found[i - stride] : STR("");

		if (c->found[i].ptr)
			continue;
		if (left.ptr && i && i + stride < c->count && c->found[i + stride].ptr &&
		    str_eq(left, c->found[i + stride])) {
			c->found[i] = left;
			continue;
		}
		TRY(cover_ask(c->s, c->level, left.ptr ? left : STR(""), c->places[i], c->before,
			      &futures[wave]));
		at[wave++] = i;
		if (wave < SUMS_WAVE)
			continue;
		TRY(covers_wait(c, futures, at, wave));
		wave = 0;
	}
	return covers_wait(c, futures, at, wave);
}

/*
 * The sums of a level that cover the places; with `before`, those in front of the places.
 *
 * The sums are in the order of their places, so two places with the same sum have it in common with
 * all places between them. Many places are therefore searched for by halving: where many rows have
 * come or gone side by side, most need no search, each of which would have to step over all sums
 * that have gone with the rows.
 */
static enum status
covers_find(const struct sums *s, unsigned level, const struct str *places, size_t count,
	    bool before, struct places *ret)
{
	struct covers c = { s, level, places, count, before, NULL };
	size_t stride = 1;

	c.found = arena_zalloc(s->w->arena, (count + 1) * sizeof(*c.found));
	if (!c.found)
		return STATUS_LIMIT;
	while (stride * SUMS_WAVE < count)
		stride *= 2;
	for (; stride; stride /= 2)
		TRY(covers_round(&c, stride));
	for (size_t i = 0; i < count; i++)
		if (!ret->count || !str_eq(ret->all[ret->count - 1], c.found[i]))
			TRY(places_add(ret, s->w->arena, c.found[i]));
	return STATUS_OK;
}

/*
 * Puts and clears the sums that begin at rows which have come and gone: their values come later.
 * `ret_begun`: the places of those that are put.
 */
static enum status
sums_place(const struct sums *s, unsigned level, const struct sums_change *changes, size_t count,
	   struct places *ret_begun)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);

	view_sum_put(&value, &(struct view_sum){ 0 });
	TRY(buf_status(&value));
	for (size_t i = 0; i < count; i++) {
		if ((!changes[i].came && !changes[i].went) ||
		    view_place_level(s->group->seed, changes[i].place) < level)
			continue;
		view_key_level(&key, s->db, s->group->number, s->map, level);
		buf_append_str(&key, changes[i].place);
		TRY(catalog_key_status(&key));
		if (!changes[i].came) {
			TRY(kv_clear(s->tx, buf_str(&key)));
			continue;
		}
		TRY(kv_set(s->tx, buf_str(&key), buf_str(&value)));
		TRY(places_add(ret_begun, s->w->arena, changes[i].place));
	}
	return STATUS_OK;
}

/* ---- Their children ---- */

/* Takes children of the newest job until one begins another sum of the level. */
static enum status
children_take(struct sums_batch *b, struct str place, const struct kv_pair *pair, size_t prefix_len,
	      bool *ret_end)
{
	struct str at = str_skip(pair->key, prefix_len);

	*ret_end = !str_eq(at, place) && view_place_level(b->s->group->seed, at) >= b->level;
	return *ret_end ? STATUS_OK : sums_batch_child(b, at, pair->value);
}

/* What follows behind the first stretch of children. */
static enum status
children_scan(struct sums_batch *b, struct str place, struct str behind, size_t prefix_len,
	      struct str hi)
{
	const struct kv_range_options options = { .limit_bytes = CATALOG_PAGE_BYTES,
						  .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	struct kv_scan scan;
	struct kv_pair pair;
	enum status status;
	bool end = false;

	buf_append_str(&lo, behind);
	buf_append_byte(&lo, CATALOG_KEY_NEXT);
	TRY(buf_status(&lo));
	TRY(kv_scan_init(&scan, b->s->tx, buf_str(&lo), hi, &options));
	while (!end && (status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		status = children_take(b, place, &pair, prefix_len, &end);
		if (status != STATUS_OK)
			break;
	}
	kv_scan_release(&scan);
	return end || status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

struct children {
	struct kv_future *future;
	size_t prefix_len;
	struct buf hi;
};

/* `end`: where another sum of the level begins, at the latest; ptr NULL: it is not known. */
static enum status
children_ask(const struct sums *s, unsigned level, struct str place, struct str end,
	     struct children *ret)
{
	const struct kv_range_options options = { .limit = SUMS_CHILDREN, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;

	buf_clear(&ret->hi);
	view_key_level(&lo, s->db, s->group->number, s->map, level - 1);
	TRY(catalog_key_status(&lo));
	ret->prefix_len = lo.len;
	if (end.ptr) {
		buf_append_buf(&ret->hi, &lo);
		buf_append_str(&ret->hi, end);
		TRY(catalog_key_status(&ret->hi));
	} else {
		TRY(view_prefix_end(buf_str(&lo), &ret->hi));
	}
	buf_append_str(&lo, place);
	TRY(buf_status(&lo));
	ret->future = kv_get_range(s->tx, buf_str(&lo), buf_str(&ret->hi), &options);
	return STATUS_OK;
}

static enum status
children_wait(struct sums_batch *b, struct str place, struct children *c)
{
	struct kv_range range;
	bool end = false;

	TRY(kv_future_wait(c->future));
	range = kv_future_range(c->future);
	TRY(sums_batch_job(b, place));
	for (size_t i = 0; i < range.count && !end; i++)
		TRY(children_take(b, place, &range.pairs[i], c->prefix_len, &end));
	if (!end && range.count && range.more)
		TRY(children_scan(b, place, range.pairs[range.count - 1].key, c->prefix_len,
				  buf_str(&c->hi)));
	kv_future_free(c->future);
	return STATUS_OK;
}

/*
 * Both are in order. The children of a node end at the next sum of `begun` at the latest: so no
 * read goes on behind the rows that have come, over what may have gone there.
 */
static enum status
sums_compute(struct sums_batch *b, const struct places *nodes, const struct places *begun)
{
	struct children wave[SUMS_WAVE];
	enum status status = STATUS_OK;
	size_t next = 0;

	for (size_t i = 0; i < SUMS_WAVE; i++)
		wave[i].hi = CATALOG_KEY_INIT;
	for (size_t done = 0; status == STATUS_OK && done < nodes->count; done += SUMS_WAVE) {
		size_t n = nodes->count - done < SUMS_WAVE ? nodes->count - done : SUMS_WAVE;

		for (size_t i = 0; status == STATUS_OK && i < n; i++) {
			struct str place = nodes->all[done + i], end = { 0 };

			while (next < begun->count && str_cmp(begun->all[next], place) <= 0)
				next++;
			if (next < begun->count)
				end = begun->all[next];
			status = children_ask(b->s, b->level, place, end, &wave[i]);
		}
		for (size_t i = 0; status == STATUS_OK && i < n; i++)
			status = children_wait(b, nodes->all[done + i], &wave[i]);
	}
	for (size_t i = 0; i < SUMS_WAVE; i++)
		buf_release(&wave[i].hi);
	return status == STATUS_OK ? sums_batch_flush(b) : status;
}

/* ---- All levels ---- */

/* The sums of the lowest level: those over changed rows, and those that new ones begin behind. */
static enum status
lowest_find(const struct sums *s, const struct sums_change *changes, size_t count,
	    const struct places *begun, struct places *ret)
{
	struct places rows = { 0 };

	for (size_t i = 0; i < count; i++)
		TRY(places_add(&rows, s->w->arena, changes[i].place));
	TRY(covers_find(s, 1, rows.all, rows.count, false, ret));
	TRY(covers_find(s, 1, begun->all, begun->count, true, ret));
	return places_sort(ret, s->w->arena);
}

enum status
sums_update(const struct sums *s, const struct view_map *map, const struct reduce_run *run,
	    struct sums_change *changes, size_t count)
{
	struct places below = { 0 };

	if (count == 0)
		return STATUS_OK;
	TRY(sort_items(changes, count, sizeof(*changes), change_cmp, NULL, s->w->arena));
	for (unsigned level = 1; level <= VIEW_LEVELS; level++) {
		struct places nodes = { 0 }, begun = { 0 };
		struct sums_batch b;
		enum status status;

		TRY(sums_place(s, level, changes, count, &begun));
		if (level == 1) {
			TRY(lowest_find(s, changes, count, &begun, &nodes));
		} else {
			TRY(covers_find(s, level, below.all, below.count, false, &nodes));
			TRY(places_sort(&nodes, s->w->arena));
		}
		TRY(sums_batch_begin(&b, s, map, run, level));
		status = sums_compute(&b, &nodes, &begun);
		sums_batch_release(&b);
		TRY(status);
		/* The levels above are made of what functions have yet to answer. */
		if (reduce_run_waits(run))
			return STATUS_OK;
		below = nodes;
	}
	return STATUS_OK;
}
