/* The registry of groups and their records. */
#include "base/rand.h"
#include "index/versions.h"
#include "index/view/build.h"
#include "index/view/keys.h"
#include "kv/fate.h"

enum {
	DOCUMENTS_MOST = 8, /* kinds of databases */
};

static const struct view_documents *registered[DOCUMENTS_MOST];

void
view_documents_register(const struct view_documents *documents)
{
	for (size_t i = 0; i < DOCUMENTS_MOST; i++) {
		if (registered[i] && registered[i]->kind != documents->kind)
			continue;
		/*
		 * Not written again by a repeated call, because other threads may be reading it by
		 * then.
		 */
		if (registered[i] != documents)
			registered[i] = documents;
		return;
	}
}

const struct view_documents *
view_documents_of(const struct catalog_db *db)
{
	for (size_t i = 0; i < DOCUMENTS_MOST && registered[i]; i++)
		if (registered[i]->kind == db->kind->number)
			return registered[i];
	return NULL;
}

enum status
view_build_open_db(const struct view_build *build, struct kv_tx *tx, struct catalog_db **ret,
		   struct err *err)
{
	struct catalog_db *db;

	TRY(catalog_open(tx, NULL, build->space, build->db_name, &db, err));
	if (db->number == build->db_number && view_documents_of(db)) {
		*ret = db;
		return STATUS_OK;
	}
	catalog_db_unref(db);
	return err_set(err, STATUS_NOT_FOUND, "Database does not exist.");
}

/* ---- Reading ---- */

static enum status
group_number_read(struct kv_tx *tx, const struct catalog_db *db, const struct view_design *design,
		  enum kv_read mode, uint64_t *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct index_versions versions;
	struct tuple_reader r;
	struct kv_future *f;
	struct str value;

	index_versions_read(&versions);
	view_key_name(&key, db, design->signature, str_from_cstr(versions.collator));
	TRY(catalog_key_status(&key));
	f = kv_get(tx, buf_str(&key), mode);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_NOT_FOUND;
	r = tuple_reader(value);
	return tuple_next_u64(&r, ret);
}

static enum status
record_read(struct kv_tx *tx, const struct catalog_db *db, uint64_t number, enum kv_read mode,
	    struct arena *arena, struct view_record *ret, struct err *err)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct str value;

	view_key_group(&key, db, VIEW_KEYS_GROUPS, number);
	TRY(catalog_key_status(&key));
	f = kv_get(tx, buf_str(&key), mode);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_CORRUPT; /* it is registered */
	TRY(arena_copy(arena, value, &value));
	return view_record_parse(value, arena, ret, err);
}

enum status
view_build_read(struct kv_tx *tx, const struct catalog_db *db, const struct view_design *design,
		enum kv_read mode, struct arena *arena, struct view_record *ret, struct err *err)
{
	uint64_t number;

	TRY(group_number_read(tx, db, design, mode, &number));
	TRY(record_read(tx, db, number, mode, arena, ret, err));
	return ret->group.map_count == design->map_count ? STATUS_OK : STATUS_CORRUPT;
}

enum status
view_group_open(struct kv_tx *tx, const struct catalog_db *db, const struct view_design *design,
		struct arena *arena, struct view_group *ret, struct err *err)
{
	struct view_record record;

	TRY(view_build_read(tx, db, design, KV_SNAPSHOT, arena, &record, err));
	*ret = record.group;
	return STATUS_OK;
}

enum status
view_group_bytes(struct kv_tx *tx, const struct catalog_db *db, const struct view_group *group,
		 uint64_t *ret)
{
	static const uint64_t kinds[] = { VIEW_KEYS_ROWS, VIEW_KEYS_DOCS, VIEW_KEYS_TEXTS,
					  VIEW_KEYS_LACKS };
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	uint64_t bytes;

	*ret = 0;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		buf_clear(&hi);
		view_key_group(&lo, db, kinds[i], group->number);
		TRY(catalog_key_status(&lo));
		TRY(view_prefix_end(buf_str(&lo), &hi));
		TRY(kv_estimate_bytes(kv_tx_store(tx), buf_str(&lo), buf_str(&hi), &bytes));
		*ret += bytes;
	}
	return STATUS_OK;
}

/* ---- Writing ---- */

enum status
view_build_write(struct kv_tx *tx, const struct catalog_db *db, const struct view_record *record)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(VIEW_VALUE_BYTES);

	view_key_group(&key, db, VIEW_KEYS_GROUPS, record->group.number);
	view_record_put(&value, record);
	TRY(catalog_key_status(&key));
	TRY(buf_status(&value));
	return kv_set(tx, buf_str(&key), buf_str(&value));
}

