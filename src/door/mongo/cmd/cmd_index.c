/* createIndexes, dropIndexes, listIndexes. */
#include "base/words.h"
#include "door/mongo/cmd/commands.h"
#include "door/mongo/cmd/list.h"
#include "door/mongo/index/clustered.h"
#include "door/mongo/index/index.h"
#include "door/mongo/txn/client.h"
#include "door/mongo/txn/data.h"
#include "door/mongo/txn/mongo_int.h"
#include "door/mongo/txn/run.h"

enum {
	BUILD_STEPS = 4, /* between two looks whether the command is interrupted */
	UUID_SUBTYPE = 4,
	UUID_BYTES = 16,
	/* MongoDB's codes, which have no names. */
	CLUSTERED_NOT_DROPPED = 5979800,
	CLUSTERED_NOT_IMPLICIT = 6100900,
	CLUSTERED_NOT_THERE = 6243700,
};

#define ARGS_CREATE_INDEXES(ARG)                                                                   \
	ARG(CREATE_INDEXES, "indexes", ARG_ARRAY | ARG_REQUIRED)                                   \
	ARG(CREATE_QUORUM, "commitQuorum", ARG_IGNORED)                                            \
	ARG(CREATE_IGNORES, "ignoreUnknownIndexOptions", ARG_BOOL)
ARGS_DEFINE(args_create_indexes, ARGS_CREATE_INDEXES);

#define ARGS_DROP_INDEXES(ARG)                                                                     \
	ARG(DROP_INDEX, "index", ARG_STRING | ARG_OBJECT | ARG_ARRAY | ARG_REQUIRED)
ARGS_DEFINE(args_drop_indexes, ARGS_DROP_INDEXES);

#define ARGS_LIST_INDEXES(ARG)                                                                     \
	ARG(LIST_CURSOR, "cursor", ARG_OBJECT)                                                     \
	ARG(LIST_BUILD_UUIDS, "includeBuildUUIDs", ARG_BOOL)                                       \
	ARG(LIST_BUILD_INFO, "includeIndexBuildInfo", ARG_BOOL)
ARGS_DEFINE(args_list_indexes, ARGS_LIST_INDEXES);

/* ---- createIndexes ---- */

struct creating {
	struct data data;
	const struct str *specs;     /* all of them, as they are asked for */
	const bool *takes_collation; /* which of them name none */
	size_t spec_count;
	size_t at;       /* the present one */
	struct str spec; /* the same, with the collation that the collection gives it */
	bool made_collection;
	bool made;     /* an index */
	size_t before; /* indexes */
	uint64_t number;
	uint64_t db_number;
	enum status refused; /* why the build has failed */
};

/* What change streams are told: {indexes: [spec]}. */
static enum status
notice_indexes(struct data *d, enum plain_notice_kind kind, struct str spec)
{
	struct buf AUTO(buf_release) made = BUF_SHORT(2 * INDEX_SPEC_BYTES);
	struct bson_builder b;

	bson_open(&b, &made);
	bson_begin_array(&b, STR("indexes"));
	bson_put_document(&b, STR(""), spec);
	bson_end(&b);
	bson_end(&b);
	TRY(buf_status(&made));
	return data_notice(d, kind, buf_str(&made));
}

/* `clustered` is for an index that is there, that of a clustered collection. */
static enum status
check_clustered(struct creating *x)
{
	struct call *c = x->data.call;
	bool is_clustered = x->data.is_there && clustered_of(x->data.db).len;
	struct bson_value key;
	struct bson_element e;
	struct bson_iter i;

	for (bson_iter_begin(&i, bson_text(&c->args[CREATE_INDEXES].value));
	     bson_iter_read(&i, &e);) {
		if (!bson_find(bson_text(&e.value), STR("clustered"), NULL))
			continue;
		if (!x->data.is_there)
			return call_fail(c, CLUSTERED_NOT_IMPLICIT,
					 "Cannot implicitly create a new collection with "
					 "createIndex 'clustered' option");
		(void)bson_find(bson_text(&e.value), STR("key"), &key);
		if (!is_clustered || !index_key_is_id(bson_text(&key)))
			return call_fail(c, CLUSTERED_NOT_THERE,
					 "Cannot create index with option 'clustered' that does "
					 "not match an existing clustered index");
	}
	return STATUS_OK;
}

