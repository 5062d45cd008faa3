/* SPDX-License-Identifier: MIT
 *
 * members.c: the language of members lists.
 *
 * A text is cut into patterns once; selecting a member walks them from the last to the first and stops at the first
 * match, because the last match wins. Nothing is compiled: a pattern is matched in the text itself, by the two-finger
 * method (remember the last "*", go on from there on a mismatch), which needs no recursion and at most length x length
 * steps.
 */
#include "members.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 65536 };

struct ct_members {
    int starts_from_all; /* the list begins with "!" */
    size_t length, count, room;
    ct_members_pattern *patterns;
    char text[]; /* a copy that the patterns point into */
};

/* ---- matching ---- */

/* Bytes of the character at "at": continuation bytes belong to it. */
static size_t character_length(const char *at, const char *end) {
    size_t length = 1;
    while (at + length < end && ((unsigned char)at[length] >> 6) == 2) length++;
    return length;
}

/* One element of the pattern ("?", a quoted or a plain byte) against the member. Returns 0 on a mismatch; else moves
 * both. */
static int match_one(const char **pattern, const char *pattern_end, const char **member, const char *member_end) {
    const char *at = *pattern;
    if (*at == '?') {
        *pattern = at + 1;
        *member += character_length(*member, member_end);
        return 1;
    }
    if (*at == '\\' && at + 1 < pattern_end) at++;
    if (*at != **member) return 0;
    *pattern = at + 1;
    *member += 1;
    return 1;
}

int ct__pattern_matches(const char *pattern, size_t pattern_length, const char *member, size_t member_length) {
    const char *pattern_end = pattern + pattern_length, *member_end = member + member_length;
    const char *after_star = NULL, *retry = NULL;
    while (member < member_end) {
        if (pattern < pattern_end && *pattern == '*') {
            after_star = ++pattern;
            retry = member;
        } else if (pattern < pattern_end && match_one(&pattern, pattern_end, &member, member_end)) {
            continue;
        } else if (after_star != NULL) {
            pattern = after_star;
            retry += character_length(retry, member_end);
            member = retry;
        } else {
            return 0;
        }
    }
    while (pattern < pattern_end && *pattern == '*') pattern++;
    return pattern == pattern_end;
}

/* ---- parsing ---- */

static int is_separator(char c) { return c == ';' || c == '\n'; }
static int is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/* The end of the pattern that begins at "at": the first separator or comment that is not quoted. */
static const char *find_end(const char *at, const char *end) {
    while (at < end && !is_separator(*at) && *at != '#') at += *at == '\\' && at + 1 < end && at[1] != '\n' ? 2 : 1;
    return at;
}

static const char *skip_comment(const char *at, const char *end) {
    if (at < end && *at == '#')
        while (at < end && *at != '\n') at++;
    return at;
}

static const char *find_problem(const char *at, const char *end) {
    if (at == end) return "nothing follows the \"!\"";
    for (; at < end; at++) {
        if (*at == '\0') return "it contains a NUL byte";
        if (*at != '\\') continue;
        if (at + 1 == end) return "it ends in a backslash, which quotes nothing";
        if (strchr("\\;!#*?", *++at) == NULL) return "a backslash quotes only ; ! # * ? and itself";
    }
    return NULL;
}

static int add_pattern(ct_members *members, const ct_members_pattern *pattern) {
    if (members->count == members->room) {
        size_t room = members->room == 0 ? 16 : members->room * 2;
        ct_members_pattern *more = realloc(members->patterns, room * sizeof *more);
        if (more == NULL) return 0;
        members->patterns = more;
        members->room = room;
    }
    members->patterns[members->count++] = *pattern;
    return 1;
}

/* The text from "at" to "end" without the blanks around it. */
static int parse_one(ct_members *members, const char *at, const char *end) {
    while (at < end && is_blank(*at)) at++;
    while (end > at && is_blank(end[-1]) && !(end - 1 > at && end[-2] == '\\')) end--;
    if (at == end) return 1;
    ct_members_pattern pattern = {0};
    pattern.text = at;
    pattern.length = (size_t)(end - at);
    pattern.position = (size_t)(at - members->text);
    pattern.exclude = *at == '!';
    const char *body = at + pattern.exclude;
    while (body < end && is_blank(*body)) body++;
    pattern.body = body;
    pattern.body_length = (size_t)(end - body);
    pattern.problem = find_problem(body, end);
    if (members->count == 0 && pattern.exclude) members->starts_from_all = 1;
    return add_pattern(members, &pattern);
}

static int has_byte_order_mark(const char *text, size_t length) {
    return length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0;
}

