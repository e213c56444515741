/* How far a run has got: what the doors show of it, and the texts that it keeps. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/metric.h"
#include "replicator/run_int.h"

static const char *const doc_outcomes[] = { "read", "written", "write_failed" };

METRIC_COUNTERS(repl_docs, "frond_replication_documents_total", METRIC_NUMBER,
		"Documents that replications of this process have read at their sources, have "
		"written to their targets, and could not write.",
		"outcome", doc_outcomes);

void
run_progress_init(struct run_progress *p, pthread_mutex_t *lock)
{
	*p = (struct run_progress){ .lock = lock };
}

void
run_progress_fini(struct run_progress *p)
{
	mem_free(p->source_seq);
	mem_free(p->through_seq);
	mem_free(p->committed_seq);
}

bool
run_keep_text(struct str *kept, struct str text)
{
	char *copy = mem_strdup(text);

	if (!copy)
		return false;
	mem_free((char *)(uintptr_t)kept->ptr);
	*kept = str_of(copy, text.len);
	return true;
}

void
run_publish(struct repl_run *r, char **shown, struct str text)
{
	struct run_progress *p = r->config->progress;
	char *copy = mem_strdup(text);

	/* Without memory the doors go on showing the old text. Nothing else depends on it. */
	if (!copy)
		return;
	pthread_mutex_lock(p->lock);
	mem_free(*shown);
	*shown = copy;
	p->updated_ms = clock_wall_ms();
	pthread_mutex_unlock(p->lock);
}

void
run_add_counts(struct repl_run *r, struct checkpoint_counts more)
{
	struct run_progress *p = r->config->progress;

	metric_add_at(&repl_docs, 0, more.docs_read);
	metric_add_at(&repl_docs, 1, more.docs_written);
	metric_add_at(&repl_docs, 2, more.write_failures);
	pthread_mutex_lock(p->lock);
	p->counts.revisions_checked += more.revisions_checked;
	p->counts.missing_found += more.missing_found;
	p->counts.docs_read += more.docs_read;
	p->counts.docs_written += more.docs_written;
	p->counts.write_failures += more.write_failures;
	p->counts.bulk_get_docs += more.bulk_get_docs;
	p->counts.bulk_get_attempts += more.bulk_get_attempts;
	p->updated_ms = clock_wall_ms();
	pthread_mutex_unlock(p->lock);
}

static void
count_from(uint64_t *count, uint64_t before)
{
	if (*count < before)
		*count = before;
}

void
run_go_on_counting(struct repl_run *r, const struct checkpoint_counts *before)
{
	struct run_progress *p = r->config->progress;

	pthread_mutex_lock(p->lock);
	count_from(&p->counts.revisions_checked, before->revisions_checked);
	count_from(&p->counts.missing_found, before->missing_found);
	count_from(&p->counts.docs_read, before->docs_read);
	count_from(&p->counts.docs_written, before->docs_written);
	count_from(&p->counts.write_failures, before->write_failures);
	count_from(&p->counts.bulk_get_docs, before->bulk_get_docs);
	count_from(&p->counts.bulk_get_attempts, before->bulk_get_attempts);
	pthread_mutex_unlock(p->lock);
}

struct arena *
run_arena_new(struct repl_run *r, size_t limit_bytes)
{
	struct arena *arena = arena_new(limit_bytes);

	if (arena)
		arena_set_part(arena, &r->part);
	return arena;
}