static bool
spec_is_id(struct str spec)
{
	struct bson_value key;

	return bson_find(spec, STR("key"), &key) && index_key_is_id(bson_text(&key));
}

/* The description in the collection that is open: it has the collection's collation by default. */
static enum status
collate_spec(struct creating *x, size_t at, struct str *ret)
{
	struct str collation = data_collation_document(&x->data);

	*ret = x->specs[at];
	if (!x->takes_collation[at] || !collation.len)
		return STATUS_OK;
	return index_spec_collate(x->data.call, x->specs[at], collation, ret);
}

/* The index by `_id` is there, and has the collation of the collection. */
static enum status
check_id_collation(const struct creating *x, size_t at)
{
	struct str own = bson_find_document(x->specs[at], STR("collation"));

	if (x->takes_collation[at] ||
	    str_eq(bson_is_empty(own) ? STR("") : own, data_collation_document(&x->data)))
		return STATUS_OK;
	return call_fail(x->data.call, MONGO_BAD_VALUE,
			 "The _id index must have the same collation as the collection.");
}

/* Nothing is made if one of them cannot be. */
static enum status
check_specs(struct creating *x)
{
	struct call *c = x->data.call;
	struct str *specs = arena_alloc(c->arena, (x->spec_count + 1) * sizeof(*specs));
	const struct index_def *found;
	size_t count = 0;
	bool same; /* then the second one finds the first */

	if (!specs)
		return STATUS_LIMIT;
	TRY(check_clustered(x));
	for (size_t i = 0; i < x->spec_count; i++) {
		if (spec_is_id(x->specs[i])) {
			TRY(check_id_collation(x, i));
			continue;
		}
		TRY(collate_spec(x, i, &specs[count]));
		for (size_t k = 0; k < count; k++)
			TRY(index_check_conflict(c, specs[k], specs[count], &same));
		if (x->data.is_there)
			TRY(index_find_same(c, x->data.db, specs[count], &found));
		count++;
	}
	return STATUS_OK;
}

static enum status
make_body(struct kv_tx *tx, void *arg)
{
	struct creating *x = arg;
	struct call *c = x->data.call;

	x->made_collection = false;
	TRY(data_begin(&x->data, tx));
	TRY(check_specs(x));
	if (!x->data.is_there) {
		x->made_collection = true;
		x->before = 1;
		TRY(plain_create(tx, x->data.ns, data_scheme(c), BSON_EMPTY, &c->err));
		return data_created(&x->data, tx);
	}
	x->before = index_count_told(x->data.db);
	return STATUS_OK;
}

/* A transaction cannot wait for an index that has to be built. */
static enum status
check_is_ready(struct creating *x, struct kv_tx *tx)
{
	struct call *c = x->data.call;
	const struct index_def *def;

	TRY(data_open(&x->data, tx));
	def = x->data.is_there ? index_find(x->data.db, x->number) : NULL;
	if (def && def->state == INDEX_READY)
		return STATUS_OK;
	return call_fail(c, MONGO_NOT_IN_TRANSACTION,
			 "Cannot create new indexes on existing collection %.*s in a "
			 "multi-document transaction.",
			 STR_ARG(x->data.ns));
}

static enum status
create_one(struct creating *x, struct kv_tx *tx)
{
	struct call *c = x->data.call;
	const struct index_def *same;

	x->made = false;
	TRY(data_begin(&x->data, tx));
	if (!x->data.is_there)
		return call_fail(c, MONGO_NAMESPACE_NOT_FOUND,
				 "the collection was dropped meanwhile");
	x->db_number = x->data.db->number;
	TRY(collate_spec(x, x->at, &x->spec));
	TRY(index_find_same(c, x->data.db, x->spec, &same));
	if (same) {
		x->number = same->number; /* another client may be waiting for it, too */
		return index_is_stale(same) || same->state == INDEX_STALE
			       ? index_renew(tx, x->data.db, same, &x->number, &c->err)
			       : STATUS_OK;
	}
	if (index_count_all(x->data.db) >= INDEX_LIST)
		return call_fail(
			c, MONGO_CANNOT_CREATE_INDEX,
			"add index fails, too many indexes for %.*s; the limit, INDEX_LIST, "
			"is %d",
			STR_ARG(x->data.ns), INDEX_LIST);
	x->made = true;
	TRY(plain_index_create(tx, x->data.db, x->spec, c->arena, &x->number, &c->err));
	return notice_indexes(&x->data, PLAIN_NOTICE_INDEXES_CREATED, x->spec);
}

