/* What the server is, and its figures. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/machine.h"
#include "base/process.h"
#include "door/mongo/cmd/commands.h"
#include "door/mongo/txn/client.h"
#include "door/mongo/txn/cluster_time.h"
#include "net/host.h"

enum {
	MEGABYTE = 1024 * 1024,
	TXN_SECONDS_MOST = 60, /* as the setting's */
};

#define ARGS_DEFAULT_CONCERN(ARG) ARG(CONCERN_IN_MEMORY, "inMemory", ARG_BOOL)
ARGS_DEFINE(args_default_concern, ARGS_DEFAULT_CONCERN);

#define ARGS_GET_PARAMETER(ARG) ARG(PARAMETER_ALL, "allParameters", ARG_ANY)
ARGS_DEFINE(args_get_parameter, ARGS_GET_PARAMETER);

enum status
mongo_run_ping(struct call *c)
{
	(void)c;
	return STATUS_OK;
}

enum status
mongo_run_whatsmyuri(struct call *c)
{
	bson_put_string(c->reply, STR("you"), str_from_cstr(c->client->entry.peer));
	return STATUS_OK;
}

/* ---- What it is ---- */

static void
put_version_array(struct call *c)
{
	static const int32_t parts[] = { 8, 0, 0, 0 };

	_Static_assert(sizeof(MONGO_VERSION) == sizeof("8.0.0"), "the same version");
	bson_begin_array(c->reply, STR("versionArray"));
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		bson_put_int32(c->reply, STR(""), parts[i]);
	bson_end(c->reply);
}

static void
put_empty_array(struct call *c, struct str name)
{
	bson_begin_array(c->reply, name);
	bson_end(c->reply);
}

static bool
has_javascript(struct call *c)
{
	scripts_init(&c->scripts, c);
	return c->scripts.scripts.check(&c->scripts.scripts, NULL) == STATUS_OK;
}

enum status
mongo_run_build_info(struct call *c)
{
	bson_put_string(c->reply, STR("version"), STR(MONGO_VERSION));
	bson_put_string(c->reply, STR("gitVersion"), STR("unknown"));
	bson_put_string(c->reply, STR("frondVersion"), STR(FROND_VERSION));
	put_empty_array(c, STR("modules"));
	bson_put_string(c->reply, STR("allocator"), STR("system"));
	bson_put_string(c->reply, STR("javascriptEngine"),
			has_javascript(c) ? STR("JavaScriptCore") : STR("none"));
	put_version_array(c);
	bson_put_int32(c->reply, STR("bits"), 64);
	bson_put_bool(c->reply, STR("debug"), false);
	bson_put_int32(c->reply, STR("maxBsonObjectSize"), MONGO_DOCUMENT_BYTES);
	bson_begin_array(c->reply, STR("storageEngines"));
	bson_put_string(c->reply, STR(""), STR("frond"));
	bson_end(c->reply);
	return STATUS_OK;
}

static void
put_host_name(struct call *c, struct str name)
{
	struct utsname system;

	if (uname(&system) == 0)
		bson_put_string(c->reply, name, str_from_cstr(system.nodename));
}

enum status
mongo_run_host_info(struct call *c)
{
	struct utsname system;

	if (uname(&system) != 0)
		memset(&system, 0, sizeof(system));
	bson_begin_document(c->reply, STR("system"));
	bson_put_date(c->reply, STR("currentTime"), (int64_t)clock_wall_ms());
	bson_put_string(c->reply, STR("hostname"), str_from_cstr(system.nodename));
	bson_put_int32(c->reply, STR("cpuAddrSize"), 64);
	bson_put_int64(c->reply, STR("memSizeMB"), (int64_t)(machine_installed_bytes() / MEGABYTE));
	bson_put_int64(c->reply, STR("memLimitMB"), (int64_t)(machine_memory_bytes() / MEGABYTE));
	bson_put_int32(c->reply, STR("numCores"), (int32_t)sysconf(_SC_NPROCESSORS_ONLN));
	bson_put_string(c->reply, STR("cpuArch"), str_from_cstr(system.machine));
	bson_put_bool(c->reply, STR("numaEnabled"), false);
	bson_end(c->reply);
	bson_begin_document(c->reply, STR("os"));
	bson_put_string(c->reply, STR("type"), str_from_cstr(system.sysname));
	bson_put_string(c->reply, STR("name"), str_from_cstr(system.sysname));
	bson_put_string(c->reply, STR("version"), str_from_cstr(system.release));
	bson_end(c->reply);
	bson_begin_document(c->reply, STR("extra"));
	bson_end(c->reply);
	return STATUS_OK;
}

