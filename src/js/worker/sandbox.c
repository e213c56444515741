#include "js/worker/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define SANDBOX_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SANDBOX_ARCH AUDIT_ARCH_AARCH64
#endif

enum {
	STANDARD_FILES = 3,
	SANDBOX_FILES = 8, /* descriptors that the process may have; none can be made anyway */
	ARG_BYTES = sizeof(uint64_t),
};

enum status
sandbox_close_files(int keep, struct err *err)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		return err_set(err, STATUS_IO, "cannot open /dev/null: %s", strerror(errno));
	if ((keep > STANDARD_FILES && close_range(STANDARD_FILES, (unsigned)keep - 1, 0) != 0) ||
	    close_range((unsigned)keep + 1, UINT32_MAX, 0) != 0)
		return err_set(err, STATUS_IO, "cannot close files: %s", strerror(errno));
	return STATUS_OK;
}

#ifdef SANDBOX_ARCH

#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, (what))
#define REFUSE       ANSWER(SECCOMP_RET_ERRNO | EPERM)

/* The low half of an argument; both architectures have the low bytes first. */
#define LOAD_ARG(i) LOAD(offsetof(struct seccomp_data, args) + (i)*ARG_BYTES)

/* Goes on behind the next `skip` instructions unless the loaded value is `value`. */
#define UNLESS_SKIP(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (skip))

#define ALLOW(number) UNLESS_SKIP(number, 1), ANSWER(SECCOMP_RET_ALLOW)

/*
 * Only what threads, memory, clocks and the open socket need. The order is by how often a call is
 * made, since the kernel goes through the list.
 */
static enum status
sandbox_filter(uint32_t own_pid, struct err *err)
{
	struct sock_filter filter[] = {
		LOAD(offsetof(struct seccomp_data, arch)),
		UNLESS_SKIP(SANDBOX_ARCH, 1),
		BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0),
		ANSWER(SECCOMP_RET_KILL_PROCESS),
		LOAD(offsetof(struct seccomp_data, nr)),

		ALLOW(SYS_read),
		ALLOW(SYS_write),
		ALLOW(SYS_futex),
		ALLOW(SYS_madvise),
		ALLOW(SYS_mmap),
		ALLOW(SYS_munmap),
		ALLOW(SYS_mprotect),
		ALLOW(SYS_mremap),
		ALLOW(SYS_brk),
		ALLOW(SYS_clock_gettime),
		ALLOW(SYS_clock_nanosleep),
		ALLOW(SYS_nanosleep),
		ALLOW(SYS_gettimeofday),
		ALLOW(SYS_sched_yield),
		ALLOW(SYS_timer_settime),
		ALLOW(SYS_rt_sigreturn),
		ALLOW(SYS_rt_sigaction),
		ALLOW(SYS_rt_sigprocmask),
		ALLOW(SYS_rt_sigsuspend),
		ALLOW(SYS_sigaltstack),
		ALLOW(SYS_getpid),
		ALLOW(SYS_gettid),
		ALLOW(SYS_getrandom),
		ALLOW(SYS_getrusage),
		ALLOW(SYS_sysinfo),
		ALLOW(SYS_sched_getaffinity),
		ALLOW(SYS_sched_getparam),
		ALLOW(SYS_sched_getscheduler),
		ALLOW(SYS_set_robust_list),
		ALLOW(SYS_rseq),
		ALLOW(SYS_membarrier),
		ALLOW(SYS_restart_syscall),
		ALLOW(SYS_close),
		ALLOW(SYS_exit),
		ALLOW(SYS_exit_group),

		/* Signals to its own threads: the collector stops them so. */
		UNLESS_SKIP(SYS_tgkill, 4),
		LOAD_ARG(0),
		UNLESS_SKIP(own_pid, 1),
		ANSWER(SECCOMP_RET_ALLOW),
		REFUSE,

		/* Threads, but no processes. */
		UNLESS_SKIP(SYS_clone, 5),
		LOAD_ARG(0),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, CLONE_THREAD | CLONE_VM),
		UNLESS_SKIP(CLONE_THREAD | CLONE_VM, 1),
		ANSWER(SECCOMP_RET_ALLOW),
		REFUSE,

		/* Its flags are in memory, where no filter sees them: libc then uses clone. */
		UNLESS_SKIP(SYS_clone3, 1),
		ANSWER(SECCOMP_RET_ERRNO | ENOSYS),

		/* The names of threads. */
		UNLESS_SKIP(SYS_prctl, 4),
		LOAD_ARG(0),
		UNLESS_SKIP(PR_SET_NAME, 1),
		ANSWER(SECCOMP_RET_ALLOW),
		REFUSE,

		REFUSE,
	};
	struct sock_fprog program = { .len = sizeof(filter) / sizeof(filter[0]), .filter = filter };

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
		return err_set(err, errno == ENOSYS ? STATUS_UNSUPPORTED : STATUS_IO,
			       "cannot enter the sandbox: seccomp: %s", strerror(errno));
	return STATUS_OK;
}

#else

static enum status
sandbox_filter(uint32_t own_pid, struct err *err)
{
	(void)own_pid;
	return err_set(err, STATUS_UNSUPPORTED, "there is no sandbox for this kind of processor");
}

#endif

enum status
sandbox_enter(struct err *err)
{
	static const struct {
		int resource;
		rlim_t most;
	} limits[] = {
		{ RLIMIT_CORE, 0 },
		{ RLIMIT_FSIZE, 0 },
		{ RLIMIT_NOFILE, SANDBOX_FILES },
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct rlimit limit = { limits[i].most, limits[i].most };

		if (setrlimit((__rlimit_resource_t)limits[i].resource, &limit) != 0)
			return err_set(err, STATUS_IO, "cannot set a limit: %s", strerror(errno));
	}
	/* Not dumpable: no other process of the same user may look into this one. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		return err_set(err, STATUS_IO, "cannot give up rights: %s", strerror(errno));
	return sandbox_filter((uint32_t)getpid(), err);
}
