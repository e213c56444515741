/* The server: what it tells of itself, and what makes no sense here. */
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/process.h"
#include "base/steady.h"
#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/group.h"
#include "door/redis/script/eval.h"
#include "door/redis/txn/footprint.h"
#include "door/redis/txn/monitor.h"
#include "door/redis/txn/redis_int.h"
#include "door/redis/txn/slow.h"
#include "door/redis/txn/standing.h"
#include "door/redis/txn/stats.h"

enum {
	INFO_BYTES = 256 * 1024,
	NS_PER_S = 1000000000,
	SLOWLOG_GET = 10,
};

enum status
cmd_time(struct call *c)
{
	uint64_t ms = c->in_script ? c->script_now_ms : steady_date_ms();

	reply_array(c->reply, 2);
	reply_bulk_int(c->reply, (int64_t)(ms / 1000));
	reply_bulk_int(c->reply, (int64_t)(ms % 1000 * 1000));
	return STATUS_OK;
}

/* ---- INFO ---- */

static void
info_server(struct call *c, struct buf *out)
{
	struct redis *r = c->redis;
	uint64_t up = (clock_mono_ns() - r->started_ns) / NS_PER_S;

	buf_printf(
		out,
		"# Server\r\nredis_version:%s\r\nredis_git_sha1:00000000\r\nredis_git_dirty:0\r\n"
		"redis_build_id:0\r\nredis_mode:standalone\r\nfrond_version:%s\r\nos:Linux\r\n"
		"arch_bits:64\r\nprocess_id:%d\r\nrun_id:%s\r\ntcp_port:%u\r\n"
		"server_time_usec:%llu\r\nuptime_in_seconds:%llu\r\nuptime_in_days:%llu\r\n"
		"hz:10\r\nconfigured_hz:10\r\nexecutable:frond\r\nconfig_file:%s\r\n",
		REDIS_VERSION, FROND_VERSION, (int)getpid(), r->run_id, r->config.port,
		(unsigned long long)clock_wall_ms() * 1000, (unsigned long long)up,
		(unsigned long long)up / 86400, r->config.config_file ? r->config.config_file : "");
}

static void
info_clients(struct call *c, struct buf *out)
{
	struct redis *r = c->redis;
	buf_printf(out,
		   "# Clients\r\nconnected_clients:%zu\r\ncluster_connections:0\r\n"
		   "maxclients:%zu\r\nblocked_clients:%llu\r\ntracking_clients:%zu\r\n",
		   clients_count(&r->clients), r->config.max_clients,
		   (unsigned long long)atomic_load(&r->blocked_count), tracking_count(r).clients);
}

/* "name:1572864" and "name_human:1.50M", as Redis writes bytes. */
static void
info_bytes(struct buf *out, const char *name, uint64_t bytes)
{
	static const char units[] = { 'K', 'M', 'G', 'T' };
	double shown = (double)bytes;
	size_t unit = 0;

	buf_printf(out, "%s:%llu\r\n", name, (unsigned long long)bytes);
	if (bytes < 1024) {
		buf_printf(out, "%s_human:%lluB\r\n", name, (unsigned long long)bytes);
		return;
	}
	for (shown /= 1024; shown >= 1024 && unit + 1 < sizeof(units); shown /= 1024)
		unit++;
	buf_printf(out, "%s_human:%.2f%c\r\n", name, shown, units[unit]);
}

