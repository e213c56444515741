/*
 * What changes while a validator thinks: the write that waits for it sees it. A worker that has
 * begun with a validator is stopped until the change is made, however slow the machine is.
 */
#include <dirent.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "functions.h"

/* A validator's work, and how much of it shows that the worker is about it: a fraction. */
#define SLOW     "if (n.slow) for (var i = 0; i < 5e8; i++) ; "
#define BEGUN_NS (INT64_C(50) * 1000 * 1000)

enum {
	WORKERS_MAX = 16,
	POLL_US = 1000,
	BEGIN_SECONDS = 100,
};

struct worker {
	pid_t pid;
	int64_t cpu_ns;
};

/* A write whose validator has begun and does not go on. */
struct write {
	struct client *client;
	pid_t worker;
};

/* The parent of a process, or 0 if it has ended. */
static pid_t
parent_of(pid_t pid)
{
	FILE *file = fopen(format("/proc/%d/stat", pid), "r");
	pid_t parent = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%*d (%*[^)]) %*c %d", &parent) != 1)
		parent = 0;
	(void)fclose(file);
	return parent;
}

/* The time that a process has had of a processor; 0 if it has ended. */
static int64_t
cpu_of(pid_t pid)
{
	struct timespec t;
	clockid_t id;

	if (clock_getcpuclockid(pid, &id) != 0 || clock_gettime(id, &t) != 0)
		return 0;
	return (int64_t)t.tv_sec * 1000 * 1000 * 1000 + t.tv_nsec;
}

/* Finds the door's workers, and returns their number. */
static size_t
find_workers(struct worker *ret)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	size_t n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid <= 0 || parent_of(pid) != getpid())
			continue;
		assert_true(n < WORKERS_MAX);
		ret[n++] = (struct worker){ .pid = pid, .cpu_ns = cpu_of(pid) };
	}
	(void)closedir(dir);
	return n;
}

/*
 * The worker that has computed since `before`; 0: none has. Others may have taken the place of
 * those that answered slowly.
 */
static pid_t
find_begun(const struct worker *before, size_t n)
{
	struct worker now[WORKERS_MAX];
	size_t count = find_workers(now);

	for (size_t i = 0; i < count; i++) {
		int64_t had_ns = 0;

		for (size_t j = 0; j < n; j++)
			if (before[j].pid == now[i].pid)
				had_ns = before[j].cpu_ns;
		if (now[i].cpu_ns - had_ns > BEGUN_NS)
			return now[i].pid;
	}
	return 0;
}

/* Sends a write whose validator takes its time, and stops the validator when it has begun. */
static struct write
begin_slowly(const char *method, const char *target, const char *headers, const char *body)
{
	struct worker workers[WORKERS_MAX];
	size_t n = find_workers(workers);
	time_t deadline = time(NULL) + BEGIN_SECONDS;
	struct write w = { .client = client_open(d->port) };

	client_send(w.client, method, target, headers, body);
	while (!(w.worker = find_begun(workers, n))) {
		if (time(NULL) > deadline)
			fail_msg("no worker has begun with %s %s", method, target);
		usleep(POLL_US);
	}
	assert_int_equal(kill(w.worker, SIGSTOP), 0);
	return w;
}

static void
expect_end(struct write w, int status, const char *text)
{
	struct response r;

	assert_int_equal(kill(w.worker, SIGCONT), 0);
	r = client_receive(w.client, false);
	if (r.status != status || !strstr(r.body, text))
		fail_msg("expected %d with %s, got %d: %s", status, text, r.status, r.body);
	response_release(&r);
	client_close(w.client);
}

#define JSON "Content-Type: application/json\r\n"

