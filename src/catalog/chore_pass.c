#include "catalog/chore_pass.h"

#include <pthread.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/quote.h"

enum {
	CHORE_SHOWN_BYTES = 200, /* of a key or name in the log */
};

static const char *const pass_reasons[] = { "newer", "corrupt" };

METRIC_COUNTERS(chore_passed, "frond_chore_passed_over_total", METRIC_NUMBER,
		"Records and databases that background work could not read and has passed over, by "
		"reason: a newer frond wrote them, or they are damaged. Each counts once in a "
		"process, and the log names it.",
		"reason", pass_reasons);

/* The newest that have been passed over, by hash. */
static struct {
	pthread_mutex_t lock; /* of all fields; nothing is waited for while it is held */
	uint64_t hashes[CHORE_PASSED_KEPT];
	size_t count;
	size_t next; /* which one the next takes the place of, once there are so many */
} passed = { .lock = PTHREAD_MUTEX_INITIALIZER };

bool
chore_may_pass(enum status status)
{
	return status == STATUS_NEWER || status == STATUS_CORRUPT;
}

/* True if it was not among those that are remembered; it is now. */
static bool
passed_add(uint64_t hash)
{
	bool is_new = true;

	pthread_mutex_lock(&passed.lock);
	for (size_t i = 0; i < passed.count && is_new; i++)
		is_new = passed.hashes[i] != hash;
	if (is_new) {
		passed.hashes[passed.next] = hash;
		passed.next = (passed.next + 1) % CHORE_PASSED_KEPT;
		if (passed.count < CHORE_PASSED_KEPT)
			passed.count++;
	}
	pthread_mutex_unlock(&passed.lock);
	return is_new;
}

enum status
chore_pass_over(const char *chore, struct str what, enum status status, struct err *err)
{
	if (!chore_may_pass(status))
		return status;
	if (passed_add(hash_quick(what) * 31 + hash_quick(str_from_cstr(chore)))) {
		AUTO(buf_release) struct buf word = BUF_INIT(2 * CHORE_SHOWN_BYTES);

		quote_word(&word, what, CHORE_SHOWN_BYTES);
		metric_add_at(&chore_passed, status == STATUS_CORRUPT, 1);
		log_event(LOG_LEVEL_WARN, "chore_passed_over",
			  "chore=%s record=\"%.*s\" status=%s reason=\"%s\"", chore,
			  STR_ARG(buf_str(&word)), status_name(status), err ? err->text : "");
	}
	if (err)
		*err = (struct err){ 0 };
	return STATUS_OK;
}
