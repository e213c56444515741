/*
 * /_node/{name}/_system and /_node/{name}/_versions, with those members of CouchDB's answers that
 * mean something here. What Erlang has and this server has not is left out, so that no tool takes
 * a made-up zero for a value.
 */
#include <openssl/crypto.h>

#include "base/clock.h"
#include "base/metric.h"
#include "base/process.h"
#include "doc/json.h"
#include "door/couch/admin/node.h"
#include "door/couch/admin/scrape.h"
#include "door/couch/wire/reply.h"
#include "index/versions.h"
#include "kv/kv.h"

/* Appends a member with the sum of a metric, unless nobody reports it. Keeps track of commas. */
static void
system_write_metric(struct buf *out, const char *name, const char *metric, const char *label)
{
	int64_t value;

	if (!metric_sum(metric, label, &value))
		return;
	if (out->len && out->ptr[out->len - 1] != '{')
		buf_append_byte(out, ',');
	buf_printf(out, "\"%s\":%llu", name, (unsigned long long)value);
}

static void
system_write_uptime(struct buf *out)
{
	uint64_t now_ms = clock_wall_ms();
	int64_t started_ns = process_start_ns();
	uint64_t started_ms = started_ns > 0 ? (uint64_t)started_ns / CLOCK_NS_PER_MS : now_ms;

	buf_printf(out, "\"uptime\":%llu",
		   (unsigned long long)(now_ms > started_ms ? (now_ms - started_ms) / 1000 : 0));
}

/*
 * CouchDB's kinds of memory, and what comes closest to them: `processes` is what requests hold,
 * `ets` are the store's caches and buffers, and `other` is the rest of the resident memory.
 */
static void
system_write_memory(struct buf *out)
{
	int64_t resident = process_resident_bytes();
	int64_t requests = 0;
	int64_t store = 0;

	(void)metric_sum("frond_memory_requests_bytes", NULL, &requests);
	(void)metric_sum("frond_store_memory_bytes", NULL, &store);
	buf_append_cstr(out, ",\"memory\":{");
	if (resident > requests + store)
		buf_printf(out, "\"other\":%llu",
			   (unsigned long long)(resident - requests - store));
	system_write_metric(out, "processes", "frond_memory_requests_bytes", NULL);
	system_write_metric(out, "processes_used", "frond_memory_requests_bytes", NULL);
	system_write_metric(out, "ets", "frond_store_memory_bytes", NULL);
	buf_append_byte(out, '}');
}

static void
system_write(struct buf *out, bool all)
{
	(void)all;
	buf_append_byte(out, '{');
	system_write_uptime(out);
	system_write_memory(out);
	system_write_metric(out, "context_switches", "process_context_switches_total", NULL);
	system_write_metric(out, "io_input", "frond_net_received_bytes_total", NULL);
	system_write_metric(out, "io_output", "frond_net_sent_bytes_total", NULL);
	system_write_metric(out, "process_count", "frond_fibers", NULL);
	buf_append_cstr(out, ",\"message_queues\":{");
	system_write_metric(out, "pool", "frond_pool_queue_length", NULL);
	system_write_metric(out, "commits", "frond_store_commit_queue_length", NULL);
	buf_append_cstr(out, "},\"distribution\":{}}");
}

enum status
couch_node_system(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = couch_buf(r, SCRAPE_BYTES);

	TRY(couch_scrape(system_write, &out));
	return couch_reply(r, 200, &out);
}

/* ---- _versions ---- */

/* Appends "name":{"name":…,"version":…} of a text such as "rocksdb 7.8.3 of today". */
static void
versions_write(struct buf *out, const char *member, const char *text)
{
	const char *space = strchr(text, ' ');
	size_t name = space ? (size_t)(space - text) : strlen(text);
	const char *version = space ? space + 1 : "";

	buf_printf(out, ",\"%s\":{\"name\":", member);
	json_write_str(out, str_of(text, name));
	buf_append_cstr(out, ",\"version\":");
	json_write_str(out, str_of(version, strcspn(version, " ")));
	buf_append_byte(out, '}');
}

enum status
couch_node_versions(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = BUF_SHORT(COUCH_SMALL_BODY_BYTES);
	struct index_versions icu;

	index_versions_read(&icu);
	buf_append_cstr(&out, "{\"collation_driver\":{\"name\":\"libicu\",\"library_version\":");
	json_write_str(&out, str_from_cstr(icu.library));
	buf_append_cstr(&out, ",\"collation_algorithm_version\":");
	json_write_str(&out, str_from_cstr(icu.algorithm));
	buf_append_cstr(&out, ",\"collator_version\":");
	json_write_str(&out, str_from_cstr(icu.collator));
	buf_append_byte(&out, '}');
	versions_write(&out, "server", "frond " FROND_VERSION);
	versions_write(&out, "storage_engine", kv_store_library(r->couch->config.store));
	versions_write(&out, "crypto", OpenSSL_version(OPENSSL_VERSION));
	buf_append_byte(&out, '}');
	return couch_reply(r, 200, &out);
}
