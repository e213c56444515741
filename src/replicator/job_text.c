/* How one job is shown: the JSON objects of _scheduler/jobs, _scheduler/docs, _active_tasks. */
#include "doc/json.h"
#include "replicator/job.h"

enum {
	JOB_PID_DIGITS = 8, /* of the id, that its process's number is made from */
	JOB_PIDS = 100000,
};

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
job_text_write_date(struct buf *out, const char *name, uint64_t ms)
{
	char date[CHECKPOINT_DATE_BYTES];

	checkpoint_iso_date(ms, date);
	buf_printf(out, ",\"%s\":\"%s\"", name, date);
}

static void
job_text_write_seq(struct buf *out, const char *name, const char *seq)
{
	buf_printf(out, ",\"%s\":%s", name, seq ? seq : "null");
}

static void
job_text_write_number(struct buf *out, const char *name, uint64_t n)
{
	buf_printf(out, ",\"%s\":%llu", name, (unsigned long long)n);
}

/*
 * An identifier of a process, as CouchDB has it: Fauxton reads one of each row, and cannot do
 * without. It is made from the id, so that it stays the same for as long as the job is there.
 */
static void
job_text_write_pid(struct buf *out, const struct job *j)
{
	unsigned n = 0;

	for (size_t i = 0; i < JOB_PID_DIGITS && j->full_id[i]; i++)
		n = n * 31 + (unsigned char)j->full_id[i];
	buf_printf(out, ",\"pid\":\"<0.%u.0>\"", n % JOB_PIDS);
}

static void
job_text_write_stats(const struct run_progress *p, struct buf *out)
{
	const struct checkpoint_counts *c = &p->counts;

	buf_printf(out, "\"revisions_checked\":%llu", (unsigned long long)c->revisions_checked);
	job_text_write_number(out, "missing_revisions_found", c->missing_found);
	job_text_write_number(out, "docs_read", c->docs_read);
	job_text_write_number(out, "docs_written", c->docs_written);
	if (p->pending_known)
		job_text_write_number(out, "changes_pending", p->pending);
	else
		buf_append_cstr(out, ",\"changes_pending\":null");
	job_text_write_number(out, "doc_write_failures", c->write_failures);
	job_text_write_number(out, "bulk_get_docs", c->bulk_get_docs);
	job_text_write_number(out, "bulk_get_attempts", c->bulk_get_attempts);
	job_text_write_seq(out, "checkpointed_source_seq", p->committed_seq);
	job_text_write_seq(out, "source_seq", p->source_seq);
	job_text_write_seq(out, "through_seq", p->through_seq);
}

/* The figures as the document of a completed job keeps them. */
void
job_write_stats(const struct job *j, struct buf *out)
{
	buf_append_byte(out, '{');
	job_text_write_stats(&j->progress, out);
	job_text_write_date(out, "start_time", j->added_ms);
	buf_append_byte(out, '}');
}

void
job_write_info(const struct job *j, struct buf *out)
{
	const struct job_moment *last = &j->past[0];

	if ((j->state == JOB_CRASHING || j->progress.lacks_filter) &&
	    last->what == JOB_PAST_CRASHED) {
		buf_append_cstr(out, "{\"error\":");
		json_write_str(out, str_from_cstr(last->reason ? last->reason : "unknown"));
		buf_append_byte(out, '}');
	} else if (j->progress.source_seq) {
		buf_append_byte(out, '{');
		job_text_write_stats(&j->progress, out);
		buf_append_byte(out, '}');
	} else {
		buf_append_cstr(out, "null");
	}
}

static void
job_text_write_history(const struct job *j, struct buf *out)
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
job_user(const struct job *j)
{
	return j->spec->owner.len ? j->spec->owner : (struct str){ NULL, 0 };
}

static struct str
job_database(const struct job *j)
{
	return j->spec->doc_id.ptr ? STR("_replicator") : (struct str){ NULL, 0 };
}

void
job_write(const struct job *j, struct buf *out)
{
	buf_printf(out, "{\"id\":\"%s\"", j->full_id);
	job_write_text(out, "database", job_database(j));
	job_write_text(out, "doc_id", j->spec->doc_id);
	job_write_text(out, "source", j->spec->source.name);
	job_write_text(out, "target", j->spec->target.name);
	job_write_text(out, "user", job_user(j));
	buf_append_cstr(out, ",\"info\":");
	job_write_info(j, out);
	job_text_write_history(j, out);
	job_write_text(out, "node", str_from_cstr(j->replicator->config.node_name));
	job_text_write_pid(out, j);
	job_text_write_date(out, "start_time", j->added_ms);
	buf_append_byte(out, '}');
}

void
job_write_task(const struct job *j, struct buf *out)
{
	const struct run_progress *p = &j->progress;

	buf_printf(out, "{\"type\":\"replication\",\"replication_id\":\"%s\"", j->full_id);
	job_write_text(out, "database", job_database(j));
	job_write_text(out, "doc_id", j->spec->doc_id);
	job_write_text(out, "source", j->spec->source.name);
	job_write_text(out, "target", j->spec->target.name);
	job_write_text(out, "user", job_user(j));
	buf_printf(out, ",\"continuous\":%s", j->spec->continuous ? "true" : "false");
	job_text_write_number(out, "checkpoint_interval", j->spec->options.checkpoint_ms);
	buf_append_byte(out, ',');
	job_text_write_stats(p, out);
	if (p->pending_known) {
		uint64_t done = p->counts.revisions_checked;
		uint64_t all = done + p->pending;

		job_text_write_number(out, "progress", all ? done * 100 / all : 100);
	} else {
		buf_append_cstr(out, ",\"progress\":null");
	}
	job_text_write_number(out, "started_on", p->started_ms / 1000);
	job_text_write_number(out, "updated_on", p->updated_ms / 1000);
	job_write_text(out, "node", str_from_cstr(j->replicator->config.node_name));
	job_text_write_pid(out, j);
	buf_append_cstr(out, ",\"process_status\":\"waiting\"}");
}

void
job_write_doc_head(struct buf *out, struct str id)
{
	buf_append_cstr(out, "{\"database\":\"_replicator\"");
	job_write_text(out, "doc_id", id);
}

const char *
job_doc_state(const struct job *j)
{
	bool rests = j->state == JOB_CRASHING || j->state == JOB_PENDING;

	return rests && j->progress.lacks_filter ? JOB_DOC_ERROR : job_state_name(j->state);
}

void
job_write_doc(const struct job *j, struct buf *out)
{
	char date[CHECKPOINT_DATE_BYTES];

	job_write_doc_head(out, j->spec->doc_id);
	job_write_text(out, "id", str_from_cstr(j->full_id));
	job_write_text(out, "node", str_from_cstr(j->replicator->config.node_name));
	job_write_text(out, "source", j->spec->source.name);
	job_write_text(out, "target", j->spec->target.name);
	job_write_text(out, "state", str_from_cstr(job_doc_state(j)));
	buf_append_cstr(out, ",\"info\":");
	job_write_info(j, out);
	buf_printf(out, ",\"error_count\":%u", j->crashes);
	checkpoint_iso_date(j->past[0].at_ms, date);
	job_write_text(out, "last_updated", str_from_cstr(date));
	checkpoint_iso_date(j->added_ms, date);
	job_write_text(out, "start_time", str_from_cstr(date));
	buf_append_cstr(out, ",\"source_proxy\":null,\"target_proxy\":null}");
}
