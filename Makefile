# SPDX-License-Identifier: MIT
#
# The build. Everything it makes goes below build/; the version is read from core/codetimer.h; the operating system
# picks the files of core/platform/. A variant (sanitizers, coverage, another compiler) is the same build with another D
# and other flags. Targets that need tools get them first (tests/setup/); build-c, build-lua and the install targets
# never do, because package managers call them. CFLAGS, LIBFLAG, LUA_* and INST_* are named as LuaRocks names them.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-print-directory

VERSION := $(shell sed -n 's/^\#define CT_VERSION "\(.*\)"/\1/p' core/codetimer.h)
SO_VERSION := $(firstword $(subst ., ,$(VERSION)))
SYSTEM := $(patsubst MINGW%,windows,$(patsubst MSYS%,windows,$(patsubst Darwin,macos,$(shell uname -s))))
OS := $(if $(filter windows macos,$(SYSTEM)),$(SYSTEM),linux)

B := build
D ?= $(B)

# ---- flags ----
OPTIMIZE ?= -O2 -g
CFLAGS ?= $(OPTIMIZE)
WERROR ?= -Werror
WARN ?= -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes -Wmissing-prototypes \
	-Wcast-qual -Wpointer-arith -Wundef -Wvla -Wformat=2 -Wwrite-strings $(WERROR)
# Sanitizers and the like, for compiling and for linking.
INSTRUMENT ?=
ALL_CFLAGS = -std=c11 -fPIC -fvisibility=hidden $(WARN) $(CFLAGS) $(INSTRUMENT)
LIBS := -lm -pthread

# ---- Lua: where LuaRocks or the distribution has it ----
LUA_VERSION ?= 5.4
LUA ?= lua$(LUA_VERSION)
LUA_INCDIR ?= $(patsubst -I%,%,$(firstword $(shell pkg-config --cflags-only-I lua$(LUA_VERSION) 2>/dev/null)))
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INST_LIBDIR ?= $(LIBDIR)/lua/$(LUA_VERSION)
INST_LUADIR ?= $(PREFIX)/share/lua/$(LUA_VERSION)
INST_BINDIR ?= $(PREFIX)/bin
LIBFLAG ?= $(if $(filter macos,$(OS)),-bundle -undefined dynamic_lookup,-shared)
# The module stays loaded: its code may be needed by finalizers that run after the state unloads it.
comma := ,
LUA_LINK := $(if $(filter linux,$(OS)),-Wl$(comma)-z$(comma)nodelete)

# ---- sources ----
CORE := $(wildcard core/*.c)
PLATFORM := $(wildcard core/platform/*_$(OS).c) $(if $(filter linux macos,$(OS)),$(wildcard core/platform/*_posix.c))
FAKE := $(wildcard tests/fake/*.c)
LUA_SOURCES := $(wildcard bindings-lua/*.c)
TEST_PROGRAMS := $(patsubst tests/core/%.c,$(D)/tests/%,$(wildcard tests/core/test_*.c))
REAL_PROGRAMS := $(patsubst tests/core/%.c,$(D)/tests/%,$(wildcard tests/core/real_*.c))
BENCH_PROGRAMS := $(patsubst tests/core/%.c,$(D)/tests/%,$(wildcard tests/core/bench_*.c))
TEST_HELPERS := $(filter-out tests/core/test_% tests/core/real_% tests/core/bench_%,$(wildcard tests/core/*.c))
PYTHON_SOURCES := setup.py pyproject.toml $(wildcard core/*.[ch] core/platform/*.[ch] bindings-python/*.[ch] \
	bindings-python/codetimer/* bindings-python/codetimer/*/*.py)