static enum status
create_indexes_body(struct kv_tx *tx, void *arg)
{
	struct creating *x = arg;

	TRY(create_one(x, tx));
	return x->data.call->txn ? check_is_ready(x, tx) : STATUS_OK;
}

/* Looks why a build has failed, and drops the index. */
static enum status
failed_body(struct kv_tx *tx, void *arg)
{
	struct creating *x = arg;
	struct call *c = x->data.call;
	const struct index_def *def;

	TRY(data_begin(&x->data, tx));
	x->refused = STATUS_NOT_FOUND;
	def = x->data.is_there ? index_find(x->data.db, x->number) : NULL;
	if (!def)
		return STATUS_OK;
	x->refused = plain_index_failure(&x->data.plain, def, c->arena);
	if (x->refused != STATUS_DUPLICATE && x->refused != STATUS_UNSUPPORTED &&
	    x->refused != STATUS_NOT_FOUND)
		return x->refused;
	return def->state == INDEX_FAILED ? index_drop(tx, x->data.db, def) : STATUS_OK;
}

static enum status
build_failed(struct call *c, struct creating *x)
{
	struct bson_value name;

	TRY(call_run(c, failed_body, x));
	if (x->refused != STATUS_NOT_FOUND)
		return index_fail(c, x->data.ns, &x->data.plain.refused, x->refused);
	(void)bson_find(x->specs[x->at], STR("name"), &name);
	return call_fail(c, MONGO_DUPLICATE_KEY,
			 "E11000 duplicate key error collection: %.*s index: %.*s",
			 STR_ARG(x->data.ns), STR_ARG(bson_text(&name)));
}

/* Builds until the index is READY; other processes and threads may be at it, too. */
static enum status
build(struct call *c, struct creating *x)
{
	const struct index_build_key key = { .space = CATALOG_SPACE_MONGO,
					     .db_name = x->data.ns,
					     .db_number = x->db_number,
					     .number = x->number,
					     .claims = true };
	enum index_state state = INDEX_BUILDING;

	while (state == INDEX_BUILDING) {
		TRY(mongo_client_check_waiting(c->client));
		TRY(index_build_run(c->mongo->config.store, &key, INDEX_BUILD_OF_REQUESTS,
				    BUILD_STEPS, &state, &c->err));
	}
	if (state == INDEX_FAILED)
		return build_failed(c, x);
	if (state == INDEX_READY)
		return STATUS_OK;
	return call_fail(c, MONGO_INDEX_BUILD_ABORTED,
			 "the index was dropped while it was being built");
}

/* What MongoDB 8 knows of an index, whether or not it is here. `dropDups` has no effect there. */
static bool
option_is_known(struct str name)
{
	static const char *const known[] = {
		"2dsphereIndexVersion",
		"background",
		"bits",
		"bucketSize",
		"clustered",
		"coarsestIndexedLevel",
		"collation",
		"columnstoreProjection",
		"default_language",
		"disallowNewDuplicateKeys",
		"expireAfterSeconds",
		"finestIndexedLevel",
		"hidden",
		"key",
		"language_override",
		"max",
		"min",
		"name",
		"ns",
		"partialFilterExpression",
		"prepareUnique",
		"sparse",
		"storageEngine",
		"textIndexVersion",
		"unique",
		"v",
		"weights",
		"wildcardProjection",
	};

	return WORDS_HAVE(known, name);
}

/*
 * A description without members that are no options of indexes, which old servers have kept. In
 * the arena.
 */
