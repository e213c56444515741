#include "net/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

enum {
	PATH_LOOK_MS = 10, /* between two tries for the lock */
};

/*
 * Locks the directory of the path. Otherwise two processes that begin together could both find that
 * nobody listens, and one could remove the file that the other one has just made. -1: errno says
 * why not.
 */
static int
path_lock(const char *path)
{
	char directory[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	uint64_t until_ns = clock_after_ms(NET_PATH_WAIT_MS);
	char *slash;
	int fd;

	(void)snprintf(directory, sizeof(directory), "%s", path);
	slash = strrchr(directory, '/');
	slash[slash == directory] = '\0';
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
		int error = errno;

		if ((error == EWOULDBLOCK || error == EINTR) && clock_mono_ns() < until_ns) {
			usleep(PATH_LOOK_MS * 1000);
			continue;
		}
		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

/* What is at the path: 0 if nothing is, or nothing any more; otherwise an error that bind() has. */
static int
path_clear(const struct sockaddr_un *address)
{
	struct stat at;
	int fd, error;

	if (lstat(address->sun_path, &at) != 0)
		return errno == ENOENT ? 0 : errno;
	if (!S_ISSOCK(at.st_mode))
		return EEXIST;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno;
	error = connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ? 0 : errno;
	close(fd);
	/* Whoever listens and is busy gives EAGAIN, one who may not be asked EACCES. */
	if (error != ECONNREFUSED)
		return error == EACCES ? EACCES : EADDRINUSE;
	return unlink(address->sun_path) == 0 || errno == ENOENT ? 0 : errno;
}

static int
path_bind(int fd, const struct sockaddr_un *address, int backlog, struct net_path *ret)
{
	struct stat at;
	int error = path_clear(address);

	if (error)
		return error;
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) != 0)
		return errno;
	/* Nobody can connect before it listens, so nobody does by the mode that umask has left. */
	if (chmod(address->sun_path, NET_PATH_MODE) != 0 || lstat(address->sun_path, &at) != 0 ||
	    listen(fd, backlog) != 0) {
		error = errno;
		(void)unlink(address->sun_path);
		return error;
	}
	ret->device = at.st_dev;
	ret->number = at.st_ino;
	return 0;
}

enum status
net_path_listen(int fd, const struct sockaddr_un *address, int backlog, struct net_path *ret,
		struct err *err)
{
	int lock = path_lock(address->sun_path);
	int error = lock < 0 ? errno : 0;

	memcpy(ret->path, address->sun_path, sizeof(ret->path));
	if (!error)
		error = path_bind(fd, address, backlog, ret);
	if (lock >= 0)
		close(lock);
	if (error == EEXIST)
		return err_set(err, STATUS_IO,
			       "cannot listen on %s: there is a file that is no "
			       "socket",
			       ret->path);
	if (error)
		return err_set(err, STATUS_IO, "cannot listen on %s: %s", ret->path,
			       strerror(error));
	return STATUS_OK;
}

void
net_path_remove(const struct net_path *p)
{
	struct stat at;

	if (lstat(p->path, &at) == 0 && at.st_dev == p->device && at.st_ino == p->number)
		(void)unlink(p->path);
}
