/* What applications see of the tables that they have made (shown.c). */
#ifndef FROND_PG_FROND_SHOWN_H
#define FROND_PG_FROND_SHOWN_H

#include "frond_pg.h"

extern bool frond_show_tables; /* as tables, where PostgreSQL tells of foreign tables */

void frond_shown_init(void);

#endif
