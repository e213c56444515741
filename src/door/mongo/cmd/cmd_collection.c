/* Collections: making, changing, renaming and dropping them; dropping a database. */
#include "bson/json.h"
#include "bson/order.h"
#include "door/mongo/cmd/commands.h"
#include "door/mongo/cmd/validate.h"
#include "door/mongo/cmd/view.h"
#include "door/mongo/index/clustered.h"
#include "door/mongo/index/index.h"
#include "door/mongo/index/index_mod.h"
#include "door/mongo/txn/mongo_int.h"
#include "door/mongo/txn/run.h"
#include "mql/collation.h"

#define ARGS_RENAME(ARG)                                                                           \
	ARG(RENAME_TO, "to", ARG_STRING | ARG_REQUIRED)                                            \
	ARG(RENAME_DROPS, "dropTarget", ARG_BOOL)
ARGS_DEFINE(args_rename, ARGS_RENAME);

/* ---- One collection ---- */

struct one {
	struct data data;
	struct validate_ask validate;
	struct view_ask view;
	struct index_mod mod; /* of collMod */
	struct clustered_ask clustered;
	struct str options;      /* of the view */
	struct str collation;    /* of create: the whole document; or empty */
	struct str id_collation; /* that idIndex asks for, likewise */
	bool has_id_collation;
	enum plain_scheme scheme; /* likewise */
	bool has_engine;          /* it was asked for */
	bool has_scheme;          /* likewise */
	struct str to;
	bool drops_target;
	bool was_there;
	bool was_view;
	size_t indexes;
};

static enum status
one_run(struct call *c, struct one *o, kv_body *body)
{
	struct str ns;
	enum status status;

	TRY(data_ns(c, &ns));
	data_init(&o->data, c, ns, false);
	o->data.takes_views = true;
	status = call_run(c, body, o);
	data_fini(&o->data);
	return status;
}

/* The options of the collection, in the arena. */
static enum status
create_options(struct call *c, const struct one *o, struct str *ret)
{
	struct buf AUTO(buf_release) made = BUF_INIT_OF(BSON_MOST_BYTES, arena_part(c->arena));
	struct bson_builder b;
	struct str first;

	bson_open(&b, &made);
	if (o->collation.len)
		bson_put_document(&b, STR("collation"), o->collation);
	clustered_put(&o->clustered, &b);
	bson_end(&b);
	TRY(buf_status(&made));
	first = buf_dup(&made, c->arena);
	return first.ptr ? validate_options(c, first, &o->validate, ret) : STATUS_LIMIT;
}

/* Two documents with the same members, in any order. */
static bool
same_members(struct str a, struct str b)
{
	struct bson_value other;
	struct bson_element e;
	struct bson_iter i;

	if (bson_count(a) != bson_count(b))
		return false;
	for (bson_iter_begin(&i, a); bson_iter_read(&i, &e);)
		if (!bson_find(b, e.name, &other) || !bson_equals(&e.value, &other))
			return false;
	return true;
}

/* What is there already may be created once more, as it is. */
static enum status
create_again(struct one *o, struct str options)
{
	struct call *c = o->data.call;
	const struct catalog_db *db = o->data.db;
	bool same = same_members(plain_options_of(db), options) &&
		    (!o->has_scheme || plain_scheme_of(db) == o->scheme);
	struct buf AUTO(buf_release) text = BUF_SHORT(ERR_TEXT_BYTES);

	if (same && !c->in_transaction)
		return STATUS_OK;
	if (same)
		return call_fail(c, MONGO_NAMESPACE_EXISTS, "Collection %.*s already exists.",
				 STR_ARG(o->data.ns));
	bson_json_write(&text, plain_options_of(db), BSON_JSON_RELAXED);
	return call_fail(c, MONGO_NAMESPACE_EXISTS,
			 "namespace %.*s already exists, but with different options: %.*s",
			 STR_ARG(o->data.ns), STR_ARG(buf_str(&text)));
}

static enum status
create_collection_body(struct kv_tx *tx, void *arg)
{
	struct one *o = arg;
	struct call *c = o->data.call;
	struct str options = o->options;

	TRY(data_begin(&o->data, tx));
	if (!options.len)
		TRY(create_options(c, o, &options));
	if (o->data.is_there)
		return create_again(o, options);
	TRY(plain_create(tx, o->data.ns, o->scheme, options, &c->err));
	return data_created(&o->data, tx);
}

