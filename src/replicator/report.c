/* What is told of jobs: _scheduler/jobs and _active_tasks. */
#include "replicator/job.h"

#include <stdlib.h>

#include "base/mem.h"
#include "doc/json_value.h"
#include "replicator/lease.h"

void
job_write_text(struct buf *out, const char *name, struct str text)
{
	buf_printf(out, ",\"%s\":", name);
	if (text.ptr)
		json_write_str(out, text);
	else
		buf_append_cstr(out, "null");
}

static void
write_date(struct buf *out, const char *name, uint64_t ms)
{
	char date[CHECKPOINT_DATE_BYTES];

	checkpoint_iso_date(ms, date);
	buf_printf(out, ",\"%s\":\"%s\"", name, date);
}

static void
write_seq(struct buf *out, const char *name, const char *seq)
{
	buf_printf(out, ",\"%s\":%s", name, seq ? seq : "null");
}

static void
write_number(struct buf *out, const char *name, uint64_t n)
{
	buf_printf(out, ",\"%s\":%llu", name, (unsigned long long)n);
}

static void
write_stats(const struct run_progress *p, struct buf *out)
{
	const struct checkpoint_counts *c = &p->counts;

	buf_printf(out, "\"revisions_checked\":%llu", (unsigned long long)c->revisions_checked);
	write_number(out, "missing_revisions_found", c->missing_found);
	write_number(out, "docs_read", c->docs_read);
	write_number(out, "docs_written", c->docs_written);
	if (p->pending_known)
		write_number(out, "changes_pending", p->pending);
	else
		buf_append_cstr(out, ",\"changes_pending\":null");
	write_number(out, "doc_write_failures", c->write_failures);
	write_number(out, "bulk_get_docs", c->bulk_get_docs);
	write_number(out, "bulk_get_attempts", c->bulk_get_attempts);
	write_seq(out, "checkpointed_source_seq", p->committed_seq);
	write_seq(out, "source_seq", p->source_seq);
	write_seq(out, "through_seq", p->through_seq);
}

/* As a completed job's document keeps them. */
void
job_write_stats(const struct job *j, struct buf *out)
{
	buf_append_byte(out, '{');
	write_stats(&j->progress, out);
	write_date(out, "start_time", j->added_ms);
	buf_append_byte(out, '}');
}

void
job_write_info(const struct job *j, struct buf *out)
{
	const struct job_moment *last = &j->past[0];

	if (j->state == JOB_CRASHING && last->what == JOB_PAST_CRASHED) {
		buf_append_cstr(out, "{\"error\":");
		json_write_str(out, str_from_cstr(last->reason ? last->reason : "unknown"));
		buf_append_byte(out, '}');
	} else if (j->progress.source_seq) {
		buf_append_byte(out, '{');
		write_stats(&j->progress, out);
		buf_append_byte(out, '}');
	} else {
		buf_append_cstr(out, "null");
	}
}

static void
write_past(const struct job *j, struct buf *out)
{
	static const char *const names[] = {
		[JOB_PAST_ADDED] = "added",
		[JOB_PAST_STARTED] = "started",
		[JOB_PAST_STOPPED] = "stopped",
		[JOB_PAST_CRASHED] = "crashed",
	};

	buf_append_cstr(out, ",\"history\":[");
	for (unsigned i = 0; i < j->past_count; i++) {
		const struct job_moment *m = &j->past[i];
		char date[CHECKPOINT_DATE_BYTES];

		checkpoint_iso_date(m->at_ms, date);
		buf_printf(out, "%s{\"timestamp\":\"%s\",\"type\":\"%s\"", i ? "," : "", date,
			   names[m->what]);
		if (m->reason) {
			buf_append_cstr(out, ",\"reason\":");
			json_write_str(out, str_from_cstr(m->reason));
		}
		buf_append_byte(out, '}');
	}
	buf_append_byte(out, ']');
}

static struct str
user_of(const struct job *j)
{
	return j->spec->owner.len ? j->spec->owner : (struct str){ NULL, 0 };
}

static struct str
db_of(const struct job *j)
{
	return j->spec->doc_id.ptr ? STR("_replicator") : (struct str){ NULL, 0 };
}

