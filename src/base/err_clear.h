/*
 * Making a struct err empty without writing all of its text: `{ 0 }` clears half a kilobyte, which
 * counts where each small command does it.
 */
#ifndef FROND_BASE_ERR_CLEAR_H
#define FROND_BASE_ERR_CLEAR_H

#include "base/status.h"

/* No failure is recorded, and the text is empty. Bytes behind its end are not set. */
static inline void
err_clear(struct err *err)
{
	err->status = STATUS_OK;
	err->text[0] = '\0';
}

#endif
