/* SPDX-License-Identifier: MIT
 *
 * fuzz_members.c: members lists of any content (libFuzzer).
 *
 * The first byte says on or off; a list, a change of it and members to ask for follow, each ended by a NUL. Held
 * against the rule: after a switch the last pattern of the change that matches decides, else what the list said before.
 * And a text that was switched is one that can be read, twice the same switch changes nothing more.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codetimer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition) {
    if (!condition) abort();
}

/* The bytes up to the next NUL. */
static size_t cut(const char **at, const char *end, const char **part) {
    const char *stop = memchr(*at, '\0', (size_t)(end - *at));
    *part = *at;
    if (stop == NULL) stop = end;
    *at = stop < end ? stop + 1 : end;
    return (size_t)(stop - *part);
}

static int decide(const ct_members *list, const ct_members *change, int on, const char *member, size_t length) {
    for (size_t i = ct_members_count(change); i-- > 0;) {
        const ct_members_pattern *pattern = ct_members_at(change, i);
        if (ct_members_pattern_matches(pattern, member, length)) return pattern->exclude ? !on : on;
    }
    return ct_members_selects(list, member, length);
}

static ct_members *switch_list(const ct_members *list, const ct_members *change, int on) {
    size_t length = ct_members_switch(list, change, on, NULL, 0);
    char *text = malloc(length + 1);
    ct_members *after = NULL;
    require(text != NULL && ct_members_switch(list, change, on, text, length + 1) == length);
    require(ct_members_parse(text, length, &after) == CT_OK || length > 65536);
    free(text);
    return after;
}

static void check(const ct_members *list, const ct_members *change, int on, const char *at, const char *end) {
    ct_members *once = switch_list(list, change, on);
    ct_members *twice = once != NULL ? switch_list(once, change, on) : NULL;
    while (twice != NULL && at < end) {
        const char *member;
        size_t length = cut(&at, end, &member);
        int expected = decide(list, change, on, member, length);
        require(ct_members_selects(once, member, length) == expected);
        require(ct_members_selects(twice, member, length) == expected);
    }
    for (size_t i = 0; i < ct_members_count(once); i++) require(ct_members_at(once, i)->problem == NULL);
    ct_members_free(once);
    ct_members_free(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2 || size > 4096) return 0;
    const char *at = (const char *)data + 1, *end = (const char *)data + size, *text, *changes;
    size_t length = cut(&at, end, &text), change_length = cut(&at, end, &changes);
    ct_members *list = NULL, *change = NULL;
    require(ct_members_parse(text, length, &list) == CT_OK);
    require(ct_members_parse(changes, change_length, &change) == CT_OK);
    check(list, change, data[0] & 1, at, end);
    check(NULL, change, data[0] & 1, at, end);
    ct_members_free(list);
    ct_members_free(change);
    return 0;
}