/* An option that is taken and does nothing would be a promise that is not kept. */
static enum status
create_refuse(struct call *c, struct str name)
{
	TRY(clustered_check_member(c, name));
	if (str_eq(name, STR("capped")))
		return call_fail(c, MONGO_NOT_IMPLEMENTED, "capped collections are not there");
	if (str_eq(name, STR("timeseries")))
		return call_fail(c, MONGO_NOT_IMPLEMENTED, "time series collections are not there");
	return call_fail(c, MONGO_NOT_IMPLEMENTED, "%s.%.*s is not there yet", c->command->name,
			 (int)(name.len < 100 ? name.len : 100), name.ptr);
}

/* {frond: {scheme: "…"}}: the members that are not there stay as they are. */
static enum status
create_read_engine(struct call *c, const struct bson_value *v, struct one *o)
{
	struct bson_element engine, e;
	struct bson_iter i, k;

	if (v->type != BSON_DOCUMENT)
		return call_type_mismatch(c, v, "type 'object'", "create.storageEngine");
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &engine);) {
		if (!str_eq(engine.name, STR("frond")) || engine.value.type != BSON_DOCUMENT)
			return call_fail(c, MONGO_INVALID_OPTIONS,
					 "storageEngine has to be {frond: {scheme: \"packed\" or "
					 "\"exploded\"}}; there is no other engine");
		for (bson_iter_begin(&k, bson_text(&engine.value)); bson_iter_read(&k, &e);) {
			bool is_text = e.value.type == BSON_STRING;
			bool exploded = is_text && str_eq(bson_text(&e.value), STR("exploded"));
			bool packed = is_text && str_eq(bson_text(&e.value), STR("packed"));

			if (!str_eq(e.name, STR("scheme")) || (!exploded && !packed))
				return call_fail(c, MONGO_INVALID_OPTIONS,
						 "storageEngine.frond has one member, scheme: "
						 "\"packed\" or \"exploded\"");
			o->scheme = exploded ? PLAIN_EXPLODED : PLAIN_PACKED;
			o->has_scheme = true;
		}
	}
	return STATUS_OK;
}

/* Members of a view are for a view, and others are not. */
static enum status
create_view(struct call *c, struct one *o)
{
	const struct validate_ask *v = &o->validate;

	if (!o->view.on.ptr)
		return o->view.pipeline.ptr
			       ? call_fail(c, MONGO_INVALID_OPTIONS,
					   "'pipeline' requires 'viewOn' to also be specified")
			       : STATUS_OK;
	TRY(clustered_check_member(c, STR("viewOn")));
	TRY(clustered_check(c, &o->clustered, false));
	if (bson_find(c->body, STR("idIndex"), NULL))
		return call_fail(c, MONGO_INVALID_OPTIONS,
				 "'viewOn' and 'idIndex' are not for the same collection");
	if (o->has_engine)
		return call_fail(c, MONGO_INVALID_OPTIONS,
				 "'viewOn' and 'storageEngine' are not for the same collection");
	if (v->has_validator || v->level.len || v->action.len)
		return call_fail(c, MONGO_INVALID_OPTIONS,
				 "'viewOn' and options of validation are not for the same "
				 "collection");
	if (c->in_transaction)
		return call_fail(c, MONGO_NOT_IN_TRANSACTION,
				 "Cannot create a view in a multi-document transaction");
	o->view.collation = o->collation;
	TRY(view_options(c, &o->view, &o->options));
	return view_check(c, &o->view);
}

/* Views have it, too. It is kept with all its members, as clients are told it. */
static enum status
create_read_collation(struct call *c, const struct bson_value *v, const char *path, struct str *ret)
{
	struct mql_collation *collation = NULL;
	enum status status;
	struct mql q;

	if (v->type == BSON_NULL || v->type == BSON_UNDEFINED)
		return STATUS_OK;
	if (v->type != BSON_DOCUMENT)
		return call_type_mismatch(c, v, "type 'object'", "%s", path);
	data_mql(c, c->arena, NULL, &q);
	TRY(data_mql_status(c, &q, mql_collation_new(&q, bson_text(v), &collation)));
	status = arena_copy(c->arena, mql_collation_document(collation), ret);
	mql_collation_free(collation);
	return status;
}

