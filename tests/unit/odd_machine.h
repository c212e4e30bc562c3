/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

/*
 * Machines at random, of what hwloc's synthetic strings cannot express: cores of 1, 2 or 4 PUs beside each other, PUs
 * that are offline, sparse numbers, NUMA nodes without CPUs or without memory, several with the same CPUs. The truth is
 * in the tables from which the XML is written, so that a test judges by neither hwloc nor Topiary.
 */

#include "base/buf.h"
#include "table.h"

enum { ODD_PUS = 64, ODD_ROOT = -1, ODD_ALL = -1 };

struct odd_numa {
	int package, domain;		/* around it, ODD_ROOT: the machine; domain ODD_ALL: all of the package */
	bool cpuless;
	uint64_t pus, all;		/* online, and with those that are offline */
	unsigned long long memory;	/* bytes */
};

struct odd_machine {
	uint64_t seed;
	struct { int package, domain; uint64_t pus, all; } core[ODD_PUS];	/* by os_index, in XML's order */
	struct odd_numa numa[ODD_PUS];	/* by os_index */
	unsigned cores, numas, packages, domains, gp;
	struct buf xml;
};

static inline unsigned odd_random(struct odd_machine *m, unsigned n)
{
	m->seed = m->seed * 6364136223846793005u + 1442695040888963407u;
	return (m->seed >> 33) % n;
}

static inline void odd_add_numa(struct odd_machine *m, int package, int domain, bool cpuless)
{
	struct odd_numa *n = &m->numa[m->numas++];

	*n = (struct odd_numa){ .package = package, .domain = domain, .cpuless = cpuless };
	n->memory = odd_random(m, 4) ? (1ull + odd_random(m, 4)) << 30 : 0;
	for (unsigned c = 0; c < m->cores && !cpuless; c++)
		if ((package == ODD_ROOT || m->core[c].package == package) &&
		    (domain == ODD_ALL || m->core[c].domain == domain)) {
			n->pus |= m->core[c].pus;
			n->all |= m->core[c].all;
		}
}

/*
 * PUs are numbered core by core, or first one of each core, with or without gaps, and then the others at random: hwloc
 * orders cores by their first PUs.
 */
static inline void odd_number(struct odd_machine *m, const unsigned *threads)
{
	unsigned char pool[ODD_PUS];
	unsigned next = 0, numbering = odd_random(m, 3), from = numbering * m->cores;

	for (unsigned i = from; i < ODD_PUS; i++)
		pool[i] = i;
	for (unsigned i = from; i < ODD_PUS; i++) {
		unsigned k = from + odd_random(m, ODD_PUS - from);
		unsigned char other = pool[k];

		pool[k] = pool[i];
		pool[i] = other;
	}
	for (unsigned c = 0; c < m->cores; c++) {
		unsigned on = odd_random(m, threads[c]);

		for (unsigned t = 0; t < threads[c]; t++) {
			unsigned pu = !numbering ? next++ : t ? pool[from++] : numbering * c;

			m->core[c].all |= UINT64_C(1) << pu;
			if (t == on || odd_random(m, 6))
				m->core[c].pus |= UINT64_C(1) << pu;
		}
	}
}

static inline void odd_draw(struct odd_machine *m)
{
	unsigned threads[ODD_PUS];

	m->packages = 1 + odd_random(m, 3);
	for (unsigned p = 0; p < m->packages; p++)
		for (unsigned d = 1 + odd_random(m, 2); d; d--, m->domains++) {
			unsigned smt = 1u << odd_random(m, 3);

			for (unsigned n = 1 + odd_random(m, 2); n; n--, m->cores++) {
				m->core[m->cores].package = p;
				m->core[m->cores].domain = m->domains;
				threads[m->cores] = odd_random(m, 4) ? smt : 1u << odd_random(m, 3);
			}
		}
	odd_number(m, threads);
	for (unsigned c = 0; c < m->cores; c++)
		if (!c || m->core[c].domain != m->core[c - 1].domain)
			for (unsigned n = odd_random(m, 3); n; n--)
				odd_add_numa(m, m->core[c].package, m->core[c].domain, false);
	for (unsigned p = 0; p < m->packages; p++) {
		if (!odd_random(m, 4))
			odd_add_numa(m, p, ODD_ALL, false);
		for (unsigned n = odd_random(m, 3) ? 0 : 1; n; n--)
			odd_add_numa(m, p, ODD_ALL, true);
	}
	if (!m->numas || !odd_random(m, 4))
		odd_add_numa(m, ODD_ROOT, ODD_ALL, false);
	for (unsigned n = odd_random(m, 3); n; n--)
		odd_add_numa(m, ODD_ROOT, ODD_ALL, true);
}

/* The PUs of a package or of a domain, and the NUMA nodes in and around it. */
static inline void odd_open(struct odd_machine *m, const char *type, int os, uint64_t pus, uint64_t all, uint64_t nodes)
{
	buf_printf(&m->xml, "<object type=\"%s\"", type);
	if (os >= 0)
		buf_printf(&m->xml, " os_index=\"%d\"", os);
	buf_printf(&m->xml, " cpuset=\"0x%08x,0x%08x\" complete_cpuset=\"0x%08x,0x%08x\"", (unsigned) (pus >> 32),
		   (unsigned) pus, (unsigned) (all >> 32), (unsigned) all);
	buf_printf(&m->xml, " nodeset=\"0x%08x\" complete_nodeset=\"0x%08x\" gp_index=\"%u\"", (unsigned) nodes,
		   (unsigned) nodes, ++m->gp);
}

