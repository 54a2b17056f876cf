/*
 * lab_json.c: what the lab found, as mayfly-lab(5) has it: the one form in which a study leaves the place where it was
 * made, is saved, and is read again by whatever shows it.
 */
#include <errno.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/utf8.h"
#include "lab/families.h"
#include "lab/study.h"
#include "mayfly.h"

#include "base/banned.h"

/* What a box said is bytes; what is not UTF-8 becomes U+FFFD. */
static json_t *fixed_text(const char *text, size_t len) {
    char fixed[3 * 2048];

    return json_stringn(fixed, utf8_repair(text, MIN(len, sizeof(fixed) / 3), fixed));
}

/* "" is no text: null. */
static json_t *text_or_null(const char *text) {
    return text && *text ? fixed_text(text, strlen(text)) : json_null();
}

static json_t *text(const char *t) { return t && *t ? text_or_null(t) : json_string(""); }

static json_t *names(uint64_t set) {
    json_t *list = json_array();

    for (int c = 0; c < CTL__N; c++)
        if (set & BIT(c))
            (void)json_array_append_new(list, json_string(control_id_name((enum control_id)c)));
    return list;
}

static json_t *words(const char *text, const char *between) {
    json_t *list = json_array();

    for (const char *p = text ? text : ""; *p;) {
        size_t n = strcspn(p, between);
        if (n)
            (void)json_array_append_new(list, fixed_text(p, n));
        p += n + (p[n] != '\0');
    }
    return list;
}

/* ------------------------------------------------------------------ a probe */

static json_t *cell_json(const struct cell *c) {
    static const char *const results[] = {"through", "stopped", "untestable"};
    const struct finding_of *f = &c->finding;

    if (!c->made)
        return json_pack("{ss so so so so sf}", "result", "untestable", "call", json_string(""),
                         "errno", json_string(""), "detail", text(f->detail), "host", text(f->host),
                         "ms", c->ms);
    return json_pack("{ss so so so so sf}", "result", results[f->verdict], "call", text(f->call),
                     "errno", text(f->error), "detail", text(f->detail), "host", text(f->host),
                     "ms", c->ms);
}

static json_t *set_json(const struct study *s, const struct cell *c) {
    json_t *o = cell_json(c);
    uint64_t on = s->can & ~c->off;
    bool few_on = __builtin_popcountll(on) < __builtin_popcountll(c->off);

    (void)json_object_set_new(o, few_on ? "on" : "off", names(few_on ? on : c->off));
    return o;
}

static json_t *cells_json(const struct study *s, const struct subject *subject) {
    json_t *all = json_object(), *without = json_object(), *only = json_object();
    json_t *sets = json_array();

    for (size_t i = 0; i < subject->n; i++) {
        const struct cell *c = subject->cells[i];
        uint64_t on = s->can & ~c->off;
        bool listed = false;

        if (c->off == 0 || c->off == s->can)
            listed = json_object_set_new(all, c->off ? "allOff" : "allOn", cell_json(c)) == 0;
        if (__builtin_popcountll(c->off) == 1)
            listed = json_object_set_new(without,
                                         control_id_name((enum control_id)__builtin_ctzll(c->off)),
                                         cell_json(c)) == 0;
        if (__builtin_popcountll(on) == 1)
            listed =
                json_object_set_new(only, control_id_name((enum control_id)__builtin_ctzll(on)),
                                    cell_json(c)) == 0;
        if (!listed)
            (void)json_array_append_new(sets, set_json(s, c));
    }
    (void)json_object_set_new(all, "without", without);
    (void)json_object_set_new(all, "only", only);
    (void)json_object_set_new(all, "sets", sets);
    return all;
}

static json_t *matrix_json(const struct study *s, const struct judgement *j) {
    uint64_t wanted = s->question->controls;
    json_t *o = json_object();

    for (int c = 0; c < CTL__N; c++)
        if (!wanted || (wanted & BIT(c)))
            (void)json_object_set_new(o, control_id_name((enum control_id)c),
                                      json_string(lab_word_names[j->word[c]]));
    return o;
}

static json_t *probe_json(const struct study *s, const struct subject *subject) {
    const struct probe *p = subject->probe;
    const struct judgement *j = &subject->judgement;
    json_t *minimal = json_array();

    for (size_t i = 0; i < j->n_minimal; i++)
        (void)json_array_append_new(minimal, names(j->minimal[i]));
    return json_pack("{ss ss ss so so so sb ss so so so so so}", "id", p->id, "title", p->title,
                     "family", p->family, "expected", words(p->stopped_by, " "), "sees",
                     words(p->sees, "|"), "echo", text_or_null(p->echo), "mustPass", p->must_pass,
                     "verdict", lab_verdict_names[j->verdict], "why", text_or_null(j->why),
                     "minimal", minimal, "redundancy",
                     j->redundancy < 0 ? json_null() : json_integer(j->redundancy), "matrix",
                     matrix_json(s, j), "cells", cells_json(s, subject));
}