static enum status
id_index_check_version(struct call *c, const struct bson_value *v)
{
	int64_t n;

	if (!bson_is_number(v))
		return call_type_mismatch(c, v, "types '[long, int, decimal, double]'",
					  "create.idIndex.v");
	if (!bson_to_int64(v, &n))
		return call_fail(c, MONGO_BAD_VALUE,
				 "Index version must be representable as a 32-bit integer");
	if (n == 1 || n == 2)
		return STATUS_OK;
	return call_fail(c, MONGO_CANNOT_CREATE_INDEX,
			 "Invalid index specification; cannot create an index with v=%lld",
			 (long long)n);
}

static enum status
id_index_check_member(struct call *c, const struct bson_element *e)
{
	const struct bson_value *v = &e->value;

	if (str_eq(e->name, STR("key")) && v->type != BSON_DOCUMENT)
		return call_type_mismatch(c, v, "type 'object'", "create.idIndex.key");
	if (str_eq(e->name, STR("key")) && !index_key_is_id(bson_text(v)))
		return call_fail(c, MONGO_BAD_VALUE,
				 "The field 'key' for an _id index must be {_id: 1}");
	if (str_eq(e->name, STR("name")) && v->type != BSON_STRING)
		return call_type_mismatch(c, v, "type 'string'", "create.idIndex.name");
	if (str_eq(e->name, STR("name")) && !bson_text(v).len)
		return call_fail(c, MONGO_CANNOT_CREATE_INDEX, "The index name cannot be empty");
	if (str_eq(e->name, STR("v")))
		return id_index_check_version(c, v);
	if (str_eq(e->name, STR("key")) || str_eq(e->name, STR("name")) ||
	    str_eq(e->name, STR("ns")) || str_eq(e->name, STR("collation")))
		return STATUS_OK;
	return index_fail_id_option(c, e->name);
}

/*
 * The index by `_id` is what it always is, so restored collections say what they had: its key, a
 * name and a version of no meaning, and the collation of the collection.
 */
static enum status
create_read_id_index(struct call *c, const struct bson_value *v, struct one *o)
{
	struct bson_value own;
	struct bson_element e;
	struct bson_iter i;

	TRY(clustered_check_member(c, STR("idIndex")));
	if (v->type == BSON_NULL || v->type == BSON_UNDEFINED)
		return STATUS_OK;
	if (v->type != BSON_DOCUMENT)
		return call_type_mismatch(c, v, "type 'object'", "create.idIndex");
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);)
		TRY(id_index_check_member(c, &e));
	if (!bson_find(bson_text(v), STR("key"), NULL) ||
	    !bson_find(bson_text(v), STR("name"), NULL))
		return call_fail(c, MONGO_FAILED_TO_PARSE,
				 "The '%s' field is a required property of an index specification",
				 bson_find(bson_text(v), STR("key"), NULL) ? "name" : "key");
	o->has_id_collation = bson_find(bson_text(v), STR("collation"), &own);
	return o->has_id_collation ? create_read_collation(c, &own, "create.idIndex.collation",
							   &o->id_collation)
				   : STATUS_OK;
}

/* Another member of `create` than those of validators. `*ret_known`: it is one. */
static enum status
create_read_member(struct call *c, const struct bson_element *e, struct one *o, bool *ret_known)
{
	*ret_known = true;
	if (str_eq(e->name, STR("storageEngine"))) {
		o->has_engine = true;
		return create_read_engine(c, &e->value, o);
	}
	if (str_eq(e->name, STR("collation")))
		return create_read_collation(c, &e->value, "create.collation", &o->collation);
	if (str_eq(e->name, STR("idIndex")))
		return create_read_id_index(c, &e->value, o);
	return view_read(c, e, &o->view, ret_known);
}