STATIC_OBJECTS := $(patsubst %.c,$(D)/obj/static/%.o,$(CORE) $(PLATFORM))
SHARED_OBJECTS := $(patsubst %.c,$(D)/obj/shared/%.o,$(CORE) $(PLATFORM))
FAKE_OBJECTS := $(patsubst %.c,$(D)/obj/fake/%.o,$(CORE) $(FAKE) $(TEST_HELPERS))
REAL_OBJECTS := $(STATIC_OBJECTS) $(patsubst %.c,$(D)/obj/test/%.o,$(TEST_HELPERS))
LUA_OBJECTS := $(patsubst %.c,$(D)/obj/lua$(LUA_VERSION)/%.o,$(LUA_SOURCES))

STATIC_LIBRARY := $(D)/libcodetimer.a
ifeq ($(OS),macos)
SHARED_LINK_NAME := libcodetimer.dylib
SHARED_NAME := libcodetimer.$(SO_VERSION).dylib
SHARED_FILE := libcodetimer.$(VERSION).dylib
SHARED_FLAGS = -dynamiclib -install_name $(LIBDIR)/$(SHARED_NAME)
else
SHARED_LINK_NAME := libcodetimer.so
SHARED_NAME := libcodetimer.so.$(SO_VERSION)
SHARED_FILE := libcodetimer.so.$(VERSION)
SHARED_FLAGS = -shared -Wl,-soname,$(SHARED_NAME) -Wl,--as-needed
endif
SHARED_LIBRARY := $(D)/$(SHARED_FILE)
LUA_MODULE := $(D)/lua/$(LUA_VERSION)/codetimer.so

# Interpreters: known after set-up, hence asked for only when a recipe needs them.
VERSIONS = $(shell cut -f 1 $(B)/pythons 2>/dev/null)
NEWEST = $(lastword $(sort $(VERSIONS)))
VENV_PYTHON := $(B)/venv/bin/python
TALLY ?= $(B)/tally/$(firstword $(MAKECMDGOALS))
export TALLY

# ---- help ----
.PHONY: help
help: ## this list
	@echo "codetimer $(VERSION). Two commands do everything: make demo, make test."
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---- set-up ----
.PHONY: setup setup-base setup-python
setup-base:
	@tests/setup/system.sh base

setup-python: setup-base
	@mkdir -p $(B) && tests/setup/pythons.sh >$(B)/pythons
	@while read -r version path; do \
	    tests/setup/venv.sh $(B)/venv-$$version "$$path" tests/setup/requirements.txt </dev/null || exit 1; \
	done <$(B)/pythons
	@ln -sfn venv-$$(head -n 1 $(B)/pythons | cut -f 1) $(B)/venv

setup: setup-python $(B)/env.sh ## install what is missing: distribution packages, Python tools below build/

$(B)/env.sh: Makefile
	@mkdir -p $(B)
	@{ echo '# Made by the Makefile. Source it: . build/env.sh'; \
	   echo 'export PATH="$(CURDIR)/$(B)/venv/bin:$(CURDIR)/bindings-lua:$$PATH"'; \
	   echo 'export LUA_PATH="$(CURDIR)/bindings-lua/?.lua;$${LUA_PATH:-;}"'; \
	   echo 'export LUA_CPATH="$(CURDIR)/$(B)/lua/$(LUA_VERSION)/?.so;$${LUA_CPATH:-;}"'; } >$@

# ---- C core ----
.PHONY: FORCE
$(D)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(ALL_CFLAGS) $(LUA_INCDIR)' | cmp -s - $@ || echo '$(CC) $(ALL_CFLAGS) $(LUA_INCDIR)' >$@

TEST_FLAGS := -D_DEFAULT_SOURCE -I. -Icore -Itests -Itests/fake
COMPILE = @mkdir -p $(@D) && echo "  cc $<" && $(CC) $(ALL_CFLAGS) -MMD -MP
$(D)/obj/static/%.o: %.c $(D)/flags
	$(COMPILE) -c -o $@ $<
$(D)/obj/shared/%.o: %.c $(D)/flags
	$(COMPILE) -DCT_SHARED -c -o $@ $<
