/*
 * A disk that does not answer, for a program under test: preloaded, it takes the place of the
 * system's fdatasync() and fsync(), which do not return while the file $FROND_TEST_STUCK exists.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int fdatasync(int fd);
int fsync(int fd);

static void
wait_while_stuck(void)
{
	const struct timespec pause = { .tv_nsec = 5 * 1000 * 1000 };
	const char *path = getenv("FROND_TEST_STUCK");

	while (path && access(path, F_OK) == 0)
		nanosleep(&pause, NULL);
}

__attribute__((visibility("default"))) int
fdatasync(int fd)
{
	wait_while_stuck();
	return (int)syscall(SYS_fdatasync, fd);
}

__attribute__((visibility("default"))) int
fsync(int fd)
{
	wait_while_stuck();
	return (int)syscall(SYS_fsync, fd);
}