void
job_write(const struct job *j, struct buf *out)
{
	buf_printf(out, "{\"id\":\"%s\"", j->full_id);
	job_write_text(out, "database", db_of(j));
	job_write_text(out, "doc_id", j->spec->doc_id);
	job_write_text(out, "source", j->spec->source.name);
	job_write_text(out, "target", j->spec->target.name);
	job_write_text(out, "user", user_of(j));
	buf_append_cstr(out, ",\"info\":");
	job_write_info(j, out);
	write_past(j, out);
	buf_append_cstr(out, ",\"node\":\"nonode@nohost\",\"pid\":null");
	write_date(out, "start_time", j->added_ms);
	buf_append_byte(out, '}');
}

void
job_write_task(const struct job *j, struct buf *out)
{
	const struct run_progress *p = &j->progress;

	buf_printf(out, "{\"type\":\"replication\",\"replication_id\":\"%s\"", j->full_id);
	job_write_text(out, "database", db_of(j));
	job_write_text(out, "doc_id", j->spec->doc_id);
	job_write_text(out, "source", j->spec->source.name);
	job_write_text(out, "target", j->spec->target.name);
	job_write_text(out, "user", user_of(j));
	buf_printf(out, ",\"continuous\":%s", j->spec->continuous ? "true" : "false");
	write_number(out, "checkpoint_interval", j->spec->options.checkpoint_ms);
	buf_append_byte(out, ',');
	write_stats(p, out);
	if (p->pending_known) {
		uint64_t done = p->counts.revisions_checked;
		uint64_t all = done + p->pending;

		write_number(out, "progress", all ? done * 100 / all : 100);
	} else {
		buf_append_cstr(out, ",\"progress\":null");
	}
	write_number(out, "started_on", p->started_ms / 1000);
	write_number(out, "updated_on", p->updated_ms / 1000);
	buf_append_cstr(out, ",\"node\":\"nonode@nohost\",\"pid\":null,"
			     "\"process_status\":\"waiting\"}");
}

/* ---- Lists ---- */

/* A job of this process, or of another. */
struct told {
	struct str id;
	const struct job *job;
	const struct lease_entry *elsewhere;
};

static int
compare_told(const void *a, const void *b)
{
	return str_cmp(((const struct told *)a)->id, ((const struct told *)b)->id);
}

static struct str
told_elsewhere(const struct lease_entry *e, enum replicator_view view)
{
	return e->texts[view == REPLICATOR_VIEW_JOBS ? LEASE_TEXT_JOB : LEASE_TEXT_TASK];
}

static bool
is_shown(const struct job *j, enum replicator_view view)
{
	return view == REPLICATOR_VIEW_JOBS || j->state == JOB_RUNNING || j->state == JOB_YIELDING;
}

enum status
replicator_list(struct replicator *r, enum replicator_view view, uint64_t skip, uint64_t limit,
		struct buf *out, uint64_t *ret_total)
{
	struct told *told;
	uint64_t count = 0;

	pthread_mutex_lock(&r->lock);
	told = mem_alloc((r->jobs_count + r->leases_count + 1) * sizeof(*told));
	if (!told) {
		pthread_mutex_unlock(&r->lock);
		return STATUS_NOMEM;
	}
	for (struct job *j = job_next(r, NULL); j; j = job_next(r, j))
		if (is_shown(j, view) && !lease_elsewhere(r, str_from_cstr(j->full_id)))
			told[count++] = (struct told){ str_from_cstr(j->full_id), j, NULL };
	for (size_t i = 0; i < r->leases_count; i++) {
		const struct lease_entry *e = &r->leases[i];

		if (!e->mine && told_elsewhere(e, view).len)
			told[count++] = (struct told){ e->job, NULL, e };
	}
	qsort(told, count, sizeof(*told), compare_told);
	for (uint64_t i = skip; i < count && i - skip < limit; i++) {
		if (i > skip)
			buf_append_byte(out, ',');
		if (told[i].elsewhere)
			buf_append_str(out, told_elsewhere(told[i].elsewhere, view));
		else if (view == REPLICATOR_VIEW_JOBS)
			job_write(told[i].job, out);
		else
			job_write_task(told[i].job, out);
	}
	pthread_mutex_unlock(&r->lock);
	mem_free(told);
	*ret_total = count;
	return buf_status(out);
}

enum status
replicator_show(struct replicator *r, struct str id, struct buf *out)
{
	const struct lease_entry *e;
	struct job *j;

	pthread_mutex_lock(&r->lock);
	j = job_find(r, id);
	e = lease_elsewhere(r, id);
	if (e)
		buf_append_str(out, e->texts[LEASE_TEXT_JOB]);
	else if (j)
		job_write(j, out);
	pthread_mutex_unlock(&r->lock);
	return j || e ? buf_status(out) : STATUS_NOT_FOUND;
}
