/* The steps of a build. How they fit together is in build.h. */
#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/metric.h"
#include "catalog/keys.h"
#include "catalog/shared.h"
#include "index/engine/build.h"
#include "loop/pause.h"
#include "loop/wait.h"

enum {
	BUILD_KINDS = 8,             /* of databases with indexes */
	BUILD_VALUE_BYTES = 100000,  /* of a stretch's record */
	BUILD_FAILURE_BYTES = 4096,  /* of the text that names violations */
	BUILD_EXAMPLES_BYTES = 4096, /* of each stretch's part of it */
	BUILD_LASTING_BYTES = 8 * 1024 * 1024,
	BUILD_WAIT_MS = 10,  /* while others of the process are at all that is left */
	BUILD_WAITS = 50,    /* of a request, which is to find the index ready if that is soon */
	BUILD_TENDINGS = 64, /* of the counters behind a build: of some 16 million entries */
};

/* In a stretch's place: what comes behind all of them. */
#define BUILD_END INDEX_BUILD_STRETCHES

METRIC_COUNTER(documents_built, "frond_index_documents_built_total", METRIC_NUMBER,
	       "Documents that builds of indexes have passed, counted for each index.");

static const struct index_documents *kinds[BUILD_KINDS];

void
index_documents_register(const struct index_documents *documents)
{
	size_t i = 0;

	while (i < BUILD_KINDS && kinds[i] && kinds[i]->kind != documents->kind)
		i++;
	assert(i < BUILD_KINDS);
	/* Not written again by a repeated call, because other threads may be reading it by then. */
	if (kinds[i] != documents)
		kinds[i] = documents;
}

const struct index_documents *
index_documents_of(const struct catalog_db *db)
{
	for (size_t i = 0; i < BUILD_KINDS && kinds[i]; i++)
		if (kinds[i]->kind == db->kind->number)
			return kinds[i];
	return NULL;
}

enum status
index_work_survey(struct kv_tx *tx, const struct catalog_db *db, struct err *err)
{
	const struct index_set *set;
	void *loaded = NULL;
	bool any = false;

	TRY(index_set_load(tx, db, &loaded, err));
	set = loaded;
	for (size_t i = 0; set && i < set->count; i++)
		any = any || set->defs[i].state == INDEX_BUILDING ||
		      set->defs[i].state == INDEX_DROPPED || set->defs[i].state == INDEX_STALE ||
		      index_is_stale(&set->defs[i]);
	index_set_free(loaded);
	return any ? index_work_note(tx, db) : STATUS_OK;
}

/* ---- One transaction of a build ---- */

/* What the bodies share; all that they find out is found out again in each attempt. */
struct build {
	const struct index_build_key *key;
	struct arena *arena;   /* emptied by each attempt, and partly by each document */
	struct arena *lasting; /* emptied by each attempt: what is counted until its end */
	size_t limit;          /* documents of a step */
	size_t most;           /* that `limit` grows up to */
	struct err *err;

	/* As the transaction sees it. */
	struct catalog_db *db;
	const struct index_def *def;
	enum index_state state; /* of the index, DROPPED if it is gone */
	const struct index_documents *documents;

	size_t stretches; /* that there are records of; 0: they are still to be planned */
	bool done[INDEX_BUILD_STRETCHES];
	bool any_left;      /* `stretch` is not done, and nobody else's */
	bool claims;        /* `stretch` is claimed, or BUILD_END */
	uint64_t stretch;   /* that a step works on */
	uint64_t preferred; /* the first one that a step looks at */
	uint64_t passed;    /* documents of this attempt */
	uint64_t bytes;     /* of the transaction of this attempt */
	unsigned attempts;  /* at this step */
	bool exact;         /* a writer was in the way of this run */
};

static void
build_close(struct build *b)
{
	catalog_db_unref(b->db);
	b->db = NULL;
}

/* Begins an attempt: finds the index. What is not BUILDING any more leaves b->def NULL. */
static enum status
build_begin(struct kv_tx *tx, struct build *b)
{
	enum status status;

	build_close(b);
	arena_clear(b->arena);
	arena_clear(b->lasting);
	b->def = NULL;
	b->state = INDEX_DROPPED;
	status = catalog_open_stored(tx, b->key->space, b->key->db_name, &b->db, b->err);
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	b->documents = index_documents_of(b->db);
	if (b->db->number != b->key->db_number || !b->documents)
		return STATUS_OK;
	b->def = index_find(b->db, b->key->number);
	if (!b->def)
		return STATUS_OK;
	b->state = b->def->state;
	if (b->state != INDEX_BUILDING)
		b->def = NULL;
	return b->def ? catalog_db_check_writable(b->db, b->err) : STATUS_OK;
}

