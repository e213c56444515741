/* MEMORY: what the process takes, of which data are the least: they are on disk. */
#include <malloc.h>
#include <stdio.h>

#include "base/mem.h"
#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/group.h"
#include "door/redis/script/eval.h"
#include "door/redis/txn/footprint.h"
#include "door/redis/txn/redis_int.h"

enum {
	OVERHEAD_BYTES = 64, /* of an item's header and key, by and large */
	MALLOC_BYTES = 256 * 1024,
};

/* What a stream's groups have. */
static enum status
memory_count_groups(struct timed_item *item, uint64_t *count)
{
	struct str after = GROUP_NO_NAME;
	struct timed_groups page;
	uint64_t consumers, pending;

	do {
		TRY(timed_groups_page(item, after, GROUP_PAGE, &page));
		for (size_t i = 0; i < page.count; i++) {
			after = page.groups[i].name;
			TRY(timed_consumers_count(item, &page.groups[i], &consumers));
			TRY(timed_pending_count(item, &page.groups[i], GROUP_NO_NAME, &pending));
			*count += 1 + consumers + pending;
		}
	} while (page.count == GROUP_PAGE);
	return STATUS_OK;
}

static enum status
memory_usage(struct call *c)
{
	struct timed_item *item;
	uint64_t count = 0;
	int64_t samples;

	/* The samples have no effect: it is an estimate. */
	for (size_t i = 3; i < c->argc; i += 2) {
		if (!call_arg_is(c, i, "samples") || i + 1 == c->argc)
			return call_syntax_error(c);
		TRY(call_int(c, i + 1, &samples));
		if (samples < 0)
			return call_syntax_error(c);
	}
	TRY(txn_item(c, c->argv[2], &item));
	if (item->type == TIMED_LEAF) {
		reply_null(c->reply);
		return STATUS_OK;
	}
	if (item->type == TIMED_VALUE) {
		count = item->length;
	} else {
		TRY(timed_count(item, &count));
		if (item->type == TIMED_STREAM)
			TRY(memory_count_groups(item, &count));
		count *= OVERHEAD_BYTES;
	}
	reply_int(c->reply, (int64_t)(count + item->key.len + OVERHEAD_BYTES));
	return STATUS_OK;
}

static void
stats_int(struct reply *r, const char *name, uint64_t n)
{
	reply_bulk_cstr(r, name);
	reply_int(r, (int64_t)n);
}

static void
stats_double(struct reply *r, const char *name, double d)
{
	reply_bulk_cstr(r, name);
	reply_double(r, d);
}

static enum status
memory_count_keys(struct call *c, uint64_t *ret)
{
	*ret = 0;
	for (unsigned db = 0; db < REDIS_DATABASES; db++) {
		uint64_t count;

		TRY(txn_db_count(c, db, &count));
		*ret += count;
	}
	return STATUS_OK;
}

static enum status
memory_stats(struct call *c)
{
	const struct footprint f = footprint_of(c->redis, c->client->part->budget);
	uint64_t dataset = footprint_dataset(&f);
	struct reply *r = c->reply;
	size_t place = reply_later(r);
	uint64_t keys;

	TRY(memory_count_keys(c, &keys));
	stats_int(r, "peak.allocated", f.peak);
	stats_int(r, "total.allocated", f.used);
	stats_int(r, "startup.allocated", f.startup);
	stats_int(r, "replication.backlog", 0);
	stats_int(r, "clients.slaves", 0);
	stats_int(r, "clients.normal", f.clients);
	stats_int(r, "cluster.links", 0);
	stats_int(r, "aof.buffer", 0);
	stats_int(r, "lua.caches",
		  eval_cache_bytes(c->redis->script_cache) +
			  script_images_bytes(c->redis->script_images));
	stats_int(r, "functions.caches", 0); /* libraries are in the store */
	stats_int(r, "overhead.total", f.overhead);
	stats_int(r, "keys.count", keys);
	stats_int(r, "keys.bytes-per-key", keys ? dataset / keys : 0);
	stats_int(r, "dataset.bytes", dataset);
	stats_double(r, "dataset.percentage", footprint_percent(dataset, f.used));
	stats_double(r, "peak.percentage", footprint_percent(f.used, f.peak));
	stats_int(r, "allocator.allocated", f.used);
	stats_int(r, "allocator.active", f.active);
	stats_int(r, "allocator.resident", f.resident);
	stats_double(r, "allocator-fragmentation.ratio", footprint_ratio(f.active, f.used));
	stats_int(r, "allocator-fragmentation.bytes", f.active - f.used);
	stats_double(r, "allocator-rss.ratio", footprint_ratio(f.resident, f.active));
	stats_int(r, "allocator-rss.bytes", f.resident - f.active);
	/* As in a redis-server with this allocator: what is resident is all the allocator's. */
	stats_double(r, "rss-overhead.ratio", footprint_ratio(f.resident, f.resident));
	stats_int(r, "rss-overhead.bytes", 0);
	stats_double(r, "fragmentation", footprint_ratio(f.resident, f.used));
	stats_int(r, "fragmentation.bytes", f.resident - f.used);
	reply_later_end(r, place, '%', 27);
	return STATUS_OK;
}

/* What glibc tells of its heaps, as XML. */
static enum status
memory_malloc_stats(struct call *c)
{
	char *text = NULL;
	size_t len = 0;
	FILE *file = open_memstream(&text, &len);

	if (!file || malloc_info(0, file) != 0) {
		if (file)
			(void)fclose(file);
		free(text);
		return call_error(c, STR("ERR malloc tells nothing now"));
	}
	(void)fclose(file);
	reply_verbatim(c->reply, str_of(text, len < MALLOC_BYTES ? len : MALLOC_BYTES));
	free(text);
	return STATUS_OK;
}

enum status
cmd_memory(struct call *c)
{
	static const char *const help[] = {
		"DOCTOR",
		"    Return memory problems reports.",
		"MALLOC-STATS",
		"    Return internal statistics report from the memory allocator.",
		"PURGE",
		"    Attempt to purge dirty pages for reclamation by the allocator.",
		"STATS",
		"    Return information about the memory usage of the server.",
		"USAGE <key> [SAMPLES <count>]",
		"    Return memory in bytes used by <key> and its value. Nested values are",
		"    sampled up to <count> times (default: 5, 0 means sample all).",
	};

	if (call_arg_is(c, 1, "help") && c->argc == 2)
		return call_help(c, help, sizeof(help) / sizeof(help[0]));
	if (call_arg_is(c, 1, "usage") && c->argc >= 3)
		return memory_usage(c);
	if (call_arg_is(c, 1, "doctor") && c->argc == 2) {
		reply_verbatim(c->reply, STR("frond keeps data on disk. Its metrics tell what its "
					     "memory is used for."));
	} else if (call_arg_is(c, 1, "purge") && c->argc == 2) {
		mem_trim();
		reply_ok(c->reply);
	} else if (call_arg_is(c, 1, "malloc-stats") && c->argc == 2) {
		return memory_malloc_stats(c);
	} else if (call_arg_is(c, 1, "stats") && c->argc == 2) {
		return memory_stats(c);
	} else {
		return call_unknown_subcommand(c);
	}
	return STATUS_OK;
}
