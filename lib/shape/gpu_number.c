/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "shape/gpu_number.h"

enum { DISPLAY = 0x0300, CONTROLLER_3D = 0x0302, OTHER_DISPLAY = 0x0380, ACCELERATOR = 0x1200, NVIDIA = 0x10de };

void gpu_card_add(struct gpu_card *c, bool gpu, bool coproc, const char *name)
{
	static const char *const drivers[] = { "nvml", "rsmi", "ze" };

	if (!name)
		name = "";
	/* The DRM's card0 and controlD64 are of displays, too. */
	c->computes |= coproc || (gpu && strncmp(name, "card", 4) && strncmp(name, "controlD", 8));
	for (size_t i = 0; i < sizeof(drivers) / sizeof(*drivers); i++) {
		const char *digits = name + strlen(drivers[i]);

		if (!strncmp(name, drivers[i], strlen(drivers[i])) && isdigit((unsigned char) *digits) &&
		    strlen(digits) < 5 && strspn(digits, "0123456789") == strlen(digits))
			c->driver = atoi(digits);
	}
}

bool gpu_card_is_gpu(const struct gpu_card *c)
{
	return c->computes || c->class == CONTROLLER_3D || c->class == OTHER_DISPLAY || c->class == ACCELERATOR ||
	       (c->class == DISPLAY && c->vendor == NVIDIA);
}

void gpu_cards_number(struct gpu_card *cards, size_t n)
{
	size_t most = 0;
	unsigned maker = 0;
	bool tied = false, driven = false;

	for (size_t i = 0; i < n; i++) {
		size_t count = 0;

		for (size_t k = 0; k < n; k++)
			count += cards[k].vendor == cards[i].vendor;
		if (count > most) {
			most = count;
			maker = cards[i].vendor;
			tied = false;
		}
		tied |= count == most && cards[i].vendor != maker;
	}
	for (size_t i = 0; i < n; i++)
		driven |= cards[i].vendor == maker && cards[i].driver >= 0;
	for (size_t i = 0; i < n; i++) {
		cards[i].number = cards[i].vendor != maker || tied ? -1 : driven ? cards[i].driver : 0;
		for (size_t k = 0; cards[i].number >= 0 && k < n && !driven; k++)
			cards[i].number += cards[k].vendor == maker && cards[k].bus < cards[i].bus;
	}
}
