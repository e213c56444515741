/*
 * All commands: the one list from which their table (table.c) and the declarations of their
 * handlers are made.
 */
#ifndef FROND_DOOR_MONGO_CMD_COMMANDS_H
#define FROND_DOOR_MONGO_CMD_COMMANDS_H

#include "door/mongo/txn/command.h"

/*
 * By name: COMMAND(name, handler, its members, any of these rights on the database, enum
 * command_flags, help[, .aliases = …]).
 */
/* clang-format off */
#define MONGO_COMMANDS(COMMAND) \
	COMMAND("abortTransaction", mongo_run_abort_transaction, args_end_transaction, 0, \
		COMMAND_ADMIN_DB | COMMAND_ENDS_TRANSACTION | COMMAND_VERSION_1, \
		"gives up what a transaction has done") \
	COMMAND("aggregate", mongo_run_aggregate, args_aggregate, RIGHT_READ, \
		COMMAND_IN_TRANSACTION | COMMAND_SNAPSHOT | COMMAND_VERSION_1 | COMMAND_EXPLAINED, \
		"documents through a pipeline") \
	COMMAND("buildInfo", mongo_run_build_info, args_none, 0, \
		COMMAND_NO_AUTH | COMMAND_LENIENT, \
		"version and limits of the server", .aliases = { "buildinfo" }) \
	COMMAND("bulkWrite", mongo_run_bulk_write, args_bulk_write, 0, \
		COMMAND_ADMIN_DB | COMMAND_WRITES | COMMAND_RETRIES | COMMAND_IN_TRANSACTION | \
		COMMAND_VERSION_1, "adds, changes and removes documents of several collections") \
	COMMAND("cloneCollectionAsCapped", mongo_run_not_there, args_none, \
		RIGHT_WRITE | RIGHT_ADMIN, COMMAND_LENIENT, "there are no capped collections") \
	COMMAND("collMod", mongo_run_coll_mod, args_none, RIGHT_ADMIN | RIGHT_RESTORE, \
		COMMAND_COLLECTION | COMMAND_WRITES | COMMAND_LENIENT | COMMAND_VERSION_1, \
		"gives a collection another validator, or changes an index") \
	COMMAND("collStats", mongo_run_coll_stats, args_stats, \
		RIGHT_READ | RIGHT_ADMIN | RIGHT_MONITOR, COMMAND_COLLECTION, \
		"figures of a collection") \
	COMMAND("commitTransaction", mongo_run_commit_transaction, args_end_transaction, 0, \
		COMMAND_ADMIN_DB | COMMAND_ENDS_TRANSACTION | COMMAND_VERSION_1, \
		"makes what a transaction has done last") \
	COMMAND("compact", mongo_run_not_there, args_none, RIGHT_ADMIN, COMMAND_LENIENT, \
		"the store gives room back by itself") \
	COMMAND("configureFailPoint", mongo_run_fail_point, args_fail_point, \
		RIGHT_MANAGE | RIGHT_HOST, COMMAND_ADMIN_DB | COMMAND_LENIENT, \
		"for tests: has commands fail") \
	COMMAND("connPoolStats", mongo_run_conn_pool_stats, args_none, RIGHT_MONITOR, \
		COMMAND_LENIENT, "connections to other servers, of which there are none") \
	COMMAND("connectionStatus", mongo_run_connection_status, args_connection_status, 0, \
		COMMAND_NO_AUTH | COMMAND_LENIENT, \
		"who has logged in on this connection, and what they may do") \
	COMMAND("convertToCapped", mongo_run_not_there, args_none, RIGHT_WRITE | RIGHT_ADMIN, \
		COMMAND_LENIENT, "there are no capped collections") \
	COMMAND("count", mongo_run_count, args_count, RIGHT_READ, \
		COMMAND_COLLECTION | COMMAND_LENIENT | COMMAND_VERSION_1 | COMMAND_EXPLAINED, \
		"how many documents there are") \
	COMMAND("create", mongo_run_create, args_none, RIGHT_WRITE | RIGHT_ADMIN | RIGHT_RESTORE, \
		COMMAND_COLLECTION | COMMAND_WRITES | COMMAND_LENIENT | COMMAND_IN_TRANSACTION | \
		COMMAND_VERSION_1, "makes a collection") \
	COMMAND("createIndexes", mongo_run_create_indexes, args_create_indexes, \
		RIGHT_WRITE | RIGHT_ADMIN | RIGHT_RESTORE, \
		COMMAND_COLLECTION | COMMAND_WRITES | COMMAND_IN_TRANSACTION | COMMAND_VERSION_1, \
		"makes indexes") \
	COMMAND("createRole", mongo_run_own_roles, args_none, RIGHT_USERS, COMMAND_LENIENT, \
		"refused: there are built-in roles only") \
	COMMAND("createSearchIndexes", mongo_run_search_indexes, args_none, \
		RIGHT_WRITE | RIGHT_ADMIN, COMMAND_COLLECTION | COMMAND_LENIENT, \
		"not there: MongoDB has search indexes in Atlas only", \
		.aliases = { "updateSearchIndex", "dropSearchIndex" }) \
	COMMAND("createUser", mongo_run_create_user, args_user, RIGHT_USERS, \
		COMMAND_PRIVATE | COMMAND_WRITES, "makes a person who may log in") \
	COMMAND("currentOp", mongo_run_current_op, args_current_op, 0, \
		COMMAND_ADMIN_DB | COMMAND_LENIENT, "what connections do now") \
	COMMAND("dataSize", mongo_run_data_size, args_data_size, 0, 0, \
		"the bytes of a collection's documents", .aliases = { "datasize" }) \
	COMMAND("dbHash", mongo_run_db_hash, args_db_hash, RIGHT_READ, 0, \
		"MD5 over the documents of collections", .aliases = { "dbhash" }) \
	COMMAND("dbStats", mongo_run_db_stats, args_stats, \
		RIGHT_READ | RIGHT_ADMIN | RIGHT_MONITOR, 0, "figures of a database", \
		.aliases = { "dbstats" }) \
	COMMAND("delete", mongo_run_delete, args_delete, RIGHT_WRITE, \
		COMMAND_COLLECTION | COMMAND_WRITES | COMMAND_RETRIES | COMMAND_IN_TRANSACTION | \
		COMMAND_VERSION_1 | COMMAND_EXPLAINED, "removes documents") \
	COMMAND("distinct", mongo_run_distinct, args_distinct, RIGHT_READ, \
		COMMAND_COLLECTION | COMMAND_IN_TRANSACTION | COMMAND_SNAPSHOT | \
		COMMAND_EXPLAINED, "the values of a field, each once") \
	COMMAND("drop", mongo_run_drop, args_none, RIGHT_WRITE | RIGHT_ADMIN | RIGHT_RESTORE, \
		COMMAND_COLLECTION | COMMAND_WRITES | COMMAND_VERSION_1, "removes a collection") \
	COMMAND("dropAllRolesFromDatabase", mongo_run_drop_all_roles, args_none, RIGHT_USERS, \
		COMMAND_WRITES, "there are built-in roles only") \
	COMMAND("dropAllUsersFromDatabase", mongo_run_drop_all_users, args_none, RIGHT_USERS, \
		COMMAND_WRITES, "removes those that were made in a database") \
	COMMAND("dropDatabase", mongo_run_drop_database, args_none, RIGHT_ADMIN | RIGHT_DROP, \
		COMMAND_WRITES | COMMAND_VERSION_1, "removes all collections of a database") \
	COMMAND("dropIndexes", mongo_run_drop_indexes, args_drop_indexes, \
		RIGHT_WRITE | RIGHT_ADMIN, \
		COMMAND_COLLECTION | COMMAND_WRITES | COMMAND_VERSION_1, "removes indexes", \
		.aliases = { "deleteIndexes" }) \
	COMMAND("dropRole", mongo_run_own_roles, args_none, RIGHT_USERS, COMMAND_LENIENT, \
		"refused: there are built-in roles only") \
	COMMAND("dropUser", mongo_run_drop_user, args_none, RIGHT_USERS, COMMAND_WRITES, \
		"removes a person") \
	COMMAND("endSessions", mongo_run_end_sessions, args_none, 0, \
		COMMAND_LENIENT | COMMAND_NO_AUTH | COMMAND_VERSION_1, \
		"ends sessions of this client") \
	COMMAND("explain", mongo_run_explain, args_explain, 0, COMMAND_VERSION_1, \
		"how a command comes by its documents") \
	COMMAND("find", mongo_run_find, args_find, RIGHT_READ, \
		COMMAND_COLLECTION | COMMAND_IN_TRANSACTION | COMMAND_SNAPSHOT | \
		COMMAND_VERSION_1 | COMMAND_EXPLAINED, "documents") \
	COMMAND("findAndModify", mongo_run_find_and_modify, args_find_and_modify, RIGHT_WRITE, \
		COMMAND_COLLECTION | COMMAND_WRITES | COMMAND_RETRIES | COMMAND_IN_TRANSACTION | \
		COMMAND_VERSION_1 | COMMAND_EXPLAINED, "changes one document, and answers it", \
		.aliases = { "findandmodify" }) \
	COMMAND("fsync", mongo_run_fsync, args_fsync, RIGHT_HOST, COMMAND_ADMIN_DB, \
		"answers: what was acknowledged is on disk") \
	COMMAND("fsyncUnlock", mongo_run_fsync_unlock, args_none, RIGHT_HOST, \
		COMMAND_ADMIN_DB | COMMAND_LENIENT, "refused: nothing locks") \
	COMMAND("getClusterParameter", mongo_run_get_cluster_parameter, args_none, \
		RIGHT_MONITOR | RIGHT_MANAGE, COMMAND_ADMIN_DB | COMMAND_LENIENT, \
		"parameters of a cluster, of which there are none") \
	COMMAND("getCmdLineOpts", mongo_run_get_cmd_line_opts, args_none, RIGHT_MONITOR, \
		COMMAND_ADMIN_DB | COMMAND_LENIENT, "how the process was started") \
	COMMAND("getDefaultRWConcern", mongo_run_get_default_concern, args_default_concern, \
		RIGHT_MONITOR | RIGHT_MANAGE, COMMAND_ADMIN_DB, \
		"how commands read and write that do not say it") \
	COMMAND("getLog", mongo_run_get_log, args_none, RIGHT_MONITOR, \
		COMMAND_ADMIN_DB | COMMAND_LENIENT, \
		"{getLog: 'global'}: slow operations; the log itself goes to standard error") \
	COMMAND("getMore", mongo_run_get_more, args_get_more, 0, \
		COMMAND_IN_TRANSACTION | COMMAND_OWN_TIME | COMMAND_VERSION_1, \
		"more documents of a cursor") \
	COMMAND("getParameter", mongo_run_get_parameter, args_get_parameter, RIGHT_MONITOR, \
		COMMAND_ADMIN_DB | COMMAND_LENIENT, \
		"{getParameter: 1, name: 1} or {getParameter: '*'}") \
	COMMAND("grantPrivilegesToRole", mongo_run_own_roles, args_none, RIGHT_USERS, \
		COMMAND_LENIENT, "refused: there are built-in roles only") \
	COMMAND("grantRolesToRole", mongo_run_own_roles, args_none, RIGHT_USERS, COMMAND_LENIENT, \
		"refused: there are built-in roles only") \
	COMMAND("grantRolesToUser", mongo_run_grant_roles, args_user_roles, RIGHT_USERS, \
		COMMAND_WRITES, "gives roles to a person") \
	COMMAND("hello", mongo_run_hello, args_hello, 0, \
		COMMAND_NO_AUTH | COMMAND_LENIENT | COMMAND_VERSION_1, \
		"what the server is and what it can do", .aliases = { "isMaster", "ismaster" }) \
	COMMAND("hostInfo", mongo_run_host_info, args_none, RIGHT_MONITOR, COMMAND_LENIENT, \
		"the machine") \
	COMMAND("insert", mongo_run_insert, args_insert, RIGHT_WRITE | RIGHT_RESTORE, \
		COMMAND_COLLECTION | COMMAND_WRITES | COMMAND_RETRIES | COMMAND_IN_TRANSACTION | \
		COMMAND_VERSION_1, "adds documents") \
	COMMAND("killAllSessions", mongo_run_kill_all_sessions, args_none, RIGHT_HOST, \
		COMMAND_LENIENT, "ends the sessions of the named users") \
	COMMAND("killAllSessionsByPattern", mongo_run_kill_sessions_by_pattern, args_none, \
		RIGHT_HOST, COMMAND_LENIENT, "ends sessions by patterns") \
	COMMAND("killCursors", mongo_run_kill_cursors, args_kill_cursors, 0, \
		COMMAND_IN_TRANSACTION | COMMAND_VERSION_1, "ends cursors") \
	COMMAND("killOp", mongo_run_kill_op, args_kill_op, 0, COMMAND_ADMIN_DB | COMMAND_LENIENT, \
		"ends an operation") \
	COMMAND("killSessions", mongo_run_end_sessions, args_none, 0, \
		COMMAND_LENIENT | COMMAND_VERSION_1, "ends sessions of this user") \
	COMMAND("listCollections", mongo_run_list_collections, args_list, \
		RIGHT_READ | RIGHT_ADMIN | RIGHT_RESTORE, COMMAND_VERSION_1, \
		"the collections of a database") \
	COMMAND("listCommands", mongo_run_list_commands, args_none, 0, \
		COMMAND_NO_AUTH | COMMAND_LENIENT, "this list") \
	COMMAND("listDatabases", mongo_run_list_databases, args_list_databases, 0, \
		COMMAND_ADMIN_DB | COMMAND_VERSION_1, "databases with a collection") \
	COMMAND("listIndexes", mongo_run_list_indexes, args_list_indexes, \
		RIGHT_READ | RIGHT_ADMIN, COMMAND_COLLECTION | COMMAND_VERSION_1, \
		"the indexes of a collection") \
	COMMAND("lockInfo", mongo_run_lock_info, args_none, RIGHT_MONITOR, \
		COMMAND_ADMIN_DB | COMMAND_LENIENT, "locks, of which there are none") \
	COMMAND("logRotate", mongo_run_not_there, args_none, RIGHT_HOST, \
		COMMAND_ADMIN_DB | COMMAND_LENIENT, "the log goes to standard error") \
	COMMAND("logout", mongo_run_logout, args_none, 0, \
		COMMAND_NO_AUTH | COMMAND_LENIENT | COMMAND_VERSION_1, \
		"makes nobody of the user of this connection") \
	COMMAND("ping", mongo_run_ping, args_none, 0, \
		COMMAND_NO_AUTH | COMMAND_LENIENT | COMMAND_VERSION_1, "answers") \
	COMMAND("planCacheClear", mongo_run_plan_cache_clear, args_plan_cache, RIGHT_ADMIN, \
		COMMAND_COLLECTION, "answers: no plans are kept") \
	COMMAND("planCacheClearFilters", mongo_run_plan_cache_clear, args_plan_cache, RIGHT_ADMIN, \
		COMMAND_COLLECTION, "answers: there are no index filters") \
	COMMAND("planCacheListFilters", mongo_run_plan_cache_list_filters, args_none, RIGHT_ADMIN, \
		COMMAND_COLLECTION, "index filters, of which there are none") \
	COMMAND("planCacheSetFilter", mongo_run_not_there, args_none, RIGHT_ADMIN, \
		COMMAND_COLLECTION | COMMAND_LENIENT, "queries name their indexes with hint") \
	COMMAND("profile", mongo_run_profile, args_profile, RIGHT_ADMIN, 0, \
		"how long a command takes that is logged: {profile: 0, slowms: 100}") \
	COMMAND("reIndex", mongo_run_not_there, args_none, RIGHT_ADMIN, COMMAND_LENIENT, \
		"an index is dropped and made again") \
	COMMAND("refreshSessions", mongo_run_refresh_sessions, args_none, 0, \
		COMMAND_LENIENT | COMMAND_VERSION_1, "keeps sessions from ending") \
	COMMAND("renameCollection", mongo_run_rename, args_rename, RIGHT_WRITE, \
		COMMAND_ADMIN_DB | COMMAND_WRITES, "gives a collection another name") \
	COMMAND("replSetGetConfig", mongo_run_set_config, args_none, RIGHT_MONITOR | RIGHT_MANAGE, \
		COMMAND_ADMIN_DB | COMMAND_LENIENT, "the replica set and its member") \
	COMMAND("replSetGetStatus", mongo_run_set_status, args_none, RIGHT_MONITOR | RIGHT_MANAGE, \
		COMMAND_ADMIN_DB | COMMAND_LENIENT, "what the member of the replica set does") \
	COMMAND("replSetInitiate", mongo_run_set_initiate, args_none, RIGHT_MANAGE, \
		COMMAND_ADMIN_DB | COMMAND_LENIENT, "refused: the set is there from the start") \
	COMMAND("replSetReconfig", mongo_run_not_there, args_none, RIGHT_MANAGE, \
		COMMAND_ADMIN_DB | COMMAND_LENIENT, \
		"the settings name the only member of the set") \
	COMMAND("replSetStepDown", mongo_run_not_there, args_none, RIGHT_MANAGE, \
		COMMAND_ADMIN_DB | COMMAND_LENIENT, "there is no other member") \
	COMMAND("revokePrivilegesFromRole", mongo_run_own_roles, args_none, RIGHT_USERS, \
		COMMAND_LENIENT, "refused: there are built-in roles only") \
	COMMAND("revokeRolesFromRole", mongo_run_own_roles, args_none, RIGHT_USERS, \
		COMMAND_LENIENT, "refused: there are built-in roles only") \
	COMMAND("revokeRolesFromUser", mongo_run_revoke_roles, args_user_roles, RIGHT_USERS, \
		COMMAND_WRITES, "takes roles from a person") \
	COMMAND("rolesInfo", mongo_run_roles_info, args_roles_info, 0, 0, "roles") \
	COMMAND("saslContinue", mongo_run_sasl_continue, args_sasl_continue, 0, \
		COMMAND_NO_AUTH | COMMAND_LENIENT | COMMAND_PRIVATE | COMMAND_VERSION_1, \
		"the next step of a login") \
	COMMAND("saslStart", mongo_run_sasl_start, args_sasl_start, 0, \
		COMMAND_NO_AUTH | COMMAND_LENIENT | COMMAND_PRIVATE | COMMAND_VERSION_1, \
		"the first step of a login") \
	COMMAND("serverStatus", mongo_run_server_status, args_none, RIGHT_MONITOR, \
		COMMAND_LENIENT, "figures of the process") \
	COMMAND("setClusterParameter", mongo_run_set_cluster_parameter, args_none, RIGHT_MANAGE, \
		COMMAND_ADMIN_DB | COMMAND_LENIENT, \
		"refused: there are no parameters of a cluster") \
	COMMAND("setDefaultRWConcern", mongo_run_not_there, args_none, RIGHT_MANAGE, \
		COMMAND_ADMIN_DB | COMMAND_LENIENT, \
		"each write is on disk when it is answered, and each read sees it") \
	COMMAND("setFeatureCompatibilityVersion", mongo_run_set_feature_version, \
		args_feature_version, RIGHT_MANAGE, COMMAND_ADMIN_DB, \
		"takes the version that it is") \
	COMMAND("setParameter", mongo_run_set_parameter, args_none, RIGHT_HOST, \
		COMMAND_ADMIN_DB | COMMAND_LENIENT, \
		"{setParameter: 1, transactionLifetimeLimitSeconds: 30}") \
	COMMAND("shutdown", mongo_run_not_there, args_none, RIGHT_HOST, \
		COMMAND_ADMIN_DB | COMMAND_LENIENT, "the process ends by a signal, SIGTERM") \
	COMMAND("startSession", mongo_run_start_session, args_none, 0, COMMAND_LENIENT, \
		"begins a session") \
	COMMAND("top", mongo_run_top, args_none, RIGHT_MONITOR, \
		COMMAND_ADMIN_DB | COMMAND_LENIENT, \
		"how often and how long commands have worked on each collection") \
	COMMAND("update", mongo_run_update, args_update, RIGHT_WRITE, \
		COMMAND_COLLECTION | COMMAND_WRITES | COMMAND_RETRIES | COMMAND_IN_TRANSACTION | \
		COMMAND_VERSION_1 | COMMAND_EXPLAINED, "puts documents in the place of others") \
	COMMAND("updateRole", mongo_run_own_roles, args_none, RIGHT_USERS, COMMAND_LENIENT, \
		"refused: there are built-in roles only") \
	COMMAND("updateUser", mongo_run_update_user, args_user, RIGHT_USERS, \
		COMMAND_PRIVATE | COMMAND_WRITES, "changes a person's password, roles and data") \
	COMMAND("usersInfo", mongo_run_users_info, args_users_info, 0, 0, \
		"people and their roles") \
	COMMAND("validate", mongo_run_validate, args_validate, RIGHT_ADMIN, COMMAND_COLLECTION, \
		"checks a collection and its indexes") \
	COMMAND("whatsmyuri", mongo_run_whatsmyuri, args_none, 0, \
		COMMAND_NO_AUTH | COMMAND_LENIENT, \
		"the address of the client")
