/* How jobs are shown: _scheduler/jobs and _active_tasks. */
#include "replicator/job.h"

#include <stdlib.h>

#include "base/mem.h"
#include "doc/json_value.h"
#include "replicator/job_lease.h"

/* A job of this process, or one that another process holds. */
struct report_row {
	struct str id;
	const struct job *job;
	const struct lease_entry *elsewhere;
};

static int
report_compare_rows(const void *a, const void *b)
{
	return str_cmp(((const struct report_row *)a)->id, ((const struct report_row *)b)->id);
}

static struct str
report_lease_text(const struct lease_entry *e, enum replicator_view view)
{
	return e->record.texts[view == REPLICATOR_VIEW_JOBS ? JOB_LEASE_JOB : JOB_LEASE_TASK];
}

static bool
report_shows_job(const struct job *j, enum replicator_view view)
{
	return view == REPLICATOR_VIEW_JOBS || j->state == JOB_RUNNING || j->state == JOB_YIELDING;
}

enum status
replicator_list(struct replicator *r, enum replicator_view view, uint64_t skip, uint64_t limit,
		struct buf *out, uint64_t *ret_total)
{
	const struct lease_entry *leases;
	struct report_row *told;
	size_t leases_count;
	uint64_t count = 0;

	pthread_mutex_lock(&r->lock);
	leases = leases_known(r->leases, &leases_count);
	told = mem_alloc((r->jobs_count + leases_count + 1) * sizeof(*told));
	if (!told) {
		pthread_mutex_unlock(&r->lock);
		return STATUS_NOMEM;
	}
	for (struct job *j = job_next(r, NULL); j; j = job_next(r, j))
		if (report_shows_job(j, view) && !job_lease_elsewhere(r, str_from_cstr(j->full_id)))
			told[count++] = (struct report_row){ str_from_cstr(j->full_id), j, NULL };
	for (size_t i = 0; i < leases_count; i++) {
		const struct lease_entry *e = &leases[i];

		if (!e->mine && report_lease_text(e, view).len)
			told[count++] = (struct report_row){ e->name, NULL, e };
	}
	qsort(told, count, sizeof(*told), report_compare_rows);
	for (uint64_t i = skip; i < count && i - skip < limit; i++) {
		if (i > skip)
			buf_append_byte(out, ',');
		if (told[i].elsewhere)
			buf_append_str(out, report_lease_text(told[i].elsewhere, view));
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
	e = job_lease_elsewhere(r, id);
	if (e)
		buf_append_str(out, e->record.texts[JOB_LEASE_JOB]);
	else if (j)
		job_write(j, out);
	pthread_mutex_unlock(&r->lock);
	return j || e ? buf_status(out) : STATUS_NOT_FOUND;
}
