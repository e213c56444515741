/*
 * $group: a table of groups in memory. When it is nearly full, documents of groups that it does not
 * have are put aside, and when the input has ended and the groups of the table were given, these
 * documents are the input of the next round. So each round ends some groups, and a group sees its
 * documents in their order.
 *
 * Where expressions call functions in JavaScript, documents are read ahead, and evaluated together
 * (struct mql_batch), before they go to their groups one after the other.
 */
#include "mql/stage/accum.h"
#include "mql/field_path.h"
#include "base/hash.h"
#include "mql/expr/script.h"
#include "mql/stage/spool.h"

enum {
	GROUP_FULL_QUARTERS = 3, /* of the memory, from which on no group is added */
	GROUP_FIRST_SLOTS = 64,
	GROUP_RECENT = 256,      /* groups that are found by their values as they are */
	GROUP_RECENT_BYTES = 64, /* of a text among them, at most */
};

struct group_stage {
	struct mql_expr *id;
	struct str *names;
	struct mql_accumulator **fields;
	size_t count;
};

struct group {
	struct str key;
	uint64_t hash;
	struct bson_value id;
	char states[] __attribute__((aligned(16)));
};

/* What accumulators need of a document: see mql_accumulator_read(). */
struct group_input {
	struct bson_value value, key;
};

/* A document that was read ahead; what its expressions give lies in the batch's arena. */
struct group_row {
	struct str doc;
	struct bson_value id;
	struct group_input *inputs; /* one of each field */
};

struct group_state {
	struct arena *keep;
	struct group **groups; /* in the order in which they came */
	size_t count;
	size_t cap;
	struct group **table;
	size_t slots;
	size_t next;
	struct group *recent[GROUP_RECENT];
	struct mql_spool spools[2]; /* what is put aside; what is read in this round */
	bool has_spool[2];
	struct mql_spool_reader reader;
	bool reads;
	bool read;
	struct buf key;
	struct mql_batch batch;
	struct group_row *rows;
};

static struct mql_accumulator_state *
group_field(const struct group *g, size_t i)
{
	size_t bytes = (mql_accumulator_bytes() + 15) / 16 * 16;

	/* A group is changed by its stage only, which has it as it is. */
	return (struct mql_accumulator_state *)(uintptr_t)(g->states + i * bytes);
}

/* ---- The table ---- */

static enum status
table_grow(struct group_state *s)
{
	size_t slots = s->slots ? 2 * s->slots : GROUP_FIRST_SLOTS;
	struct group **table;

	if (2 * s->count < s->slots)
		return STATUS_OK;
	table = arena_zalloc(s->keep, slots * sizeof(struct group *));
	if (!table)
		return STATUS_LIMIT;
	for (size_t i = 0; i < s->count; i++) {
		size_t at = s->groups[i]->hash & (slots - 1);

		TRY(step_count(1));
		while (table[at])
			at = (at + 1) & (slots - 1);
		table[at] = s->groups[i];
	}
	s->table = table;
	s->slots = slots;
	return STATUS_OK;
}

/* The group of a key; NULL: there is none yet. */
static enum status
table_find(const struct group_state *s, struct str key, uint64_t hash, struct group **ret)
{
	*ret = NULL;
	if (!s->slots)
		return STATUS_OK;
	/* The table is at most half full, so the search ends at an empty slot. */
	assert(s->count < s->slots);
	for (size_t at = hash & (s->slots - 1); s->table[at]; at = (at + 1) & (s->slots - 1)) {
		TRY(step_count(1));
		if (s->table[at]->hash == hash && str_eq(s->table[at]->key, key)) {
			*ret = s->table[at];
			return STATUS_OK;
		}
	}
	return STATUS_OK;
}

/* ---- Groups that were seen lately ---- */