/* ------------------------------------------------------------------ a control */

/* The probes for which this control has that word. */
static json_t *with_word(const struct study *s, int c, enum lab_word word) {
    json_t *list = json_array();

    for (size_t i = 0; i < s->question->n_probes; i++)
        if (s->subject[i].judgement.word[c] == word)
            (void)json_array_append_new(list, json_string(s->subject[i].probe->id));
    return list;
}

/* Why there is nothing that it stops, in words; null where there is something, or nothing could show. */
static json_t *stops_nothing(const struct study *s, int c) {
    char said[512];
    size_t named = 0, first = 0;

    if (!(s->can & BIT(c)))
        return text_or_null(s->host.why[c]);
    for (size_t i = 0; i < s->question->n_probes; i++) {
        const struct subject *subject = &s->subject[i];
        enum lab_word w = subject->judgement.word[c];

        if (w != WORD_THROUGH && w != WORD_UNTESTABLE)
            return json_null();
        if (lab_word(subject->probe->stopped_by, control_id_name((enum control_id)c)) &&
            named++ == 0)
            first = i;
    }
    if (!named && s->question->n_probes < probes_count())
        return json_null(); /* it was not asked */
    if (!named)
        return json_string("no probe gets any further without it");
    (void)snprintf(said, sizeof(said), "the probes that it stops cannot be told here: %s: %.300s",
                   s->subject[first].probe->id, s->subject[first].judgement.why);
    return text_or_null(said);
}

static json_t *price_json(const struct study *s, int c) {
    const struct price *p = &s->price[c];

    if (!s->priced || !(s->can & BIT(c)))
        return json_null();
    return json_pack("{sf so si}", "rowsUs", p->rows_us, "runUs",
                     p->rounds ? json_real(p->run_us) : json_null(), "rounds", p->rounds);
}

static json_t *control_json(const struct study *s, int c) {
    struct control_words w = control_words((enum control_id)c);
    bool can = s->can & BIT(c);

    return json_pack(
        "{ss ss ss ss sb so so so so so so}", "name", control_id_name((enum control_id)c),
        "summary", w.summary, "source", w.source, "without", w.without, "available", can, "why",
        can ? json_null() : text_or_null(s->host.why[c]), "price", price_json(s, c), "sole",
        with_word(s, c, WORD_STOPPED), "backs", with_word(s, c, WORD_STOPPED_TOO), "needed",
        with_word(s, c, WORD_TOGETHER), "stopsNothing", stops_nothing(s, c));
}

/* ------------------------------------------------------------------ all of it */

static json_t *families_json(const struct study *s) {
    json_t *list = json_array();

    for (size_t f = 0; lab_families[f].name; f++)
        for (size_t i = 0; i < s->question->n_probes; i++)
            if (strcmp(s->subject[i].probe->family, lab_families[f].name) == 0) {
                (void)json_array_append_new(list, json_pack("{ss ss}", "name", lab_families[f].name,
                                                            "title", lab_families[f].title));
                break;
            }
    return list;
}

/* Of the probes, those that are said to get through without what is missed, or that did. */
static json_t *lack_ids(const struct study *s, bool predicted) {
    json_t *list = json_array();

    for (size_t i = 0; i < s->question->n_probes; i++)
        if (predicted ? s->subject[i].predicted : s->subject[i].through)
            (void)json_array_append_new(list, json_string(s->subject[i].probe->id));
    return list;
}

static json_t *lacks_json(const struct study *s) {
    if (!s->question->lacking)
        return json_null();
    return json_pack("{so sb so so}", "controls", names(s->lacks), "thisHost",
                     s->question->lacks == 0, "predicted", lack_ids(s, true), "through",
                     lack_ids(s, false));
}

static json_t *lines(const struct buf *b) { return words(b->data, "\n"); }

json_t *study_json(const struct study *s, struct err *err) {
    json_t *list = json_array(), *probes = json_array();
    uint64_t wanted = s->question->controls;
    struct utsname u = {0};

    (void)uname(&u);
    for (int c = 0; c < CTL__N; c++)
        if (!wanted || (wanted & BIT(c)))
            (void)json_array_append_new(list, control_json(s, c));
    for (size_t i = 0; i < s->question->n_probes; i++)
        (void)json_array_append_new(probes, probe_json(s, &s->subject[i]));
    json_t *o = json_pack("{ss ss ss ss ss ss ss ss sf sI so so so so so so}", "format",
                          "mayfly-lab/1", "mayfly", mayfly_version(), "kernel", u.release,
                          "machine", u.machine, "where", s->question->where, "as",
                          geteuid() == 0 ? "root" : "user", "cgroups", s->host.cgroups, "started",
                          s->started, "seconds", s->seconds, "attempts", (json_int_t)s->attempts,
                          "controls", list, "families", families_json(s), "probes", probes, "peers",
                          json_array(), "lacks", lacks_json(s), "faults", lines(&s->faults));
    if (!o)
        (void)err_oom(err);
    return o;
}
