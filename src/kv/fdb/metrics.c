/* What is counted of a cluster, for operators: work, how soon it answers, and what it refuses. */
#include "base/clock.h"
#include "base/metric.h"
#include "kv/fdb/fdb_int.h"

METRIC_COUNTER(transactions, "frond_cluster_transactions_total", METRIC_NUMBER,
	       "Transactions at a cluster that have ended, each attempt of one by itself.");
METRIC_COUNTER(round_trips, "frond_cluster_round_trips_total", METRIC_NUMBER,
	       "How often they have waited for reads; what was asked for together counts once.");
METRIC_COUNTER(keys_read, "frond_cluster_keys_read_total", METRIC_NUMBER,
	       "Pairs that they were answered.");
METRIC_COUNTER(read_bytes, "frond_cluster_read_bytes_total", METRIC_BYTES,
	       "Keys and values of these pairs.");
METRIC_COUNTER(keys_written, "frond_cluster_keys_written_total", METRIC_NUMBER,
	       "Keys that they have set, added to or cleared; a range is one.");
METRIC_COUNTER(written_bytes, "frond_cluster_written_bytes_total", METRIC_BYTES,
	       "Keys and values of these.");
METRIC_HISTOGRAM(answer_time, "frond_cluster_answer_duration_seconds", METRIC_SECONDS,
		 "Time from a transaction's first question to a cluster to its answer, which takes "
		 "a read version.",
		 METRIC_TIME_LEAST, METRIC_TIME_BUCKETS);

enum failure {
	FAILURE_TIMED_OUT,
	FAILURE_LOCKED,
	FAILURE_BEHIND,
	FAILURE_THROTTLED,
	FAILURE_UNKNOWN_RESULT,
	FAILURES,
};

static const char *const failure_names[FAILURES] = {
	[FAILURE_TIMED_OUT] = "timed_out", /* nothing has answered in FDB_READ_TIMEOUT_MS */
	[FAILURE_LOCKED] = "locked",       [FAILURE_BEHIND] = "behind",
	[FAILURE_THROTTLED] = "throttled", [FAILURE_UNKNOWN_RESULT] = "unknown_result",
};

METRIC_COUNTERS(
	failures, "frond_cluster_failures_total", METRIC_NUMBER,
	"Questions and commits that a cluster has not answered in time or has refused: it is "
	"away, locked, its storage servers are behind, it is busy, or the result is unknown.",
	"reason", failure_names);

/* The library's codes that tell of the cluster. Others tell of the transaction. */
static const struct {
	int code;
	enum failure failure;
} failure_codes[] = {
	{ 1009, FAILURE_BEHIND },         /* future_version */
	{ 1021, FAILURE_UNKNOWN_RESULT }, /* commit_unknown_result */
	{ 1031, FAILURE_TIMED_OUT },      /* transaction_timed_out */
	{ 1037, FAILURE_BEHIND },         /* process_behind */
	{ 1038, FAILURE_LOCKED },         /* database_locked */
	{ 1042, FAILURE_THROTTLED },      /* commit_proxy_memory_limit_exceeded */
	{ 1051, FAILURE_THROTTLED },      /* batch_transaction_throttled */
	{ 1213, FAILURE_THROTTLED },      /* tag_throttled */
};

void
fdb_count_transaction(const struct kv_tx_stats *stats)
{
	metric_add(&transactions, 1);
	metric_add(&round_trips, stats->round_trips);
	metric_add(&keys_read, stats->keys_read);
	metric_add(&read_bytes, stats->bytes_read);
	metric_add(&keys_written, stats->sets + stats->clears);
	metric_add(&written_bytes, stats->bytes_written);
}

void
fdb_count_answer(uint64_t asked_ns)
{
	metric_observe(&answer_time, clock_mono_ns() - asked_ns);
}

void
fdb_count_failure(int code)
{
	for (size_t i = 0; i < sizeof(failure_codes) / sizeof(failure_codes[0]); i++)
		if (failure_codes[i].code == code)
			metric_add_at(&failures, failure_codes[i].failure, 1);
}
