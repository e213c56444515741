/* $currentOp, $listLocalSessions, $indexStats: stages that tell of the server. */
#include "base/clock.h"
#include "base/words.h"
#include "door/mongo/cmd/aggregate.h"
#include "door/mongo/cmd/commands.h"
#include "door/mongo/index/index.h"
#include "door/mongo/txn/client.h"
#include "door/mongo/txn/data.h"
#include "door/mongo/txn/mongo_int.h"
#include "door/mongo/txn/run.h"

enum {
	UUID_SUBTYPE = 4,
	SERVER_BYTES = 16 * 1024 * 1024, /* of all documents of one stage */
};

/* A flag of the stage. Fails if it is something else. */
static enum status
read_flag(struct call *c, struct str stage, const struct bson_element *e, bool *ret)
{
	if (e->value.type != BSON_BOOL)
		return call_fail(c, MONGO_TYPE_MISMATCH,
				 "The '%.*s' parameter of the %.*s stage must be a boolean value, "
				 "but found: "
				 "%s",
				 STR_ARG(e->name), STR_ARG(stage), bson_type_name(e->value.type));
	*ret = bson_truth(&e->value);
	return STATUS_OK;
}

/* ---- $currentOp ---- */

static enum status
put_ops(struct call *c, bool bare, struct str spec, struct bson_builder *b)
{
	static const char *const ignored[] = { "localOps", "truncateOps", "backtrace",
					       "targetAllNodes" };
	const struct str stage = STR("$currentOp");
	bool all = false, idle = false, cursors = false, sessions = true, unused;
	struct bson_element e;
	struct bson_iter i;

	if (!bare || !str_eq(c->db, STR("admin")))
		return call_fail(c, MONGO_INVALID_NAMESPACE,
				 "$currentOp must be run against the 'admin' database with "
				 "{aggregate: 1}");
	for (bson_iter_begin(&i, spec); bson_iter_read(&i, &e);) {
		bool known = WORDS_HAVE(ignored, e.name);

		if (str_eq(e.name, STR("allUsers")))
			TRY(read_flag(c, stage, &e, &all));
		else if (str_eq(e.name, STR("idleConnections")))
			TRY(read_flag(c, stage, &e, &idle));
		else if (str_eq(e.name, STR("idleCursors")))
			TRY(read_flag(c, stage, &e, &cursors));
		else if (str_eq(e.name, STR("idleSessions")))
			TRY(read_flag(c, stage, &e, &sessions));
		else if (known)
			TRY(read_flag(c, stage, &e, &unused));
		else
			return call_fail(c, MONGO_FAILED_TO_PARSE,
					 "Unrecognized option '%.*s' in $currentOp stage.",
					 STR_ARG(e.name));
	}
	TRY(mongo_put_ops(c, b, !all, idle));
	if (sessions)
		mongo_put_idle_sessions(c, b, !all);
	if (cursors)
		mongo_put_idle_cursors(c, b, !all);
	return STATUS_OK;
}

/* ---- $listLocalSessions ---- */

/* A session is known by its transaction; and that of this command is there, too. */
static void
put_session(struct bson_builder *b, struct str id, struct str user, uint64_t used_ns)
{
	uint64_t ago_ms = (clock_mono_ns() - used_ns) / CLOCK_NS_PER_MS;

	bson_begin_document(b, STR(""));
	bson_begin_document(b, STR("_id"));
	bson_put_binary(b, STR("id"), UUID_SUBTYPE, id);
	bson_end(b);
	bson_put_date(b, STR("lastUse"), (int64_t)(clock_wall_ms() - ago_ms));
	if (user.len)
		bson_put_string(b, STR("user"), user);
	bson_end(b);
}

/* Which sessions are told, and into what. */
struct sessions {
	struct call *call;
	struct bson_builder *b;
	bool all; /* other people's, too */
};

/* With the lock of the table of transactions. */
static void
put_known_session(void *arg, const struct expiring_entry *e)
{
	const struct sessions *s = arg;
	const struct txn *t = (const struct txn *)e;
	struct str id = str_of(t->session, SESSION_ID_BYTES);
	bool own = strcmp(t->user, s->call->client->entry.user) == 0;

	if (own ? !str_eq(id, s->call->lsid) : s->all)
		put_session(s->b, id, str_from_cstr(t->user),
			    e->taken ? clock_mono_ns() : e->used_ns);
}

