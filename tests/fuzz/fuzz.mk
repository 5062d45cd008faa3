# SPDX-License-Identifier: MIT
#
# fuzz.mk: part of the Makefile. Fuzzing over the scripted platform (needs clang), and the threads under ThreadSanitizer.
# What a fuzzer finds goes to build/fuzz/; what is worth keeping is added to tests/fuzz/corpus/ by hand.

FUZZ_SECONDS ?= 30
FUZZ_CC ?= clang
FUZZ := $(B)/fuzz
FUZZ_FLAGS := -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
FUZZ_OBJECTS := $(patsubst %.c,$(FUZZ)/obj/%.o,$(CORE) $(FAKE) tests/fuzz/fuzz_view.c tests/fuzz/fuzz_members.c)

.SECONDARY: $(FUZZ_OBJECTS)
$(FUZZ)/obj/%.o: %.c
	@mkdir -p $(@D) && echo "  fuzz $<"
	@$(FUZZ_CC) -std=c11 $(WARN) $(FUZZ_FLAGS) -DCT_FAKE_TICKS $(TEST_FLAGS) -MMD -MP -c -o $@ $<
-include $(FUZZ_OBJECTS:.o=.d)

$(FUZZ)/fuzz_%: $(FUZZ_OBJECTS)
	@$(FUZZ_CC) -fsanitize=fuzzer,address,undefined -o $@ $(filter-out $(FUZZ)/obj/tests/fuzz/%,$^) \
	    $(FUZZ)/obj/tests/fuzz/fuzz_$*.o $(LIBS)

.PHONY: fuzz run-fuzz fuzz-corpus tsan run-threads
fuzz: setup-base ## views and members lists of any content, FUZZ_SECONDS (30) each
	@tests/setup/system.sh fuzz
	$(NEW_TALLY)
	@$(MAKE) run-fuzz
	$(SUM)
run-fuzz: $(FUZZ)/fuzz_view $(FUZZ)/fuzz_members
	@mkdir -p $(FUZZ)/view $(FUZZ)/members
	@for target in view members; do \
	    tests/tally run exit "fuzz $$target" $(FUZZ)/fuzz_$$target -max_total_time=$(FUZZ_SECONDS) -timeout=20 \
	        -rss_limit_mb=2048 -artifact_prefix=$(FUZZ)/ -print_final_stats=1 $(FUZZ)/$$target \
	        tests/fuzz/corpus/$$target; done

# Only after the layout of the segment has changed.
fuzz-corpus:
	@mkdir -p $(FUZZ) && $(CC) -std=c11 -Icore -o $(FUZZ)/seeds tests/fuzz/seeds.c && $(FUZZ)/seeds tests/fuzz/corpus/view

# The sanitizer does not model fences (gcc warns of it): it may see too much, never too little.
TSAN_PROGRAMS := real_counters real_threads
TSAN := $(MAKE) D=$(B)/tsan OPTIMIZE="-O1 -g" WERROR=-Wno-tsan INSTRUMENT="-fsanitize=thread"
tsan: setup-base ## the threads of the core under ThreadSanitizer; make sanitize does it too
	$(NEW_TALLY)
	@$(MAKE) run-threads
	$(SUM)
run-threads:
	@$(TSAN) $(addprefix $(B)/tsan/tests/,$(TSAN_PROGRAMS)) || true
	@for program in $(TSAN_PROGRAMS); do \
	    tests/tally run cmocka "threads C $$program" env TSAN_OPTIONS=halt_on_error=1 $(B)/tsan/tests/$$program; done
