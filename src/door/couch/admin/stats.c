/*
 * /_node/{name}/_stats: CouchDB's statistics, made of the server's metrics (base/metric.h). Those
 * that mean nothing here are left out; docs/COUCHDB.md has the list. A path behind _stats leads to
 * one member of the answer; a path that leads nowhere is null, as in CouchDB.
 */
#include <assert.h>

#include "base/metric.h"
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/admin/node.h"
#include "door/couch/admin/scrape.h"
#include "door/couch/wire/reply.h"
#include "serve/ops.h"

/* CouchDB's unit of a histogram of time. */
enum {
	STATS_ROW_BYTES = 16 * 1024, /* of one row: its value, or its histogram, and its text */
};

enum stats_unit {
	STATS_NUMBER,
	STATS_MS,
	STATS_US,
};

struct stats_row {
	const char *path[4]; /* of the members that lead to it */
	const char *metric;
	const char *label; /* a value of one of its labels; NULL: the sum of all series */
	bool gauge; /* CouchDB's type; otherwise a counter, or a histogram if it has a unit */
	bool histogram;
	enum stats_unit unit;
	const char *desc;
};

#define STATS_ANSWERS "frond_http_answers_total"
#define STATS_METHODS "frond_http_requests_total"

#define STATS_CODE(code)                                                                           \
	{                                                                                          \
		{ "couchdb", "httpd_status_codes", #code }, STATS_ANSWERS, #code,                  \
			.desc = "answers with status " #code                                       \
	}
#define STATS_METHOD(method)                                                                       \
	{                                                                                          \
		{ "couchdb", "httpd_request_methods", #method }, STATS_METHODS, #method,           \
			.desc = #method " requests"                                                \
	}

/* In the order of their paths: stats_write() opens and closes objects by it. */
static const struct stats_row rows[] = {
	{ { "couchdb", "auth_cache_hits" },
	  "frond_auth_password_checks_total",
	  "remembered",
	  .desc = "passwords that were remembered" },
	{ { "couchdb", "auth_cache_misses" },
	  "frond_auth_password_checks_total",
	  "right",
	  .desc = "right passwords that had to be hashed" },
	{ { "couchdb", "commits" },
	  "frond_kv_commits_total",
	  NULL,
	  .desc = "transactions that were committed" },
	{ { "couchdb", "database_reads" },
	  "frond_document_reads_total",
	  NULL,
	  .desc = "documents that were read" },
	{ { "couchdb", "database_writes" },
	  "frond_document_edits_total",
	  "written",
	  .desc = "documents that were written" },
	{ { "couchdb", "document_writes" },
	  "frond_document_edits_total",
	  "written",
	  .desc = "documents that were written" },
	{ { "couchdb", "httpd", "bulk_requests" },
	  "frond_http_responses_total",
	  "bulk_docs",
	  .desc = "bulk requests" },
	{ { "couchdb", "httpd", "clients_requesting_changes" },
	  "frond_http_feeds_open",
	  "changes",
	  .desc = "feeds of changes that are open" },
	{ { "couchdb", "httpd", "purge_requests" },
	  "frond_http_responses_total",
	  "purge",
	  .desc = "purge requests" },
	{ { "couchdb", "httpd", "requests" }, STATS_METHODS, NULL, .desc = "HTTP requests" },
	STATS_METHOD(COPY),
	STATS_METHOD(DELETE),
	STATS_METHOD(GET),
	STATS_METHOD(HEAD),
	STATS_METHOD(OPTIONS),
	STATS_METHOD(PATCH),
	STATS_METHOD(POST),
	STATS_METHOD(PUT),
	STATS_CODE(200),
	STATS_CODE(201),
	STATS_CODE(202),
	STATS_CODE(204),
	STATS_CODE(206),
	STATS_CODE(301),
	STATS_CODE(302),
	STATS_CODE(304),
	STATS_CODE(400),
	STATS_CODE(401),
	STATS_CODE(403),
	STATS_CODE(404),
	STATS_CODE(405),
	STATS_CODE(406),
	STATS_CODE(408),
	STATS_CODE(409),
	STATS_CODE(410),
	STATS_CODE(411),
	STATS_CODE(412),
	STATS_CODE(413),
	STATS_CODE(414),
	STATS_CODE(415),
	STATS_CODE(416),
	STATS_CODE(417),
	STATS_CODE(429),
	STATS_CODE(431),
	STATS_CODE(500),
	STATS_CODE(501),
	STATS_CODE(503),
	STATS_CODE(504),
	STATS_CODE(505),
	{ { "couchdb", "open_os_files" },
	  "process_open_fds",
	  NULL,
	  .desc = "open file descriptors, connections among them" },
	{ { "couchdb", "request_time" },
	  OPS_TIME_NAME,
	  "http",
	  .histogram = true,
	  .unit = STATS_MS,
	  .desc = "milliseconds that requests took, without feeds" },
	{ { "couch_replicator", "jobs", "crashed" },
	  "frond_replication_jobs",
	  "crashing",
	  .gauge = true,
	  .desc = "replications that rest after a failure" },
	{ { "couch_replicator", "jobs", "crashes" },
	  "frond_replication_runs_total",
	  "crashed",
	  .desc = "runs of replications that have failed" },
	{ { "couch_replicator", "jobs", "pending" },
	  "frond_replication_jobs",
	  "pending",
	  .gauge = true,
	  .desc = "replications that wait for their turn" },
	{ { "couch_replicator", "jobs", "running" },
	  "frond_replication_jobs",
	  "running",
	  .gauge = true,
	  .desc = "replications that run" },
	{ { "couch_replicator", "jobs", "total" },
	  "frond_replication_jobs",
	  NULL,
	  .gauge = true,
	  .desc = "replications that this process knows" },
	{ { "couch_replicator", "requests" },
	  "frond_replication_requests_total",
	  NULL,
	  .desc = "requests of replications" },
	{ { "couch_replicator", "responses", "failure" },
	  "frond_replication_requests_total",
	  "failed",
	  .desc = "requests of replications that got no answer" },
	{ { "couch_replicator", "responses", "success" },
	  "frond_replication_requests_total",
	  "answered",
	  .desc = "requests of replications that were answered" },
	{ { "fsync", "time" },
	  "frond_store_batch_write_duration_seconds",
	  NULL,
	  .histogram = true,
	  .unit = STATS_US,
	  .desc = "microseconds that writing and syncing a batch took" },
};

/* ---- Histograms ---- */

static double
stats_in_unit(const struct stats_row *row, double value)
{
	switch (row->unit) {
	case STATS_MS:
		return value / 1e6;
	case STATS_US:
		return value / 1e3;
	case STATS_NUMBER:
		break;
	}
	return value;
}

static void
stats_write_double(struct buf *out, const char *before, double value)
{
	buf_append_cstr(out, before);
	json_write_double(out, value);
}

/* The bounds of a bucket. The last one has none; it is given the width of the one before it. */
static double
stats_bound(const struct metric *m, unsigned bucket)
{
	return (double)(UINT64_C(1) << (m->least + bucket));
}

static double
stats_lower_bound(const struct metric *m, unsigned bucket)
{
	return bucket ? stats_bound(m, bucket - 1) : 0;
}

/*
 * The value below which `share` of all observations lie, from 0 to 1: within its bucket they are
 * taken to be spread evenly, as Prometheus's histogram_quantile() does.
 */
static double
stats_quantile(const struct metric *m, const struct metric_distribution *d, double share)
{
	double rank = share * (double)d->count;
	uint64_t below = 0;

	for (unsigned i = 0; i <= m->buckets; i++) {
		uint64_t n = d->buckets[i];
		double low = stats_lower_bound(m, i);

		if (n && (double)(below + n) >= rank)
			return low + (stats_bound(m, i) - low) * (rank - (double)below) / (double)n;
		below += n;
	}
	return 0;
}

static void
stats_write_buckets(struct buf *out, const struct stats_row *row, const struct metric *m,
		    const struct metric_distribution *d)
{
	bool any = false;

	buf_append_cstr(out, ",\"histogram\":[");
	for (unsigned i = 0; i <= m->buckets; i++) {
		if (!d->buckets[i])
			continue;
		stats_write_double(out, any ? ",[" : "[", stats_in_unit(row, stats_bound(m, i)));
		buf_printf(out, ",%llu]", (unsigned long long)d->buckets[i]);
		any = true;
	}
	buf_append_byte(out, ']');
}

static void
stats_write_distribution(struct buf *out, const struct stats_row *row, const struct metric *m,
			 const struct metric_distribution *d)
{
	static const struct {
		int name; /* CouchDB calls 99.9 % 999 */
		double share;
	} percentiles[] = { { 50, 0.5 },  { 75, 0.75 }, { 90, 0.9 },
			    { 95, 0.95 }, { 99, 0.99 }, { 999, 0.999 } };

	stats_write_double(out, "{\"min\":", stats_in_unit(row, stats_quantile(m, d, 0)));
	stats_write_double(out, ",\"max\":", stats_in_unit(row, stats_quantile(m, d, 1)));
	stats_write_double(out, ",\"arithmetic_mean\":",
			   d->count ? stats_in_unit(row, (double)d->sum / (double)d->count) : 0);
	stats_write_double(out, ",\"median\":", stats_in_unit(row, stats_quantile(m, d, 0.5)));
	buf_append_cstr(out, ",\"percentile\":[");
	for (size_t i = 0; i < METRIC_COUNT_OF(percentiles); i++) {
		buf_printf(out, "%s[%d,", i ? "," : "", percentiles[i].name);
		json_write_double(out,
				  stats_in_unit(row, stats_quantile(m, d, percentiles[i].share)));
		buf_append_byte(out, ']');
	}
	buf_append_byte(out, ']');
	stats_write_buckets(out, row, m, d);
	buf_printf(out, ",\"n\":%llu}", (unsigned long long)d->count);
}

/* ---- Members ---- */

static size_t
stats_depth(const struct stats_row *row)
{
	size_t n = 0;

	while (n < METRIC_COUNT_OF(row->path) && row->path[n])
		n++;
	return n;
}

static size_t
stats_shared_depth(const struct stats_row *a, const struct stats_row *b)
{
	size_t n = 0;

	while (a->path[n] && b->path[n] && strcmp(a->path[n], b->path[n]) == 0)
		n++;
	return n;
}

/* Appends {"value":…,"type":…,"desc":…}. False, and nothing, if nobody reports the metric. */
static bool
stats_write_value(struct buf *out, const struct stats_row *row)
{
	struct metric_distribution d = { .count = 0 };
	const struct metric *m = metric_find(row->metric);
	int64_t value;

	if (row->histogram ? !metric_distribution_sum(row->metric, row->label, &d)
			   : !metric_sum(row->metric, row->label, &value))
		return false;
	buf_append_cstr(out, "{\"value\":");
	if (row->histogram)
		stats_write_distribution(out, row, m, &d);
	else
		buf_append_u64(out, (uint64_t)value);
	buf_printf(out, ",\"type\":\"%s\",\"desc\":\"%s\"}",
		   row->histogram ? "histogram"
		   : row->gauge   ? "gauge"
				  : "counter",
		   row->desc);
	return true;
}

/* Appends the members of all rows, nested by their paths. */
static void
stats_write(struct buf *out, bool all)
{
	struct buf AUTO(buf_release) value = BUF_SHORT(STATS_ROW_BYTES);
	const struct stats_row *last = NULL;

	(void)all;
	buf_append_byte(out, '{');
	for (size_t i = 0; i < METRIC_COUNT_OF(rows); i++) {
		const struct stats_row *row = &rows[i];
		size_t shared = last ? stats_shared_depth(last, row) : 0;

		buf_clear(&value);
		if (!stats_write_value(&value, row))
			continue;
		for (size_t n = last ? stats_depth(last) - 1 : 0; n > shared; n--)
			buf_append_byte(out, '}');
		if (last)
			buf_append_byte(out, ',');
		for (size_t n = shared; row->path[n]; n++)
			buf_printf(out,
				   n + 1 < stats_depth(row) ? "\"%s\":{" : "\"%s\":", row->path[n]);
		buf_append_buf(out, &value);
		last = row;
	}
	for (size_t n = last ? stats_depth(last) : 1; n > 0; n--)
		buf_append_byte(out, '}');
}

/* ---- A part of them ---- */

/* Finds the value that the parts of the path behind _stats lead to. Null: they lead nowhere. */
static enum status
stats_find_part(struct couch_req *r, struct str all, struct str *ret)
{
	struct json_member *members;
	struct json_value value;
	size_t count;

	*ret = STR("null");
	TRY(json_value_read(all, r->arena, &value, &r->fail.err));
	for (size_t i = COUCH_NODE_PART_MORE; i < r->parts_count; i++) {
		const struct json_value *found = NULL;

		if (value.kind != JSON_OBJECT_BEGIN)
			return STATUS_OK;
		TRY(json_value_members(&value, r->arena, &members, &count, &r->fail.err));
		for (size_t j = 0; j < count; j++)
			if (str_eq(members[j].name, r->parts[i]))
				found = &members[j].value;
		if (!found)
			return STATUS_OK;
		value = *found;
	}
	*ret = value.text;
	return STATUS_OK;
}

enum status
couch_node_stats(struct couch_req *r)
{
	struct buf AUTO(buf_release) all = couch_buf(r, SCRAPE_BYTES);
	struct buf AUTO(buf_release) out = couch_buf(r, SCRAPE_BYTES);
	struct str part;

	TRY(couch_scrape(stats_write, &all));
	TRY(stats_find_part(r, buf_str(&all), &part));
	buf_append_str(&out, part);
	return couch_reply(r, 200, &out);
}
