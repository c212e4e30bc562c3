/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "player.h"

#include <curses.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <term.h>

#include "base/clock.h"

#define LINES_MIN 6
#define COLUMNS_MIN 40
#define FOLLOW_MS 25		/* between two looks for a new tick, or keys */
#define FRAME_SECONDS 0.1	/* between two pictures without a new tick */
#define TICK_SECONDS 0.05	/* the same with one, at least */
#define BOX_WIDTH 24		/* of the narrowest level's boxes, side by side, with one value */
#define VALUE_WIDTH 10		/* of each other value */
#define INDENT 2
#define HEAD_LINES 2		/* title and time; the last line has the keys */
#define SILENT 3			/* seconds without a tick that are worth a word */
#define SHADES 11		/* from green over yellow to red */

static const char help[] =
	"q Quit  Space Pause  m Metric  a Sum  s Sort  -/+ Levels  Left/Right Step  F Follow  </> Speed";

struct box {
	unsigned row;		/* of the tree */
	int line, x, width;
};

struct display {
	struct player *player;
	double speed;
	bool is_paused, is_sorted, has_ended;
	double clock_from, trace_from;	/* what is replayed: the trace's time at the clock's */
	uint64_t ticks;			/* of the trace, and the clock's time when there were no more */
	double grown;
	int folds;			/* levels shown, from the widest; 0: as many as fit */
	int shown_folds;
	int scroll;			/* lines */
	struct box *boxes;
	unsigned *order;		/* of the rows */
	unsigned nboxes;
	struct err *e;
};

static volatile sig_atomic_t is_signalled;

static void on_signal(int)
{
	is_signalled = 1;
}

/* --- where the boxes are --- */

/* Siblings with the greatest value come first; what contains others comes before them. */
static int by_value(const void *x, const void *y, void *tree)
{
	const struct trace_tree *t = tree;
	const struct trace_tree_row *a = &t->rows[*(const unsigned *) x], *b = &t->rows[*(const unsigned *) y];
	const struct trace_tree_row *first = a, *second = b;
	double left, right;

	while (a->depth > b->depth)
		a = &t->rows[a->parent];
	while (b->depth > a->depth)
		b = &t->rows[b->parent];
	if (a == b)
		return first->depth < second->depth ? -1 : first->depth > second->depth;
	for (; a->parent != b->parent; a = &t->rows[a->parent], b = &t->rows[b->parent])
		;
	left = trace_tree_value(t, a);
	right = trace_tree_value(t, b);
	if (isnan(left) || isnan(right) || left == right)
		return isnan(left) != isnan(right) ? isnan(left) - isnan(right) : a < b ? -1 : 1;
	return left > right ? -1 : 1;
}

/* Boxes of the narrowest level shown are side by side within the same parent. Returns the number of lines. */
static int boxes_place(struct display *d, int folds, int width)
{
	const struct trace_tree *t = &d->player->tree;
	const struct box *last = NULL;
	int height = 0, narrow = BOX_WIDTH;

	/* With a value of each metric, as far as there is room. */
	for (const struct trace_tree *b = t->beside; b && narrow + VALUE_WIDTH <= width; b = b->beside)
		narrow += VALUE_WIDTH;
	d->nboxes = 0;
	for (unsigned i = 0; i < t->nrows; i++) {
		const struct trace_tree_row *r = &t->rows[d->order[i]];
		int x = fmin(INDENT * r->depth, width - narrow);
		struct box *b;

		if ((int) r->level >= folds)
			continue;
		b = &d->boxes[d->nboxes++];
		*b = (struct box){ d->order[i], height, x, width - x };
		if ((int) r->level == folds - 1 && r->depth) {
			b->width = narrow;
			if (last && t->rows[last->row].level == r->level && t->rows[last->row].parent == r->parent &&
			    last->x + 2 * narrow + 1 <= width) {
				b->x = last->x + narrow + 1;
				b->line = last->line;
			}
		}
		height = b->line + 1;
		last = b;
	}
	return height;
}

static int boxes_make(struct display *d)
{
	free(d->boxes);
	free(d->order);
	d->folds = d->scroll = 0;
	d->boxes = calloc(d->player->tree.nrows, sizeof(*d->boxes));
	d->order = calloc(d->player->tree.nrows, sizeof(*d->order));
	return d->boxes && d->order ? 0 : err_set(d->e, "out of memory");
}

/* --- what is drawn --- */

/* Of the 6 x 6 x 6 colours of xterm: red rises, then green falls. */
static void colours_start(void)
{
	const char *none = getenv("NO_COLOR");

	if ((none && *none) || !has_colors())
		return;
	start_color();
	for (int i = 0; i < SHADES; i++) {
		int red = i < 5 ? i : 5, green = i < 5 ? 5 : SHADES - 1 - i;

		init_pair(i + 1, COLOR_BLACK, COLORS >= 256 ? 16 + 36 * red + 6 * green :
					      i < 4 ? COLOR_GREEN : i < 8 ? COLOR_YELLOW : COLOR_RED);
	}
}