static void
a_validator_that_changes_meanwhile_is_asked(void **state)
{
	struct write w;

	NEEDS_WORKER();
	create_with("races", "function(n) { " SLOW " }");
	door_expect(d, "PUT", "/races/warm", "{}", 201, "ok");
	w = begin_slowly("PUT", "/races/d", JSON, "{\"slow\":true}");
	put_validator("races", "w", "function() { throw({forbidden: 'new'}); }");
	expect_end(w, 403, "new");
	w = begin_slowly("POST", "/races/_bulk_docs", JSON,
			 "{\"docs\":[{\"_id\":\"e\",\"slow\":true}]}");
	put_validator("races", "v", "function() { throw({forbidden: 'newer'}); }");
	expect_end(w, 201, "new");
	door_expect(d, "GET", "/races/_all_docs", NULL, 200, "\"total_rows\":3,");
}

static void
a_security_object_that_changes_meanwhile_is_shown(void **state)
{
	struct write w;

	NEEDS_WORKER();
	create_with("secure",
		    "function(n, o, u, s) { " SLOW "if (s.closed) throw({forbidden: 'closed'}); }");
	door_expect(d, "PUT", "/secure/warm", "{}", 201, "ok");
	w = begin_slowly("PUT", "/secure/d", JSON, "{\"slow\":true}");
	door_expect(d, "PUT", "/secure/_security", "{\"closed\":true}", 200, "ok");
	expect_end(w, 403, "closed");
	door_expect(d, "GET", "/secure/d", NULL, 404, "missing");
}

static void
a_document_that_changes_meanwhile_is_shown(void **state)
{
	struct write w;

	NEEDS_WORKER();
	create_with("parents",
		    "function(n, o) { " SLOW "if (o && o.locked) throw({forbidden: 'locked'}); }");
	door_expect(d, "PUT", "/parents/d", "{}", 201, "ok");
	w = begin_slowly("PATCH", "/parents/d", MERGE_PATCH, "{\"slow\":true}");
	door_expect(d, "PUT", "/parents/d",
		    format("{\"_rev\":\"%s\",\"locked\":true}", rev_of("/parents/d")), 201, "ok");
	expect_end(w, 403, "locked");
	door_expect(d, "GET", "/parents/d", NULL, 200, "\"locked\":true}");
}

/* Where there was none, validators are not asked once more: the write is a conflict. */
static void
a_document_that_comes_meanwhile_is_a_conflict(void **state)
{
	static const char *const ways[][4] = {
		{ "PUT", "/comes/d", "{\"slow\":true}", "conflict" },
		{ "POST", "/comes/_bulk_docs",
		  "{\"docs\":[{\"_id\":\"a\",\"slow\":true},{\"_id\":\"e\",\"slow\":true}]}",
		  "\"id\":\"e\",\"error\":\"conflict\"" },
	};
	static const char *const ids[] = { "d", "e" };
	struct write w;

	NEEDS_WORKER();
	create_with("comes", "function(n, o) { " SLOW " }");
	door_expect(d, "PUT", "/comes/warm", "{}", 201, "ok");
	for (int i = 0; i < 2; i++) {
		w = begin_slowly(ways[i][0], ways[i][1], JSON, ways[i][2]);
		door_expect(d, "PUT", format("/comes/%s", ids[i]), "{}", 201, "ok");
		expect_end(w, i ? 201 : 409, ways[i][3]);
		door_expect(d, "GET", format("/comes/%s", ids[i]), NULL, 200, "\"}");
	}
	door_expect(d, "GET", "/comes/a", NULL, 200, "slow");
}

static const door_setting functions_settings[] = {
	{ "couchdb", "os_process_timeout", "100000" },
	{ NULL, NULL, NULL },
};

static int
setup_functions(void **state)
{
	(void)state;
	d = door_start_with(false, functions_settings, NULL);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_validator_that_changes_meanwhile_is_asked),
		cmocka_unit_test(a_security_object_that_changes_meanwhile_is_shown),
		cmocka_unit_test(a_document_that_changes_meanwhile_is_shown),
		cmocka_unit_test(a_document_that_comes_meanwhile_is_a_conflict),
	};

	return cmocka_run_group_tests(tests, setup_functions, teardown);
}