enum status
mongo_run_create(struct call *c)
{
	struct bson_element e;
	struct bson_iter i;
	struct one o = { .scheme = data_scheme(c) };

	for (bson_iter_begin(&i, c->body); bson_iter_read(&i, &e);) {
		bool known;

		TRY(validate_read(c, &e, &o.validate, &known));
		if (!known)
			TRY(clustered_read(c, &e, &o.clustered, &known));
		if (!known)
			TRY(create_read_member(c, &e, &o, &known));
		if (known || str_eq(e.name, STR("create")) || command_is_generic(e.name) ||
		    (e.value.type == BSON_BOOL && !bson_truth(&e.value)))
			continue;
		return create_refuse(c, e.name);
	}
	/* An `_id` is compared as it is, so what mongorestore says of a told idIndex is true. */
	if (o.has_id_collation && o.id_collation.len && !str_eq(o.id_collation, o.collation))
		return call_fail(c, MONGO_BAD_VALUE,
				 "The _id index must have the same collation as the collection.");
	TRY(create_view(c, &o));
	TRY(clustered_check(c, &o.clustered, o.clustered.index.len));
	TRY(validate_check(c, &o.validate));
	TRY(data_check_concern(c));
	TRY(one_run(c, &o, create_collection_body));
	data_put_concern(c);
	return STATUS_OK;
}

/* What the command asks for, as change streams tell it. */
static enum status
describe_coll_mod(struct call *c, struct str *ret)
{
	struct buf AUTO(buf_release) made = BUF_INIT_OF(BSON_MOST_BYTES, arena_part(c->arena));
	struct bson_builder b;
	struct bson_element e;
	struct bson_iter i;

	bson_open(&b, &made);
	for (bson_iter_begin(&i, c->body); bson_iter_read(&i, &e);)
		if (!command_is_generic(e.name) && !str_eq(e.name, STR("collMod")))
			bson_put_element(&b, &e);
	bson_end(&b);
	return buf_copy(&made, c->arena, ret);
}

static enum status
coll_mod_body(struct kv_tx *tx, void *arg)
{
	struct one *o = arg;
	struct call *c = o->data.call;
	struct str options;

	TRY(data_begin(&o->data, tx));
	if (!o->data.is_there)
		return call_fail(c, MONGO_NAMESPACE_NOT_FOUND, "ns does not exist: %.*s",
				 STR_ARG(o->data.ns));
	if (o->mod.asked &&
	    (o->options.len || plain_options_are_view(plain_options_of(o->data.db))))
		return call_fail(c, MONGO_INVALID_OPTIONS, "%.*s is a view: it has no indexes",
				 STR_ARG(o->data.ns));
	if (plain_options_are_view(plain_options_of(o->data.db)) != (o->options.len != 0))
		return call_fail(c, MONGO_INVALID_OPTIONS,
				 o->options.len
					 ? "%.*s is a collection: it has no 'viewOn'"
					 : "%.*s is a view: it has 'viewOn' and 'pipeline', and no "
					   "other options",
				 STR_ARG(o->data.ns));
	if (o->options.len) {
		TRY(view_options_keep(c, plain_options_of(o->data.db), o->options, &options));
		return plain_options_set(tx, o->data.db, options, &c->err);
	}
	TRY(validate_options(c, plain_options_of(o->data.db), &o->validate, &options));
	TRY(clustered_modify(c, &o->clustered, options, &options));
	TRY(plain_options_set(tx, o->data.db, options, &c->err));
	if (o->mod.asked)
		TRY(index_mod_run(&o->data, tx, &o->mod));
	TRY(describe_coll_mod(c, &options));
	return data_notice(&o->data, PLAIN_NOTICE_MODIFIED, options);
}

enum status
mongo_run_coll_mod(struct call *c)
{
	struct bson_element e;
	struct bson_iter i;
	struct one o = { 0 };

	for (bson_iter_begin(&i, c->body); bson_iter_read(&i, &e);) {
		bool known;

		TRY(validate_read(c, &e, &o.validate, &known));
		if (!known)
			TRY(clustered_read(c, &e, &o.clustered, &known));
		if (!known)
			TRY(view_read(c, &e, &o.view, &known));
		if (!known && str_eq(e.name, STR("index"))) {
			TRY(index_mod_read(c, &e.value, &o.mod));
			continue;
		}
		if (!known && !str_eq(e.name, STR("collMod")) && !command_is_generic(e.name))
			return create_refuse(c, e.name);
	}
	if (o.view.on.ptr && !o.view.pipeline.ptr)
		return call_fail(c, MONGO_INVALID_OPTIONS,
				 "Must specify both 'viewOn' and 'pipeline' when modifying a view");
	TRY(create_view(c, &o));
	TRY(validate_check(c, &o.validate));
	TRY(data_check_concern(c));
	TRY(one_run(c, &o, coll_mod_body));
	index_mod_put(&o.mod, c->reply);
	data_put_concern(c);
	return STATUS_OK;
}

