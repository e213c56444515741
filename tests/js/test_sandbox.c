/*
 * The worker's sandbox, as machine code meets it that a function has smuggled in. The program runs
 * itself again for each attempt: it enters the sandbox, tries, and tells by its exit code.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "js/worker/sandbox.h"

enum {
	REFUSED = 10, /* the exit codes of an attempt: the system said EPERM, */
	ALLOWED = 11, /* it did what was asked, */
	OTHER = 12,   /* or it failed for another reason */
	NO_SANDBOX = 13,
	PAGE = 4096,
};

extern char **environ;

static int ends[2]; /* a socket that was open before */

/* ---- Attempts: each returns what the system call did, with errno ---- */

static long
try_open(void)
{
	return syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY);
}

static long
try_create(void)
{
	return syscall(SYS_openat, AT_FDCWD, "/tmp/frond-escaped", O_CREAT | O_WRONLY, 0600);
}

static long
try_exec(void)
{
	char name[] = "true";
	char *arguments[] = { name, NULL };
	char *nothing[] = { NULL };

	return syscall(SYS_execve, "/bin/true", arguments, nothing);
}

static long
try_socket(void)
{
	return syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
}

static long
try_connect(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	return syscall(SYS_connect, ends[0], &address, sizeof(address));
}

static long
try_send_descriptor(void)
{
	struct msghdr message = { 0 };

	return syscall(SYS_sendmsg, ends[0], &message, 0);
}

static long
try_fork(void)
{
	long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	return pid;
}

static long
try_clone3(void)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
		_exit(0);
	/* Refused as if the system did not have it: libc then makes threads by clone. */
	if (pid < 0 && errno == ENOSYS)
		errno = EPERM;
	return pid;
}

static long
try_kill_parent(void)
{
	return syscall(SYS_kill, getppid(), 0);
}

static long
try_kill_thread_of_parent(void)
{
	return syscall(SYS_tgkill, getppid(), getppid(), 0);
}

static long
try_ptrace(void)
{
	return syscall(SYS_ptrace, PTRACE_ATTACH, getppid(), 0, 0);
}

static long
try_read_parent(void)
{
	char bytes[8];
	struct iovec to = { bytes, sizeof(bytes) };
	struct iovec from = { bytes, sizeof(bytes) };

	return syscall(SYS_process_vm_readv, getppid(), &to, 1, &from, 1, 0);
}

static long
try_unlink(void)
{
	return syscall(SYS_unlinkat, AT_FDCWD, "/tmp/frond-escaped", 0);
}

static long
try_io_uring(void)
{
	char params[256] = { 0 };

	return syscall(SYS_io_uring_setup, 1, params);
}

static long
try_memory_file(void)
{
	return syscall(SYS_memfd_create, "x", 0);
}

static long
try_limits(void)
{
	struct rlimit limit = { 1000, 1000 };

	return syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit, NULL);
}

static long
try_dumpable(void)
{
	return syscall(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static long
try_seccomp(void)
{
	return syscall(SYS_seccomp, 0, 0, NULL);
}

static const struct attempt {
	const char *name;
	long (*run)(void);
} attempts[] = {
	{ "open", try_open },         { "create", try_create },
	{ "exec", try_exec },         { "socket", try_socket },
	{ "connect", try_connect },   { "sendmsg", try_send_descriptor },
	{ "fork", try_fork },         { "clone3", try_clone3 },
	{ "kill", try_kill_parent },  { "tgkill", try_kill_thread_of_parent },
	{ "ptrace", try_ptrace },     { "process_vm_readv", try_read_parent },
	{ "unlink", try_unlink },     { "io_uring", try_io_uring },
	{ "memfd", try_memory_file }, { "prlimit", try_limits },
	{ "prctl", try_dumpable },    { "seccomp", try_seccomp },
};

/* What the engine needs, and has to go on. */

static void *
thread_main(void *arg)
{
	(void)arg;
	return NULL;
}

static bool
can_compute(void)
{
	pthread_t thread;
	char byte = 'x';
	void *code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return code != MAP_FAILED && mprotect(code, PAGE, PROT_READ | PROT_EXEC) == 0 &&
	       madvise(code, PAGE, MADV_DONTNEED) == 0 && munmap(code, PAGE) == 0 &&
	       pthread_create(&thread, NULL, thread_main, NULL) == 0 &&
	       pthread_join(thread, NULL) == 0 && write(ends[0], &byte, 1) == 1 &&
	       read(ends[1], &byte, 1) == 1;
}

/* ---- ---- */

/* In a process of its own: never returns. */
static void
attempt_run(const char *name)
{
	struct err err;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 || sandbox_enter(&err) != STATUS_OK)
		_exit(NO_SANDBOX);
	if (strcmp(name, "compute") == 0)
		_exit(can_compute() ? ALLOWED : OTHER);
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++)
		if (strcmp(name, attempts[i].name) == 0)
			_exit(attempts[i].run() >= 0 ? ALLOWED : errno == EPERM ? REFUSED : OTHER);
	_exit(NO_SANDBOX);
}

/* What came of an attempt in a process of its own. */
static int
outcome_of(const char *name)
{
	char path[] = "/proc/self/exe";
	char *arguments[] = { path, NULL, NULL };
	char text[32];
	pid_t pid;
	int code;

	snprintf(text, sizeof(text), "%s", name);
	arguments[1] = text;
	assert_int_equal(posix_spawn(&pid, path, NULL, NULL, arguments, environ), 0);
	assert_int_equal(waitpid(pid, &code, 0), pid);
	return WIFEXITED(code) ? WEXITSTATUS(code) : -WTERMSIG(code);
}

static void
what_leads_out_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
		if (outcome_of(attempts[i].name) != REFUSED)
			fail_msg("%s: %d", attempts[i].name, outcome_of(attempts[i].name));
	}
}

static void
memory_threads_and_the_socket_are_allowed(void **state)
{
	(void)state;
	assert_int_equal(outcome_of("compute"), ALLOWED);
}

static void
files_are_closed_but_one(void **state)
{
	struct err err;
	int pair[2];
	int other;
	pid_t pid;
	int code;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	other = dup(pair[0]);
	assert_true(other > pair[1]);
	pid = fork(); /* this program has no other thread */
	if (pid == 0) {
		bool good = sandbox_close_files(pair[1], &err) == STATUS_OK &&
			    fcntl(pair[1], F_GETFD) >= 0 && fcntl(other, F_GETFD) < 0 &&
			    fcntl(pair[0], F_GETFD) < 0 && fcntl(STDERR_FILENO, F_GETFD) >= 0;

		_exit(good ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &code, 0), pid);
	assert_int_equal(code, 0);
	close(other);
	close(pair[0]);
	close(pair[1]);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_leads_out_is_refused),
		cmocka_unit_test(memory_threads_and_the_socket_are_allowed),
		cmocka_unit_test(files_are_closed_but_one),
	};

	if (argc > 1)
		attempt_run(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
