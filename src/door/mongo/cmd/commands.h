/* The handlers of all commands, for the table. */
#ifndef FROND_DOOR_MONGO_CMD_COMMANDS_H
#define FROND_DOOR_MONGO_CMD_COMMANDS_H

#include "door/mongo/txn/command.h"

/* cmd_hello.c */
extern const struct arg args_hello[];
enum status mongo_run_hello(struct call *c);

/* cmd_auth.c */
extern const struct arg args_sasl_start[];
extern const struct arg args_sasl_continue[];
extern const struct arg args_connection_status[];
enum status mongo_run_sasl_start(struct call *c);
enum status mongo_run_sasl_continue(struct call *c);
enum status mongo_run_logout(struct call *c);
enum status mongo_run_connection_status(struct call *c);
/*
 * The first step of a login, as hello may have one. `request` is a saslStart. Appends to the
 * builder.
 */
MUST_USE enum status sasl_start(struct call *c, struct str request, struct bson_builder *ret);

/* cmd_user.c */
extern const struct arg args_user[];
extern const struct arg args_user_roles[];
extern const struct arg args_users_info[];
extern const struct arg args_roles_info[];
enum status mongo_run_create_user(struct call *c);
enum status mongo_run_update_user(struct call *c);
enum status mongo_run_drop_user(struct call *c);
enum status mongo_run_drop_all_users(struct call *c);
enum status mongo_run_grant_roles(struct call *c);
enum status mongo_run_revoke_roles(struct call *c);
enum status mongo_run_users_info(struct call *c);
enum status mongo_run_roles_info(struct call *c);
enum status mongo_run_own_roles(struct call *c);
enum status mongo_run_search_indexes(struct call *c);
enum status mongo_run_drop_all_roles(struct call *c);

/* cmd_info.c */
extern const struct arg args_get_parameter[];
enum status mongo_run_ping(struct call *c);
enum status mongo_run_build_info(struct call *c);
enum status mongo_run_server_status(struct call *c);
enum status mongo_run_host_info(struct call *c);
enum status mongo_run_get_parameter(struct call *c);
enum status mongo_run_set_parameter(struct call *c);
extern const struct arg args_default_concern[];
enum status mongo_run_get_default_concern(struct call *c);
enum status mongo_run_conn_pool_stats(struct call *c);
enum status mongo_run_whatsmyuri(struct call *c);
enum status mongo_run_get_log(struct call *c);
enum status mongo_run_get_cmd_line_opts(struct call *c);
enum status mongo_run_list_commands(struct call *c);

/* cmd_top.c */
enum status mongo_run_top(struct call *c);

/* cmd_hash.c */
extern const struct arg args_db_hash[];
enum status mongo_run_db_hash(struct call *c);

/* cmd_set.c */
enum status mongo_run_set_status(struct call *c);
enum status mongo_run_set_config(struct call *c);
enum status mongo_run_set_initiate(struct call *c);

/* cmd_admin.c */
extern const struct arg args_fsync[];
extern const struct arg args_profile[];
extern const struct arg args_plan_cache[];
enum status mongo_run_fsync(struct call *c);
enum status mongo_run_fsync_unlock(struct call *c);
enum status mongo_run_profile(struct call *c);
enum status mongo_run_lock_info(struct call *c);
enum status mongo_run_plan_cache_clear(struct call *c);
enum status mongo_run_plan_cache_list_filters(struct call *c);
/* Refuses a command with its help as the reason. */
enum status mongo_run_not_there(struct call *c);
extern const struct arg args_feature_version[];
enum status mongo_run_set_feature_version(struct call *c);
enum status mongo_run_get_cluster_parameter(struct call *c);
enum status mongo_run_set_cluster_parameter(struct call *c);

/* cmd_session.c */
enum status mongo_run_start_session(struct call *c);
enum status mongo_run_end_sessions(struct call *c);
enum status mongo_run_refresh_sessions(struct call *c);
enum status mongo_run_kill_sessions_by_pattern(struct call *c);
enum status mongo_run_kill_all_sessions(struct call *c);

/* cmd_op.c */
extern const struct arg args_current_op[];
extern const struct arg args_kill_op[];
enum status mongo_run_current_op(struct call *c);
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
enum status mongo_run_kill_op(struct call *c);

/* cmd_insert.c */
extern const struct arg args_insert[];
enum status mongo_run_insert(struct call *c);

/* cmd_bulk.c */
#define BULK_CURSOR_NAME "$cmd.bulkWrite" /* the collection that its cursors are said to be of */
extern const struct arg args_bulk_write[];
enum status mongo_run_bulk_write(struct call *c);

/* cmd_distinct.c */
extern const struct arg args_distinct[];
enum status mongo_run_distinct(struct call *c);

/* cmd_find_modify.c */
extern const struct arg args_find_and_modify[];
enum status mongo_run_find_and_modify(struct call *c);

/* cmd_update.c */
extern const struct arg args_delete[];
extern const struct arg args_update[];
enum status mongo_run_delete(struct call *c);
enum status mongo_run_update(struct call *c);

/* cmd_find.c */
extern const struct arg args_find[];
extern const struct arg args_get_more[];
extern const struct arg args_kill_cursors[];
enum status mongo_run_find(struct call *c);
enum status mongo_run_get_more(struct call *c);
enum status mongo_run_kill_cursors(struct call *c);

/* cmd_aggregate.c */
struct cursor;
extern const struct arg args_aggregate[];
enum status mongo_run_aggregate(struct call *c);
/* getMore of its cursors. */
MUST_USE enum status mongo_more_aggregate(struct call *c, struct cursor *cursor, struct str ns,
					  uint64_t want, bool *ret_ended);

/* cmd_explain.c */
extern const struct arg args_explain[];
enum status mongo_run_explain(struct call *c);
/* aggregate with `explain`. */
enum status mongo_explain_aggregate(struct call *c);

/* cmd_collection.c */
extern const struct arg args_list[];
extern const struct arg args_list_databases[];
extern const struct arg args_rename[];
extern const struct arg args_count[];
extern const struct arg args_stats[];
enum status mongo_run_create(struct call *c);
enum status mongo_run_coll_mod(struct call *c);
enum status mongo_run_drop(struct call *c);
enum status mongo_run_rename(struct call *c);
enum status mongo_run_count(struct call *c);
enum status mongo_run_coll_stats(struct call *c);
enum status mongo_run_db_stats(struct call *c);
enum status mongo_run_list_collections(struct call *c);
enum status mongo_run_list_databases(struct call *c);
enum status mongo_run_drop_database(struct call *c);

/* cmd_measure.c */
extern const struct arg args_data_size[];
enum status mongo_run_data_size(struct call *c);

/* cmd_validate.c */
extern const struct arg args_validate[];
enum status mongo_run_validate(struct call *c);

/* cmd_index.c */
extern const struct arg args_create_indexes[];
extern const struct arg args_drop_indexes[];
extern const struct arg args_list_indexes[];
enum status mongo_run_create_indexes(struct call *c);
enum status mongo_run_drop_indexes(struct call *c);
enum status mongo_run_list_indexes(struct call *c);

#endif