$(D)/obj/fake/%.o: %.c $(D)/flags
	$(COMPILE) -DCT_FAKE_TICKS $(TEST_FLAGS) -c -o $@ $<
$(D)/obj/test/%.o: %.c $(D)/flags
	$(COMPILE) $(TEST_FLAGS) -c -o $@ $<
$(D)/obj/lua$(LUA_VERSION)/%.o: %.c $(D)/flags
	$(COMPILE) -I. $(addprefix -isystem ,$(LUA_INCDIR)) -c -o $@ $<
-include $(shell find $(D)/obj -name '*.d' 2>/dev/null)

$(STATIC_LIBRARY): $(STATIC_OBJECTS)
	@rm -f $@ && $(AR) rcs $@ $^
$(SHARED_LIBRARY): $(SHARED_OBJECTS)
	@$(CC) $(SHARED_FLAGS) $(CFLAGS) $(INSTRUMENT) $(LDFLAGS) -o $@ $^ $(LIBS)
	@ln -sfn $(@F) $(D)/$(SHARED_NAME) && ln -sfn $(@F) $(D)/$(SHARED_LINK_NAME)

.PHONY: build build-c build-lua build-python
build-c: $(STATIC_LIBRARY) $(SHARED_LIBRARY) ## the C library: build/libcodetimer.a and .so

# ---- bindings ----
$(LUA_MODULE): $(LUA_OBJECTS) $(STATIC_LIBRARY)
	@mkdir -p $(@D) && $(CC) $(LIBFLAG) $(LUA_LINK) $(CFLAGS) $(INSTRUMENT) $(LDFLAGS) -o $@ $^ $(LIBS)

build-lua: $(LUA_MODULE) ## the Lua module (LuaRocks calls this)

$(D)/python-%/made: $(PYTHON_SOURCES) $(B)/venv-%/.made-of
	@echo "  python $*" && rm -rf $(@D) && mkdir -p $(@D)
	@CC="$(CC)" CFLAGS="$(INSTRUMENT)" LDFLAGS="$(INSTRUMENT)" $(B)/venv-$*/bin/python setup.py -q \
	    build --build-base $(@D)/work --build-lib $(@D)/lib egg_info --egg-base $(@D) >$(@D)/log 2>&1 \
	    || { cat $(@D)/log; exit 1; }
	@touch $@
	@[ $(D) != $(B) ] || echo "$(CURDIR)/$(@D)/lib" >"$$(echo $(B)/venv-$*/lib/python3*/site-packages)/codetimer.pth"
	@[ $(D) != $(B) ] || { printf '%s\n' '#!/bin/sh' 'exec "$$(dirname "$$0")/python" -m codetimer "$$@"' \
	    >$(B)/venv-$*/bin/codetimer && chmod +x $(B)/venv-$*/bin/codetimer; }

build-python: setup-python ## the Python extension, once for each Python found
	@$(MAKE) -s pythons
.PHONY: pythons
pythons: $(foreach version,$(VERSIONS),$(D)/python-$(version)/made)

build: setup ## everything: C, Python, Lua
	@$(MAKE) -s build-c build-lua pythons

# ---- demo ----
$(D)/quickstart: examples/quickstart.c $(STATIC_LIBRARY)
	@$(CC) $(ALL_CFLAGS) -Icore -o $@ $^ $(LIBS)

.PHONY: demo demo-run
demo: build ## set up, build, and run the quickstart in C, Python and Lua
	@$(MAKE) demo-run
demo-run: $(D)/quickstart
	@echo "---- C" && $(D)/quickstart
	@. $(B)/env.sh && echo "---- Python" && python examples/quickstart.py
	@. $(B)/env.sh && echo "---- Lua" && $(LUA) examples/quickstart.lua