/* [name       value     value], with the bar of the first as background. */
static void box_draw(const struct display *d, const struct box *b, int line)
{
	const struct trace_tree *t = &d->player->tree;
	const struct trace_tree_row *r = &t->rows[b->row];
	double part = trace_tree_part(t, r);
	char number[TRACE_NUMBER];
	int room = b->width - 2, bar = lround(part * room), name_room;
	struct buf name = {0}, text = {0}, values = {0};

	trace_tree_name(t, r, &name);
	buf_puts(&values, trace_tree_number(trace_tree_value(t, r), number));
	for (const struct trace_tree *other = t->beside; other && (int) values.len + VALUE_WIDTH <= room - VALUE_WIDTH;
	     other = other->beside)
		buf_printf(&values, "%*s", VALUE_WIDTH,
			   trace_tree_number(trace_tree_value_of(other, t, r), number));
	name_room = room - (int) values.len;
	/* "L2Cache 0 + Core 0 + PU 0": as many of them as there is room for, none in part */
	for (char *last = NULL; !name.failed && (int) strlen(name.data) >= name_room; *last = '\0', last = NULL) {
		for (char *at = name.data; (at = strstr(at, " + ")); at++)
			last = at;
		if (!last)
			break;
	}
	buf_printf(&text, "%-*.*s%s", name_room, name_room - 1, name.data ? name.data : "", values.data);
	mvaddch(line, b->x, '[');
	if (!text.failed) {
		attrset(COLOR_PAIRS > SHADES ? COLOR_PAIR(1 + (int) lround(part * (SHADES - 1))) : A_REVERSE);
		addnstr(text.data, bar);
		attrset(A_NORMAL);
		addnstr(text.data + bar, room - bar);
	}
	buf_free(&name);
	buf_free(&text);
	buf_free(&values);
	mvaddch(line, b->x + room + 1, ']');
}

static void __attribute__((format(printf, 3, 4))) text_draw(int line, attr_t attributes, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	attrset(attributes);
	mvaddnstr(line, 0, text, COLS);
	attrset(A_NORMAL);
}

static const char *state_text(const struct display *d, char text[static 64])
{
	double silent = clock_now() - d->grown;

	if (d->is_paused)
		return "paused";
	if (!isinf(d->speed))
		snprintf(text, 64, "speed %g", d->speed);
	else if (d->player->is_complete)
		return "complete";
	else if (silent > SILENT && silent > 2e-9 * d->player->trace->head.period)
		snprintf(text, 64, "live, nothing for %.0f s", silent);
	else
		return "live";
	return text;
}

static void draw(struct display *d)
{
	const struct player *p = d->player;
	const struct trace_head *h = &p->trace->head;
	time_t at = h->start / 1000000000;
	char date[32] = "", state[64];
	const char *phase = player_is_empty(p) ? NULL : player_phase(p);
	int room = LINES - HEAD_LINES - 1;
	struct buf title = {0};
	struct tm tm;

	if (!player_is_empty(p))
		at = (h->start * 1e-9) + player_end(p);
	if (localtime_r(&at, &tm))
		strftime(date, sizeof(date), "%F %T", &tm);
	erase();
	if (LINES < LINES_MIN || COLS < COLUMNS_MIN) {
		text_draw(0, A_BOLD, "At least %d x %d", COLUMNS_MIN, LINES_MIN);
		refresh();
		return;
	}
	trace_tree_title(&p->tree, &title);
	text_draw(0, A_BOLD, "%s: %s%s", *h->node ? h->node : "node", title.failed ? "" : title.data,
		  p->how.mode == TRACE_ACCUMULATED ? ", accumulated" : "");
	buf_free(&title);
	if (player_is_empty(p))
		text_draw(1, A_NORMAL, "%s  no tick  %s", date, state_text(d, state));
	else
		text_draw(1, A_NORMAL, "%s  %.3f of %.3f s  %s%s%s%s", date, player_end(p), p->trace->end * 1e-9,
			  state_text(d, state), d->is_sorted ? "  sorted" : "", phase ? "  " : "", phase ? phase : "");
	int most = d->player->tree.n, height;

	for (unsigned i = 0; i < d->player->tree.nrows; i++)
		d->order[i] = i;
	if (d->is_sorted)
		qsort_r(d->order, d->player->tree.nrows, sizeof(*d->order), by_value, &d->player->tree);
	d->shown_folds = d->folds ? d->folds : most;
	while ((height = boxes_place(d, d->shown_folds, COLS)) > room && !d->folds && d->shown_folds > 1)
		d->shown_folds--;
	if (d->scroll > height - room)
		d->scroll = height - room;
	if (d->scroll < 0)
		d->scroll = 0;
	for (unsigned i = 0; i < d->nboxes; i++) {
		int line = d->boxes[i].line - d->scroll;

		if (line >= 0 && line < room)
			box_draw(d, &d->boxes[i], HEAD_LINES + line);
	}
	text_draw(LINES - 1, A_REVERSE, "%s", help);
	refresh();
}

