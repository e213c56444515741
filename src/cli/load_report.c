#include <stdarg.h>
#include <stdio.h>

#include "cli/load.h"

void
load_refuse(struct load_report *report, const struct load_origin *origin, const char *fmt, ...)
{
	va_list args;

	report->refused++;
	progress_hide(&report->progress);
	flockfile(stderr);
	if (origin->line)
		fprintf(stderr, "%s:%llu: ", origin->file, (unsigned long long)origin->line);
	else
		fprintf(stderr, "%s: ", origin->file);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	funlockfile(stderr);
}
