/* The handlers of all commands, for the table; each cmd_*.c has those of one kind. */
#ifndef FROND_DOOR_REDIS_CMD_COMMANDS_H
#define FROND_DOOR_REDIS_CMD_COMMANDS_H

#include "door/redis/acl/command.h"

/* True for what may be the name of a connection (cmd_conn.c). */
bool conn_name_is_sound(struct str name);

/*
 * True if EVAL, FCALL or one of their kin would run what says `no-writes` (cmd_script.c). On the
 * client's fiber and outside of transactions: functions are looked for in one of its own, and one
 * that cannot be found says nothing.
 */
bool script_says_no_writes(struct redis *r, const struct command *command, const struct str *argv,
			   size_t argc, struct arena *arena);

/* cmd_acl.c */
command_handler cmd_acl;
/* cmd_bits.c */
command_handler cmd_bitcount, cmd_bitfield, cmd_bitop, cmd_bitpos, cmd_getbit, cmd_setbit;
/* cmd_block.c */
command_handler cmd_list_bpop, cmd_list_move, cmd_list_mpop, cmd_rpoplpush, cmd_zset_bpop,
	cmd_zset_mpop;
/* cmd_client.c */
command_handler cmd_client;
/* cmd_tracking.c: of the subcommands that are about it */
command_handler cmd_client_tracking;
/* cmd_command.c */
command_handler cmd_command;
/* cmd_config.c */
command_handler cmd_config;
/* cmd_conn.c */
command_handler cmd_auth, cmd_echo, cmd_hello, cmd_ping, cmd_quit, cmd_reset, cmd_select;
/* cmd_dump.c */
command_handler cmd_dump, cmd_restore;
/* cmd_expire.c */
command_handler cmd_expire, cmd_persist, cmd_ttl;
/* cmd_geo.c */
command_handler cmd_geo_search, cmd_geoadd, cmd_geodist, cmd_geohash, cmd_geopos;
/* cmd_group.c */
command_handler cmd_xack, cmd_xautoclaim, cmd_xclaim, cmd_xgroup, cmd_xpending;
/* cmd_hash.c */
command_handler cmd_hash_fields, cmd_hexists, cmd_hget, cmd_hincrby, cmd_hincrbyfloat, cmd_hmget,
	cmd_hset, cmd_hsetnx, cmd_hstrlen;
/* cmd_hexpire.c */
command_handler cmd_hash_expire, cmd_hash_ttl, cmd_hgetdel, cmd_hgetex, cmd_hpersist, cmd_hsetex;
/* cmd_hyperloglog.c */
command_handler cmd_pfadd, cmd_pfcount, cmd_pfmerge;
/* cmd_json.c */
command_handler cmd_json_clear, cmd_json_debug, cmd_json_del, cmd_json_get, cmd_json_merge,
	cmd_json_mget, cmd_json_mset, cmd_json_resp, cmd_json_set, cmd_json_type;
/* cmd_json_value.c */
command_handler cmd_json_arrappend, cmd_json_arrindex, cmd_json_arrinsert, cmd_json_arrlen,
	cmd_json_arrpop, cmd_json_arrtrim, cmd_json_number, cmd_json_objkeys, cmd_json_objlen,
	cmd_json_strappend, cmd_json_strlen, cmd_json_toggle;
/* cmd_key.c */
command_handler cmd_copy, cmd_dbsize, cmd_del, cmd_exists, cmd_flushall, cmd_flushdb, cmd_keys,
	cmd_move, cmd_object, cmd_randomkey, cmd_rename, cmd_scan, cmd_swapdb, cmd_type;
/* cmd_lcs.c */
command_handler cmd_lcs;
/* cmd_list.c */
command_handler cmd_lindex, cmd_linsert, cmd_lpos, cmd_lrange, cmd_lrem, cmd_lset, cmd_ltrim,
	cmd_pop, cmd_push;
/* cmd_multi.c */
command_handler cmd_discard, cmd_exec, cmd_multi, cmd_unwatch, cmd_watch;
/* cmd_past.c */
command_handler cmd_frond_at, cmd_frond_diff, cmd_frond_history;
/* cmd_pubsub.c */
command_handler cmd_publish, cmd_pubsub, cmd_subscribe, cmd_unsubscribe;
/* cmd_script.c */
command_handler cmd_eval, cmd_evalsha, cmd_fcall, cmd_script;

/* cmd_function.c */
command_handler cmd_function;
/* cmd_server.c */
command_handler cmd_info, cmd_lastsave, cmd_latency, cmd_lolwut, cmd_memory, cmd_module,
	cmd_monitor, cmd_replicaof, cmd_role, cmd_slowlog, cmd_time, cmd_wait;
/* cmd_sets.c */
command_handler cmd_sadd, cmd_sets, cmd_sintercard, cmd_smembers, cmd_smismember, cmd_smove,
	cmd_spop, cmd_srandmember;
/* cmd_sort.c */
command_handler cmd_sort;
/* cmd_stream.c */
command_handler cmd_xadd, cmd_xdel, cmd_xsetid, cmd_xtrim;
/* cmd_stream_read.c */
command_handler cmd_xinfo, cmd_xrange, cmd_xread;
/* cmd_string.c */
command_handler cmd_append, cmd_decr, cmd_decrby, cmd_get, cmd_getdel, cmd_getex, cmd_getrange,
	cmd_getset, cmd_incr, cmd_incrby, cmd_incrbyfloat, cmd_mget, cmd_mset, cmd_msetnx, cmd_set,
	cmd_setex, cmd_setnx, cmd_setrange, cmd_strlen;
/* cmd_zrange.c */
command_handler cmd_zset_range, cmd_zset_range_count, cmd_zset_range_remove;
/* cmd_zset.c */
command_handler cmd_zadd, cmd_zincrby, cmd_zmscore, cmd_zset_pop, cmd_zset_rank;
/* cmd_zstore.c */
command_handler cmd_zintercard, cmd_zsets;
/* members.c */
command_handler cmd_members_count, cmd_members_random, cmd_members_remove, cmd_members_scan;

#endif