static enum status
leave_out_unknown(struct call *c, struct str given, struct str *ret)
{
	AUTO(buf_release) struct buf out = BUF_INIT_OF(BSON_MOST_BYTES, arena_part(c->arena));
	struct bson_builder b;
	struct bson_element e;
	struct bson_iter i;

	bson_open(&b, &out);
	for (bson_iter_begin(&i, given); bson_iter_read(&i, &e);)
		if (option_is_known(e.name))
			bson_put(&b, e.name, &e.value);
	bson_end(&b);
	return buf_copy(&out, c->arena, ret);
}

/* All descriptions are checked before the first index is made. */
static enum status
read_specs(struct call *c, struct creating *ret)
{
	struct str list = bson_text(&c->args[CREATE_INDEXES].value);
	bool ignores = call_bool(c, CREATE_IGNORES, false);
	size_t count = bson_count(list), at = 0;
	struct str *specs = arena_alloc(c->arena, (count + 1) * sizeof(*specs));
	bool *takes_collation = arena_alloc(c->arena, (count + 1) * sizeof(*takes_collation));
	struct str spec;
	struct bson_element e;
	struct bson_iter i;

	if (!specs || !takes_collation)
		return STATUS_LIMIT;
	if (!count)
		return call_fail(c, MONGO_BAD_VALUE, "Must specify at least one index to create");
	/* Each is compared with those before it. */
	if (count > INDEX_LIST)
		return call_fail(c, MONGO_CANNOT_CREATE_INDEX,
				 "a command makes at most as many indexes as a collection has, %d "
				 "(INDEX_LIST)",
				 INDEX_LIST);
	for (bson_iter_begin(&i, list); bson_iter_read(&i, &e);) {
		if (e.value.type != BSON_DOCUMENT)
			return call_fail(c, MONGO_TYPE_MISMATCH,
					 "The elements of the 'indexes' array must be objects, but "
					 "got %s",
					 bson_type_name(e.value.type));
		spec = bson_text(&e.value);
		if (ignores)
			TRY(leave_out_unknown(c, spec, &spec));
		TRY(index_read_spec(c, spec, &specs[at]));
		takes_collation[at] = !bson_find(spec, STR("collation"), NULL);
		at++;
	}
	ret->specs = specs;
	ret->takes_collation = takes_collation;
	ret->spec_count = at;
	return STATUS_OK;
}

static enum status
create_all(struct call *c, struct creating *x, size_t *ret_made)
{
	*ret_made = 0;
	for (x->at = 0; x->at < x->spec_count; x->at++) {
		if (spec_is_id(x->specs[x->at]))
			continue;
		TRY(call_run(c, create_indexes_body, x));
		*ret_made += x->made;
		if (!c->txn)
			TRY(build(c, x));
	}
	return STATUS_OK;
}

enum status
mongo_run_create_indexes(struct call *c)
{
	struct creating x = { 0 };
	enum status status;
	struct str ns;
	size_t made;

	TRY(data_check_concern(c));
	TRY(read_specs(c, &x));
	TRY(data_ns(c, &ns));
	data_init(&x.data, c, ns, false);
	status = call_run(c, make_body, &x);
	if (status == STATUS_OK)
		status = create_all(c, &x, &made);
	data_fini(&x.data);
	TRY(status);
	bson_put_int32(c->reply, STR("numIndexesBefore"), (int32_t)x.before);
	bson_put_int32(c->reply, STR("numIndexesAfter"), (int32_t)(x.before + made));
	bson_put_bool(c->reply, STR("createdCollectionAutomatically"), x.made_collection);
	if (!made)
		bson_put_string(c->reply, STR("note"), STR("all indexes already exist"));
	data_put_concern(c);
	return STATUS_OK;
}

/* ---- dropIndexes ---- */

struct dropping {
	struct data data;
	size_t before;
	bool all;
};

static enum status
drop_one(struct dropping *d, struct kv_tx *tx, const struct index_def *def)
{
	TRY(notice_indexes(&d->data, PLAIN_NOTICE_INDEXES_DROPPED, def->spec));
	return index_drop(tx, d->data.db, def);
}

