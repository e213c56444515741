/* URLs of databases, taken apart by libcurl. */
#include <curl/curl.h>

#include "base/arena.h"
#include "replicator/net.h"

static struct str
url_copy_part(CURLU *url, CURLUPart part, unsigned flags, struct arena *arena)
{
	char *text = NULL;
	struct str copy = { NULL, 0 };

	if (curl_url_get(url, part, &text, flags) == CURLUE_OK && text)
		copy = arena_dup(arena, str_from_cstr(text));
	curl_free(text);
	return copy;
}

static enum status
url_read_parts(CURLU *url, struct arena *arena, struct net_url *ret, struct err *err)
{
	struct str port = url_copy_part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT, arena);
	uint64_t number = 0;

	ret->scheme = url_copy_part(url, CURLUPART_SCHEME, 0, arena);
	ret->host = url_copy_part(url, CURLUPART_HOST, 0, arena);
	ret->path = url_copy_part(url, CURLUPART_PATH, 0, arena);
	ret->user = url_copy_part(url, CURLUPART_USER, CURLU_URLDECODE, arena);
	ret->password = url_copy_part(url, CURLUPART_PASSWORD, CURLU_URLDECODE, arena);
	curl_url_set(url, CURLUPART_USER, NULL, 0);
	curl_url_set(url, CURLUPART_PASSWORD, NULL, 0);
	ret->bare = url_copy_part(url, CURLUPART_URL, 0, arena);
	if (!ret->scheme.ptr || !ret->host.ptr || !ret->bare.ptr || !str_to_u64(port, &number) ||
	    number == 0 || number > UINT16_MAX)
		return err_set(err, STATUS_INVALID, "not a URL of a server");
	if (!str_eq(ret->scheme, STR("http")) && !str_eq(ret->scheme, STR("https")))
		return err_set(err, STATUS_INVALID, "neither http nor https");
	ret->port = (uint16_t)number;
	return STATUS_OK;
}

enum status
net_url_parse(struct str text, struct arena *arena, struct net_url *ret, struct err *err)
{
	struct str copy = arena_dup(arena, text);
	CURLU *url = curl_url();
	enum status status = STATUS_NOMEM;

	*ret = (struct net_url){ 0 };
	if (copy.ptr && url) {
		status = memchr(copy.ptr, '\0', copy.len) ||
					 curl_url_set(url, CURLUPART_URL, copy.ptr, 0) != CURLUE_OK
				 ? err_set(err, STATUS_INVALID, "not a URL")
				 : url_read_parts(url, arena, ret, err);
	}
	curl_url_cleanup(url);
	return status;
}
