/* Lists of collections and of databases. */
#include "door/mongo/cmd/commands.h"
#include "door/mongo/cmd/list.h"
#include "door/mongo/cmd/walk.h"
#include "door/mongo/index/clustered.h"
#include "door/mongo/index/index.h"
#include "door/mongo/txn/client.h"
#include "door/mongo/txn/data.h"
#include "door/mongo/txn/mongo_int.h"
#include "door/mongo/txn/run.h"
#include "mql/match/match.h"

enum {
	LIST_FILTER,
	LIST_NAMES_ONLY,
	LIST_AUTHORIZED,
	LIST_CURSOR,
	UUID_SUBTYPE = 4,
};

const struct arg args_list[] = {
	[LIST_FILTER] = { "filter", ARG_OBJECT },
	[LIST_NAMES_ONLY] = { "nameOnly", ARG_BOOL },
	[LIST_AUTHORIZED] = { "authorizedCollections", ARG_BOOL },
	[LIST_CURSOR] = { "cursor", ARG_OBJECT },
	{ NULL, 0 },
};

const struct arg args_list_databases[] = {
	[LIST_FILTER] = { "filter", ARG_OBJECT },
	[LIST_NAMES_ONLY] = { "nameOnly", ARG_BOOL },
	[LIST_AUTHORIZED] = { "authorizedDatabases", ARG_BOOL },
	{ NULL, 0 },
};

/* ---- Collections ---- */

/* Which of the listed documents the command's filter wants. */
struct list {
	struct mql mql;
	struct mql_match *match;    /* NULL: all */
	struct buf row;             /* the document that may be listed */
	struct arena_mark mark;     /* of the call's arena, which is reset to it after each match */
	struct list_answer *answer; /* where rows go to; NULL: to the call's answer */
};

static enum status
list_begin(struct call *c, struct list *l)
{
	*l = (struct list){ .row = BUF_INIT_OF(BSON_MOST_BYTES, arena_part(c->arena)) };
	if (!call_has(c, LIST_FILTER))
		return STATUS_OK;
	data_mql(c, c->arena, NULL, &l->mql);
	return data_mql_status(
		c, &l->mql,
		mql_match_compile(&l->mql, bson_text(&c->args[LIST_FILTER].value), &l->match));
}

static void
list_row_begin(struct call *c, struct list *l, struct bson_builder *ret)
{
	l->mark = arena_mark(c->arena);
	buf_clear(&l->row);
	bson_open(ret, &l->row);
}

/* Appends the row if the filter wants it. */
static enum status
list_row_end(struct call *c, struct list *l, struct bson_builder *b, bool *ret_wanted)
{
	enum status status = STATUS_OK;

	bson_end(b);
	TRY(buf_status(&l->row));
	*ret_wanted = true;
	if (l->match)
		status = data_mql_status(
			c, &l->mql,
			mql_match_run(l->match, &l->mql, buf_str(&l->row), ret_wanted, NULL));
	arena_reset(c->arena, l->mark);
	if (status != STATUS_OK || !*ret_wanted)
		return status;
	if (l->answer)
		return list_answer_put(l->answer, buf_str(&l->row));
	bson_put_document(c->reply, STR(""), buf_str(&l->row));
	return STATUS_OK;
}

/* The options that `create` would have to be given for such a collection. */
static void
put_options(struct call *c, struct bson_builder *b, const struct catalog_db *db, bool is_view)
{
	bool exploded = plain_scheme_of(db) == PLAIN_EXPLODED;

	bson_begin_document(b, STR("options"));
	if (!is_view && (exploded || data_scheme(c) == PLAIN_EXPLODED)) {
		bson_begin_document(b, STR("storageEngine"));
		bson_begin_document(b, STR("frond"));
		bson_put_string(b, STR("scheme"), exploded ? STR("exploded") : STR("packed"));
		bson_end(b);
		bson_end(b);
	}
	bson_put_elements(b, plain_options_of(db));
	bson_end(b);
}

/* False if the filter demands another name: then the collection need not be opened. */
static bool
may_be_listed(const struct call *c, struct str own)
{
	struct bson_value name;

	return !call_has(c, LIST_FILTER) ||
	       !bson_find(bson_text(&c->args[LIST_FILTER].value), STR("name"), &name) ||
	       name.type != BSON_STRING || str_eq(bson_text(&name), own);
}