/* clang-format on */

#define COMMAND_DECLARE(name_, run_, args_, ...)                                                   \
	extern const struct arg args_[];                                                           \
	enum status run_(struct call *c);
MONGO_COMMANDS(COMMAND_DECLARE)
#undef COMMAND_DECLARE

/* cmd_auth.c */
/*
 * The first step of a login, as hello may have one. `request` is a saslStart. Appends to the
 * builder.
 */
MUST_USE enum status sasl_start(struct call *c, struct str request, struct bson_builder *ret);

/* cmd_op.c */
/*
 * Appends what connections do now: those of this person only if `own`, and also those that do
 * nothing if `idle`.
 */
MUST_USE enum status mongo_put_ops(struct call *c, struct bson_builder *b, bool own, bool idle);
/*
 * Open transactions, and cursors, that wait for a command of their client (op_idle.c). After
 * mongo_put_ops().
 */
void mongo_put_idle_sessions(struct call *c, struct bson_builder *b, bool own);
void mongo_put_idle_cursors(struct call *c, struct bson_builder *b, bool own);

/* cmd_bulk.c */
#define BULK_CURSOR_NAME "$cmd.bulkWrite" /* the collection that its cursors are said to be of */

/* cmd_aggregate.c */
struct cursor;
/* getMore of its cursors. */
MUST_USE enum status mongo_more_aggregate(struct call *c, struct cursor *cursor, struct str ns,
					  uint64_t want, bool *ret_ended);

/* cmd_explain.c */
/* aggregate with `explain`. */
enum status mongo_explain_aggregate(struct call *c);

#endif
