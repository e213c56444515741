# The short way in; meson.build has the long one. Each target installs what it needs from Debian's
# packages first (npm too, for the tests with real clients) and does nothing where that is there.

PREFIX ?= /usr/local
ZSH_FUNCTIONS ?= $(PREFIX)/share/zsh/site-functions
STORE ?= embedded:./data
HTTP ?= 127.0.0.1:5984
TORTURE_SECONDS ?= 3600
SOAK_SECONDS ?= 3600
MUTANTS ?= 400

FAUXTON_VERSION = 1.2.6
FAUXTON = build/share/frond/fauxton

.PHONY: all run fauxton pg pg-install pg-run test test-quick bare torture attack ladder soak bench bench-publish fuzz install deb tarball lint clean format mutants

all: build/frond

build/build.ninja:
	scripts/deps build
	meson setup build --buildtype=release -Doptimization=2 -Dtests=false

# With tests and benchmarks, which a build for users has no packages for.
.PHONY: with-tests
with-tests: build/build.ninja
	scripts/deps test
	[ -d build/tests ] || meson configure build -Dtests=true

.PHONY: build/frond
build/frond: build/build.ninja
	ninja -C build programs

# REDIS=HOST:PORT, MONGO=HOST:PORT, CQL=HOST:PORT and ROWS=HOST:PORT open the other doors, too.
run: build/frond
	build/frond serve --store $(STORE) --http $(HTTP) \
		$(if $(REDIS),--redis $(REDIS)) $(if $(MONGO),--mongo $(MONGO)) \
		$(if $(CQL),--cql $(CQL)) $(if $(ROWS),--rows $(ROWS)) \
		$(if $(wildcard $(FAUXTON)/index.html),--utils $(FAUXTON))

# CouchDB's pages for a browser, as its authors publish them, mended for who is no administrator;
# nothing else needs them. Once fetched, `make run` serves them at /_utils/, and `make install`
# installs them.
fauxton:
	scripts/deps fauxton
	mkdir -p build
	cd build && npm pack --silent fauxton@$(FAUXTON_VERSION) >/dev/null
	rm -rf $(FAUXTON) && mkdir -p $(FAUXTON)
	tar xzf build/fauxton-$(FAUXTON_VERSION).tgz -C $(FAUXTON) --strip-components=3 \
		package/dist/release
	node scripts/mend-fauxton.js $(FAUXTON)
	rm build/fauxton-$(FAUXTON_VERSION).tgz

# The extension of PostgreSQL, whose tables are in frond; docs/SQL.md tells of it.
PG_DIR ?= ./data-pg
PG_MAKE = mkdir -p build/pg/ext && $(MAKE) -s -C build/pg/ext -f $(CURDIR)/pg/Makefile SOURCE=$(CURDIR)/pg

pg:
	scripts/deps pg
	$(PG_MAKE)

# Into the PostgreSQL that is installed.
pg-install: pg
	$(PG_MAKE) install

# A PostgreSQL of its own in PG_DIR, with the extension, and frond beside it: psql at once.
pg-run: build/frond pg
	pg/run build/frond build/pg/ext $(PG_DIR)

# tests/run has stages, of which `tests/run --only STAGE` runs one; CONTRIBUTING.md tells which.
test:
	scripts/deps test
	tests/run

# One sanitized build, no cluster, no real clients: for between two edits.
test-quick:
	scripts/deps test
	tests/run --quick

# The whole of the tests in an empty Debian 12 of its own; by root, an hour. `make test` has README's lines there.
bare:
	scripts/deps bare
	python3 -B tests/bare/run.py --test

fuzz:
	scripts/deps test
	tests/run --fuzz

# Ends a writing process over and over, for TORTURE_SECONDS, and compares what it was promised.
torture: with-tests
	ninja -C build tests/torture/torture
	TORTURE_SECONDS=$(TORTURE_SECONDS) build/tests/torture/torture

# What misbehaving clients can do to others; tests/attack/README.md has the rules.
attack: with-tests build/frond
	ninja -C build bench/load bench/constant
	python3 -B tests/attack/readers.py build/frond --ask mixed --connections 10000 \
		--memory-bytes 134217728 --bound-mb 352
	python3 -B tests/attack/readers.py build/frond --ask all-docs --connections 3000 \
		--memory-bytes 134217728 --bound-mb 352 --then-reading 300
	python3 -B tests/attack/unread.py build/frond
	python3 tests/attack/attack.py --build build

# What lists of 10 to 1,000,000 elements cost, into docs/LIMITS.md.
ladder: build/frond
	python3 -B tests/attack/ladder.py --frond build/frond --write docs/LIMITS.md

# A long run in which one client in ten misbehaves, for SOAK_SECONDS.
soak: with-tests build/frond
	ninja -C build bench/constant
	python3 tests/attack/soak.py --frond build/frond --constant build/bench/constant \
		--seconds $(SOAK_SECONDS)

# frond beside its peers and its limits; bench/README.md tells the settings.
bench: with-tests build/frond pg
	scripts/deps bench
	ninja -C build bench/load bench/constant bench/raw bench/mongo_load bench/mongo_constant
	python3 bench/run.py --build build $(BENCH_OPTIONS)
	python3 bench/redis.py --build build $(BENCH_OPTIONS)
	python3 bench/mongo.py --build build $(BENCH_OPTIONS)
	python3 bench/sql.py --build build $(BENCH_OPTIONS)

# The same, how cost grows, and both into README.md and docs/PERFORMANCE.md.
bench-publish:
	$(MAKE) bench BENCH_OPTIONS=--publish
	python3 bench/growth.py --build build --publish
	python3 -B bench/figures.py --publish

# Changes lines of the sources and looks whether a test fails; hours. tests/mutants/README.md has the rules.
mutants:
	scripts/deps test
	python3 -B tests/mutants/run.py --count $(MUTANTS) $(if $(SEED),--seed $(SEED))

# Manual pages and completions of shells are made of what the commands say by --help.
install: build/frond
	packaging/describe.py build/frond build/described
	install -D -m 755 build/frond $(DESTDIR)$(PREFIX)/bin/frond
	[ ! -f build/frond-import ] || install -D -m 755 build/frond-import $(DESTDIR)$(PREFIX)/libexec/frond-import
	[ ! -f build/frond-js ] || install -D -m 755 build/frond-js $(DESTDIR)$(PREFIX)/libexec/frond-js
	install -d $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 644 build/described/*.1 $(DESTDIR)$(PREFIX)/share/man/man1
	install -D -m 644 build/described/frond.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/frond
	install -D -m 644 build/described/_frond $(DESTDIR)$(ZSH_FUNCTIONS)/_frond
	if [ -d $(FAUXTON) ]; then \
		mkdir -p $(DESTDIR)$(PREFIX)/share/frond/fauxton; \
		cp -r $(FAUXTON)/. $(DESTDIR)$(PREFIX)/share/frond/fauxton; \
	fi

# A package for Debian 12, build/frond_….deb, with a service; docs/OPERATING.md tells of it.
deb: build/frond
	scripts/deps deb
	packaging/deb

# What `make install` installs, and what a service needs, to be unpacked anywhere.
tarball: build/frond
	packaging/tarball

format:
	clang-format -i $$(git ls-files '*.c' '*.h')

# Takes minutes; needs clang-tidy.
lint:
	[ -f build/asan/build.ninja ] || CC=clang meson setup build/asan -Db_sanitize=address,undefined \
		-Db_lundef=false
	git ls-files 'src/*.c' | xargs -P $$(nproc) -n 8 clang-tidy -p build/asan --quiet

clean:
	rm -rf build
