#include "cli/maintenance.h"

#include "cli/remote.h"
#include "doc/json.h"

enum status
maintenance_request(const char *url, const char *method, struct str path, struct str body,
		    struct buf *ret, struct err *err)
{
	struct remote *remote;
	int http_status = 0;
	enum status status;

	TRY(remote_new(url, &remote, err));
	remote_be_patient(remote);
	status = remote_request(remote, method, path, body, &http_status, ret, err);
	if (status == STATUS_OK && http_status != 200)
		status = remote_refused(remote, path, http_status, buf_str(ret), err);
	remote_free(remote);
	return status;
}

/* Moves the reader to the first token of the member's value. STATUS_NOT_FOUND if it is missing. */
static enum status
maintenance_find_member(struct json_reader *r, const char *name, enum json_token *ret)
{
	struct str skipped;

	TRY(json_next(r, ret));
	if (*ret != JSON_OBJECT_BEGIN)
		return STATUS_NOT_FOUND;
	for (;;) {
		bool wanted;

		TRY(json_next(r, ret));
		if (*ret != JSON_KEY)
			return STATUS_NOT_FOUND;
		wanted = str_eq(r->text, str_from_cstr(name));
		TRY(json_next(r, ret));
		if (wanted)
			return STATUS_OK;
		TRY(json_skip(r, *ret, &skipped));
	}
}

static enum status
maintenance_not_understood(const char *name, struct err *err)
{
	return err_set(err, STATUS_INVALID,
		       "the server's answer is not understood: it has no \"%s\"", name);
}

enum status
maintenance_numbers(struct str object, const struct maintenance_number *numbers, size_t count,
		    struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		enum json_token token = JSON_END;
		struct json_reader r;
		bool found;

		json_reader_init(&r, object, NULL);
		found = maintenance_find_member(&r, numbers[i].name, &token) == STATUS_OK &&
			token == JSON_NUMBER && str_to_u64(r.text, numbers[i].ret);
		json_reader_release(&r);
		if (!found)
			return maintenance_not_understood(numbers[i].name, err);
	}
	return STATUS_OK;
}

enum status
maintenance_each(struct str object, const char *name,
		 enum status (*fn)(struct str element, void *arg, struct err *err), void *arg,
		 struct err *err)
{
	enum json_token token = JSON_END;
	enum status status;
	struct json_reader r;
	struct str element;

	json_reader_init(&r, object, NULL);
	status = maintenance_find_member(&r, name, &token);
	if (status != STATUS_OK || token != JSON_ARRAY_BEGIN)
		status = maintenance_not_understood(name, err);
	while (status == STATUS_OK) {
		status = json_next(&r, &token);
		if (status == STATUS_OK && token == JSON_ARRAY_END)
			break;
		if (status == STATUS_OK)
			status = json_skip(&r, token, &element);
		status = status == STATUS_OK ? fn(element, arg, err)
					     : maintenance_not_understood(name, err);
	}
	json_reader_release(&r);
	return status;
}