# ---- tests ----
$(TEST_PROGRAMS): $(D)/tests/%: $(D)/obj/fake/tests/core/%.o $(FAKE_OBJECTS)
	@mkdir -p $(@D) && $(CC) $(CFLAGS) $(INSTRUMENT) -o $@ $^ -lcmocka $(LIBS)
$(REAL_PROGRAMS): $(D)/tests/%: $(D)/obj/test/tests/core/%.o $(REAL_OBJECTS)
	@mkdir -p $(@D) && $(CC) $(CFLAGS) $(INSTRUMENT) -o $@ $^ -lcmocka $(LIBS)
$(BENCH_PROGRAMS): $(D)/tests/%: $(D)/obj/test/tests/core/%.o $(STATIC_LIBRARY)
	@mkdir -p $(@D) && $(CC) $(CFLAGS) $(INSTRUMENT) -o $@ $^ $(LIBS)

NEW_TALLY = @mkdir -p $(dir $(TALLY)) && rm -rf $(TALLY) $(TALLY).logs
SUM = @tests/tally sum $(TALLY)
.PHONY: test test-c test-python test-lua programs run-c run-python run-lua
test: build ## set up, then all C, Python and Lua tests
	$(NEW_TALLY)
	@$(MAKE) -k run-c run-python run-lua || echo "make	0	1	0	$(TALLY)" >>$(TALLY)
	$(SUM)
test-c: setup-base ## the C tests
	$(NEW_TALLY)
	@$(MAKE) run-c
	$(SUM)
test-python: build-python ## the Python tests, on each Python found
	$(NEW_TALLY)
	@$(MAKE) run-python
	$(SUM)
test-lua: setup-base ## the Lua tests
	$(NEW_TALLY)
	@$(MAKE) run-lua || echo "make	0	1	0	$(TALLY)" >>$(TALLY)
	$(SUM)

PYTESTS ?= tests/python
# They start hundreds of commands that are plain Python: the oldest and the newest version do.
COMMAND_TESTS := $(patsubst %,tests/python/test_cli_%.py,commands completion record serve top)
ENDS = $(firstword $(sort $(VERSIONS))) $(NEWEST)
WRAPPER ?=
SUITE ?=
programs: $(TEST_PROGRAMS) $(REAL_PROGRAMS)
run-c:
	@$(MAKE) -k programs || echo "test-c: not everything could be built; counted as failed"
	@for program in $(TEST_PROGRAMS) $(REAL_PROGRAMS); do \
	    tests/tally run cmocka "$(SUITE)C $${program##*/}" $(WRAPPER) $$program; done
run-python: $(B)/env.sh $(LUA_MODULE) pythons
	@for version in $(VERSIONS); do \
	    case " $(ENDS) " in *" $$version "*) ignored= ;; *) ignored="$(addprefix --ignore=,$(COMMAND_TESTS))" ;; esac; \
	    PYTHONPATH=$(CURDIR)/$(D)/python-$$version/lib CODETIMER_LUA_CPATH="$(CURDIR)/$(dir $(LUA_MODULE))?.so" \
	    tests/tally run pytest "$(SUITE)Python $$version" \
	        $(WRAPPER) $(B)/venv-$$version/bin/python -m pytest -v -o cache_dir=$(CURDIR)/$(D)/python-$$version/cache \
	        $$ignored $(PYTESTS); done
run-lua: $(B)/env.sh build-lua
	@. $(B)/env.sh && LUA_CPATH="$(CURDIR)/$(dir $(LUA_MODULE))?.so;;" \
	    tests/tally run busted "$(SUITE)Lua $(LUA_VERSION)" \
	        $(WRAPPER) $(LUA) "$$(command -v busted)" --output=plainTerminal tests/lua

# ---- sanitizers, valgrind, coverage ----
# The hosts were not built with the sanitizers, so the runtime is loaded first; suppressions name host frames only.
ASAN := $(MAKE) D=$(B)/asan OPTIMIZE="-O1 -g -fno-omit-frame-pointer" SUITE="sanitized " \
	INSTRUMENT="-fsanitize=address,undefined -fno-sanitize-recover=all"
