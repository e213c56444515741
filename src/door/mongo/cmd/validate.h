/*
 * Validators: which documents a collection takes. They are among its options, as clients gave them:
 * `validator`, a filter, `validationLevel` and `validationAction`.
 */
#ifndef FROND_DOOR_MONGO_CMD_VALIDATE_H
#define FROND_DOOR_MONGO_CMD_VALIDATE_H

#include "door/mongo/txn/data.h"

/* Members of `create` and `collMod` that are for validators and change streams. */
struct validate_ask {
	struct bson_value validator; /* a document, of which the given members count */
	struct str level;
	struct str action;
	bool has_validator;
	bool has_images; /* changeStreamPreAndPostImages */
	bool images;
};

/* True in `*ret_known` for such a member, which is then read. */
MUST_USE enum status validate_read(struct call *c, const struct bson_element *e,
				   struct validate_ask *ask, bool *ret_known);
/* Checks that what was asked for makes sense. */
MUST_USE enum status validate_check(struct call *c, const struct validate_ask *ask);
/* The options of a collection with what was asked for, in the call's arena. */
MUST_USE enum status validate_options(struct call *c, struct str options,
				      const struct validate_ask *ask, struct str *ret);

/* Fails for one who wants to bypass validators on that database, and may not. */
MUST_USE enum status validate_check_bypass(struct call *c, struct str db);

/*
 * Fails for a document that the collection does not take. `old`: as it was before; empty for a new
 * one. Nothing of it stays in the call's arena but the failure.
 */
MUST_USE enum status validate_document(struct data *d, struct str doc, struct str old);

/* The same without failing: true in `*ret` for a document that the validator takes. */
MUST_USE enum status validate_fits(struct data *d, struct str doc, bool *ret);

#endif