/* All NUMA nodes that are there, with and without CPUs apart, as children. */
static inline void odd_write_numas(struct odd_machine *m, int package, int domain, bool cpuless)
{
	for (unsigned i = 0; i < m->numas; i++) {
		const struct odd_numa *n = &m->numa[i];

		if (n->package != package || n->domain != domain || n->cpuless != cpuless)
			continue;
		if (cpuless) {
			odd_open(m, "Group", -1, 0, 0, UINT64_C(1) << i);
			buf_printf(&m->xml, " kind=\"1001\" subkind=\"0\">\n");
		}
		odd_open(m, "NUMANode", i, n->pus, n->all, UINT64_C(1) << i);
		if (n->memory)
			buf_printf(&m->xml, " local_memory=\"%llu\"", n->memory);
		buf_printf(&m->xml, "/>\n%s", cpuless ? "</object>\n" : "");
	}
}

static inline uint64_t odd_nodes(const struct odd_machine *m, int package, int domain)
{
	uint64_t nodes = 0;

	for (unsigned i = 0; i < m->numas; i++) {
		const struct odd_numa *n = &m->numa[i];
		bool wide = n->package == ODD_ROOT || (n->package == package && n->domain == ODD_ALL);

		if ((wide && !n->cpuless) || package == ODD_ROOT ||
		    (n->package == package && (domain == ODD_ALL || n->domain == domain)))
			nodes |= UINT64_C(1) << i;
	}
	return nodes;
}

/* Of NUMA nodes, of which none is around a core: those in its domain, or else in its package, or else all. */
static inline uint64_t odd_nearest(const struct odd_machine *m, unsigned core, uint64_t nodes)
{
	uint64_t domain = nodes & odd_nodes(m, m->core[core].package, m->core[core].domain);
	uint64_t package = nodes & odd_nodes(m, m->core[core].package, ODD_ALL);

	return domain ? domain : package ? package : nodes;
}

static inline void odd_sets(const struct odd_machine *m, int package, int domain, uint64_t *pus, uint64_t *all)
{
	*pus = *all = 0;
	for (unsigned c = 0; c < m->cores; c++)
		if ((package == ODD_ROOT || m->core[c].package == package) &&
		    (domain == ODD_ALL || m->core[c].domain == domain)) {
			*pus |= m->core[c].pus;
			*all |= m->core[c].all;
		}
}

static inline void odd_write_domain(struct odd_machine *m, int package, int domain)
{
	uint64_t pus, all, nodes = odd_nodes(m, package, domain);

	odd_sets(m, package, domain, &pus, &all);
	odd_open(m, "L3Cache", -1, pus, all, nodes);
	buf_printf(&m->xml, " cache_size=\"1048576\" depth=\"3\" cache_linesize=\"64\" cache_associativity=\"8\""
		   " cache_type=\"0\">\n");
	odd_write_numas(m, package, domain, false);
	for (unsigned c = 0; c < m->cores; c++) {
		if (m->core[c].domain != domain)
			continue;
		odd_open(m, "Core", c, m->core[c].pus, m->core[c].all, nodes);
		buf_printf(&m->xml, ">\n");
		for (unsigned p = 0; p < ODD_PUS; p++)
			if (m->core[c].pus >> p & 1) {
				odd_open(m, "PU", p, UINT64_C(1) << p, UINT64_C(1) << p, nodes);
				buf_printf(&m->xml, "/>\n");
			}
		buf_printf(&m->xml, "</object>\n");
	}
	buf_printf(&m->xml, "</object>\n");
}

static inline void odd_write(struct odd_machine *m)
{
	uint64_t pus, all;

	odd_sets(m, ODD_ROOT, ODD_ALL, &pus, &all);
	buf_printf(&m->xml, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
		   "<topology version=\"2.0\">\n");
	odd_open(m, "Machine", 0, pus, all, odd_nodes(m, ODD_ROOT, ODD_ALL));
	buf_printf(&m->xml, " allowed_cpuset=\"0x%08x,0x%08x\" allowed_nodeset=\"0x%08x\">\n", (unsigned) (pus >> 32),
		   (unsigned) pus, (unsigned) odd_nodes(m, ODD_ROOT, ODD_ALL));
	odd_write_numas(m, ODD_ROOT, ODD_ALL, false);
	for (unsigned p = 0, c = 0; p < m->packages; p++) {
		odd_sets(m, p, ODD_ALL, &pus, &all);
		odd_open(m, "Package", p, pus, all, odd_nodes(m, p, ODD_ALL));
		buf_printf(&m->xml, ">\n");
		odd_write_numas(m, p, ODD_ALL, false);
		for (; c < m->cores && m->core[c].package == (int) p; c++)
			if (!c || m->core[c].domain != m->core[c - 1].domain)
				odd_write_domain(m, p, m->core[c].domain);
		odd_write_numas(m, p, ODD_ALL, true);
		buf_printf(&m->xml, "</object>\n");
	}
	odd_write_numas(m, ODD_ROOT, ODD_ALL, true);
	buf_printf(&m->xml, "</object>\n</topology>\n");
}

/* Free m->xml. */
static inline void odd_make(struct odd_machine *m, uint64_t seed)
{
	*m = (struct odd_machine){ .seed = seed * 2654435761u + 1 };
	odd_draw(m);
	odd_write(m);
}
