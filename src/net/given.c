#include "net/given.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/address_path.h"

union given_address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
	struct sockaddr_storage most;
};

static struct {
	int fds[NET_GIVEN];
	size_t count;
	net_given_keep *keep; /* NULL: nobody does */
} given;

/* Finds out where the socket listens. False: it does not, or is no socket of TCP or of a path. */
static bool
given_find_address(int fd, union given_address *ret)
{
	socklen_t len = sizeof(*ret);
	int type = 0, listens = 0;
	socklen_t type_len = sizeof(type), listens_len = sizeof(listens);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) != 0 || type != SOCK_STREAM ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &listens_len) != 0 || !listens)
		return false;
	memset(ret, 0, sizeof(*ret));
	if (getsockname(fd, &ret->any, &len) != 0)
		return false;
	if (ret->any.sa_family == AF_UNIX)
		return address_is_path(ret->un.sun_path);
	return ret->any.sa_family == AF_INET || ret->any.sa_family == AF_INET6;
}

static void
given_write_address(const union given_address *at, char ret_host[ADDRESS_HOST_BYTES],
		    uint16_t *ret_port)
{
	if (at->any.sa_family == AF_UNIX) {
		(void)snprintf(ret_host, ADDRESS_HOST_BYTES, "%s", at->un.sun_path);
		*ret_port = 0;
	} else if (at->any.sa_family == AF_INET6) {
		(void)inet_ntop(AF_INET6, &at->in6.sin6_addr, ret_host, ADDRESS_HOST_BYTES);
		*ret_port = ntohs(at->in6.sin6_port);
	} else {
		(void)inet_ntop(AF_INET, &at->in.sin_addr, ret_host, ADDRESS_HOST_BYTES);
		*ret_port = ntohs(at->in.sin_port);
	}
}

enum status
net_given_add(int fd, char ret_host[ADDRESS_HOST_BYTES], uint16_t *ret_port, struct err *err)
{
	union given_address at;
	int flags;

	if (given.count == NET_GIVEN)
		return err_set(err, STATUS_LIMIT, "more than %d sockets were given", NET_GIVEN);
	if (!given_find_address(fd, &at))
		return err_set(err, STATUS_INVALID,
			       "it is no socket of TCP or of a path that listens");
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
		return err_set(err, STATUS_IO, "%s", strerror(errno));
	given_write_address(&at, ret_host, ret_port);
	given.fds[given.count++] = fd;
	return STATUS_OK;
}

/* True if both are the same address and port, or the same path. */
static bool
given_is_at(const union given_address *at, const struct sockaddr *address)
{
	union given_address other = { .any = { 0 } };

	if (at->any.sa_family != address->sa_family)
		return false;
	if (address->sa_family == AF_UNIX) {
		memcpy(&other.un, address, sizeof(other.un));
		return strcmp(at->un.sun_path, other.un.sun_path) == 0;
	}
	if (address->sa_family == AF_INET) {
		memcpy(&other.in, address, sizeof(other.in));
		return at->in.sin_port == other.in.sin_port &&
		       at->in.sin_addr.s_addr == other.in.sin_addr.s_addr;
	}
	memcpy(&other.in6, address, sizeof(other.in6));
	return at->in6.sin6_port == other.in6.sin6_port &&
	       memcmp(&at->in6.sin6_addr, &other.in6.sin6_addr, sizeof(at->in6.sin6_addr)) == 0;
}

int
net_given_take(const struct sockaddr *address)
{
	union given_address at;

	for (size_t i = 0; i < given.count; i++) {
		int fd = given.fds[i];

		if (!given_find_address(fd, &at) || !given_is_at(&at, address))
			continue;
		given.fds[i] = given.fds[--given.count];
		return fd;
	}
	return -1;
}

void
net_given_drop(void (*tell)(const char *host, uint16_t port))
{
	char host[ADDRESS_HOST_BYTES];
	union given_address at;
	uint16_t port;

	while (given.count > 0) {
		int fd = given.fds[--given.count];

		if (given_find_address(fd, &at)) {
			given_write_address(&at, host, &port);
			tell(host, port);
		}
		close(fd);
	}
}

void
net_given_set_keep(net_given_keep *keep)
{
	given.keep = keep;
}

void
net_given_made(int fd)
{
	char host[ADDRESS_HOST_BYTES];
	union given_address at;
	uint16_t port;

	if (!given.keep || !given_find_address(fd, &at) || at.any.sa_family == AF_UNIX)
		return;
	given_write_address(&at, host, &port);
	given.keep(fd, host, port);
}