/* Of the process: data are on disk, and other doors may be served, too. */
static void
info_memory(struct call *c, struct buf *out)
{
	struct redis *r = c->redis;
	const struct footprint f = footprint_of(r, c->client->part->budget);
	uint64_t scripts = eval_cache_bytes(r->script_cache) +
			   script_images_bytes(r->script_images);

	buf_append_cstr(out, "# Memory\r\n");
	info_bytes(out, "used_memory", f.used);
	info_bytes(out, "used_memory_rss", f.resident);
	info_bytes(out, "used_memory_peak", f.peak);
	buf_printf(out,
		   "used_memory_peak_perc:%.2f%%\r\nused_memory_overhead:%llu\r\n"
		   "used_memory_startup:%llu\r\nused_memory_dataset:%llu\r\n"
		   "used_memory_dataset_perc:%.2f%%\r\nallocator_allocated:%llu\r\n"
		   "allocator_active:%llu\r\nallocator_resident:%llu\r\n",
		   footprint_percent(f.used, f.peak), (unsigned long long)f.overhead,
		   (unsigned long long)f.startup, (unsigned long long)footprint_dataset(&f),
		   footprint_percent(footprint_dataset(&f), f.used), (unsigned long long)f.used,
		   (unsigned long long)f.active, (unsigned long long)f.resident);
	info_bytes(out, "total_system_memory", f.system);
	info_bytes(out, "used_memory_scripts", scripts);
	info_bytes(out, "maxmemory", 0);
	buf_printf(out,
		   "maxmemory_policy:noeviction\r\nallocator_frag_ratio:%.2f\r\n"
		   "allocator_frag_bytes:%lld\r\nmem_fragmentation_ratio:%.2f\r\n"
		   "mem_fragmentation_bytes:%lld\r\nmem_not_counted_for_evict:0\r\n"
		   "mem_replication_backlog:0\r\nmem_clients_slaves:0\r\n"
		   "mem_clients_normal:%llu\r\nmem_aof_buffer:0\r\nmem_allocator:libc\r\n"
		   "active_defrag_running:0\r\nnumber_of_cached_scripts:%zu\r\n",
		   footprint_ratio(f.active, f.used), (long long)(f.active - f.used),
		   footprint_ratio(f.resident, f.used), (long long)(f.resident - f.used),
		   (unsigned long long)f.clients, eval_cache_count(r->script_cache));
}

static void
info_persistence(struct call *c, struct buf *out)
{
	(void)c;
	/* The last commit is on disk, which is what the time of the last save is asked for. */
	buf_printf(out, "# Persistence\r\nrdb_last_save_time:%llu\r\n",
		   (unsigned long long)(clock_wall_ms() / 1000));
	buf_append_cstr(out, "loading:0\r\nasync_loading:0\r\n"
			     "rdb_changes_since_last_save:0\r\nrdb_bgsave_in_progress:0\r\n"
			     "rdb_last_bgsave_status:ok\r\naof_enabled:1\r\n"
			     "aof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0\r\n"
			     "aof_last_bgrewrite_status:ok\r\naof_last_write_status:ok\r\n");
}

static void
info_stats(struct call *c, struct buf *out)
{
	struct redis *r = c->redis;
	struct tracking_counts tracked = tracking_count(r);
	const struct traffic moved = traffic_of_process();
	size_t channels, patterns, shards;

	pthread_rwlock_rdlock(&r->pubsub_lock);
	channels = r->channels[0].count;
	patterns = r->channels[1].count;
	shards = r->channels[2].count;
	pthread_rwlock_unlock(&r->pubsub_lock);
	buf_printf(out,
		   "# Stats\r\ntotal_connections_received:%llu\r\ntotal_commands_processed:%llu\r\n"
		   "instantaneous_ops_per_sec:%llu\r\n"
		   "keyspace_hits:%llu\r\nkeyspace_misses:%llu\r\npubsub_channels:%zu\r\n"
		   "pubsub_patterns:%zu\r\nexpired_keys:%llu\r\nexpired_subkeys:%llu\r\n"
		   "evicted_keys:0\r\nevicted_clients:0\r\npubsubshard_channels:%zu\r\n"
		   "total_net_input_bytes:%llu\r\ntotal_net_output_bytes:%llu\r\n"
		   "rejected_connections:%llu\r\nsync_full:0\r\nsync_partial_ok:0\r\n"
		   "sync_partial_err:0\r\nlatest_fork_usec:0\r\ntotal_forks:0\r\n"
		   "tracking_total_keys:%zu\r\ntracking_total_items:%zu\r\n"
		   "tracking_total_prefixes:%zu\r\ntotal_error_replies:%llu\r\n",
		   (unsigned long long)atomic_load(&r->connections),
		   (unsigned long long)atomic_load(&r->commands),
		   (unsigned long long)atomic_load(&r->commands_a_second),
		   (unsigned long long)atomic_load(&r->hits),
		   (unsigned long long)atomic_load(&r->misses), channels, patterns,
		   (unsigned long long)atomic_load(&r->expired),
		   (unsigned long long)atomic_load(&r->expired_fields), shards,
		   (unsigned long long)moved.received, (unsigned long long)moved.sent,
		   (unsigned long long)moved.refused, tracked.keys, tracked.items, tracked.prefixes,
		   (unsigned long long)stats_errors(r->stats));
}

