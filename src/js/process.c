#include "js/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"
#include "js/bounds.h"

enum {
	ENVIRONMENT_MOST = 8,
	ENVIRONMENT_BYTES = 512,
	STATM_BYTES = 128,
	SOCKET_BUFFER_BYTES = 1024 * 1024, /* what is asked for: the system may give less */
};

/*
 * A worker gets only these of the server's environment, which may have passwords in it. Time zones
 * and locales are what functions can see.
 */
static const char *const passed_on[] = { "TZ", "LANG", "LC_ALL", "LD_LIBRARY_PATH" };

struct environment {
	char texts[ENVIRONMENT_MOST][ENVIRONMENT_BYTES];
	char *list[ENVIRONMENT_MOST + 1];
};

static void
fill_environment(struct environment *e)
{
	size_t n = 0;

	for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++) {
		const char *value = getenv(passed_on[i]);
		int len;

		if (!value)
			continue;
		len = snprintf(e->texts[n], ENVIRONMENT_BYTES, "%s=%s", passed_on[i], value);
		if (len > 0 && len < ENVIRONMENT_BYTES) {
			e->list[n] = e->texts[n];
			n++;
		}
	}
	e->list[n] = NULL;
}

/* A group of its own, so that a terminal's interrupt is the server's alone. */
static int
prepare_attributes(posix_spawnattr_t *attributes)
{
	sigset_t none;
	sigset_t all;

	sigemptyset(&none);
	sigfillset(&all);
	(void)posix_spawnattr_setsigmask(attributes, &none);
	(void)posix_spawnattr_setsigdefault(attributes, &all);
	(void)posix_spawnattr_setpgroup(attributes, 0);
	return posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
							    POSIX_SPAWN_SETPGROUP);
}

static int
spawn(const char *path, int socket, pid_t *ret_pid)
{
	char name[] = "frond-js";
	char *arguments[] = { name, NULL };
	struct environment environment;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int code;

	fill_environment(&environment);
	code = posix_spawn_file_actions_init(&actions);
	if (code)
		return code;
	code = posix_spawnattr_init(&attributes);
	if (!code)
		code = prepare_attributes(&attributes);
	if (!code)
		code = posix_spawn_file_actions_adddup2(&actions, socket, JS_WORKER_SOCKET);
	if (!code)
		code = posix_spawn(ret_pid, path, &actions, &attributes, arguments,
				   environment.list);
	(void)posix_spawnattr_destroy(&attributes);
	(void)posix_spawn_file_actions_destroy(&actions);
	return code;
}

static void
open_statm(struct js_process *p)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%ld/statm", (long)p->pid);
	p->statm = open(path, O_RDONLY | O_CLOEXEC);
}

enum status
js_process_start(const char *path, struct js_process *ret, struct err *err)
{
	int ends[2];
	int bytes = SOCKET_BUFFER_BYTES;
	int code;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return err_set(err, STATUS_UNAVAILABLE, "cannot make a socket for a worker: %s",
			       strerror(errno));
	(void)setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	(void)setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	code = spawn(path, ends[1], &ret->pid);
	close(ends[1]);
	if (code) {
		close(ends[0]);
		if (code == ENOENT || code == EACCES || code == ENOTDIR || code == ENOEXEC)
			return err_set(err, STATUS_UNSUPPORTED,
				       "this server cannot run functions: %s: %s", path,
				       strerror(code));
		return err_set(err,
			       code == EAGAIN || code == ENOMEM ? STATUS_UNAVAILABLE : STATUS_IO,
			       "cannot start %s: %s", path, strerror(code));
	}
	(void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
	ret->socket = ends[0];
	open_statm(ret);
	/* Without a clock of its own it is never seen to compute, so it keeps its priority. */
	if (clock_getcpuclockid(ret->pid, &ret->clock) != 0)
		ret->clock = -1;
	return STATUS_OK;
}

int64_t
js_process_resident_bytes(const struct js_process *p)
{
	char text[STATM_BYTES];
	long long pages;
	ssize_t n;

	if (p->statm < 0)
		return -1;
	n = pread(p->statm, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	if (sscanf(text, "%*s %lld", &pages) != 1)
		return -1;
	return pages * sysconf(_SC_PAGESIZE);
}

uint64_t
js_process_computed_ns(const struct js_process *p)
{
	int64_t ns = p->clock == -1 ? -1 : process_clock_ns(p->clock);

	return ns < 0 ? 0 : (uint64_t)ns;
}

void
js_process_give_way(const struct js_process *p, int more)
{
	(void)setpriority(PRIO_PROCESS, (id_t)p->pid, getpriority(PRIO_PROCESS, 0) + more);
}

void
js_process_signal(const struct js_process *p)
{
	(void)kill(p->pid, SIGKILL);
}

void
js_process_close(struct js_process *p)
{
	close(p->socket);
	if (p->statm >= 0)
		close(p->statm);
	p->socket = -1;
	p->statm = -1;
}

bool
js_process_is_gone(const struct js_process *p)
{
	pid_t gone = waitpid(p->pid, NULL, WNOHANG);

	/* Somebody else may have waited for it: then there is nothing left to wait for. */
	return gone == p->pid || (gone < 0 && errno == ECHILD);
}
