/* frond-import: the program. */
#include <stdio.h>
#include <string.h>

#include "import/import.h"

static int
finish(struct import *i, enum status status, const struct err *err)
{
	progress_hide(&i->progress);
	if (i->misfits > IMPORT_MISFITS_SHOWN)
		printf("did not fit: %llu more\n",
		       (unsigned long long)(i->misfits - IMPORT_MISFITS_SHOWN));
	if (status == STATUS_OK)
		printf("%s %llu, and %llu changes behind them; %llu did not fit\n",
		       import_stopped() ? "ended; imported" : "imported",
		       (unsigned long long)i->copied, (unsigned long long)i->changed,
		       (unsigned long long)i->misfits);
	else
		fprintf(stderr, "frond import: %s\n",
			err->text[0] ? err->text : status_name(status));
	return status == STATUS_OK && !i->misfits && fflush(stdout) == 0 ? 0 : 1;
}

/* SOURCE TARGET, then any of state=FILE, follow, quiet. */
int
main(int argc, char **argv)
{
	struct import i = { 0 };
	struct err err = { 0 };
	bool quiet = false;

	if (argc < 3) {
		fputs("frond-import is started by \"frond import\"\n", stderr);
		return 2;
	}
	i.source = argv[1];
	i.target = argv[2];
	for (int n = 3; n < argc; n++) {
		if (strncmp(argv[n], "state=", 6) == 0)
			i.state = argv[n] + 6;
		i.follow = i.follow || strcmp(argv[n], "follow") == 0;
		quiet = quiet || strcmp(argv[n], "quiet") == 0;
	}
	import_watch_signals();
	progress_init(&i.progress, stderr, quiet, 0);
	return finish(&i,
		      strncmp(i.source, "redis", 5) == 0 ? import_redis(&i, &err)
							 : import_mongo(&i, &err),
		      &err);
}
