/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace/formula.h"

#include <math.h>

#include "base/array.h"

struct formula_text {
	const char *at;
	const char *name;
	unsigned line, depth;
	struct formula *into;
	bool is_in_part;
	struct err *e;
};

/* --- words --- */

static int bad(struct formula_text *t, const char *expected)
{
	char found[32];
	int n = 0;

	for (; n < 24 && t->at[n] && t->at[n] != '\n'; n++)
		found[n] = (unsigned char) t->at[n] < ' ' || t->at[n] == 127 ? '?' : t->at[n];
	found[n] = '\0';
	return n ? err_set(t->e, "%s:%u: expected %s at '%s'", t->name, t->line, expected, found) :
		   err_set(t->e, "%s:%u: expected %s at the end of the %s", t->name, t->line, expected,
			   t->at[n] ? "line" : "text");
}

static char next(struct formula_text *t)
{
	for (;; t->at++) {
		if (*t->at == '#')
			t->at += strcspn(t->at, "\n");
		if (*t->at == '\n')
			t->line++;
		else if (!isspace((unsigned char) *t->at))
			return *t->at;
	}
}

static int expect(struct formula_text *t, char c, const char *what)
{
	if (next(t) != c)
		return bad(t, what);
	t->at++;
	return 0;
}

static int word(struct formula_text *t, char out[TRACE_NAME], const char *what)
{
	size_t n;

	next(t);
	if (!(n = trace_name_length(t->at)))
		return bad(t, what);
	if (n >= TRACE_NAME)
		return bad(t, "a name of at most 63 characters");
	memcpy(out, t->at, n);
	out[n] = '\0';
	t->at += n;
	return 0;
}

/* --- one formula --- */

static int step(struct formula_text *t, struct formula_step s)
{
	struct formula *f = t->into;

	if (f->nsteps == FORMULA_STEPS)
		return err_set(t->e, "%s:%u: %s: more than %u operands and operators", t->name, t->line, f->name,
			       FORMULA_STEPS);
	f->steps[f->nsteps++] = s;
	return 0;
}

static int event_step(struct formula_text *t, const char *name)
{
	struct formula *f = t->into;
	unsigned i = 0;

	while (i < f->nevents && strcmp(f->events[i], name))
		i++;
	if (i == FORMULA_EVENTS)
		return err_set(t->e, "%s:%u: %s: more than %u different events", t->name, t->line, f->name,
			       FORMULA_EVENTS);
	if (i == f->nevents)
		strcpy(f->events[f->nevents++], name);
	return step(t, (struct formula_step){ .op = FORMULA_EVENT, .event = i });
}

static int parse_sum(struct formula_text *t);

static int formula_prepare(struct formula *f, struct err *e)
{
	f->steps = calloc(FORMULA_STEPS, sizeof(*f->steps));
	return f->steps ? 0 : err_set(e, "out of memory");
}

static int part_fault(const struct formula_text *t, const char *what)
{
	return err_set(t->e, "%s:%u: %s: %s", t->name, t->line, t->into->name, what);
}

/* What is in the parentheses of min(), max() or avg(). */
static int parse_part(struct formula_text *t, enum formula_over over)
{
	struct formula *f = t->into;
	struct formula_part *p;
	int rc;

	if (t->is_in_part)
		return part_fault(t, "min, max and avg are not nested");
	if (f->nparts == FORMULA_PARTS)
		return part_fault(t, "too many of min, max and avg");
	if (!(p = array_add(f->parts, f->nparts)))
		return err_set(t->e, "out of memory");
	p->over = over;
	if (formula_prepare(&p->of, t->e))
		return -1;
	strcpy(p->of.name, f->name);
	t->at++;
	t->into = &p->of;
	t->is_in_part = true;
	rc = parse_sum(t) || expect(t, ')', "')'") ? -1 : 0;
	t->is_in_part = false;
	t->into = f;
	if (rc == 0 && !p->of.nevents)
		return part_fault(t, "min, max and avg are of events");
	return rc ? rc : step(t, (struct formula_step){ .op = FORMULA_EVENT, .event = FORMULA_EVENTS + f->nparts - 1 });
}

static int parse_operand(struct formula_text *t)
{
	static const char *const over[] = { [FORMULA_MIN] = "min", [FORMULA_MAX] = "max", [FORMULA_AVG] = "avg" };
	char name[TRACE_NAME], c = next(t);

	if (c == '(') {
		t->at++;
		return parse_sum(t) || expect(t, ')', "')'") ? -1 : 0;
	}
	if (isdigit((unsigned char) c) || c == '.') {
		char *end;
		double number = strtod(t->at, &end);

		if (end == t->at || t->at + strspn(t->at, "0123456789.eE+-") < end || !isfinite(number) ||
		    isalnum((unsigned char) *end))
			return bad(t, "a number");
		t->at = end;
		return step(t, (struct formula_step){ .op = FORMULA_NUMBER, .number = number });
	}
	if (word(t, name, "an event, a number or '('"))
		return -1;
	for (unsigned i = 0; next(t) == '(' && i < sizeof(over) / sizeof(over[0]); i++)
		if (!strcmp(name, over[i]))
			return parse_part(t, i);
	return strcmp(name, "seconds") ? event_step(t, name) : step(t, (struct formula_step){ .op = FORMULA_SECONDS });
}