static enum status
put_sessions(struct call *c, bool bare, struct str spec, struct bson_builder *b)
{
	const struct str stage = STR("$listLocalSessions");
	struct str user = str_from_cstr(c->client->entry.user);
	struct bson_element e;
	struct bson_iter i;
	bool all = false;

	if (!bare)
		return call_fail(c, MONGO_INVALID_NAMESPACE,
				 "$listLocalSessions must be run against the database with "
				 "{aggregate: 1}, not a collection");
	for (bson_iter_begin(&i, spec); bson_iter_read(&i, &e);) {
		if (!str_eq(e.name, STR("allUsers")))
			return call_fail(c, MONGO_NOT_IMPLEMENTED,
					 "$listLocalSessions.%.*s is not there: there is allUsers",
					 STR_ARG(e.name));
		TRY(read_flag(c, stage, &e, &all));
	}
	if (all && !(c->client->rights.any & RIGHT_MONITOR))
		return call_fail(c, MONGO_UNAUTHORIZED,
				 "not authorized to list the sessions of all users");
	if (c->lsid.ptr)
		put_session(b, c->lsid, user, clock_mono_ns());
	expiring_each(&c->mongo->txns.table, put_known_session, &(struct sessions){ c, b, all });
	return STATUS_OK;
}

/* The documents as a source, in the arena. */
static enum status
source_of(struct buf *out, struct arena *arena, enum status status, struct mql_source **ret)
{
	struct str array;

	if (status == STATUS_OK)
		status = buf_status(out);
	array = buf_dup(out, arena);
	buf_release(out);
	TRY(status);
	return array.ptr ? mql_source_of_array(array, ret) : STATUS_LIMIT;
}

enum status
mongo_aggregate_server(struct call *c, bool bare, struct arena *arena, struct str stage,
		       struct str spec, struct mql_source **ret)
{
	struct buf out = BUF_INIT_OF(SERVER_BYTES, arena_part(c->arena));
	struct bson_builder b;
	enum status status;

	bson_builder_init(&b, &out);
	bson_begin_outer_array(&b);
	status = str_eq(stage, STR("$currentOp")) ? put_ops(c, bare, spec, &b)
						  : put_sessions(c, bare, spec, &b);
	bson_end(&b);
	return source_of(&out, arena, status, ret);
}

/* ---- $indexStats ---- */

struct indexes {
	struct data data;
	struct buf out;
};

static void
put_index(struct bson_builder *b, struct data *d, uint64_t number, struct str spec, bool building)
{
	struct mongo *m = d->call->mongo;
	struct bson_value key = BSON_OF_DOCUMENT(BSON_EMPTY), name = { .type = BSON_NULL };
	uint64_t ops;

	(void)bson_find(spec, STR("key"), &key);
	(void)bson_find(spec, STR("name"), &name);
	bson_begin_document(b, STR(""));
	bson_put(b, STR("name"), &name);
	bson_put(b, STR("key"), &key);
	bson_put_string(b, STR("host"), str_from_cstr(m->host));
	if (access_read(&m->accesses, d->db->number, number, &ops)) {
		bson_begin_document(b, STR("accesses"));
		bson_put_int64(b, STR("ops"), (int64_t)ops);
		bson_put_date(b, STR("since"), (int64_t)m->started_ms);
		bson_end(b);
	}
	bson_put_document(b, STR("spec"), spec);
	if (building)
		bson_put_bool(b, STR("building"), true);
	bson_end(b);
}

static enum status
indexes_body(struct kv_tx *tx, void *arg)
{
	struct buf AUTO(buf_release) id = BUF_SHORT(INDEX_SPEC_BYTES);
	struct indexes *x = arg;
	const struct index_def *def;
	struct bson_builder b;

	TRY(data_open(&x->data, tx));
	buf_clear(&x->out);
	bson_builder_init(&b, &id);
	if (x->data.is_there)
		index_put_only_id(&b, x->data.db);
	TRY(buf_status(&id));
	bson_builder_init(&b, &x->out);
	bson_begin_outer_array(&b);
	if (x->data.is_there)
		put_index(&b, &x->data, 0, buf_str(&id), false);
	for (size_t i = 0; x->data.is_there && (def = index_at(x->data.db, i)) != NULL; i++)
		put_index(&b, &x->data, def->number, def->spec, !index_is_readable(def));
	bson_end(&b);
	return buf_status(&x->out);
}

enum status
mongo_aggregate_indexes(struct call *c, struct str ns, struct arena *arena, struct mql_source **ret)
{
	struct indexes x = { .out = BUF_INIT_OF(SERVER_BYTES, arena_part(c->arena)) };
	enum status status = STATUS_OK;

	if (!(c->client->rights.any & RIGHT_MONITOR))
		status = call_check_rights(c, c->db, RIGHT_ADMIN);
	if (status == STATUS_OK) {
		data_init(&x.data, c, ns, false);
		status = call_read(c, indexes_body, &x);
		data_fini(&x.data);
	}
	return source_of(&x.out, arena, status, ret);
}