static void
info_replication(struct call *c, struct buf *out)
{
	struct redis *r = c->redis;
	const struct standing standing = standing_of(r);

	if (standing.replica) {
		buf_printf(out,
			   "# Replication\r\nrole:slave\r\nmaster_link_status:%s\r\n"
			   "master_last_io_seconds_ago:%llu\r\nslave_repl_offset:%llu\r\n"
			   "slave_read_only:1\r\nconnected_slaves:0\r\n",
			   standing.linked ? "up" : "down", (unsigned long long)standing.seconds,
			   (unsigned long long)standing.version);
		return;
	}
	buf_append_cstr(out, "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n"
			     "master_failover_state:no-failover\r\nmaster_repl_offset:0\r\n"
			     "repl_backlog_active:0\r\n");
}

static void
info_cpu(struct call *c, struct buf *out)
{
	struct rusage usage = { 0 };

	(void)c;
	getrusage(RUSAGE_SELF, &usage);
	buf_printf(out, "# CPU\r\nused_cpu_sys:%ld.%06ld\r\nused_cpu_user:%ld.%06ld\r\n",
		   (long)usage.ru_stime.tv_sec, (long)usage.ru_stime.tv_usec,
		   (long)usage.ru_utime.tv_sec, (long)usage.ru_utime.tv_usec);
}

static void
info_cluster(struct call *c, struct buf *out)
{
	(void)c;
	buf_append_cstr(out, "# Cluster\r\ncluster_enabled:0\r\n");
}

static void
info_commandstats(struct call *c, struct buf *out)
{
	struct redis *r = c->redis;
	buf_append_cstr(out, "# Commandstats\r\n");
	stats_write_commands(r->stats, out);
}

static void
info_errorstats(struct call *c, struct buf *out)
{
	struct redis *r = c->redis;
	buf_append_cstr(out, "# Errorstats\r\n");
	stats_write_errors(r->stats, out);
}

static const struct {
	const char *name;
	void (*write)(struct call *c, struct buf *out);
	bool is_extra; /* who does not ask for it does not get it */
} info_sections[] = {
	{ "server", info_server, false },
	{ "clients", info_clients, false },
	{ "memory", info_memory, false },
	{ "persistence", info_persistence, false },
	{ "stats", info_stats, false },
	{ "replication", info_replication, false },
	{ "cpu", info_cpu, false },
	{ "commandstats", info_commandstats, true },
	{ "errorstats", info_errorstats, false },
	{ "cluster", info_cluster, false },
};

static bool
info_wants(const struct call *c, const char *name, bool is_extra)
{
	for (size_t i = 1; i < c->argc; i++)
		if (call_arg_is(c, i, name) || call_arg_is(c, i, "all") ||
		    call_arg_is(c, i, "everything") || (call_arg_is(c, i, "default") && !is_extra))
			return true;
	return c->argc == 1 && !is_extra;
}

/* A database with keys; where bytes of the past are bounded, how many it has. */
static enum status
info_database(struct call *c, unsigned db, struct buf *out)
{
	struct timed_history_info history;
	struct timed *t;
	uint64_t count;

	TRY(txn_db_there(c, db, &t));
	if (!t)
		return STATUS_OK;
	TRY(timed_items_count(t, &count));
	if (!count)
		return STATUS_OK;
	TRY(timed_history_info_get(t, &history));
	buf_printf(out, "db%u:keys=%llu", db, (unsigned long long)count);
	if (history.bounds.bytes)
		buf_printf(out, ",past_bytes=%llu", (unsigned long long)history.held_bytes);
	buf_append_cstr(out, "\r\n");
	return STATUS_OK;
}

static enum status
info_keyspace(struct call *c, struct buf *out)
{
	buf_append_cstr(out, "# Keyspace\r\n");
	for (unsigned db = 0; db < REDIS_DATABASES; db++)
		TRY(info_database(c, db, out));
	return STATUS_OK;
}

enum status
cmd_info(struct call *c)
{
	AUTO(buf_release) struct buf out = BUF_INIT_OF(INFO_BYTES, c->client->part);

	for (size_t i = 0; i < sizeof(info_sections) / sizeof(info_sections[0]); i++) {
		if (!info_wants(c, info_sections[i].name, info_sections[i].is_extra))
			continue;
		if (out.len)
			buf_append_cstr(&out, "\r\n");
		info_sections[i].write(c, &out);
	}
	if (info_wants(c, "keyspace", false)) {
		if (out.len)
			buf_append_cstr(&out, "\r\n");
		TRY(info_keyspace(c, &out));
	}
	TRY(buf_status(&out));
	reply_verbatim(c->reply, buf_str(&out));
	return STATUS_OK;
}