SANITIZER_ENV = UBSAN_OPTIONS=print_stacktrace=1 CODETIMER_TEST_SCRIPTS=20000 \
	LSAN_OPTIONS=suppressions=$(CURDIR)/tests/sanitizers/lsan-python.supp:print_suppressions=0 \
	ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1
PRELOAD = LD_PRELOAD=$(shell $(CC) -print-file-name=libasan.so):$(shell $(CC) -print-file-name=libubsan.so)
ASAN_PYTHON = $(ASAN) run-python VERSIONS=$(1) WRAPPER='env PYTHONMALLOC=malloc $(PRELOAD) $(SANITIZER_ENV)$(2)'
# The leak tests watch the size of the process, which the quarantine of freed blocks would hide.
LEAK_TESTS := $(wildcard tests/python/test_leaks*.py)
# What is another code where there is sys.monitoring: on the newest Python too, whose own texts that live for ever would
# drown what leaks.
MONITORING_TESTS := $(wildcard tests/python/test_instrument*.py tests/python/test_async*.py)
.PHONY: sanitize valgrind coverage
sanitize: build ## C, Lua and Python tests under the sanitizers for addresses, undefined behaviour, leaks, threads
	$(NEW_TALLY)
	@$(ASAN) run-c WRAPPER='env $(SANITIZER_ENV)'
	@$(ASAN) run-lua WRAPPER='env $(SANITIZER_ENV) $(PRELOAD)'
	@$(call ASAN_PYTHON,$(firstword $(VERSIONS))) PYTESTS="tests/python $(addprefix --ignore=,$(LEAK_TESTS))"
	@$(call ASAN_PYTHON,$(firstword $(VERSIONS)),:quarantine_size_mb=0:thread_local_quarantine_size_kb=0) \
	    PYTESTS="$(LEAK_TESTS)" SUITE="sanitized, leaks, "
	@$(call ASAN_PYTHON,$(NEWEST),:detect_leaks=0) PYTESTS="$(MONITORING_TESTS)" SUITE="sanitized, monitoring, "
	@$(MAKE) run-threads
	$(SUM)

# Leaks are LeakSanitizer's business, which can be told that a scenario in a forked child leaves its handles open.
# Some programs map a file over memory in use, which ends valgrind 3.19 by an assertion of its own; the sanitizers run
# them all.
NOT_VALGRIND := $(patsubst %,$(D)/tests/real_%,control counters publish room)
valgrind: setup-base ## the C tests under valgrind
	@tests/setup/system.sh valgrind
	$(NEW_TALLY)
	@$(MAKE) run-c SUITE="valgrind " REAL_PROGRAMS="$(filter-out $(NOT_VALGRIND),$(REAL_PROGRAMS))" \
	    WRAPPER="env CODETIMER_TEST_SCRIPTS=1000 valgrind -q --error-exitcode=99 --leak-check=no"
	$(SUM)

COVERAGE := $(MAKE) D=$(B)/coverage OPTIMIZE="-O0 -g" INSTRUMENT=--coverage WERROR=
coverage: setup-base ## line coverage of the core without its platform; fails under 95 %
	$(NEW_TALLY)
	@find $(B)/coverage -name '*.gcda' -delete 2>/dev/null || true
	@$(COVERAGE) run-c SUITE="coverage "
	@tests/tally run exit "coverage of core >= 95 %" tests/lint/coverage.sh $(B)/coverage/obj 95
	@cat "$(TALLY).logs/coverage_of_core____95__.log"
	$(SUM)

include tests/lint/lint.mk
include tests/fuzz/fuzz.mk