static enum status
record_set(struct kv_tx *tx, const struct build *b, uint64_t stretch,
	   const struct index_build_record *record)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(BUILD_VALUE_BYTES);

	index_key_stretch(&key, b->db, b->key->number, stretch);
	TRY(catalog_key_status(&key));
	index_build_record_put(&value, record);
	TRY(buf_status(&value));
	return kv_set(tx, buf_str(&key), buf_str(&value));
}

/* ---- Planning ---- */

enum status
index_build_records(struct kv_tx *tx, const struct catalog_db *db, uint64_t number,
		    enum kv_read mode, struct arena *arena,
		    struct index_build_record ret[INDEX_BUILD_STRETCHES], size_t *ret_count)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	const struct kv_range_options options = { .limit = INDEX_BUILD_STRETCHES, .mode = mode };
	struct kv_range range;
	struct kv_future *f;

	index_key_build(&begin, db, number);
	TRY(catalog_key_status(&begin));
	index_key_mark(&end, db, number, STR(""));
	TRY(catalog_key_status(&end));
	f = kv_get_range(tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	for (size_t i = 0; i < range.count; i++)
		TRY(index_build_record_parse(range.pairs[i].value, arena, &ret[i], kv_tx_err(tx)));
	*ret_count = range.count;
	return STATUS_OK;
}

static enum status
plan_write(struct kv_tx *tx, struct build *b)
{
	const struct str *ids;
	uint64_t total;
	size_t count;

	TRY(b->documents->cut(tx, b->db, INDEX_BUILD_STRETCHES, b->arena, &ids, &count, &total));
	assert(count < INDEX_BUILD_STRETCHES);
	for (size_t i = 0; i <= count; i++) {
		struct index_build_record record = {
			.after = i ? ids[i - 1] : STR(""),
			.end = i < count ? ids[i] : STR(""),
			.total = total,
			.started_ms = clock_wall_ms(),
		};

		record.updated_ms = record.started_ms;
		TRY(record_set(tx, b, i, &record));
	}
	return STATUS_OK;
}

/* Looks at all stretches, and makes them if there are none. */
static enum status
plan_body(struct kv_tx *tx, void *arg)
{
	struct index_build_record records[INDEX_BUILD_STRETCHES];
	struct build *b = arg;
	size_t count;

	b->stretches = 0;
	TRY(build_begin(tx, b));
	if (!b->def)
		return STATUS_OK;
	TRY(index_build_records(tx, b->db, b->key->number, KV_READ, b->arena, records, &count));
	if (count == 0)
		return plan_write(tx, b);
	for (size_t i = 0; i < count; i++)
		b->done[i] = records[i].done;
	b->stretches = count;
	return STATUS_OK;
}

static void
build_leave(struct build *b)
{
	if (b->claims)
		index_builds_leave(b->key, b->stretch);
	b->claims = b->any_left = false;
}

static bool
build_claim(struct build *b, uint64_t stretch)
{
	b->stretch = stretch;
	b->claims = b->key->claims && index_builds_claim(b->key, stretch);
	return b->claims || !b->key->claims;
}

/*
 * Chooses what to go on with: the first stretch that is not done, from the preferred one on, or the
 * end. False: other threads are at all that is left.
 */
static bool
plan_choose(struct build *b)
{
	bool is_busy = false;

	for (size_t i = 0; i < b->stretches; i++) {
		size_t at = (size_t)((b->preferred + i) % b->stretches);

		if (b->done[at])
			continue;
		b->any_left = build_claim(b, at);
		if (b->any_left)
			return true;
		is_busy = true;
	}
	return !is_busy && build_claim(b, BUILD_END);
}

/* ---- A step ---- */

struct step {
	struct kv_tx *tx;
	struct build *build;
	struct index_writer *writer;
	struct index_build_record *record;
	struct buf examples;
	struct index_passed passed;
};

/* Notes that the document has values that another one has, in a UNIQUE index. */
static enum status
step_note_violation(struct step *s, const struct index_source *source)
{
	size_t before = s->examples.len;

	if (s->record->violations++ >= INDEX_BUILD_VIOLATIONS)
		return STATUS_OK;
	if (before)
		buf_append_byte(&s->examples, ',');
	s->build->def->form->draw_id(&s->examples, source->id);
	if (buf_status(&s->examples) == STATUS_NOMEM)
		return STATUS_NOMEM;
	/* Too many bytes are no failure: the number of violations is told in any case. */
	if (buf_status(&s->examples) != STATUS_OK)
		s->examples.len = before;
	return STATUS_OK;
}