static int parse_all(ct_members *members, size_t length) {
    const char *at = members->text, *end = members->text + length;
    if (has_byte_order_mark(at, length)) at += 3;
    while (at < end) {
        const char *stop = find_end(at, end);
        if (!parse_one(members, at, stop)) return 0;
        at = skip_comment(stop, end);
        if (at < end) at++; /* the separator */
    }
    return 1;
}

int ct_members_parse(const char *text, size_t length, ct_members **members) {
    if (members == NULL || (text == NULL && length > 0) || length > MOST_BYTES) return CT_EINVAL;
    ct_members *made = calloc(1, sizeof *made + length + 1);
    if (made == NULL) return CT_ENOMEM;
    if (length > 0) memcpy(made->text, text, length);
    made->length = length;
    if (!parse_all(made, length)) {
        ct_members_free(made);
        return CT_ENOMEM;
    }
    *members = made;
    return CT_OK;
}

const char *ct__members_text(const ct_members *members, size_t *length) {
    *length = members->length;
    return members->text;
}

void ct_members_free(ct_members *members) {
    if (members == NULL) return;
    free(members->patterns);
    free(members);
}

/* ---- selecting ---- */

int ct_members_selects(const ct_members *members, const char *member, size_t length) {
    if (members == NULL) return 1;
    for (size_t i = members->count; i-- > 0;) {
        const ct_members_pattern *pattern = &members->patterns[i];
        if (pattern->problem != NULL) continue;
        if (ct__pattern_matches(pattern->body, pattern->body_length, member, length)) return !pattern->exclude;
    }
    return members->starts_from_all;
}

size_t ct_members_count(const ct_members *members) { return members != NULL ? members->count : 0; }

const ct_members_pattern *ct_members_at(const ct_members *members, size_t index) {
    return members != NULL && index < members->count ? &members->patterns[index] : NULL;
}

int ct_members_pattern_matches(const ct_members_pattern *pattern, const char *member, size_t length) {
    return pattern->problem == NULL && ct__pattern_matches(pattern->body, pattern->body_length, member, length);
}

/* ---- changing ---- */

static int same_body(const ct_members_pattern *a, const ct_members_pattern *b) {
    return a->body_length == b->body_length && memcmp(a->body, b->body, a->body_length) == 0;
}

static void append(char *buffer, size_t size, size_t *length, const char *text, size_t count) {
    if (*length + count < size) memcpy(buffer + *length, text, count);
    *length += count;
}

static void append_pattern(char *buffer, size_t size, size_t *length, int exclude, const ct_members_pattern *pattern) {
    int mistakable =
        has_byte_order_mark(pattern->body, pattern->body_length); /* at the beginning it is no part of a name */
    if (*length > 0 || mistakable) append(buffer, size, length, ";", 1);
    if (exclude) append(buffer, size, length, "!", 1);
    if (*pattern->body == '!')
        append(buffer, size, length, "\\", 1); /* was behind another one; alone it would exclude */
    append(buffer, size, length, pattern->body, pattern->body_length);
}

static int is_replaced(const ct_members_pattern *pattern, const ct_members *change) {
    if (pattern->problem != NULL) return 1;
    for (size_t j = 0; j < change->count; j++)
        if (same_body(pattern, &change->patterns[j])) return 1;
    return 0;
}

/* Whether the first pattern of the new list excludes, which would make it start from all. */
static int begins_with_exclude(const ct_members *members, const ct_members *change, int enable) {
    for (size_t i = 0; i < ct_members_count(members); i++)
        if (!is_replaced(&members->patterns[i], change)) return members->patterns[i].exclude;
    for (size_t j = 0; j < change->count; j++)
        if (change->patterns[j].problem == NULL) return change->patterns[j].exclude == enable;
    return 0;
}

size_t ct_members_switch(const ct_members *members, const ct_members *change, int enable, char *buffer, size_t size) {
    size_t length = 0;
    if (members == NULL || members->starts_from_all) /* said outright, so that it holds whatever comes first then */
        append(buffer, size, &length, "*", 1);
    else if (begins_with_exclude(members, change, enable))
        append(buffer, size, &length, "!*", 2);
    for (size_t i = 0; i < ct_members_count(members); i++) {
        const ct_members_pattern *kept = &members->patterns[i];
        if (!is_replaced(kept, change)) append_pattern(buffer, size, &length, kept->exclude, kept);
    }
    for (size_t j = 0; j < change->count; j++) {
        const ct_members_pattern *added = &change->patterns[j];
        if (added->problem == NULL) append_pattern(buffer, size, &length, added->exclude == enable, added);
    }
    if (size > 0) buffer[length < size ? length : size - 1] = '\0';
    return length;
}