/* ---- Figures ---- */

static bool
is_write(struct str name)
{
	for (size_t i = 0; i < mongo_command_count; i++)
		if (mongo_commands[i].name == name.ptr)
			return mongo_commands[i].flags & COMMAND_WRITES;
	return false;
}

/* What connections do now. */
struct activity {
	struct clients *clients;
	size_t connections;
	size_t active;  /* have a command */
	size_t working; /* and do not wait for something to happen */
	size_t writers; /* of these */
};

static void
count_activity(void *arg, const struct clients_view *v)
{
	struct activity *a = arg;
	bool works;

	if (v->of != a->clients)
		return;
	works = v->op && !v->entry->waiting;
	a->connections++;
	a->active += v->op != NULL;
	a->working += works;
	a->writers += works && is_write(v->op->name);
}

static void
put_connections(struct call *c)
{
	struct activity now = { .clients = &c->mongo->clients };

	clients_each_op(now.clients, count_activity, &now);
	bson_begin_document(c->reply, STR("connections"));
	bson_put_int32(c->reply, STR("current"), (int32_t)now.connections);
	bson_put_int32(c->reply, STR("available"),
		       now.connections < NET_MAX_CONNECTIONS
			       ? (int32_t)(NET_MAX_CONNECTIONS - now.connections)
			       : 0);
	bson_put_int64(c->reply, STR("totalCreated"),
		       (int64_t)atomic_load(&c->mongo->clients.next_id));
	bson_put_int32(c->reply, STR("active"), (int32_t)now.active);
	bson_end(c->reply);
}

static void
put_network(struct call *c)
{
	bson_begin_document(c->reply, STR("network"));
	bson_put_int64(c->reply, STR("bytesIn"), (int64_t)atomic_load(&c->mongo->bytes_in));
	bson_put_int64(c->reply, STR("bytesOut"), (int64_t)atomic_load(&c->mongo->bytes_out));
	bson_put_int64(c->reply, STR("numRequests"), (int64_t)atomic_load(&c->mongo->requests));
	bson_end(c->reply);
}

static void
put_memory(struct call *c)
{
	bson_begin_document(c->reply, STR("mem"));
	bson_put_int32(c->reply, STR("bits"), 64);
	bson_put_int32(c->reply, STR("resident"), (int32_t)(process_resident_bytes() / MEGABYTE));
	bson_put_int32(c->reply, STR("virtual"), (int32_t)(process_virtual_bytes() / MEGABYTE));
	bson_put_bool(c->reply, STR("supported"), true);
	bson_end(c->reply);
}

static void
put_storage_engine(struct call *c)
{
	bson_begin_document(c->reply, STR("storageEngine"));
	bson_put_string(c->reply, STR("name"), STR("frond"));
	bson_put_bool(c->reply, STR("supportsCommittedReads"), true);
	bson_put_bool(c->reply, STR("supportsSnapshotReadConcern"), false);
	bson_put_bool(c->reply, STR("readOnly"), false);
	bson_put_bool(c->reply, STR("persistent"), true);
	bson_end(c->reply);
}

/* Statements of writes, and commands, since the process has started. */
static void
put_counters(struct call *c)
{
	static const char *const names[USAGE_KINDS] = {
		[USAGE_INSERT] = "insert", [USAGE_QUERY] = "query",      [USAGE_UPDATE] = "update",
		[USAGE_DELETE] = "delete", [USAGE_GET_MORE] = "getmore",
	};
	_Atomic uint64_t *counts = c->mongo->usages.statements;

	bson_begin_document(c->reply, STR("opcounters"));
	for (size_t i = 0; i < USAGE_KINDS; i++)
		if (names[i])
			bson_put_int64(c->reply, str_from_cstr(names[i]),
				       (int64_t)atomic_load(&counts[i]));
	bson_put_int64(c->reply, STR("command"),
		       (int64_t)(atomic_load(&counts[USAGE_COMMAND]) +
				 atomic_load(&counts[USAGE_CHANGE])));
	bson_end(c->reply);
}

static void
put_clients(struct call *c, const char *name, size_t readers, size_t writers)
{
	bson_begin_document(c->reply, str_from_cstr(name));
	bson_put_int32(c->reply, STR("total"), (int32_t)(readers + writers));
	bson_put_int32(c->reply, STR("readers"), (int32_t)readers);
	bson_put_int32(c->reply, STR("writers"), (int32_t)writers);
	bson_end(c->reply);
}