/* Enters the document; what is in its way makes way, if it can. */
static enum status
step_enter_document(struct step *s, const struct index_source *source)
{
	struct build *b = s->build;
	bool gone;

	for (;;) {
		enum status status = index_build_document(s->writer, b->def, source, true);

		if (status != STATUS_DUPLICATE || !b->documents->make_way)
			return status;
		TRY(b->documents->make_way(s->tx, b->db, s->writer->taken, &gone));
		if (!gone)
			return status;
	}
}

static enum status
step_visit(void *arg, const struct index_source *source)
{
	struct step *s = arg;
	struct arena_mark mark = arena_mark(s->build->arena);
	enum status status = step_enter_document(s, source);

	arena_reset(s->build->arena, mark);
	if (status == STATUS_DUPLICATE || status == STATUS_UNSUPPORTED)
		return step_note_violation(s, source);
	return status;
}

static enum status
step_visit_all(struct index_writer *writer, void *arg)
{
	struct step *s = arg;
	struct build *b = s->build;
	const struct index_stretch stretch = { .after = s->record->after,
					       .end = s->record->end,
					       .limit = b->limit,
					       .exact = b->exact };

	s->writer = writer;
	return b->documents->visit(s->tx, b->db, b->def, &stretch, b->arena, step_visit, s,
				   &s->passed);
}

/* Gives entries to the next documents, and moves the record behind them. */
static enum status
step_advance(struct kv_tx *tx, struct build *b, struct index_build_record *record)
{
	struct step s = {
		.tx = tx, .build = b, .record = record, .examples = BUF_INIT(BUILD_EXAMPLES_BYTES)
	};
	enum status status;

	buf_append_str(&s.examples, record->examples);
	status = index_writer_run(tx, b->db, b->documents->list, b->arena, b->lasting,
				  step_visit_all, &s);
	record->after = s.passed.last;
	record->passed += s.passed.count;
	record->done = !s.passed.more;
	record->updated_ms = clock_wall_ms();
	record->examples = buf_str(&s.examples);
	b->passed = s.passed.count;
	b->any_left = s.passed.more;
	if (status == STATUS_OK)
		status = record_set(tx, b, b->stretch, record);
	b->bytes = kv_tx_stats(tx).size_bytes;
	buf_release(&s.examples);
	return status;
}

static enum status
step_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct build *b = arg;
	struct index_build_record record;
	struct kv_future *f;
	struct str value;

	/*
	 * Fewer documents are done sooner, so that fewer writers are in the way, and before the
	 * store has forgotten the version that is read.
	 */
	if (b->attempts++) {
		b->exact = true;
		if (b->limit > 1)
			b->limit /= 2;
	}
	b->passed = b->bytes = 0;
	b->any_left = false;
	TRY(build_begin(tx, b));
	if (!b->def)
		return STATUS_OK;
	index_key_stretch(&key, b->db, b->key->number, b->stretch);
	TRY(catalog_key_status(&key));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_OK;
	TRY(index_build_record_parse(value, b->arena, &record, kv_tx_err(tx)));
	return record.done ? STATUS_OK : step_advance(tx, b, &record);
}

/* ---- The end ---- */

/* What the build has found, for people. */
static void
failure_write(const struct index_build_record *records, size_t count, uint64_t violations,
	      struct buf *out)
{
	bool any = false;

	buf_printf(out, "%llu documents have the values of others; some of them: [",
		   (unsigned long long)violations);
	for (size_t i = 0; i < count; i++) {
		struct str examples = records[i].examples;

		if (!examples.len || out->len + examples.len + 2 > BUILD_FAILURE_BYTES)
			continue;
		if (any)
			buf_append_byte(out, ',');
		buf_append_str(out, examples);
		any = true;
	}
	buf_append_byte(out, ']');
}

/* READY, or FAILED with what was found, if every stretch is done. */
static enum status
finish_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf failure = BUF_INIT(BUILD_FAILURE_BYTES + 16);
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct index_build_record records[INDEX_BUILD_STRETCHES];
	struct build *b = arg;
	uint64_t violations = 0;
	size_t count;

	TRY(build_begin(tx, b));
	if (!b->def)
		return STATUS_OK;
	TRY(index_build_records(tx, b->db, b->key->number, KV_READ, b->arena, records, &count));
	for (size_t i = 0; i < count; i++) {
		if (!records[i].done)
			return STATUS_OK;
		violations += records[i].violations;
	}
	if (count == 0)
		return STATUS_OK;
	index_key_build(&begin, b->db, b->key->number);
	TRY(catalog_key_status(&begin));
	TRY(tuple_prefix_end(buf_str(&begin), &end));
	TRY(catalog_key_status(&end));
	TRY(kv_clear_range(tx, buf_str(&begin), buf_str(&end)));
	if (violations)
		failure_write(records, count, violations, &failure);
	TRY(buf_status(&failure));
	b->state = violations ? INDEX_FAILED : INDEX_READY;
	return index_state_set(tx, b->db, b->def, b->state, buf_str(&failure));
}