static int parse_signed(struct formula_text *t)
{
	int rc;

	if (++t->depth > FORMULA_DEPTH)
		return err_set(t->e, "%s:%u: %s: nested deeper than %u", t->name, t->line, t->into->name,
			       FORMULA_DEPTH);
	if (next(t) == '-') {
		t->at++;
		rc = parse_signed(t) ? -1 : step(t, (struct formula_step){ .op = FORMULA_NEGATE });
	} else
		rc = parse_operand(t);
	t->depth--;
	return rc;
}

static int parse_product(struct formula_text *t)
{
	if (parse_signed(t))
		return -1;
	for (char c; (c = next(t)) == '*' || c == '/';) {
		t->at++;
		if (parse_signed(t) ||
		    step(t, (struct formula_step){ .op = c == '*' ? FORMULA_MULTIPLY : FORMULA_DIVIDE }))
			return -1;
	}
	return 0;
}

static int parse_sum(struct formula_text *t)
{
	if (parse_product(t))
		return -1;
	for (char c; (c = next(t)) == '+' || c == '-';) {
		t->at++;
		if (parse_product(t) ||
		    step(t, (struct formula_step){ .op = c == '+' ? FORMULA_ADD : FORMULA_SUBTRACT }))
			return -1;
	}
	return 0;
}

double formula_value(const struct formula *f, const double *values, double seconds)
{
	double stack[FORMULA_STEPS], *top = stack;

	for (const struct formula_step *s = f->steps; s < f->steps + f->nsteps; s++) {
		switch (s->op) {
		case FORMULA_NUMBER:
			*top++ = s->number;
			continue;
		case FORMULA_EVENT:
			*top++ = values[s->event];
			continue;
		case FORMULA_SECONDS:
			*top++ = seconds;
			continue;
		case FORMULA_NEGATE:
			top[-1] = -top[-1];
			continue;
		case FORMULA_ADD:
			top[-2] += top[-1];
			break;
		case FORMULA_SUBTRACT:
			top[-2] -= top[-1];
			break;
		case FORMULA_MULTIPLY:
			top[-2] *= top[-1];
			break;
		case FORMULA_DIVIDE:
			top[-2] = top[-1] != 0 ? top[-2] / top[-1] : NAN;
			break;
		}
		top--;
	}
	return isfinite(stack[0]) ? stack[0] : NAN;
}

/* --- a file of them --- */

static int parse_formula(struct formula_text *t, struct formula *f)
{
	if (formula_prepare(f, t->e))
		return -1;
	t->into = f;
	return word(t, f->name, "the name of a formula") || expect(t, '{', "'{'") || word(t, f->level, "a level") ||
		expect(t, ',', "','") || parse_sum(t) || expect(t, '}', "an operator or '}'") ? -1 : 0;
}

static int parse_list(struct formula_text *t, struct formula_list *l)
{
	while (next(t)) {
		struct formula *f = array_add(l->list, l->n);

		if (!f)
			return err_set(t->e, "out of memory");
		if (l->n > FORMULA_LIST_MAX)
			return err_set(t->e, "%s:%u: more than %u formulas", t->name, t->line, FORMULA_LIST_MAX);
		if (parse_formula(t, f))
			return -1;
	}
	return 0;
}

int formula_list_parse(const char *text, size_t len, const char *name, struct formula_list *out, struct err *e)
{
	char *copy = len <= FORMULA_TEXT_MAX && !memchr(text, '\0', len) ? strndup(text, len) : NULL;
	struct formula_text t = { .at = copy, .name = name, .line = 1, .e = e };
	struct formula_list l = {0};
	int rc;

	if (!copy)
		rc = err_set(e, "%s: not a text of at most %u bytes", name, FORMULA_TEXT_MAX);
	else if ((rc = parse_list(&t, &l)))
		formula_list_free(&l);
	free(copy);
	*out = l;
	return rc;
}

int formula_of_event(const char *event, const char *level, struct formula *out, struct err *e)
{
	struct formula f = { .nevents = 1, .nsteps = 1 };

	if (formula_prepare(&f, e))
		return -1;
	f.steps[0] = (struct formula_step){ .op = FORMULA_EVENT };
	strncpy(f.name, event, TRACE_NAME - 1);
	strncpy(f.events[0], event, TRACE_NAME - 1);
	strncpy(f.level, level, TRACE_NAME - 1);
	*out = f;
	return 0;
}

int formula_copy(const struct formula *f, const char *level, struct formula *out, struct err *e)
{
	struct formula copy = *f;

	copy.steps = malloc(f->nsteps * sizeof(*f->steps));
	copy.parts = f->nparts ? calloc(f->nparts, sizeof(*f->parts)) : NULL;
	copy.nparts = copy.parts ? f->nparts : 0;
	*out = copy;
	if (!copy.steps || copy.nparts != f->nparts)
		goto error;
	memcpy(copy.steps, f->steps, f->nsteps * sizeof(*f->steps));
	snprintf(out->level, sizeof(out->level), "%s", level);
	for (unsigned i = 0; i < f->nparts; i++) {
		copy.parts[i].over = f->parts[i].over;
		if (formula_copy(&f->parts[i].of, level, &copy.parts[i].of, e))
			goto error;
	}
	return 0;
error:
	formula_free(out);
	return err_set(e, "out of memory");
}

void formula_free(struct formula *f)
{
	for (unsigned i = 0; i < f->nparts; i++)
		formula_free(&f->parts[i].of);
	free(f->parts);
	free(f->steps);
	*f = (struct formula){0};
}

void formula_list_free(struct formula_list *l)
{
	for (unsigned i = 0; i < l->n; i++)
		formula_free(&l->list[i]);
	free(l->list);
	*l = (struct formula_list){0};
}
