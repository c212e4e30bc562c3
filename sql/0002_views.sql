-- SPDX-License-Identifier: GPL-2.0-or-later
-- Views for people and dashboards; role topiary_read may see them. docs/sql.md has queries to begin with.

CREATE VIEW topiary_nodes AS
SELECT n.name AS node, f.shape, s.hierarchy, s.cores, s.pus, 'c' || b.class AS class,
       CASE WHEN f.kind = 'base' AND b.node <> n.name THEN 'fields' ELSE f.kind END AS stored,
       nullif(b.node, n.name) AS base,
       CASE WHEN f.kind = 'base' AND b.node = n.name THEN octet_length(b.bytes) ELSE octet_length(n.diff) END AS stored_bytes,
       n.xml_bytes, encode(n.sha256, 'hex') AS sha256, n.boot AS boot_id, n.seq, n.since AS topology_since, n.since + make_interval(secs => n.seen) AS last_boot,
       d.severity AS drift, d.since AS drift_since, s.cores_only, s.allocation, b.detail
FROM node n
JOIN form f ON f.id = n.form
JOIN base b ON b.id = f.base
JOIN shape s ON s.name = f.shape
LEFT JOIN drift d ON d.node = n.name;
COMMENT ON VIEW topiary_nodes IS 'A line a node';
COMMENT ON COLUMN topiary_nodes.base IS 'the node whose document this one''s is told by; NULL when its own is kept whole';
COMMENT ON COLUMN topiary_nodes.stored_bytes IS 'of this document alone';
COMMENT ON COLUMN topiary_nodes.drift IS 'the gravest difference to its class: cosmetic, wiring or capacity; NULL when it has none';
COMMENT ON COLUMN topiary_nodes.detail IS 'of the base';

CREATE VIEW topiary_shapes AS
SELECT s.name AS shape, s.hierarchy, s.allocation, s.cores_only, s.cores, s.pus, coalesce(n.nodes, 0) AS nodes
FROM shape s
LEFT JOIN (SELECT f.shape, sum(c.nodes)::bigint AS nodes
           FROM (SELECT form, count(*) AS nodes FROM node GROUP BY form) c JOIN form f ON f.id = c.form
           GROUP BY f.shape) n ON n.shape = s.name;
COMMENT ON VIEW topiary_shapes IS 'A line a kind of node';

CREATE VIEW topiary_classes AS
SELECT 'c' || c.id AS class, g.node AS golden, g.shape, g.detail, c.made, coalesce(n.nodes, 0) AS nodes,
       coalesce(n.drifted, 0) AS drifted
FROM class c
JOIN base g ON g.id = c.golden
LEFT JOIN (SELECT b.class, count(*) AS nodes, count(d.node) AS drifted
           FROM node n
           JOIN form f ON f.id = n.form
           JOIN base b ON b.id = f.base
           LEFT JOIN drift d ON d.node = n.name
           GROUP BY b.class) n ON n.class = c.id;
COMMENT ON VIEW topiary_classes IS 'A line a class: nodes that are expected to be like its golden one';

-- What stands in a field of a form is found in node.diff (lib/topo/fields.h, form_place). Of a value made of hexadecimal digits these
-- alone are kept: each replaces one of the base's, between the same colons. Short enough to become part of the query that calls it.
CREATE FUNCTION topiary_field(w field, diff bytea) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
	SELECT w.before || CASE
	       WHEN w.digits > 0 THEN format(regexp_replace(replace(w.middle, '%', '%%'), '[0-9a-f]', '%s', 'g'),
	                                     VARIADIC string_to_array(substr(encode(diff, 'hex'), w.at + 1, w.width), NULL))
	       WHEN w.ordinal = 0 THEN convert_from(substr(diff, w.at + 1, w.width), 'UTF8')
	       ELSE split_part(convert_from(substr(diff, w.at + 1), 'UTF8'), E'\n', w.ordinal)
	       END || w.after
$$;

-- A count of pages is the base's and as many more as there is more memory, whose field is m.
CREATE FUNCTION topiary_pages(count text, page text, m field, diff bytea) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
	SELECT (count::numeric + div(topiary_field(m, diff)::numeric - (m.before || m.middle || m.after)::numeric,
	                             substr(page, length('pages ') + 1)::numeric))::text
$$;

CREATE VIEW topiary_facts AS
SELECT n.name AS node, a.object, a.name AS fact,
       CASE
       WHEN w.form IS NULL THEN a.value
       WHEN w.pages THEN topiary_pages(a.value, a.name, m, n.diff)
       ELSE topiary_field(w, n.diff)
       END AS value, a.line
FROM node n
JOIN form f ON f.id = n.form
JOIN fact a ON a.base = f.base
LEFT JOIN field w ON w.form = f.id AND w.line = a.line
LEFT JOIN field m ON w.pages AND m.form = w.form AND m.n = w.alias
WHERE f.kind <> 'patch' OR NOT EXISTS (SELECT 1 FROM node_fact x WHERE x.node = n.name AND x.object = a.object AND x.name = a.name)
UNION ALL
SELECT node, object, name, value, line FROM node_fact WHERE line >= 0;
COMMENT ON VIEW topiary_facts IS 'Serial numbers, addresses, memory, BIOS, kernel: a line for each value of each node';
COMMENT ON COLUMN topiary_facts.object IS 'machine, package 1, NUMA node 3, PCI 0000:41:00.0, mlx5_1, ...';
COMMENT ON COLUMN topiary_facts.fact IS 'an info''s name as hwloc has it; memory: bytes of a NUMA node; pages 4096: how many of them';
COMMENT ON COLUMN topiary_facts.line IS 'of the document, in whose order to show them';

CREATE VIEW topiary_history AS
SELECT h.node, h.since, h.until, f.shape,
       CASE WHEN f.kind = 'base' AND b.node <> h.node THEN 'fields' ELSE f.kind END AS stored,
       CASE WHEN f.kind = 'base' AND b.node = h.node THEN octet_length(b.bytes) ELSE octet_length(h.diff) END AS stored_bytes,
       h.xml_bytes, encode(h.sha256, 'hex') AS sha256
FROM (SELECT name AS node, since, NULL::timestamptz AS until, form, diff, xml_bytes, sha256 FROM node
      UNION ALL
      SELECT node, since, until, form, diff, xml_bytes, sha256 FROM past) h
JOIN form f ON f.id = h.form
JOIN base b ON b.id = f.base;
COMMENT ON VIEW topiary_history IS 'Each topology that a node exported, from when until when; until is NULL for the present one';

CREATE VIEW topiary_drift AS
SELECT d.node, 'c' || b.class AS class, d.severity, d.since, c.change->>'object' AS object, c.change->>'what' AS what,
       c.change->>'direction' AS direction, c.change->>'from' AS expected, c.change->>'to' AS found,
       c.change->>'severity' AS change_severity, c.change->>'words' AS words
FROM drift d
JOIN node n ON n.name = d.node
JOIN form f ON f.id = n.form
JOIN base b ON b.id = f.base
CROSS JOIN LATERAL jsonb_array_elements(d.changes) AS c(change);
COMMENT ON VIEW topiary_drift IS 'A line for each change of each node that is not what its class is';
COMMENT ON COLUMN topiary_drift.severity IS 'of the node: that of its gravest change';