/* The index by `_id` stays. A clustered collection has another name for it. */
static enum status
fail_clustered(struct call *c)
{
	return call_fail(c, CLUSTERED_NOT_DROPPED, "cannot drop the clustered index");
}

static enum status
drop_by_name(struct dropping *d, struct kv_tx *tx, struct str name)
{
	struct call *c = d->data.call;
	struct str clustered = clustered_of(d->data.db);
	const struct index_def *def;
	struct bson_value own;

	if (clustered.len && bson_find(clustered, STR("name"), &own) &&
	    str_eq(bson_text(&own), name))
		return fail_clustered(c);
	if (!clustered.len && str_eq(name, STR("_id_")))
		return call_fail(c, MONGO_INVALID_OPTIONS, "cannot drop _id index");
	for (size_t i = 0; (def = index_at(d->data.db, i)) != NULL; i++)
		if (str_eq(def->name, name))
			return drop_one(d, tx, def);
	return call_fail(c, MONGO_INDEX_NOT_FOUND, "index not found with name [%.*s]",
			 (int)(name.len < 500 ? name.len : 500), name.ptr);
}

static enum status
drop_by_key(struct dropping *d, struct kv_tx *tx, struct str key)
{
	struct call *c = d->data.call;
	const struct index_def *def;

	if (index_key_is_id(key))
		return clustered_of(d->data.db).len
			       ? fail_clustered(c)
			       : call_fail(c, MONGO_INVALID_OPTIONS, "cannot drop _id index");
	TRY(index_find_by_key(c, d->data.db, key, &def));
	return drop_one(d, tx, def);
}

static enum status
drop_list(struct dropping *d, struct kv_tx *tx, struct str names)
{
	struct bson_element e;
	struct bson_iter i;

	for (bson_iter_begin(&i, names); bson_iter_read(&i, &e);) {
		if (e.value.type != BSON_STRING)
			return call_fail(d->data.call, MONGO_TYPE_MISMATCH,
					 "dropIndexes takes a list of names only");
		TRY(drop_by_name(d, tx, bson_text(&e.value)));
	}
	return STATUS_OK;
}

static enum status
drop_body(struct kv_tx *tx, void *arg)
{
	struct dropping *d = arg;
	struct call *c = d->data.call;
	const struct bson_value *v = &c->args[DROP_INDEX].value;
	const struct index_def *def;

	TRY(data_begin(&d->data, tx));
	if (!d->data.is_there)
		return call_fail(c, MONGO_NAMESPACE_NOT_FOUND, "ns not found %.*s",
				 STR_ARG(d->data.ns));
	d->before = index_count_told(d->data.db);
	if (!d->all && v->type == BSON_STRING)
		return drop_by_name(d, tx, bson_text(v));
	if (!d->all && v->type == BSON_DOCUMENT)
		return drop_by_key(d, tx, bson_text(v));
	if (!d->all)
		return drop_list(d, tx, bson_text(v));
	for (size_t i = 0; (def = index_at(d->data.db, i)) != NULL; i++)
		TRY(drop_one(d, tx, def));
	return STATUS_OK;
}

enum status
mongo_run_drop_indexes(struct call *c)
{
	const struct bson_value *v = &c->args[DROP_INDEX].value;
	struct dropping d = { .all = v->type == BSON_STRING && str_eq(bson_text(v), STR("*")) };
	enum status status;
	struct str ns;

	TRY(data_check_concern(c));
	TRY(data_ns(c, &ns));
	data_init(&d.data, c, ns, false);
	status = call_run(c, drop_body, &d);
	data_fini(&d.data);
	TRY(status);
	bson_put_int32(c->reply, STR("nIndexesWas"), (int32_t)d.before);
	if (d.all)
		bson_put_string(c->reply, STR("msg"),
				STR("non-_id indexes dropped for collection"));
	data_put_concern(c);
	return STATUS_OK;
}

/* ---- listIndexes ---- */

struct listing {
	struct data data;
	struct str *rows; /* in the arena, as they are told */
	size_t count;
	bool uuids;
	bool infos;
};

