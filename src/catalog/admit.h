/*
 * Who may create databases: one question for all doors and models. Threading: from any thread.
 */
#ifndef FROND_CATALOG_ADMIT_H
#define FROND_CATALOG_ADMIT_H

#include "base/status.h"
#include "base/str.h"
#include "catalog/space.h"

/*
 * From now on catalog_create() asks this for each database, on the thread that creates it: a status
 * that is not OK, explained in `err`, is what catalog_create() returns. So a limit on how many
 * databases a client makes holds whoever asks for one. A transaction that is run again asks again.
 * NULL, as in the beginning: nobody is asked.
 */
typedef enum status catalog_admit(enum catalog_space space, struct str name, struct err *err);
void catalog_admit_by(catalog_admit *admit);

#endif