/* True for a command that changes data, by the name that a connection has noted. */
/*
 * There is no such lock: what commands do now, of which none waits for it. Those that wait for
 * something to happen do nothing.
 */
static void
put_global_lock(struct call *c, uint64_t up_ms)
{
	struct activity now = { .clients = &c->mongo->clients };

	clients_each_op(now.clients, count_activity, &now);
	bson_begin_document(c->reply, STR("globalLock"));
	bson_put_int64(c->reply, STR("totalTime"), (int64_t)(up_ms * 1000));
	put_clients(c, "currentQueue", 0, 0);
	put_clients(c, "activeClients", now.working - now.writers, now.writers);
	bson_end(c->reply);
}

static void
put_extra(struct call *c)
{
	struct rusage used;

	if (getrusage(RUSAGE_SELF, &used) != 0)
		return;
	bson_begin_document(c->reply, STR("extra_info"));
	bson_put_string(c->reply, STR("note"), STR("fields vary by platform"));
	bson_put_int64(c->reply, STR("user_time_us"),
		       (int64_t)used.ru_utime.tv_sec * 1000000 + used.ru_utime.tv_usec);
	bson_put_int64(c->reply, STR("system_time_us"),
		       (int64_t)used.ru_stime.tv_sec * 1000000 + used.ru_stime.tv_usec);
	bson_put_int64(c->reply, STR("page_faults"), used.ru_majflt);
	bson_end(c->reply);
}

static void
put_set(struct call *c)
{
	struct str host = str_from_cstr(c->mongo->host);
	bool follows = mongo_is_secondary(c->mongo);

	if (!c->mongo->set)
		return;
	bson_begin_document(c->reply, STR("repl"));
	bson_put_string(c->reply, STR("setName"), str_from_cstr(c->mongo->set));
	bson_put_int32(c->reply, STR("setVersion"), 1);
	bson_put_bool(c->reply, STR("ismaster"), !follows);
	bson_put_bool(c->reply, STR("isWritablePrimary"), !follows);
	bson_put_bool(c->reply, STR("secondary"), follows);
	bson_begin_array(c->reply, STR("hosts"));
	bson_put_string(c->reply, STR(""), host);
	bson_end(c->reply);
	if (!follows)
		bson_put_string(c->reply, STR("primary"), host);
	bson_put_string(c->reply, STR("me"), host);
	bson_end(c->reply);
}

enum status
mongo_run_server_status(struct call *c)
{
	uint64_t up_ms = (clock_mono_ns() - c->mongo->started_ns) / CLOCK_NS_PER_MS;
	uint64_t up_s = up_ms / 1000;

	put_host_name(c, STR("host"));
	bson_put_string(c->reply, STR("version"), STR(MONGO_VERSION));
	bson_put_string(c->reply, STR("process"), STR("frond"));
	bson_put_int64(c->reply, STR("pid"), (int64_t)getpid());
	bson_put_double(c->reply, STR("uptime"), (double)up_s);
	bson_put_int64(c->reply, STR("uptimeMillis"), (int64_t)up_ms);
	bson_put_int64(c->reply, STR("uptimeEstimate"), (int64_t)up_s);
	bson_put_date(c->reply, STR("localTime"), (int64_t)clock_wall_ms());
	put_connections(c);
	put_extra(c);
	put_global_lock(c, up_ms);
	put_network(c);
	put_counters(c);
	put_set(c);
	put_memory(c);
	put_storage_engine(c);
	return STATUS_OK;
}

/* Of connections to other servers of this protocol: the process makes none. */
enum status
mongo_run_conn_pool_stats(struct call *c)
{
	static const char *const totals[] = { "numAScopedConnections", "totalInUse",
					      "totalAvailable",        "totalLeased",
					      "totalCreated",          "totalRefreshing",
					      "totalRefreshed" };
	static const char *const lists[] = { "replicaSetPingTimesMillis", "pools", "hosts",
					     "replicaSets" };

	bson_put_int32(c->reply, STR("numClientConnections"), 0);
	for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++)
		bson_put_int32(c->reply, str_from_cstr(totals[i]), 0);
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		bson_begin_document(c->reply, str_from_cstr(lists[i]));
		bson_end(c->reply);
	}
	return STATUS_OK;
}

