#include "cli/manager.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/given.h"

enum {
	FIRST_SOCKET = 3, /* the descriptors begin behind those of standard input and outputs */
	MESSAGE_BYTES = 128 + ADDRESS_TEXT_BYTES,
	MESSAGE_SECONDS = 1, /* for a manager that does not read */
};

/* What the names of kept sockets begin with; no door's does. */
#define KEPT "kept-"

struct manager_given {
	char name[MANAGER_NAME_BYTES];
	char host[ADDRESS_HOST_BYTES];
	uint16_t port;
	bool asked_for;
};

static struct {
	struct sockaddr_un address; /* where it listens */
	socklen_t address_len;      /* 0: it does not */
	struct manager_given sockets[NET_GIVEN];
	size_t count;
} manager;

/* ---- Telling ---- */

bool
manager_listens(void)
{
	return manager.address_len > 0;
}

/* Sends a message, with a descriptor unless `fd` is negative. */
static void
manager_send(const char *text, size_t len, int fd)
{
	const struct timeval most = { .tv_sec = MESSAGE_SECONDS };
	_Alignas(struct cmsghdr) char space[CMSG_SPACE(sizeof(fd))] = { 0 };
	struct iovec piece = { (void *)(uintptr_t)text, len };
	struct msghdr message = {
		.msg_name = &manager.address,
		.msg_namelen = manager.address_len,
		.msg_iov = &piece,
		.msg_iovlen = 1,
	};
	int to = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (to < 0)
		return;
	if (fd >= 0) {
		struct cmsghdr *head = (struct cmsghdr *)(void *)space;

		*head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(fd)),
					  .cmsg_level = SOL_SOCKET,
					  .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(head), &fd, sizeof(fd));
		message.msg_control = space;
		message.msg_controllen = sizeof(space);
	}
	(void)setsockopt(to, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
	(void)sendmsg(to, &message, MSG_NOSIGNAL);
	close(to);
}

void
manager_tell(const char *state)
{
	char text[MESSAGE_BYTES];
	int len;

	if (!manager_listens())
		return;
	/* RELOADING=1 needs the moment; the others are indifferent to it. */
	len = snprintf(text, sizeof(text), "%s\nMONOTONIC_USEC=%llu\n", state,
		       (unsigned long long)(clock_mono_ns() / 1000));
	manager_send(text, (size_t)len, -1);
}

/* ---- Kept sockets ---- */

/* Tells of the kept socket at an address. Its name may not have colons. */
static void
manager_tell_kept(const char *what, int fd, const char *host, uint16_t port)
{
	char address[ADDRESS_TEXT_BYTES];
	char text[MESSAGE_BYTES];
	int len;

	if (!manager_listens())
		return;
	address_write(host, port, address);
	for (char *at = address; *at; at++)
		if (*at == ':')
			*at = '_';
	len = snprintf(text, sizeof(text), "%s=1\nFDNAME=" KEPT "%s\n", what, address);
	manager_send(text, (size_t)len, fd);
}

static void
manager_keep(int fd, const char *host, uint16_t port)
{
	manager_tell_kept("FDSTORE", fd, host, port);
}

static void
manager_forget(const char *host, uint16_t port)
{
	manager_tell_kept("FDSTOREREMOVE", -1, host, port);
}

void
manager_drop_sockets(void)
{
	net_given_drop(manager_forget);
}

/* ---- What it says ---- */

/* A path, or behind an @ a name that is in no file system. Others are no sockets of this kind. */
static void
manager_read_address(void)
{
	const char *text = getenv("NOTIFY_SOCKET");
	size_t len = text ? strlen(text) : 0;

	if (len < 2 || len >= sizeof(manager.address.sun_path) || (*text != '/' && *text != '@'))
		return;
	manager.address.sun_family = AF_UNIX;
	memcpy(manager.address.sun_path, text, len);
	if (*text == '@')
		manager.address.sun_path[0] = '\0';
	manager.address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

/* The descriptors that are for this process, and not for the one that has started it. */
static size_t
manager_count_sockets(void)
{
	const char *pid = getenv("LISTEN_PID");
	const char *fds = getenv("LISTEN_FDS");
	uint64_t n;

	if (!pid || !fds || !str_to_u64(str_from_cstr(pid), &n) || n != (uint64_t)getpid())
		return 0;
	return str_to_u64(str_from_cstr(fds), &n) ? (size_t)n : 0;
}

/* Takes the next name of a list with colons between them, and moves `*at` behind it. */
static void
manager_next_name(const char **at, size_t count, char ret[MANAGER_NAME_BYTES])
{
	size_t len = *at ? strcspn(*at, ":") : 0;

	if (!*at && count == 1)
		(void)snprintf(ret, MANAGER_NAME_BYTES, "http");
	else
		(void)snprintf(ret, MANAGER_NAME_BYTES, "%.*s", (int)len, *at ? *at : "");
	if (*at)
		*at += (*at)[len] ? len + 1 : len;
}

static enum status
manager_read_sockets(struct err *err)
{
	const char *names = getenv("LISTEN_FDNAMES");
	size_t count = manager_count_sockets();
	struct err why = { 0 };

	for (size_t i = 0; i < count; i++) {
		struct manager_given *given = &manager.sockets[manager.count];
		enum status status;

		if (i == NET_GIVEN)
			return err_set(err, STATUS_INVALID,
				       "the manager of services hands over %zu sockets; %d are the "
				       "most",
				       count, NET_GIVEN);
		manager_next_name(&names, count, given->name);
		status = net_given_add(FIRST_SOCKET + (int)i, given->host, &given->port, &why);
		if (status != STATUS_OK)
			return err_set(err, STATUS_INVALID,
				       "the manager of services hands over a socket \"%s\" that "
				       "cannot be used: %s",
				       given->name, why.text);
		/* Where a kept one listens finds it; its name has served its purpose. */
		if (strncmp(given->name, KEPT, strlen(KEPT)) != 0)
			manager.count++;
	}
	return STATUS_OK;
}

enum status
manager_read(struct err *err)
{
	static const char *const names[] = { "NOTIFY_SOCKET", "LISTEN_PID", "LISTEN_FDS",
					     "LISTEN_FDNAMES" };

	manager_read_address();
	TRY(manager_read_sockets(err));
	if (manager_listens())
		net_given_set_keep(manager_keep);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unsetenv(names[i]);
	return STATUS_OK;
}

/* ---- Sockets ---- */

bool
manager_socket(const char *name, const char *suffix, char ret_host[ADDRESS_HOST_BYTES],
	       uint16_t *ret_port)
{
	char wanted[MANAGER_NAME_BYTES];

	(void)snprintf(wanted, sizeof(wanted), "%s%s", name, suffix);
	for (size_t i = 0; i < manager.count; i++) {
		struct manager_given *given = &manager.sockets[i];

		if (given->asked_for || strcmp(given->name, wanted) != 0)
			continue;
		given->asked_for = true;
		(void)snprintf(ret_host, ADDRESS_HOST_BYTES, "%s", given->host);
		*ret_port = given->port;
		return true;
	}
	return false;
}

enum status
manager_check_sockets(const char *names, struct err *err)
{
	for (size_t i = 0; i < manager.count; i++)
		if (!manager.sockets[i].asked_for)
			return err_set(err, STATUS_INVALID,
				       "the manager of services hands over a socket \"%s\": no "
				       "door is called so, or there are two; set "
				       "FileDescriptorName= of each to %s",
				       manager.sockets[i].name, names);
	return STATUS_OK;
}