/* --- what the user does --- */

static void clock_start(struct display *d)
{
	d->clock_from = clock_now();
	d->trace_from = player_is_empty(d->player) ? 0 : player_begin(d->player);
}

static int press_handle(struct display *d, int key)
{
	struct player *p = d->player;
	int folds;

	switch (key) {
	case 'q':
	case KEY_F(10):
		d->has_ended = true;
		return 0;
	case ' ':
		d->is_paused = !d->is_paused;
		clock_start(d);
		return 0;
	case KEY_LEFT:
	case KEY_RIGHT:
		d->is_paused = true;
		return player_step(p, key == KEY_LEFT ? -1 : 1, d->e) < 0 ? -1 : 0;
	case KEY_HOME:
	case KEY_END:
		d->is_paused = true;
		return key == KEY_HOME ? player_first(p, d->e) : player_last(p, d->e);
	case 'F':
		d->is_paused = false;
		d->speed = INFINITY;
		return player_last(p, d->e);
	case '<':
	case '>':
		d->speed = isinf(d->speed) ? 1 : ldexp(d->speed, key == '<' ? -1 : 1);
		clock_start(d);
		return 0;
	case 'm':
		return player_next_metric(p, d->e) || boxes_make(d) ? -1 : 0;
	case 'a':
		return player_next_mode(p, d->e) || boxes_make(d) ? -1 : 0;
	case 's':
		d->is_sorted = !d->is_sorted;
		return 0;
	case '-':
	case '+':
	case '=':
		folds = d->shown_folds + (key == '-' ? -1 : 1);
		if (folds >= 1 && folds <= (int) p->tree.n)
			d->folds = folds;
		return 0;
	case KEY_UP:
	case KEY_DOWN:
		d->scroll += key == KEY_UP ? -1 : 1;
		return 0;
	}
	return 0;
}

/* --- */

static int display_loop(struct display *d)
{
	bool is_pressed = true;
	double drawn = 0;

	clock_start(d);
	d->grown = d->clock_from;
	while (!d->has_ended && !is_signalled) {
		double now = clock_now(), shown = d->trace_from + (now - d->clock_from) * d->speed;
		int more = !d->is_paused;

		if (player_follow(d->player, d->e))
			return -1;
		/* To the tick whose interval has begun. */
		while (more == 1 && !player_is_empty(d->player) && (isinf(d->speed) || player_end(d->player) <= shown))
			more = player_step(d->player, 1, d->e);
		if (more < 0)
			return -1;
		if (d->ticks != d->player->trace->ticks) {
			d->ticks = d->player->trace->ticks;
			d->grown = now;
		}
		if (d->player->recorder && d->player->is_complete &&
		    !(d->player->stays && !player_recorder_has_failed(d->player->recorder)))
			return 0;
		if (is_pressed || now - drawn > (d->grown > drawn ? TICK_SECONDS : FRAME_SECONDS)) {
			draw(d);
			drawn = now;
		}
		/* All keys that were pressed. */
		int key;

		timeout(FOLLOW_MS);
		for (is_pressed = false; (key = getch()) != ERR; timeout(0)) {
			is_pressed = true;
			if (press_handle(d, key))
				return -1;
			if (d->has_ended || is_signalled || key == KEY_RESIZE)
				break;
		}
	}
	return 0;
}

bool player_screen_is_possible(void)
{
	struct winsize size;
	bool is_known;
	int error;

	if (!isatty(STDIN_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_row < LINES_MIN ||
	    size.ws_col < COLUMNS_MIN)
		return false;
	/* A type of terminal on which a cursor can be placed. */
	is_known = setupterm(NULL, STDOUT_FILENO, &error) == OK && cursor_address;
	if (cur_term)
		del_curterm(cur_term);
	return is_known;
}

int player_screen_run(struct player *p, double speed, struct err *e)
{
	static const int endings[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction end = { .sa_handler = on_signal };
	struct display d = { .player = p, .speed = speed, .e = e };
	SCREEN *terminal;
	int rc;

	setlocale(LC_CTYPE, "");
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		sigaction(endings[i], &end, NULL);
	if (!(terminal = newterm(NULL, stdout, stdin)))
		return err_set(e, "the terminal '%s' cannot be used", getenv("TERM"));
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	set_escdelay(25);
	curs_set(0);
	colours_start();
	rc = boxes_make(&d) || display_loop(&d) ? -1 : 0;
	endwin();
	delscreen(terminal);
	free(d.boxes);
	free(d.order);
	return rc;
}