/* ---- Running ---- */

struct tending {
	struct kv_store *store;
	const struct catalog_db *db;
};

/*
 * Splits the counters by range of the entries, which the chore of tending would come to later. What
 * fails here is left to that.
 */
static void
entries_tend(void *arg)
{
	const struct tending *t = arg;
	struct err ignored = { 0 };
	bool more = true;

	for (int i = 0; i < BUILD_TENDINGS && more; i++)
		if (catalog_tally_tend(t->store, t->db, NULL, &more, &ignored) != STATUS_OK)
			return;
}

static enum status
build_finish(struct kv_store *store, struct build *b, struct err *err)
{
	struct tending t = { store, b->db };

	/* It goes through all entries once. */
	wait_compute(entries_tend, &t);
	return kv_run(store, finish_body, b, NULL, err);
}

/* How many documents the next step takes. */
static void
step_resize(struct build *b, uint64_t took_ns)
{
	const uint64_t most_ns = INDEX_BUILD_STEP_MS * CLOCK_NS_PER_MS;
	uint64_t most = (uint64_t)b->limit * INDEX_BUILD_STEP_GROWTH;

	/* A failed attempt has halved it. */
	if (b->attempts != 1 || !b->passed)
		return;
	if (most > b->most)
		most = b->most;
	if (b->bytes && most > b->passed * INDEX_BUILD_STEP_BYTES / b->bytes)
		most = b->passed * INDEX_BUILD_STEP_BYTES / b->bytes;
	if (most > b->limit && most * took_ns > b->passed * most_ns)
		most = b->passed * most_ns / took_ns > b->limit ? b->passed * most_ns / took_ns
								: b->limit;
	if (took_ns > most_ns && most > b->limit / 2)
		most = b->limit / 2;
	b->limit = most ? (size_t)most : 1;
}

/* One step; with fewer documents if a transaction cannot hold so many, or fails. */
static enum status
step_run(struct kv_store *store, struct build *b, struct err *err)
{
	uint64_t began_ns;
	enum status status;

	for (;;) {
		b->attempts = 0;
		began_ns = clock_mono_ns();
		status = kv_run(store, step_body, b, NULL, err);
		if ((status != STATUS_TX_TOO_LARGE && status != STATUS_LIMIT) || b->limit == 1)
			break;
		b->limit = b->limit > 4 ? b->limit / 4 : 1;
		b->most = b->limit;
	}
	if (status != STATUS_OK)
		return status;
	metric_add(&documents_built, b->passed);
	step_resize(b, clock_mono_ns() - began_ns);
	return STATUS_OK;
}

/* Chooses stretches and goes on with them; `steps` 0 finishes a build of which nothing is left. */
static enum status
build_run_steps(struct kv_store *store, struct build *b, unsigned steps, struct err *err)
{
	unsigned waits = b->preferred == INDEX_BUILD_OF_REQUESTS ? BUILD_WAITS : 1;

	for (;;) {
		if (!b->any_left) {
			build_leave(b);
			TRY(kv_run(store, plan_body, b, NULL, err));
			if (!b->def)
				return STATUS_OK;
			if (b->stretches && !plan_choose(b)) {
				if (steps == 0 || waits == 0)
					return STATUS_OK;
				/* Lets those work who are at all that is left. */
				wait_pause(BUILD_WAIT_MS);
				waits--;
				continue;
			}
			if (b->stretches && !b->any_left)
				return build_finish(store, b, err);
		}
		if (steps == 0)
			return STATUS_OK;
		if (!b->any_left)
			continue; /* the stretches have just been made */
		TRY(step_run(store, b, err));
		steps--;
	}
}

enum status
index_build_run(struct kv_store *store, const struct index_build_key *key, uint64_t preferred,
		unsigned steps, enum index_state *ret_state, struct err *err)
{
	struct build b = {
		.key = key,
		.arena = arena_new(INDEX_BUILD_ARENA_BYTES),
		.lasting = arena_new(BUILD_LASTING_BYTES),
		.limit = INDEX_BUILD_STEP_DOCS,
		.most = INDEX_BUILD_STEP_MOST,
		.err = err,
		.preferred = preferred,
	};
	enum status status = STATUS_NOMEM;

	if (b.arena && b.lasting)
		status = build_run_steps(store, &b, steps, err);
	build_leave(&b);
	build_close(&b);
	arena_free(b.arena);
	arena_free(b.lasting);
	*ret_state = b.state;
	return status;
}