/* Nobody can change them: whatever a command asks for, it gets at least this. */
enum status
mongo_run_get_default_concern(struct call *c)
{
	if (!c->mongo->set)
		return call_fail(c, MONGO_NOT_ON_STANDALONE,
				 "'getDefaultRWConcern' is not supported on standalone nodes.");
	bson_begin_document(c->reply, STR("defaultReadConcern"));
	bson_put_string(c->reply, STR("level"), STR("local"));
	bson_end(c->reply);
	bson_begin_document(c->reply, STR("defaultWriteConcern"));
	bson_put_string(c->reply, STR("w"), STR("majority"));
	bson_put_int32(c->reply, STR("wtimeout"), 0);
	bson_end(c->reply);
	bson_put_string(c->reply, STR("defaultWriteConcernSource"), STR("implicit"));
	bson_put_string(c->reply, STR("defaultReadConcernSource"), STR("implicit"));
	bson_put_date(c->reply, STR("localUpdateWallClockTime"), (int64_t)c->mongo->started_ms);
	if (call_bool(c, CONCERN_IN_MEMORY, false))
		bson_put_bool(c->reply, STR("inMemory"), true);
	return STATUS_OK;
}

/* ---- Parameters ---- */

static void
put_parameter(struct call *c, size_t i)
{
	switch (i) {
	case 0:
		bson_begin_document(c->reply, STR("featureCompatibilityVersion"));
		bson_put_string(c->reply, STR("version"), STR(MONGO_FEATURE_VERSION));
		bson_end(c->reply);
		break;
	case 1:
		bson_begin_array(c->reply, STR("authenticationMechanisms"));
		bson_put_string(c->reply, STR(""), STR("SCRAM-SHA-256"));
		bson_put_string(c->reply, STR(""), STR("PLAIN"));
		bson_end(c->reply);
		break;
	case 2:
		bson_put_int32(c->reply, STR("localLogicalSessionTimeoutMinutes"),
			       MONGO_SESSION_MINUTES);
		break;
	case 3:
		bson_put_bool(c->reply, STR("enableTestCommands"), c->mongo->config.test_commands);
		break;
	case 4:
		bson_put_int32(c->reply, STR("transactionLifetimeLimitSeconds"),
			       (int32_t)(txn_life_ms(c->mongo) / 1000));
		break;
	default:
		break;
	}
}

/* In the order of put_parameter(). */
static const char *const parameters[] = { "featureCompatibilityVersion", "authenticationMechanisms",
					  "localLogicalSessionTimeoutMinutes", "enableTestCommands",
					  "transactionLifetimeLimitSeconds" };

enum {
	PARAMETERS = sizeof(parameters) / sizeof(parameters[0]),
};

enum status
mongo_run_get_parameter(struct call *c)
{
	bool all = (c->first.type == BSON_STRING && str_eq(bson_text(&c->first), STR("*"))) ||
		   (c->first.type == BSON_DOCUMENT &&
		    bson_find(bson_text(&c->first), STR("allParameters"), NULL));
	bool found = false;

	for (size_t i = 0; i < PARAMETERS; i++) {
		if (!all && !bson_find(c->body, str_from_cstr(parameters[i]), NULL))
			continue;
		put_parameter(c, i);
		found = true;
	}
	return found ? STATUS_OK : call_fail(c, MONGO_INVALID_OPTIONS, "no option found to get");
}

static enum status
set_txn_seconds(struct call *c, const struct bson_element *e)
{
	int64_t seconds;

	if (!bson_is_number(&e->value))
		return call_type_mismatch(c, &e->value, "type 'int'", "setParameter.%s",
					  "transactionLifetimeLimitSeconds");
	if (!bson_to_int64(&e->value, &seconds) || seconds < 1 || seconds > TXN_SECONDS_MOST)
		return call_fail(c, MONGO_BAD_VALUE,
				 "transactionLifetimeLimitSeconds has to be a whole number from 1 "
				 "to %d",
				 TXN_SECONDS_MOST);
	bson_put_int32(c->reply, STR("was"), (int32_t)(txn_life_ms(c->mongo) / 1000));
	atomic_store(&c->mongo->txn_seconds, (uint64_t)seconds);
	return STATUS_OK;
}

static enum status
set_parameter(struct call *c, const struct bson_element *e)
{
	int shown = (int)(e->name.len < 100 ? e->name.len : 100);

	if (str_eq(e->name, STR("transactionLifetimeLimitSeconds")))
		return set_txn_seconds(c, e);
	for (size_t i = 0; i < PARAMETERS; i++)
		if (str_eq(e->name, str_from_cstr(parameters[i])))
			return call_fail(c, MONGO_ILLEGAL_OPERATION,
					 "not allowed to change [%s] at runtime", parameters[i]);
	return call_fail(c, MONGO_INVALID_OPTIONS, "attempted to set unrecognized parameter [%.*s]",
			 shown, e->name.ptr);
}