/* ---- SLOWLOG ---- */

enum status
cmd_slowlog(struct call *c)
{
	static const char *const help[] = {
		"GET [<count>]",
		"    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
		"    Entries are made of:",
		"    id, timestamp, time in microseconds, arguments array, client IP and port,",
		"    client name",
		"LEN",
		"    Return the length of the slowlog.",
		"RESET",
		"    Reset the slowlog.",
	};
	int64_t count = SLOWLOG_GET;

	if (call_arg_is(c, 1, "help") && c->argc == 2)
		return call_help(c, help, sizeof(help) / sizeof(help[0]));
	if (call_arg_is(c, 1, "reset") && c->argc == 2) {
		recent_clear(&redis_ops.slow);
		reply_ok(c->reply);
	} else if (call_arg_is(c, 1, "len") && c->argc == 2) {
		reply_int(c->reply, (int64_t)recent_count(&redis_ops.slow));
	} else if (call_arg_is(c, 1, "get") && c->argc <= 3) {
		if (c->argc == 3)
			TRY(call_int_range(c, 2, -1, INT64_MAX,
					   "count should be greater than or equal to -1", &count));
		slow_get(count, c->reply);
	} else {
		return call_unknown_subcommand(c);
	}
	return STATUS_OK;
}

/* The version, which clients of Redis draw out of it; no pictures. */
enum status
cmd_lolwut(struct call *c)
{
	int64_t ignored;

	if (c->argc > 2 && call_arg_is(c, 1, "version"))
		TRY(call_int(c, 2, &ignored));
	reply_verbatim(c->reply, STR("Redis ver. " REDIS_VERSION "\n"));
	return STATUS_OK;
}

/* ---- MONITOR ---- */

enum status
cmd_monitor(struct call *c)
{
	if (c->in_exec)
		return call_error(c, STR("ERR MONITOR isn't allowed for DENY BLOCKING client"));
	monitor_begin(c->client);
	reply_ok(c->reply);
	return STATUS_OK;
}

/* ---- What is there by the nature of the store, or cannot be ---- */

enum status
cmd_wait(struct call *c)
{
	int64_t n;

	TRY(call_int(c, 1, &n));
	TRY(call_int_range(c, 2, INT64_MIN, INT64_MAX, "timeout is not an integer or out of range",
			   &n));
	if (n < 0)
		return call_error(c, STR("ERR timeout is negative"));
	reply_int(c->reply, 0); /* there are no replicas */
	return STATUS_OK;
}

enum status
cmd_lastsave(struct call *c)
{
	reply_int(c->reply, (int64_t)(clock_wall_ms() / 1000)); /* the last commit is on disk */
	return STATUS_OK;
}

enum status
cmd_role(struct call *c)
{
	const struct standing standing = standing_of(c->redis);

	if (standing.replica) {
		reply_array(c->reply, 5);
		reply_bulk_cstr(c->reply, "slave");
		reply_bulk_cstr(c->reply, ""); /* where the first is, is not for clients to know */
		reply_int(c->reply, 0);
		reply_bulk_cstr(c->reply, standing.linked ? "connected" : "connect");
		reply_int(c->reply, (int64_t)standing.version);
		return STATUS_OK;
	}
	reply_array(c->reply, 3);
	reply_bulk_cstr(c->reply, "master");
	reply_int(c->reply, 0);
	reply_array(c->reply, 0);
	return STATUS_OK;
}

enum status
cmd_module(struct call *c)
{
	if (call_arg_is(c, 1, "list"))
		reply_array(c->reply, 0);
	else
		return call_error(c, STR("ERR frond loads no modules"));
	return STATUS_OK;
}

/* REPLICAOF NO ONE changes nothing: a frond is nobody's replica. */
enum status
cmd_replicaof(struct call *c)
{
	if (call_arg_is(c, 1, "no") && call_arg_is(c, 2, "one"))
		reply_ok(c->reply);
	else
		return call_error(c, STR("ERR there is no replication here: a FoundationDB "
					 "cluster keeps copies"));
	return STATUS_OK;
}

/* Commands of Redis that frond does not have, each with the reason. */
enum status
cmd_refused(struct call *c)
{
	if (c->command->refusal)
		return call_errorf(c, "ERR %s", c->command->refusal);
	return call_errorf(c, "ERR '%s' is not supported by frond yet", c->command->name);
}