enum status
view_purge_reader(uint64_t number, struct arena *arena, struct str *ret)
{
	*ret = arena_printf(arena, "view-%llu", (unsigned long long)number);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

/* The number that the next group gets. */
static enum status
group_number_take(struct kv_tx *tx, const struct catalog_db *db, uint64_t *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(VIEW_VALUE_BYTES);
	struct tuple_reader r;
	struct kv_future *f;
	struct str old;

	view_key_number(&key, db);
	TRY(catalog_key_status(&key));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	*ret = 1;
	if (kv_future_value(f, &old)) {
		r = tuple_reader(old);
		TRY(tuple_next_u64(&r, ret));
	}
	tuple_put_u64(&value, *ret + 1);
	TRY(buf_status(&value));
	return kv_set(tx, buf_str(&key), buf_str(&value));
}

static enum status
group_create(struct kv_tx *tx, const struct catalog_db *db, const struct view_design *design,
	     struct arena *arena, struct view_record *ret, struct err *err)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(VIEW_VALUE_BYTES);
	const struct view_documents *documents = view_documents_of(db);
	struct view_group *g = &ret->group;
	struct index_versions versions;
	struct str reader;

	TRY(catalog_db_check_writable(db, err));
	*ret = (struct view_record){ .work_level = 1, .work_place = STR("") };
	g->phase = VIEW_PHASE_ROWS;
	g->partitioned = design->partitioned;
	g->map_count = design->map_count;
	memcpy(g->signature, design->signature, sizeof(g->signature));
	rand_bytes(g->seed, sizeof(g->seed));
	TRY(group_number_take(tx, db, &g->number));
	TRY(view_purge_reader(g->number, arena, &reader));
	TRY(documents->purge_reader_add(tx, db, reader, &g->purge_seq, err));
	TRY(documents->newest(tx, db, &ret->fresh));
	TRY(documents->count(tx, db, &g->covers, &ret->total, &ret->total));
	index_versions_read(&versions);
	view_key_name(&key, db, design->signature, str_from_cstr(versions.collator));
	tuple_put_u64(&value, g->number);
	TRY(catalog_key_status(&key));
	TRY(buf_status(&value));
	TRY(kv_set(tx, buf_str(&key), buf_str(&value)));
	return view_build_write(tx, db, ret);
}

struct state_reading {
	const struct view_build *build;
	struct arena *arena;
	struct view_record *ret;
};

static enum status
state_body(struct kv_tx *tx, void *arg)
{
	struct state_reading *s = arg;
	AUTO(view_db_unref) struct catalog_db *db = NULL;
	enum status status;

	TRY(view_build_open_db(s->build, tx, &db, kv_tx_err(tx)));
	status = view_build_read(tx, db, s->build->design, KV_READ, s->arena, s->ret,
				 kv_tx_err(tx));
	if (status != STATUS_NOT_FOUND)
		return status;
	return group_create(tx, db, s->build->design, s->arena, s->ret, kv_tx_err(tx));
}

enum status
view_build_state(const struct view_build *build, struct arena *arena, struct view_record *ret,
		 struct err *err)
{
	struct state_reading reading = { build, arena, ret };

	return kv_run(build->store, state_body, &reading, NULL, err);
}

/* Halves what a step does. Returns false if it is as little as it can be. */
static bool
size_halve(struct view_step_size *size)
{
	if (size->most > 1)
		size->most /= 2;
	else if (size->bytes / 2 >= VIEW_STEP_BYTES_LEAST)
		size->bytes /= 2;
	else
		return false;
	return true;
}

enum status
view_step_run(struct kv_store *store, view_step_body *body, void *arg, struct view_step_size *size,
	      struct err *err)
{
	struct kv_tx *tx;
	enum status status;
	bool left = false;

	TRY(kv_begin(store, KV_TX_READ_WRITE, &tx));
	status = body(tx, arg);
	if (status == STATUS_OK)
		status = kv_commit_in_time(tx, &left);
	/* The next step reads the record that this one has read and written: one of them fails. */
	if (left)
		return STATUS_BUSY;
	if (status != STATUS_OK && status != STATUS_BUSY) {
		enum status failed = status;
		bool smaller = (failed == STATUS_TX_TOO_OLD || failed == STATUS_TX_TOO_LARGE) &&
			       size_halve(size);

		/* An attempt before this one may have left its reason. */
		if (err)
			*err = *kv_tx_err(tx);
		/* Whether an unknown commit has happened, the record tells. */
		status = kv_on_error(tx, failed);
		if (status == STATUS_OK || failed == STATUS_TX_UNKNOWN || smaller)
			status = STATUS_BUSY;
		else
			status = failed;
	}
	kv_tx_free(tx);
	return status;
}
