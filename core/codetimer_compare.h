/* SPDX-License-Identifier: MIT
 *
 * codetimer_compare.h: the part of the manual about comparing: which of several ways to do a thing is faster, by how
 * much, and whether this machine can tell. Included by codetimer.h; include that.
 *
 * Candidates are measured in turns, in rounds: each round calls every candidate in two slots of 100 microseconds or
 * more, in an order that turns from round to round and is mirrored within it (A B C C B A), so that what changes slowly
 * on the machine falls on all alike. A round gives the logarithm of the ratio of two candidates' times. Of these the
 * median is shown, with the exact interval of the sign test, which holds whatever the distribution. The baseline takes
 * part once more under another name, its twin: how far the twin seems to differ from it is what this machine cannot
 * resolve now. No difference below twice that is claimed, nor one whose interval reaches below 0.1 %.
 */
#ifndef CODETIMER_COMPARE_H
#define CODETIMER_COMPARE_H

#ifdef __cplusplus
extern "C" {
#endif

#define CT_CANDIDATES_MAX 32

typedef struct ct_compare ct_compare;

typedef struct ct_compare_options {
    size_t size;                /* sizeof(ct_compare_options) */
    uint64_t budget_ns;         /* all in all; 0: 250 ms for each candidate */
    size_t baseline;            /* index of the candidate that the others are compared with */
    const size_t *name_lengths; /* [count] bytes in each name; NULL: up to their NUL */
} ct_compare_options;

/* How the times of two candidates compare: the ratio of candidate to baseline, below 1 where the candidate is faster.
 */
typedef struct ct_ratio {
    int known;          /* 0: see reason */
    double ratio;       /* median over the rounds */
    double low, high;   /* its interval */
    double confidence;  /* of the interval, after the correction for several candidates: 0.99 of all together */
    int different;      /* 1: the interval excludes 1 by 0.1 %, and the ratio by more than the twin shows */
    double resolved;    /* differences below this are not resolved: 0.008 means 0.8 % */
    int in_turns;       /* 1: measured in the same rounds; 0: of two results that only stand beside each other */
    const char *reason; /* NULL, or why it is not known */
} ct_ratio;

/* The outcome; made by ct_compare_end, freed by ct_comparison_free. */
typedef struct ct_comparison {
    size_t count;
    size_t baseline;
    const ct_result *const *results; /* [count]; each as of a run of its own, but for the turns */
    const ct_ratio *ratios;          /* [count] against the baseline; the baseline's own has ratio 1 */
    ct_ratio twin;                   /* the baseline against itself, measured in the same rounds */
    uint64_t rounds;                 /* complete ones */
    uint64_t rounds_tied;            /* left out, because the clock saw nothing of some candidate */
    uint64_t rounds_disturbed;       /* left out of ratios, where enough are left: other threads had the CPU */
    uint64_t budget_ns, elapsed_ns;  /* elapsed: of all, warm-up too */
    const char *interrupted;         /* NULL, or what ended it early */
    size_t notes_count;
    const char *const *notes;
} ct_comparison;

/* In pull style, with the loop of a run inside:
 *
 *     ct_compare_begin(names, count, NULL, &compare);
 *     while ((what = ct_compare_next(compare, &candidate, &run)) != 0) {
 *         if (what == CT_WARM) { ... full collection, forget the host's counts ...; continue; }
 *         ... the host's counts ...
 *         while (ct_time_next(run, &k)) { ... calls of that candidate ...; ct_time_done(run, made); }
 *         ... the host's counts: add the differences up for this candidate ...
 *     }
 *     ct_compare_end(compare, finishes, interrupted, &comparison);
 *
 * "candidate" is 0 to count; count stands for the twin, which calls what the baseline calls. CT_WARM comes at most
 * once, when the calls so far are forgotten; then there is no candidate and no run. ct_time_next never says it here. A
 * chunk that ends early ends the comparison. Every candidate is called at least once, whatever the budget. 2 to
 * CT_CANDIDATES_MAX candidates. Returns CT_OK, CT_EINVAL, CT_ENOMEM. Nothing is allocated between begin and end. */
CT_API int ct_compare_begin(const char *const *names, size_t count, const ct_compare_options *options,
                            ct_compare **compare);
CT_API int ct_compare_next(ct_compare *compare, size_t *candidate, ct_run **run);
CT_API void ct_compare_note(ct_compare *compare, const char *text);
CT_API double ct_compare_progress(const ct_compare *compare);

/* "finishes": [count], or NULL; their "interrupted" is not looked at: that of the comparison also marks the result of
 * the candidate whose turn it ended. The comparison is freed in every case. */
CT_API int ct_compare_end(ct_compare *compare, const ct_time_finish *finishes, const char *interrupted,
                          ct_comparison **comparison);
CT_API void ct_compare_free(ct_compare *compare);
CT_API void ct_comparison_free(ct_comparison *comparison);

/* The ratio of any two candidates, "a" to "b" (indices). CT_OK, CT_EINVAL. Its "reason" lives as long as the
 * comparison. */
CT_API int ct_comparison_ratio(const ct_comparison *comparison, size_t a, size_t b, ct_ratio *ratio);

/* Two results that were not measured in turns (other processes, other days, other languages): the ratio of "a" to "b"
 * with an interval that holds both medians' intervals. "net" 1: each less its own empty call. What changed on the
 * machine in between is not in it. CT_OK, CT_EINVAL (a median or its interval is not known). */
CT_API int ct_result_ratio(const ct_result *a, const ct_result *b, int net, ct_ratio *ratio);

/* One sentence, without a newline: "b is 1.34× faster than a, 1.31–1.37", "b and a: no difference resolved; this
 * machine resolves ≥ 0.8 %" or "b and a: not compared (why)"; what was not measured in turns is said to be so. "name"
 * and "baseline" end in a NUL. Of the options "color" and "ascii" count. Returns as snprintf does. */
CT_API size_t ct_ratio_verdict(const ct_ratio *ratio, const char *name, const char *baseline,
                               const ct_report_options *options, char *buffer, size_t size);

/* The table of all candidates, a sentence for each against the baseline, and the notes, ending in an empty line; if
 * "verbose" the rounds as well; if "line" the sentences alone, on one line. Returns as snprintf does. */
CT_API size_t ct_comparison_format(const ct_comparison *comparison, const ct_report_options *options, char *buffer,
                                   size_t size);

#ifdef __cplusplus
}
#endif
#endif
