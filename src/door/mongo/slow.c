#include "door/mongo/slow.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/log_rate.h"
#include "base/metric.h"
#include "base/quote.h"
#include "door/mongo/cmd/commands.h"
#include "door/mongo/txn/client.h"

METRIC_COUNTER(slow_commands, "frond_mongo_slow_commands_total", METRIC_NUMBER,
	       "Commands of MongoDB's door that took longer than the setting slow_ms, or what "
	       "profile has set, logged or left out.");

static struct log_rate slow_rate;

static void
write_line(struct call *c, uint64_t took_ns, uint64_t computed_ns, enum status status)
{
	struct buf ns AUTO(buf_release) = BUF_INIT(2 * SLOW_NAME_BYTES);
	struct buf user AUTO(buf_release) = BUF_INIT(SLOW_NAME_BYTES);
	int code = c->code ? c->code : (int)mongo_code_of(status);

	quote_word(&ns, c->db, SLOW_NAME_BYTES / 2);
	buf_append_byte(&ns, '.');
	quote_word(&ns, c->collection, SLOW_NAME_BYTES);
	quote_word(&user, str_from_cstr(c->client->entry.user), SLOW_NAME_BYTES / 2);
	if (buf_status(&ns) != STATUS_OK || buf_status(&user) != STATUS_OK)
		return;
	log_event(LOG_LEVEL_WARN, "slow_command",
		  "command=%s ns=\"%.*s\" ms=%llu computed_ms=%llu code=%d bytes_in=%zu "
		  "bytes_out=%zu user=\"%.*s\" client=%s left_out=%llu",
		  c->command->name, STR_ARG(buf_str(&ns)),
		  (unsigned long long)(took_ns / CLOCK_NS_PER_MS),
		  (unsigned long long)(computed_ns / CLOCK_NS_PER_MS),
		  status == STATUS_OK ? 0 : code, c->client->in.len, c->client->out.len,
		  STR_ARG(buf_str(&user)), c->client->entry.peer,
		  (unsigned long long)log_rate_left_out(&slow_rate));
}

void
slow_look(struct call *c, uint64_t took_ns, uint64_t computed_ns, enum status status)
{
	/* What waits by design is slow only by what it computes. */
	bool waits = c->is_watch || c->command->run == mongo_run_hello;
	uint64_t counted_ns = waits ? computed_ns : took_ns;

	if (counted_ns <= atomic_load(&c->mongo->slow_ms) * CLOCK_NS_PER_MS)
		return;
	metric_add(&slow_commands, 1);
	if (log_rate_allows(&slow_rate, SLOW_LINES_PER_S))
		write_line(c, took_ns, computed_ns, status);
}