static enum status
put_collection(struct call *c, void *arg, struct kv_tx *tx, struct str name)
{
	struct str own = str_skip(name, c->db.len + 1);
	struct list *l = arg;
	struct bson_builder b;
	struct catalog_db *db;
	bool is_view, wanted;

	if (!may_be_listed(c, own))
		return STATUS_OK;
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, name, &db, &c->err));
	is_view = plain_options_are_view(plain_options_of(db));
	list_row_begin(c, l, &b);
	bson_put_string(&b, STR("name"), own);
	bson_put_string(&b, STR("type"), is_view ? STR("view") : STR("collection"));
	if (!call_bool(c, LIST_NAMES_ONLY, false)) {
		put_options(c, &b, db, is_view);
		bson_begin_document(&b, STR("info"));
		bson_put_bool(&b, STR("readOnly"), is_view);
		if (!is_view)
			bson_put_binary(&b, STR("uuid"), UUID_SUBTYPE,
					str_of(db->uuid, sizeof(db->uuid)));
		bson_end(&b);
		if (!is_view && !clustered_of(db).len)
			index_put_id(&b, STR("idIndex"));
	}
	catalog_db_unref(db);
	return list_row_end(c, l, &b, &wanted);
}

enum status
mongo_run_list_collections(struct call *c)
{
	struct str prefix = arena_printf(c->arena, "%.*s.", STR_ARG(c->db));
	struct str ns = arena_printf(c->arena, "%.*s.$cmd.listCollections", STR_ARG(c->db));
	struct list_answer answer;
	enum status status;
	struct list l;

	if (!prefix.ptr || !ns.ptr)
		return STATUS_LIMIT;
	TRY(list_begin(c, &l));
	l.answer = &answer;
	status = list_answer_begin(&answer, c, &c->args[LIST_CURSOR], ns);
	if (status == STATUS_OK)
		status = walk_collections(c, prefix, put_collection, &l);
	if (status == STATUS_OK)
		status = list_answer_end(&answer);
	list_answer_fini(&answer);
	buf_release(&l.row);
	return status;
}

/* ---- Databases ---- */

struct databases {
	struct list list;
	struct str last; /* the database that is being added up */
	uint64_t bytes;
	uint64_t total;
	bool names_only;
};

static enum status
put_database(struct call *c, struct databases *d)
{
	struct bson_builder b;
	bool wanted;

	if (!d->last.len || !rights_on(&c->client->rights, d->last))
		return STATUS_OK;
	list_row_begin(c, &d->list, &b);
	bson_put_string(&b, STR("name"), d->last);
	if (!d->names_only) {
		bson_put_int64(&b, STR("sizeOnDisk"), (int64_t)d->bytes);
		bson_put_bool(&b, STR("empty"), false);
	}
	TRY(list_row_end(c, &d->list, &b, &wanted));
	d->total += wanted ? d->bytes : 0;
	return STATUS_OK;
}

static enum status
add_database(struct call *c, void *arg, struct kv_tx *tx, struct str name)
{
	struct databases *d = arg;
	struct str rest = name;
	struct str own = str_cut(&rest, '.');
	struct catalog_db *db;
	uint64_t bytes = 0;
	enum status status;

	if (!str_eq(own, d->last)) {
		TRY(put_database(c, d));
		d->last = own;
		d->bytes = 0;
	}
	if (d->names_only)
		return STATUS_OK;
	TRY(catalog_open_bare(tx, NULL, CATALOG_SPACE_MONGO, name, &db, &c->err));
	status = catalog_db_bytes(tx, db, &bytes);
	catalog_db_unref(db);
	d->bytes += bytes;
	return status;
}

enum status
mongo_run_list_databases(struct call *c)
{
	struct databases d = { .names_only = call_bool(c, LIST_NAMES_ONLY, false) };
	enum status status;

	TRY(list_begin(c, &d.list));
	bson_begin_array(c->reply, STR("databases"));
	status = walk_collections(c, STR(""), add_database, &d);
	if (status == STATUS_OK)
		status = put_database(c, &d);
	buf_release(&d.list.row);
	TRY(status);
	bson_end(c->reply);
	if (d.names_only)
		return STATUS_OK;
	bson_put_int64(c->reply, STR("totalSize"), (int64_t)d.total);
	bson_put_int64(c->reply, STR("totalSizeMb"), (int64_t)(d.total / 1000000));
	return STATUS_OK;
}