/* Where a group with this value is looked for first; NULL: nowhere, its key has to be made. */
static struct group **
recent_slot(struct group_state *s, const struct bson_value *id)
{
	uint64_t n = (uint64_t)id->type;

	switch ((int)id->type) {
	case BSON_NULL:
		break;
	case BSON_BOOL:
		n += bson_truth(id);
		break;
	case BSON_INT32:
	case BSON_INT64:
	case BSON_DATE:
		n += (uint64_t)bson_integer(id);
		break;
	case BSON_STRING:
	case BSON_OBJECT_ID:
		if (bson_text(id).len > GROUP_RECENT_BYTES)
			return NULL;
		n += hash_quick(bson_text(id));
		break;
	default:
		return NULL;
	}
	/* The upper bits of the product depend on all of the number's. */
	return &s->recent[(n * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & (GROUP_RECENT - 1)];
}

/* True if two values of these types are the same, and not only equal. */
static bool
is_same(const struct bson_value *a, const struct bson_value *b)
{
	if (a->type != b->type)
		return false;
	switch ((int)a->type) {
	case BSON_NULL:
		return true;
	case BSON_BOOL:
		return bson_truth(a) == bson_truth(b);
	case BSON_INT32:
	case BSON_INT64:
	case BSON_DATE:
		return bson_integer(a) == bson_integer(b);
	default:
		return str_eq(bson_text(a), bson_text(b));
	}
}

static enum status
group_new(struct mql_stage_run *r, const struct bson_value *id, struct str key, uint64_t hash,
	  struct group **ret)
{
	const struct group_stage *stage = r->stage->more;
	struct group_state *s = r->state;
	size_t bytes = (mql_accumulator_bytes() + 15) / 16 * 16;
	struct mql_env env = mql_stage_env(r,
					   id->type == BSON_DOCUMENT ? bson_text(id) : BSON_EMPTY);
	struct group **groups, *g;
	size_t at;

	TRY(table_grow(s));
	groups = arena_grow(s->keep, s->groups, s->count, &s->cap, sizeof(struct group *));
	if (!groups)
		return STATUS_LIMIT;
	s->groups = groups;
	g = arena_alloc(s->keep, sizeof(*g) + stage->count * bytes);
	if (!g)
		return STATUS_LIMIT;
	g->hash = hash;
	g->key = arena_dup(s->keep, key);
	if (!g->key.ptr)
		return STATUS_LIMIT;
	TRY(mql_value_keep(s->keep, id, &g->id));
	for (size_t i = 0; i < stage->count; i++)
		TRY(mql_accumulator_begin(stage->fields[i], &r->run->q, &env, s->keep,
					  group_field(g, i)));
	/* It is whole: a group of which a state could not begin would never have been found. */
	assert(s->count < s->slots && s->count < s->cap);
	at = hash & (s->slots - 1);
	while (s->table[at])
		at = (at + 1) & (s->slots - 1);
	s->table[at] = g;
	groups[s->count++] = g;
	*ret = g;
	return STATUS_OK;
}

/* ---- Documents ---- */

/* Puts a document of a group that has no room aside. */
static enum status
group_put_aside(struct mql_stage_run *r, struct str doc)
{
	struct group_state *s = r->state;

	if (!r->run->options.disk)
		return mql_stage_no_disk(r, s->keep);
	if (!s->has_spool[0])
		mql_spool_init(&s->spools[0], r);
	s->has_spool[0] = true;
	return mql_spool_put(&s->spools[0], r, doc);
}

static bool
group_is_full(const struct mql_stage_run *r)
{
	const struct group_state *s = r->state;

	return s->count &&
	       arena_used_bytes(s->keep) > r->run->options.stage_bytes / 4 * GROUP_FULL_QUARTERS;
}

static enum status
fail_full(struct mql_stage_run *r)
{
	if (mql_stage_is_starved(r, ((struct group_state *)r->state)->keep))
		return STATUS_NOMEM;
	return mql_fail(&r->run->q, MQL_MEMORY_LIMIT,
			"$group used too much memory for one of its groups, and cannot spill to "
			"disk. Memory limit (MQL_STAGE_BYTES): %zu bytes",
			r->run->options.stage_bytes);
}

/* The group of a value, which is made if there is room. `*ret` is NULL: there is none. */
static enum status
group_of(struct mql_stage_run *r, struct mql *q, const struct bson_value *id, struct group **ret)
{
	struct group_state *s = r->state;
	struct group **recent = recent_slot(s, id);
	bool cut = false;
	uint64_t hash;

	/* Only this round's groups are there: the next one begins with none. */
	if (recent && *recent && is_same(&(*recent)->id, id)) {
		*ret = *recent;
		return STATUS_OK;
	}
	buf_clear(&s->key);
	TRY(bson_key_put(&s->key, id, BSON_MOST_BYTES, q->texts, &cut));
	TRY(step_count_bytes(s->key.len));
	hash = hash_keyed(0, buf_str(&s->key));
	TRY(table_find(s, buf_str(&s->key), hash, ret));
	if (!*ret && !group_is_full(r))
		TRY(group_new(r, id, buf_str(&s->key), hash, ret));
	if (recent)
		*recent = *ret;
	return STATUS_OK;
}

static enum status
group_read_id(const struct mql_stage_run *r, struct mql *q, const struct mql_env *env,
	      struct bson_value *ret)
{
	const struct group_stage *stage = r->stage->more;

	TRY(mql_expr_run(stage->id, q, env, ret));
	if ((int)ret->type == MQL_MISSING)
		*ret = BSON_OF_NULL;
	return STATUS_OK;
}

/*
 * Takes the environment's document into its group. `inputs` NULL: the accumulators read it
 * themselves.
 */
static enum status
group_take(struct mql_stage_run *r, struct mql *q, const struct mql_env *env,
	   const struct bson_value *id, const struct group_input *inputs)
{
	const struct group_stage *stage = r->stage->more;
	struct group_state *s = r->state;
	struct group *g = NULL;
	enum status status = group_of(r, q, id, &g);

	/*
	 * A group takes all of its documents in one round. So one that had no room must not be made
	 * later in the same round: `keep` stays full until the round ends.
	 */
	if (status == STATUS_OK && !g)
		return group_put_aside(r, env->root);
	for (size_t i = 0; i < stage->count && status == STATUS_OK; i++) {
		struct mql_accumulator_state *state = group_field(g, i);

		status = inputs ? mql_accumulator_take(stage->fields[i], q, &inputs[i].value,
						       &inputs[i].key, s->keep, state)
				: mql_accumulator_add(stage->fields[i], q, env, s->keep, state);
	}
	return status == STATUS_LIMIT ? fail_full(r) : status;
}

static enum status
group_add(struct mql_stage_run *r, struct str doc)
{
	struct mql *q = mql_stage_begin(r);
	struct mql_env env = mql_stage_env(r, doc);
	struct bson_value id;

	TRY(group_read_id(r, q, &env, &id));
	return group_take(r, q, &env, &id, NULL);
}

static enum status
group_put(struct mql_stage_run *r, const struct group *g, struct str *ret)
{
	const struct group_stage *stage = r->stage->more;
	struct buf out = BUF_INIT_OF(BSON_MOST_BYTES, r->run->options.part);
	struct mql *q = mql_stage_begin(r);
	enum status status = STATUS_OK;
	struct bson_builder b;

	bson_builder_init(&b, &out);
	bson_begin(&b);
	bson_put(&b, STR("_id"), &g->id);
	for (size_t i = 0; i < stage->count && status == STATUS_OK; i++)
		status = mql_accumulator_put(stage->fields[i], q, group_field(g, i),
					     stage->names[i], &b);
	bson_end(&b);
	if (status == STATUS_OK)
		return mql_keep(q, &out, ret);
	buf_release(&out);
	return status;
}

/* ---- Rounds ---- */

/* The next document of this round. STATUS_NOT_FOUND at the end. */
static enum status
group_input_next(struct mql_stage_run *r, struct str *ret)
{
	struct group_state *s = r->state;

	TRY(s->reads ? mql_spool_next(&s->reader, r, ret) : r->from->next(r->from, ret));
	return step_count(1);
}

static enum status
group_row_read(void *arg, size_t *ret_bytes)
{
	struct mql_stage_run *r = arg;
	struct group_state *s = r->state;
	struct group_row *row = &s->rows[s->batch.count];
	struct str doc;

	TRY(group_input_next(r, &doc));
	*ret_bytes = doc.len;
	row->doc = arena_dup(s->batch.arena, doc);
	return row->doc.ptr ? STATUS_OK : mql_full(&r->run->q);
}

/* Copies a value to where the batch lies. */
static enum status
row_keep(struct group_state *s, struct mql *q, struct bson_value *v)
{
	enum status status = mql_value_keep(s->batch.arena, v, v);

	return status == STATUS_LIMIT ? mql_full(q) : status;
}

static enum status
row_run(void *arg, struct mql *q, size_t i)
{
	struct mql_stage_run *r = arg;
	const struct group_stage *stage = r->stage->more;
	struct group_state *s = r->state;
	struct group_row *row = &s->rows[i];
	struct mql_env env = mql_stage_env(r, row->doc);

	mql_stage_begin(r);
	if (!row->inputs)
		row->inputs = arena_zalloc(s->batch.arena, stage->count * sizeof(*row->inputs));
	if (!row->inputs)
		return mql_full(q);
	TRY(group_read_id(r, q, &env, &row->id));
	for (size_t k = 0; k < stage->count; k++)
		TRY(mql_accumulator_read(stage->fields[k], q, &env, &row->inputs[k].value,
					 &row->inputs[k].key));
	/* Now no call is left that would have the row evaluated again. */
	TRY(row_keep(s, q, &row->id));
	for (size_t k = 0; k < stage->count; k++) {
		TRY(row_keep(s, q, &row->inputs[k].value));
		TRY(row_keep(s, q, &row->inputs[k].key));
	}
	return STATUS_OK;
}

/* Reads all documents of a round, batch by batch. */
static enum status
group_read_ahead(struct mql_stage_run *r)
{
	struct group_state *s = r->state;
	struct mql_batch *b = &s->batch;

	if (!b->arena)
		TRY(mql_batch_init(b, MQL_SCRATCH_BYTES, r->run->options.part));
	b->ended = false;
	while (!b->ended) {
		s->rows = mql_batch_begin(b, sizeof(*s->rows));
		if (!s->rows)
			return mql_full(&r->run->q);
		mql_batch_read(b, group_row_read, r);
		mql_batch_run(b, mql_stage_begin(r), row_run, r);
		for (; b->at < b->count; b->at++) {
			const struct group_row *row = &s->rows[b->at];
			struct mql_env env = mql_stage_env(r, row->doc);

			TRY(group_take(r, mql_stage_begin(r), &env, &row->id, row->inputs));
		}
		if (b->failed != STATUS_OK)
			return mql_batch_failure(b, &r->run->q);
	}
	return STATUS_OK;
}

static enum status
group_read(struct mql_stage_run *r)
{
	enum status status;
	struct str doc;

	if (r->stage->calls)
		return group_read_ahead(r);
	while ((status = group_input_next(r, &doc)) == STATUS_OK)
		TRY(group_add(r, doc));
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* What was put aside is the input from now on. STATUS_NOT_FOUND: there is nothing. */
static enum status
group_next_round(struct mql_stage_run *r)
{
	struct group_state *s = r->state;

	assert(s->next == s->count && s->reads == s->has_spool[1]);
	if (s->reads) {
		mql_spool_reader_fini(&s->reader);
		mql_spool_fini(&s->spools[1]);
		s->has_spool[1] = false;
	}
	s->reads = false;
	if (!s->has_spool[0])
		return STATUS_NOT_FOUND;
	s->spools[1] = s->spools[0];
	s->has_spool[1] = true;
	s->has_spool[0] = false;
	s->reads = true;
	mql_spool_read(&s->reader, &s->spools[1], r, 0, mql_spool_end(&s->spools[1]));
	/* All of it lies in `keep`, which is cleared. */
	s->groups = s->table = NULL;
	s->count = s->cap = s->slots = s->next = 0;
	memset(s->recent, 0, sizeof(s->recent));
	arena_clear(s->keep);
	return group_read(r);
}

static enum status
group_next(struct mql_stage_run *r, struct str *ret)
{
	struct group_state *s = r->state;

	if (!s->read) {
		s->key = BUF_INIT_OF(BSON_KEY_ROOM(BSON_MOST_BYTES), r->run->options.part);
		s->keep = mql_run_arena(r->run, r->run->options.stage_bytes);
		if (!s->keep)
			return STATUS_NOMEM;
		s->read = true;
		TRY(group_read(r));
	}
	while (s->next == s->count)
		TRY(group_next_round(r));
	assert(s->next < s->count);
	return group_put(r, s->groups[s->next++], ret);
}

static void
group_fini(struct mql_stage_run *r)
{
	struct group_state *s = r->state;

	if (s->reads)
		mql_spool_reader_fini(&s->reader);
	for (int i = 0; i < 2; i++)
		if (s->has_spool[i])
			mql_spool_fini(&s->spools[i]);
	buf_release(&s->key);
	mql_batch_fini(&s->batch);
	arena_free(s->keep);
}

static const struct mql_stage_ops group_ops = { .next = group_next,
						.fini = group_fini,
						.state_bytes = sizeof(struct group_state) };

/* ---- Compiling ---- */

enum status
mql_stage_accumulator(struct mql_stages *c, const struct bson_element *e,
		      struct mql_accumulator **ret)
{
	if (memchr(e->name.ptr, '.', e->name.len))
		return mql_fail(c->q, 40235, "The field name '%.*s' cannot contain '.'",
				STR_ARG(e->name));
	if (e->name.len && e->name.ptr[0] == '$')
		return mql_fail(c->q, 40236, "The field name '%.*s' cannot be an operator name",
				STR_ARG(e->name));
	return mql_accumulator_compile(c->q, e->name, &e->value, c->scope, ret);
}

static enum status
compile_field(struct mql_stages *c, struct group_stage *g, const struct bson_element *e)
{
	g->names[g->count] = e->name;
	TRY(mql_stage_accumulator(c, e, &g->fields[g->count]));
	g->count++;
	return STATUS_OK;
}

MQL_STAGE_COMPILE(group)
{
	struct group_stage *g = mql_stage_alloc(c, sizeof(*g));
	struct bson_element e;
	struct bson_iter i;
	size_t most;

	if (v->type != BSON_DOCUMENT)
		return mql_fail(c->q, 15947, "a group's fields must be specified in an object");
	if (!g)
		return mql_full(c->q);
	most = bson_count(bson_text(v)) + 1;
	g->names = mql_stage_alloc(c, most * sizeof(*g->names));
	g->fields = mql_stage_alloc(c, most * sizeof(struct mql_accumulator *));
	if (!g->names || !g->fields)
		return mql_full(c->q);
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);) {
		TRY(step_count(1));
		if (mql_is(e.name, "_id"))
			TRY(mql_expr_compile(c->q, &e.value, c->scope, &g->id));
		else
			TRY(compile_field(c, g, &e));
	}
	if (!g->id)
		return mql_fail(c->q, 15955, "a group specification must include an _id");
	return mql_stage_add(c, stage, v, &group_ops, g);
}
