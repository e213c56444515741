#include "replicator/redirect.h"

#include <curl/curl.h>

#include "base/mem.h"

struct redirect_place {
	char *scheme, *host, *port;
};

static bool
redirect_place_read(CURLU *url, struct redirect_place *ret)
{
	return curl_url_get(url, CURLUPART_SCHEME, &ret->scheme, 0) == CURLUE_OK &&
	       curl_url_get(url, CURLUPART_HOST, &ret->host, 0) == CURLUE_OK &&
	       curl_url_get(url, CURLUPART_PORT, &ret->port, CURLU_DEFAULT_PORT) == CURLUE_OK;
}

static void
redirect_place_free(struct redirect_place *p)
{
	curl_free(p->scheme);
	curl_free(p->host);
	curl_free(p->port);
}

static bool
redirect_texts_equal(const char *a, const char *b)
{
	return str_eq_nocase(str_from_cstr(a), str_from_cstr(b));
}

static bool
redirect_is_between(const struct redirect_place *from, const struct redirect_place *to)
{
	bool same_port = redirect_texts_equal(from->port, to->port);

	if (!redirect_texts_equal(from->host, to->host))
		return false;
	if (redirect_texts_equal(from->scheme, to->scheme))
		return same_port;
	return redirect_texts_equal(from->scheme, "http") &&
	       redirect_texts_equal(to->scheme, "https") &&
	       (same_port || redirect_texts_equal(to->port, "443"));
}

bool
redirect_is_allowed(const char *from, struct str location)
{
	struct redirect_place places[2] = { { 0 }, { 0 } };
	char *text = mem_strdup(location);
	CURLU *url = curl_url();
	bool allowed = text && url && curl_url_set(url, CURLUPART_URL, from, 0) == CURLUE_OK &&
		       redirect_place_read(url, &places[0]) &&
		       curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK &&
		       redirect_place_read(url, &places[1]) &&
		       redirect_is_between(&places[0], &places[1]);

	redirect_place_free(&places[0]);
	redirect_place_free(&places[1]);
	curl_url_cleanup(url);
	mem_free(text);
	return allowed;
}
