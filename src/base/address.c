#include "base/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <strings.h>

#include "base/address_path.h"

enum {
	ADDRESS_PORT_MAX = 65535,
};

enum status
address_parse(const char *host_port, char ret_host[ADDRESS_HOST_BYTES], uint16_t *ret_port,
	      struct err *err)
{
	const char *colon = strrchr(host_port, ':');
	struct str host;
	uint64_t port;

	if (!colon || colon == host_port || !str_to_u64(str_from_cstr(colon + 1), &port) ||
	    port > ADDRESS_PORT_MAX)
		return err_set(err, STATUS_INVALID, "\"%s\" is not HOST:PORT", host_port);
	host = str_of(host_port, (size_t)(colon - host_port));
	if (host.len > 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']')
		host = str_of(host.ptr + 1, host.len - 2);
	else if (memchr(host.ptr, ':', host.len))
		return err_set(err, STATUS_INVALID,
			       "\"%s\": an IPv6 address needs brackets, as in [::1]:5984",
			       host_port);
	if (host.len >= ADDRESS_HOST_BYTES)
		return err_set(err, STATUS_INVALID,
			       "the host of \"%s\" is longer than %d characters", host_port,
			       ADDRESS_HOST_BYTES - 1);
	memcpy(ret_host, host.ptr, host.len);
	ret_host[host.len] = '\0';
	*ret_port = (uint16_t)port;
	return STATUS_OK;
}

bool
address_is_path(const char *text)
{
	return text[0] == '/';
}

enum status
address_check_path(const char *path, struct err *err)
{
	size_t len = strlen(path);

	if (len >= ADDRESS_PATH_BYTES)
		return err_set(err, STATUS_INVALID,
			       "\"%s\": the path of a Unix socket has %d bytes at most", path,
			       ADDRESS_PATH_BYTES - 1);
	if (path[len - 1] == '/')
		return err_set(err, STATUS_INVALID, "\"%s\" is no path of a Unix socket", path);
	return STATUS_OK;
}

/* An IP address as a number; its family, or AF_UNSPEC for another text. */
static int
address_read(const char *host, struct in6_addr *ret)
{
	char text[ADDRESS_HOST_BYTES];
	size_t n = strcspn(host, "%"); /* behind which an IPv6 address may name an interface */

	memset(ret, 0, sizeof(*ret));
	if (strcasecmp(host, "localhost") == 0)
		host = "127.0.0.1";
	if (inet_pton(AF_INET, host, ret) == 1)
		return AF_INET;
	if (n >= sizeof(text))
		return AF_UNSPEC;
	memcpy(text, host, n);
	text[n] = '\0';
	return inet_pton(AF_INET6, text, ret) == 1 ? AF_INET6 : AF_UNSPEC;
}

enum status
address_check_host(const char *host, const char *text, struct err *err)
{
	struct in6_addr number;

	if (address_read(host, &number) != AF_UNSPEC)
		return STATUS_OK;
	return err_set(err, STATUS_INVALID,
		       "\"%s\": a server listens at an IP address, or localhost", text);
}

bool
address_overlaps(const char *a, const char *b)
{
	static const struct in6_addr any;
	struct in6_addr x, y;
	int family = address_read(a, &x);

	if (address_is_path(a))
		return strcmp(a, b) == 0;
	if (family == AF_UNSPEC || family != address_read(b, &y))
		return false;
	return memcmp(&x, &any, sizeof(any)) == 0 || memcmp(&y, &any, sizeof(any)) == 0 ||
	       memcmp(&x, &y, sizeof(x)) == 0;
}

bool
address_is_loopback(const char *host)
{
	struct in6_addr in6;
	struct in_addr in;

	/* These two are nearly all that there is, and quick to tell. */
	if (strcmp(host, "127.0.0.1") == 0 || strcasecmp(host, "localhost") == 0)
		return true;
	/* Not by the first characters alone: a name such as "127.0.0.1.example" is anybody's. */
	if (inet_pton(AF_INET, host, &in) == 1)
		return ntohl(in.s_addr) >> 24 == 127;
	return inet_pton(AF_INET6, host, &in6) == 1 && IN6_IS_ADDR_LOOPBACK(&in6);
}

bool
address_names_loopback(struct str host)
{
	char text[ADDRESS_HOST_BYTES];
	size_t end = host.len;
	uint64_t port;

	while (end > 0 && host.ptr[end - 1] >= '0' && host.ptr[end - 1] <= '9')
		end--;
	if (end > 0 && host.ptr[end - 1] == ':') {
		struct str digits = str_skip(host, end);

		if (digits.len && (!str_to_u64(digits, &port) || port > ADDRESS_PORT_MAX))
			return false;
		host.len = end - 1;
	}
	if (host.len > 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']')
		host = str_of(host.ptr + 1, host.len - 2);
	else if (host.len && memchr(host.ptr, ':', host.len))
		return false;
	if (host.len >= sizeof(text) || (host.len && memchr(host.ptr, '\0', host.len)))
		return false;
	memcpy(text, host.ptr, host.len);
	text[host.len] = '\0';
	return address_is_loopback(text);
}

enum {
	BLOCK_OF_IPV6_BYTES = 8,
};

void
address_block_of(struct str peer, struct address_block *ret)
{
	struct in6_addr in6;
	char host[ADDRESS_HOST_BYTES];
	size_t n = peer.len;

	while (n > 0 && peer.ptr[n - 1] != ':')
		n--;
	if (n > 0)
		peer.len = n - 1;
	if (peer.len > 2 && peer.ptr[0] == '[' && peer.ptr[peer.len - 1] == ']')
		peer = str_of(peer.ptr + 1, peer.len - 2);
	if (peer.len >= sizeof(host))
		peer.len = sizeof(host) - 1;
	if (peer.len)
		memcpy(host, peer.ptr, peer.len);
	host[peer.len] = '\0';

	memset(ret, 0, sizeof(*ret));
	if (inet_pton(AF_INET6, host, &in6) == 1) {
		/* An IPv4 address that was mapped into IPv6 is an IPv4 address. */
		if (IN6_IS_ADDR_V4MAPPED(&in6))
			memcpy(ret->bytes, (const uint8_t *)&in6 + 12, 4);
		else
			memcpy(ret->bytes + sizeof(ret->bytes) - BLOCK_OF_IPV6_BYTES, &in6,
			       BLOCK_OF_IPV6_BYTES);
	} else if (inet_pton(AF_INET, host, ret->bytes) != 1) {
		memcpy(ret->bytes, host,
		       peer.len < sizeof(ret->bytes) ? peer.len : sizeof(ret->bytes));
	}
}

void
address_write(const char *host, uint16_t port, char ret[ADDRESS_TEXT_BYTES])
{
	if (address_is_path(host)) {
		snprintf(ret, ADDRESS_TEXT_BYTES, "%s", host);
		return;
	}
	if (strcasecmp(host, "localhost") == 0)
		host = "127.0.0.1";
	snprintf(ret, ADDRESS_TEXT_BYTES, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host,
		 (unsigned)port);
}

const char *
address_to_reach(const char *host)
{
	if (strcmp(host, "0.0.0.0") == 0)
		return "127.0.0.1";
	return strcmp(host, "::") == 0 ? "::1" : host;
}
