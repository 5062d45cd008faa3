# SPDX-License-Identifier: MIT
#
# lint.mk: part of the Makefile. Each check is one line and counts as one test; its output is in build/tally/lint.logs/.

VENV_LINT := $(B)/venv-lint
CHECK = @tests/tally run exit
.PHONY: lint
lint: build ## compilers, static analysis, style, and the rules of the house
	@tests/setup/system.sh lint
	@tests/setup/venv.sh $(VENV_LINT) "$$(head -n 1 $(B)/pythons | cut -f 2)" tests/setup/requirements-lint.txt
	$(NEW_TALLY)
	@$(MAKE) run-lint
	$(SUM)

DEFAULT_LIB = $(CURDIR)/$(B)/python-$(firstword $(VERSIONS))/lib
MINGW := x86_64-w64-mingw32-gcc
TIDY = clang-tidy --quiet --warnings-as-errors='*'
C_FILES := $(CORE) $(PLATFORM) $(LUA_SOURCES) $(wildcard examples/*.c)
PYTHON_C := $(wildcard bindings-python/*.c)
PYTHON_INCLUDE = $(shell $(VENV_PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))')
.PHONY: run-lint mingw
# mingw's isnan() and the like convert to float inside their macros.
mingw: $(patsubst %.c,$(B)/mingw/%.o,$(CORE) $(wildcard core/platform/*_windows.c))
$(B)/mingw/%.o: %.c FORCE
	@mkdir -p $(@D) && $(MINGW) -std=c11 $(WARN) -Wno-float-conversion -O2 -c -o $@ $<
run-lint:
	$(CHECK) "gcc -Werror" $(MAKE) D=$(B)/gcc CC=gcc build-c build-lua programs
	$(CHECK) "clang -Werror" $(MAKE) D=$(B)/clang CC=clang build-c build-lua programs
	$(CHECK) "gcc -Werror, Python" $(MAKE) D=$(B)/gcc CC=gcc INSTRUMENT="-Wall -Wextra -Werror" pythons
	$(CHECK) "clang -Werror, Python" $(MAKE) D=$(B)/clang CC=clang INSTRUMENT="-Wall -Wextra -Werror" \
	    $(B)/clang/python-$(firstword $(VERSIONS))/made
	$(CHECK) "mingw-w64, the Windows files" $(MAKE) mingw
	$(CHECK) "clang-tidy" $(TIDY) $(C_FILES) -- -std=c11 -I. -Icore $(addprefix -isystem ,$(LUA_INCDIR))
	$(CHECK) "clang-tidy, Python" $(TIDY) $(PYTHON_C) -- -std=c11 -I. -Icore -isystem $(PYTHON_INCLUDE)
	$(CHECK) "ruff" $(VENV_LINT)/bin/ruff check --no-cache .
	$(CHECK) "mypy --strict" env MYPYPATH=bindings-python $(VENV_LINT)/bin/mypy --strict \
	    --cache-dir $(B)/mypy bindings-python/codetimer
	$(CHECK) "stubtest" env PYTHONPATH=$(DEFAULT_LIB) MYPYPATH=bindings-python $(VENV_LINT)/bin/stubtest codetimer
	$(CHECK) "luacheck" luacheck --no-cache -q bindings-lua tests/lua examples
	@for check in tests/lint/check_*.py; do \
	    tests/tally run exit "$${check##*/}" $(VENV_PYTHON) -B $$check $(B) $(DEFAULT_LIB); done