static enum status
drop_body(struct kv_tx *tx, void *arg)
{
	struct one *o = arg;

	TRY(data_begin(&o->data, tx));
	o->was_there = o->data.is_there;
	if (!o->was_there)
		return STATUS_OK;
	o->was_view = plain_options_are_view(plain_options_of(o->data.db));
	o->indexes = index_count_told(o->data.db);
	return data_drop(o->data.call, tx, o->data.ns, false, &o->data.plain.events);
}

enum status
mongo_run_drop(struct call *c)
{
	struct one o = { 0 };

	TRY(data_check_concern(c));
	TRY(one_run(c, &o, drop_body));
	data_put_concern(c);
	if (!o.was_there)
		return STATUS_OK;
	if (!o.was_view)
		bson_put_int32(c->reply, STR("nIndexesWas"), (int32_t)o.indexes);
	bson_put_string(c->reply, STR("ns"), o.data.ns);
	return STATUS_OK;
}

static enum status
rename_body(struct kv_tx *tx, void *arg)
{
	struct one *o = arg;
	struct call *c = o->data.call;
	struct str from = bson_text(&c->first);
	unsigned events = 0;
	enum status status;

	/* Neither of them may be a view. */
	data_init(&o->data, c, from, false);
	TRY(data_open(&o->data, tx));
	data_fini(&o->data);
	data_init(&o->data, c, o->to, false);
	if (o->drops_target)
		TRY(data_open(&o->data, tx));
	data_fini(&o->data);
	status = data_rename(c, tx, from, o->to, o->drops_target, &events);
	if (status == STATUS_NOT_FOUND)
		return call_fail(c, MONGO_NAMESPACE_NOT_FOUND,
				 "Source collection %.*s does not exist", STR_ARG(from));
	if (status == STATUS_EXISTS)
		return call_fail(c, MONGO_NAMESPACE_EXISTS, "target namespace exists");
	return status;
}

enum status
mongo_run_rename(struct call *c)
{
	struct one o = { .drops_target = call_bool(c, RENAME_DROPS, false),
			 .to = call_text(c, RENAME_TO) };
	enum status status;

	if (c->first.type != BSON_STRING)
		return call_fail(c, MONGO_BAD_VALUE, "collection name has invalid type %s",
				 bson_type_name(c->first.type));
	if (str_eq(bson_text(&c->first), o.to))
		return call_fail(c, MONGO_ILLEGAL_OPERATION, "Can't rename a collection to itself");
	if (!memchr(o.to.ptr, '.', o.to.len) || o.to.len > DATA_NS_BYTES)
		return call_fail(c, MONGO_INVALID_NAMESPACE, "Invalid target namespace: %.*s",
				 (int)(o.to.len < 100 ? o.to.len : 100), o.to.ptr);
	TRY(data_check_concern(c));
	o.data.call = c;
	status = call_run(c, rename_body, &o);
	data_fini(&o.data);
	if (status == STATUS_OK)
		data_put_concern(c);
	return status;
}

/* ---- One database ---- */

/* One transaction for each collection: a database of many has no limit. */
struct dropping {
	struct call *call;
	struct str prefix;
	bool more;
};

static enum status
drop_database_body(struct kv_tx *tx, void *arg)
{
	struct dropping *d = arg;
	struct call *c = d->call;
	struct name_range range = { .begin = d->prefix, .has_begin = true, .limit = 2 };
	struct name_page page;
	unsigned events = 0;

	TRY(catalog_list(tx, CATALOG_SPACE_MONGO, &range, c->arena, &page));
	d->more = page.count > 1 && str_starts_with(page.names[1], d->prefix);
	if (!page.count || !str_starts_with(page.names[0], d->prefix))
		return STATUS_OK;
	return data_drop(c, tx, page.names[0], !d->more, &events);
}

enum status
mongo_run_drop_database(struct call *c)
{
	struct dropping d = { .call = c, .more = true };

	d.prefix = arena_printf(c->arena, "%.*s.", STR_ARG(c->db));
	if (!d.prefix.ptr)
		return STATUS_LIMIT;
	TRY(data_check_concern(c));
	while (d.more)
		TRY(call_run(c, drop_database_body, &d));
	data_put_concern(c);
	bson_put_string(c->reply, STR("dropped"), c->db);
	return STATUS_OK;
}