# ---- bench, install, packages ----
.PHONY: bench install install-c install-lua sdist clean
# Other tools stand beside codetimer in an environment of their own; without a package index they are left out.
BENCH_VERSIONS = $(or $(filter 3.11 3.13,$(VERSIONS)),$(firstword $(VERSIONS)))
bench: build $(BENCH_PROGRAMS) ## what a run's loop and a measured call cost, beside plain ones and other tools
	@for version in $(VERSIONS); do for bench in loop memory; do \
	    $(B)/venv-$$version/bin/python tests/python/bench_$$bench.py || exit 1; done; done
	@. $(B)/env.sh && $(LUA) tests/lua/bench_loop.lua
	@for program in $(BENCH_PROGRAMS); do $$program || exit 1; done
	@for version in $(BENCH_VERSIONS); do \
	    tests/setup/venv.sh $(B)/bench-$$version $(B)/venv-$$version/bin/python tests/python/requirements-bench.txt || \
	        $(B)/venv-$$version/bin/python -m venv $(B)/bench-$$version; \
	    for bench in measured async compare; do \
	        PYTHONPATH=$(CURDIR)/$(B)/python-$$version/lib $(B)/bench-$$version/bin/python \
	            tests/python/bench_$$bench.py || exit 1; done; done
	@for version in $(filter-out 3.10 3.11,$(VERSIONS)); do \
	    $(B)/venv-$$version/bin/python tests/python/bench_instrument.py || exit 1; done
	@. $(B)/env.sh && for bench in measured disabled memory compare; do $(LUA) tests/lua/bench_$$bench.lua || exit 1; done

$(D)/codetimer.pc: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(LIBDIR)' 'includedir=$${prefix}/include' '' 'Name: codetimer' \
	    'Description: how long code takes, and what the CPU and the garbage collector did meanwhile' \
	    'Version: $(VERSION)' 'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lcodetimer' 'Libs.private: $(LIBS)' >$@

install: build-c $(D)/codetimer.pc ## header, libraries, codetimer.pc below DESTDIR/PREFIX
	install -d "$(DESTDIR)$(PREFIX)/include" "$(DESTDIR)$(LIBDIR)/pkgconfig"
	install -m 644 $(wildcard core/codetimer*.h) "$(DESTDIR)$(PREFIX)/include/"
	install -m 644 $(STATIC_LIBRARY) $(SHARED_LIBRARY) "$(DESTDIR)$(LIBDIR)/"
	ln -sfn $(SHARED_FILE) "$(DESTDIR)$(LIBDIR)/$(SHARED_NAME)"
	ln -sfn $(SHARED_FILE) "$(DESTDIR)$(LIBDIR)/$(SHARED_LINK_NAME)"
	install -m 644 $(D)/codetimer.pc "$(DESTDIR)$(LIBDIR)/pkgconfig/"
	@[ -n "$(DESTDIR)" ] || ldconfig 2>/dev/null || echo "if the loader should find it: ldconfig, as root"

install-lua: build-lua ## the Lua module, codetimer-lua to INST_BINDIR (LuaRocks calls this)
	install -d "$(DESTDIR)$(INST_LIBDIR)"
	install -m 755 $(LUA_MODULE) "$(DESTDIR)$(INST_LIBDIR)/"
	install -d "$(DESTDIR)$(INST_LUADIR)/codetimer"
	install -m 644 bindings-lua/codetimer/cli.lua bindings-lua/codetimer/cli_statement.lua \
	    "$(DESTDIR)$(INST_LUADIR)/codetimer/"
	install -d "$(DESTDIR)$(INST_BINDIR)"
	install -m 755 bindings-lua/codetimer-lua "$(DESTDIR)$(INST_BINDIR)/"

sdist: setup-python ## the source package for PyPI, in build/dist/
	@$(VENV_PYTHON) setup.py -q egg_info --egg-base $(B) sdist --dist-dir $(B)/dist && ls $(B)/dist

clean: ## remove build/
	rm -rf $(B)