/* A build is known by its collection and the number of its index there. */
static void
put_build_uuid(const struct listing *l, uint64_t number, struct bson_builder *b)
{
	char uuid[UUID_BYTES];

	static_assert(sizeof(uuid) == sizeof(l->data.db->uuid), "one for each collection");
	memcpy(uuid, l->data.db->uuid, sizeof(uuid));
	for (size_t i = 0; i < sizeof(number); i++)
		uuid[UUID_BYTES - 1 - i] = (char)(uuid[UUID_BYTES - 1 - i] ^
						  (char)(number >> 8 * i));
	bson_put_binary(b, STR("buildUUID"), UUID_SUBTYPE, str_of(uuid, sizeof(uuid)));
}

/* `def`: NULL of the index by `_id`. */
static enum status
list_one(struct listing *l, const struct index_def *def)
{
	struct buf AUTO(buf_release)
		id = BUF_INIT_OF(BSON_MOST_BYTES, arena_part(l->data.call->arena));
	struct buf AUTO(buf_release)
		row = BUF_INIT_OF(BSON_MOST_BYTES, arena_part(l->data.call->arena));
	bool builds = def && def->state == INDEX_BUILDING;
	struct str spec = def ? def->spec : STR("");
	struct bson_builder b;

	if (!def) {
		bson_builder_init(&b, &id);
		index_put_only_id(&b, l->data.db);
		TRY(buf_status(&id));
		spec = buf_str(&id);
	}
	bson_open(&b, &row);
	if (l->infos || (l->uuids && builds))
		bson_put_document(&b, STR("spec"), spec);
	else
		bson_put_elements(&b, spec);
	if (l->infos && builds)
		bson_begin_document(&b, STR("indexBuildInfo"));
	if ((l->infos || l->uuids) && builds)
		put_build_uuid(l, def->number, &b);
	if (l->infos && builds)
		bson_end(&b);
	bson_end(&b);
	TRY(buf_status(&row));
	l->rows[l->count] = buf_dup(&row, l->data.call->arena);
	return l->rows[l->count++].ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
list_body(struct kv_tx *tx, void *arg)
{
	struct listing *l = arg;
	struct call *c = l->data.call;
	const struct index_def *def;

	TRY(data_begin(&l->data, tx));
	if (!l->data.is_there)
		return call_fail(c, MONGO_NAMESPACE_NOT_FOUND, "ns does not exist: %.*s",
				 STR_ARG(l->data.ns));
	l->count = 0;
	l->rows = arena_alloc(c->arena, index_count_all(l->data.db) * sizeof(*l->rows));
	if (!l->rows)
		return STATUS_LIMIT;
	TRY(list_one(l, NULL));
	for (size_t i = 0; (def = index_at(l->data.db, i)) != NULL; i++)
		TRY(list_one(l, def));
	return STATUS_OK;
}

static enum status
list_answer(struct call *c, const struct listing *l, struct str ns)
{
	AUTO(list_answer_fini) struct list_answer answer = { 0 };

	TRY(list_answer_begin(&answer, c, &c->args[LIST_CURSOR], ns));
	for (size_t i = 0; i < l->count; i++)
		TRY(list_answer_put(&answer, l->rows[i]));
	return list_answer_end(&answer);
}

enum status
mongo_run_list_indexes(struct call *c)
{
	struct listing l = { .uuids = call_bool(c, LIST_BUILD_UUIDS, false),
			     .infos = call_bool(c, LIST_BUILD_INFO, false) };
	enum status status;
	struct str ns;

	if (l.uuids && l.infos)
		return call_fail(c, MONGO_INVALID_OPTIONS,
				 "The includeBuildUUIDs flag and includeIndexBuildInfo flag cannot "
				 "both be set to true");
	TRY(data_ns(c, &ns));
	data_init(&l.data, c, ns, false);
	status = call_read(c, list_body, &l);
	data_fini(&l.data);
	TRY(status);
	return list_answer(c, &l, ns);
}

enum status
mongo_run_search_indexes(struct call *c)
{
	return call_fail(c, MONGO_NO_SEARCH,
			 "search indexes are not supported: MongoDB has them in Atlas only");
}