/* Sets one parameter of the process, until that ends. */
enum status
mongo_run_set_parameter(struct call *c)
{
	struct bson_element e, wanted = { 0 };
	struct bson_iter i;
	bool found = false;

	bson_iter_begin(&i, c->body);
	(void)bson_iter_read(&i, &e); /* the command's own member */
	while (bson_iter_read(&i, &e)) {
		if (command_is_generic(e.name))
			continue;
		if (found)
			return call_fail(c, MONGO_INVALID_OPTIONS,
					 "setParameter sets one parameter at a time");
		wanted = e;
		found = true;
	}
	if (!found)
		return call_fail(c, MONGO_INVALID_OPTIONS, "no option found to set");
	return set_parameter(c, &wanted);
}

/* ---- Logs ---- */

/* Lines that are told. */
struct lines {
	struct call *call;
	int32_t count;
};

/* What other doors have logged is for administrators, as what they do is. With a lock. */
static void
put_slow_line(void *arg, const struct recent_entry *entry)
{
	const struct ops_slow_entry *e = (const struct ops_slow_entry *)entry;
	struct lines *l = arg;

	if (e->door != &mongo_ops && !l->call->client->entry.who.user.admin)
		return;
	bson_put_string(l->call->reply, STR(""), e->line);
	l->count++;
}

/* The process writes its log to standard error, and keeps of it what was slow. */
enum status
mongo_run_get_log(struct call *c)
{
	struct lines lines = { .call = c };

	if (c->first.type != BSON_STRING)
		return call_fail(c, MONGO_TYPE_MISMATCH,
				 "Argument to getLog must be of type String; found %s",
				 bson_type_name(c->first.type));
	if (str_eq(bson_text(&c->first), STR("*"))) {
		bson_begin_array(c->reply, STR("names"));
		bson_put_string(c->reply, STR(""), STR("global"));
		bson_put_string(c->reply, STR(""), STR("startupWarnings"));
		bson_end(c->reply);
		return STATUS_OK;
	}
	if (!str_eq(bson_text(&c->first), STR("global")) &&
	    !str_eq(bson_text(&c->first), STR("startupWarnings")))
		return call_fail(
			c, MONGO_OPERATION_FAILED, "No log named '%.*s'",
			(int)(bson_text(&c->first).len < 100 ? bson_text(&c->first).len : 100),
			bson_text(&c->first).ptr);
	bson_begin_array(c->reply, STR("log"));
	if (str_eq(bson_text(&c->first), STR("global")))
		ops_each_slow(put_slow_line, &lines);
	bson_end(c->reply);
	bson_put_int32(c->reply, STR("totalLinesWritten"), lines.count);
	return STATUS_OK;
}

enum status
mongo_run_get_cmd_line_opts(struct call *c)
{
	const char *set = c->mongo->set;

	/* Not the process's own words: there may be passwords among them. */
	bson_begin_array(c->reply, STR("argv"));
	bson_put_string(c->reply, STR(""), STR("frond"));
	bson_put_string(c->reply, STR(""), STR("serve"));
	bson_end(c->reply);
	bson_begin_document(c->reply, STR("parsed"));
	if (set) {
		bson_begin_document(c->reply, STR("replication"));
		bson_put_string(c->reply, STR("replSet"), str_from_cstr(set));
		bson_end(c->reply);
	}
	bson_end(c->reply);
	return STATUS_OK;
}

enum status
mongo_run_list_commands(struct call *c)
{
	bson_begin_document(c->reply, STR("commands"));
	for (size_t i = 0; i < mongo_command_count; i++) {
		const struct command *one = &mongo_commands[i];

		bson_begin_document(c->reply, str_from_cstr(one->name));
		bson_put_string(c->reply, STR("help"), str_from_cstr(one->help));
		bson_put_bool(c->reply, STR("requiresAuth"), !(one->flags & COMMAND_NO_AUTH));
		bson_put_bool(c->reply, STR("adminOnly"), one->flags & COMMAND_ADMIN_DB);
		bson_put_bool(c->reply, STR("secondaryOk"), true);
		bson_end(c->reply);
	}
	bson_end(c->reply);
	return STATUS_OK;
}
