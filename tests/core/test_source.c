/* SPDX-License-Identifier: MIT
 *
 * Guards who writes the members list: the environment first, then whoever writes last, and the list always names its
 * writer. Fails if what the environment says comes after what the program said, or if a provider that says the same
 * again undoes what others wrote.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "following.h"

/* ---- sources ---- */

static void check_sources(void) {
    CHECK(source_is(CT_FROM_NOBODY, "") && list_is(NULL));
    CHECK(ct_members_set("a", 1) == CT_OK && source_is(CT_FROM_CONFIGURE, "configure"));
    fake_file_say("b");
    CHECK(ct_config_file("shop.members") == CT_OK && list_is("b"));
    CHECK(source_is(CT_FROM_FILE, "file /fake/shop.members"));
    CHECK(ct_members_provide("c", 1) == CT_OK && list_is("c") && source_is(CT_FROM_PROVIDER, "provider"));
    CHECK(ct_members_set(NULL, 0) == CT_OK && list_is(NULL) && source_is(CT_FROM_CONFIGURE, "configure"));
    char cut[5];
    CHECK(ct_members_source(NULL, 0) == CT_FROM_CONFIGURE);
    CHECK(ct_members_source(cut, sizeof cut) == CT_FROM_CONFIGURE && strcmp(cut, "conf") == 0);
}

static void check_environment(void) {
    setenv("CODETIMER_MEASURE", "e", 1);
    CHECK(source_is(CT_FROM_ENVIRONMENT, "environment") && list_is("e"));
    CHECK(now()->state == CT_CONFIG_NONE && fake_file.reads == 0 && now()->path[0] == '\0');
}

static void check_environment_file(void) {
    setenv("CODETIMER_MEASURE", "e", 1);
    setenv("CODETIMER_CONFIG", "/etc/members", 1);
    fake_file_say("f");
    ct_writer *writer;
    CHECK(ct_writer_open("script", &writer) == CT_OK);
    CHECK(fake_file.reads == 1 && list_is("f") && source_is(CT_FROM_FILE, "file /etc/members"));
    CHECK(state_is(CT_CONFIG_READ, "") && strcmp(now()->path, "/etc/members") == 0 && now()->lists == 1);
}

static void check_environment_file_missing(void) {
    setenv("CODETIMER_MEASURE", "e", 1);
    setenv("CODETIMER_CONFIG", "/etc/members", 1);
    CHECK(list_is("e") && state_is(CT_CONFIG_MISSING, "there is no such file"));
    fake_file_say("f");
    later();
    CHECK(list_is("e"));
    later();
    CHECK(list_is("f"));
}

/* What the program says comes after what its environment says. */
static void check_environment_is_first(void) {
    setenv("CODETIMER_CONFIG", "/etc/members", 1);
    fake_file_say("f");
    CHECK(ct_members_set("a", 1) == CT_OK && list_is("a") && fake_file.reads == 1);
    later();
    later();
    CHECK(list_is("a") && source_is(CT_FROM_CONFIGURE, "configure"));
}

static void check_configured_before_environment(void) {
    setenv("CODETIMER_CONFIG", "/etc/members", 1);
    fake_file_say("f");
    CHECK(ct_config_file("/own") == CT_OK && strcmp(fake_file.path, "/own") == 0 && fake_file.reads == 1);
}

static void check_provider(void) {
    CHECK(ct_members_provide("a", 1) == CT_OK && ct_members_set("b", 1) == CT_OK);
    CHECK(ct_members_provide("a", 1) == CT_EXISTS && list_is("b"));
    CHECK(ct_members_provide("", 0) == CT_OK && list_is(""));
    CHECK(ct_members_set("b", 1) == CT_OK && ct_members_provide(NULL, 0) == CT_OK && list_is("b"));
    CHECK(ct_members_provide("", 0) == CT_OK && list_is("")); /* of a new provider */
    CHECK(ct_members_provide("x", 65537) == CT_EINVAL && ct_members_provide(NULL, 1) == CT_EINVAL);
}

#define SCENARIOS(X)                                                                                                   \
    X(sources)                                                                                                         \
    X(environment)                                                                                                     \
    X(environment_file)                                                                                                \
    X(environment_file_missing)                                                                                        \
    X(environment_is_first)                                                                                            \
    X(configured_before_environment)                                                                                   \
    X(provider)

SCENARIOS(SCENARIO)

int main(void) {
    const struct CMUnitTest tests[] = {SCENARIOS(TEST)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
