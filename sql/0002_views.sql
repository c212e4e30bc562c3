-- SPDX-License-Identifier: GPL-2.0-or-later
-- Views for people and dashboards, which role topiary_read may read; docs/sql.md has queries to begin with.

CREATE VIEW topiary_nodes AS
SELECT n.name AS node, f.shape, s.hierarchy, s.cores, s.pus, 'c' || b.class AS class,
       CASE WHEN f.kind = 'base' AND b.node <> n.name THEN 'fields' ELSE f.kind END AS stored,
       nullif(b.node, n.name) AS base,
       CASE WHEN f.kind = 'base' AND b.node = n.name THEN octet_length(b.bytes) ELSE octet_length(n.diff) END AS stored_bytes,
       n.xml_bytes, encode(n.sha256, 'hex') AS sha256, n.boot AS boot_id, n.seq, n.since AS topology_since, n.since + make_interval(secs => n.seen) AS last_boot,
       CASE WHEN h.node IS NOT NULL OR d.severity = 'capacity' THEN 'capacity' WHEN w.severity IS NULL THEN d.severity ELSE w.severity END AS drift,
       least(d.since, w.since, h.since) AS drift_since, s.cores_only, s.allocation, b.detail, c.measured AS costs_measured
FROM node n
JOIN layout f ON f.id = n.layout
JOIN base b ON b.id = f.base
JOIN shape s ON s.name = f.shape
LEFT JOIN drift d ON d.node = n.name
LEFT JOIN slow_node w ON w.node = n.name
LEFT JOIN same_hardware h ON h.node = n.name
LEFT JOIN node_costs c ON c.node = n.name;
COMMENT ON VIEW topiary_nodes IS 'One row per node';
COMMENT ON COLUMN topiary_nodes.base IS 'the node whose document is the base of this one''s; NULL when it is its own base';
COMMENT ON COLUMN topiary_nodes.stored_bytes IS 'of this document alone';
COMMENT ON COLUMN topiary_nodes.drift IS 'highest severity of its drift: cosmetic, wiring, slow or capacity; NULL without drift';
COMMENT ON COLUMN topiary_nodes.detail IS 'of the base';
COMMENT ON COLUMN topiary_nodes.costs_measured IS 'when topiary bench node measured it last';

CREATE VIEW topiary_shapes AS
SELECT s.name AS shape, s.hierarchy, s.allocation, s.cores_only, s.cores, s.pus, coalesce(n.nodes, 0) AS nodes
FROM shape s
LEFT JOIN (SELECT f.shape, sum(c.nodes)::bigint AS nodes
           FROM (SELECT layout, count(*) AS nodes FROM node GROUP BY layout) c JOIN layout f ON f.id = c.layout
           GROUP BY f.shape) n ON n.shape = s.name;
COMMENT ON VIEW topiary_shapes IS 'One row per shape';

CREATE VIEW topiary_classes AS
SELECT 'c' || c.id AS class, g.node AS baseline, g.shape, g.detail, c.created, coalesce(n.nodes, 0) AS nodes,
       coalesce(n.drifted, 0) AS drifted
FROM class c
JOIN base g ON g.id = c.baseline
LEFT JOIN (SELECT b.class, count(*) AS nodes, count(coalesce(d.node, w.node, h.node)) AS drifted
           FROM node n
           JOIN layout f ON f.id = n.layout
           JOIN base b ON b.id = f.base
           LEFT JOIN drift d ON d.node = n.name
           LEFT JOIN slow_node w ON w.node = n.name
           LEFT JOIN same_hardware h ON h.node = n.name
           GROUP BY b.class) n ON n.class = c.id;
COMMENT ON VIEW topiary_classes IS 'One row per class, with the node of its baseline';

-- That many hexadecimal digits, from one of them on.
CREATE FUNCTION topiary_digits(diff bytea, at integer, width integer) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	SELECT substr(encode(substr(diff, at / 2 + 1, (at % 2 + width + 1) / 2), 'hex'), at % 2 + 1, width)
$$;

-- A field's value is in node.diff (lib/delta/field_layout.h, field_layout_position). Of a value of hexadecimal digits only these are stored:
-- each replaces one of the base's, between the same colons. Short enough to become part of the query that calls it.
CREATE FUNCTION topiary_field(w field, diff bytea) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
	SELECT w.before || CASE
	       WHEN w.digits > 0 THEN format(w.pattern, VARIADIC string_to_array(topiary_digits(diff, w.at, w.width), NULL))
	       WHEN w.ordinal = 0 THEN convert_from(substr(diff, w.at + 1, w.width), 'UTF8')
	       ELSE split_part(convert_from(substr(diff, w.at + 1), 'UTF8'), E'\n', w.ordinal)
	       END || w.after
$$;

-- A count of pages is the base's and as many more as there is more memory, whose field is m.
CREATE FUNCTION topiary_pages(count text, page text, m field, diff bytea) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
	SELECT (count::numeric + div(topiary_field(m, diff)::numeric - (m.before || m.middle || m.after)::numeric,
	                             substr(page, length('pages ') + 1)::numeric))::text
$$;

-- Patches are excluded within the subquery, which the planner then joins. As a filter that was expected to be so expensive that the planner
-- compared every node with every base instead.
CREATE VIEW topiary_facts AS
SELECT n.name AS node, a.object, a.name AS fact,
       CASE
       WHEN w.layout IS NULL THEN a.value
       WHEN w.pages THEN topiary_pages(a.value, a.name, m, n.diff)
       ELSE topiary_field(w, n.diff)
       END AS value, a.line
FROM node n
JOIN layout f ON f.id = n.layout
JOIN fact a ON a.base = f.base
LEFT JOIN field w ON w.layout = f.id AND w.line = a.line
LEFT JOIN field m ON w.pages AND m.layout = w.layout AND m.n = w.alias
WHERE NOT EXISTS (SELECT FROM node_fact x WHERE f.kind = 'patch' AND x.node = n.name AND x.object = a.object AND x.name = a.name)
UNION ALL
SELECT node, object, name, value, line FROM node_fact WHERE line >= 0;
COMMENT ON VIEW topiary_facts IS 'Serial numbers, addresses, memory, BIOS, kernel: one row per value and node';
COMMENT ON COLUMN topiary_facts.object IS 'machine, package 1, NUMA node 3, PCI 0000:41:00.0, mlx5_1, ...';
COMMENT ON COLUMN topiary_facts.fact IS 'name of the info in hwloc; memory: bytes of a NUMA node; pages 4096: number of such pages';
COMMENT ON COLUMN topiary_facts.line IS 'line of the document, to sort by';

-- The facts of one name and value. The view topiary_facts has to decode the value of every node to compare it; here the value is encoded
-- as each layout has it, and compared with what is stored.
CREATE FUNCTION topiary_find(wanted text, is_value text) RETURNS TABLE (node text, object text, fact text, value text, line integer)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
	WITH likely AS MATERIALIZED (
		SELECT f.id AS layout, f.kind, a.object, a.name, a.value, a.line, w, m,
		       CASE WHEN w.digits > 0 THEN regexp_replace(substr(is_value, length(w.before) + 1, length(w.middle)), '[^0-9a-f]', '', 'g') END
		       AS digits
		FROM fact a
		JOIN layout f ON f.base = a.base
		LEFT JOIN field w ON w.layout = f.id AND w.line = a.line
		LEFT JOIN field m ON w.pages AND m.layout = w.layout AND m.n = w.alias
		WHERE a.name = wanted AND CASE
		      WHEN w.layout IS NULL THEN a.value = is_value
		      WHEN w.pages THEN true
		      WHEN w.digits > 0 THEN regexp_replace(is_value, '[0-9a-f]', '0', 'g')
		                             = regexp_replace(w.before || w.middle || w.after, '[0-9a-f]', '0', 'g')
		                             AND starts_with(is_value, w.before) AND right(is_value, length(w.after)) = w.after
		      ELSE starts_with(is_value, w.before) AND right(is_value, length(w.after)) = w.after
		      END)
	SELECT n.name, l.object, l.name, is_value, l.line
	FROM likely l
	JOIN node n ON n.layout = l.layout
	WHERE CASE
	      WHEN (l.w).layout IS NULL THEN true
	      WHEN (l.w).pages THEN topiary_pages(l.value, l.name, l.m, n.diff) = is_value
	      WHEN l.digits IS NOT NULL THEN topiary_digits(n.diff, (l.w).at, (l.w).width) = l.digits
	      ELSE topiary_field(l.w, n.diff) = is_value
	      END
	      AND (l.kind <> 'patch' OR NOT EXISTS (SELECT 1 FROM node_fact x WHERE x.node = n.name AND x.object = l.object AND x.name = l.name))
	UNION ALL
	SELECT x.node, x.object, x.name, x.value, x.line FROM node_fact x WHERE x.line >= 0 AND x.name = wanted AND x.value = is_value
$$;
COMMENT ON FUNCTION topiary_find(wanted text, is_value text) IS 'The lines of topiary_facts with this fact and value, without looking at the others';

CREATE VIEW topiary_history AS
SELECT h.node, h.since, h.until, f.shape,
       CASE WHEN f.kind = 'base' AND b.node <> h.node THEN 'fields' ELSE f.kind END AS stored,
       CASE WHEN f.kind = 'base' AND b.node = h.node THEN octet_length(b.bytes) ELSE octet_length(h.diff) END AS stored_bytes,
       h.xml_bytes, encode(h.sha256, 'hex') AS sha256
FROM (SELECT name AS node, since, NULL::timestamptz AS until, layout, diff, xml_bytes, sha256 FROM node
      UNION ALL
      SELECT node, since, until, layout, diff, xml_bytes, sha256 FROM past) h
JOIN layout f ON f.id = h.layout
JOIN base b ON b.id = f.base;
COMMENT ON VIEW topiary_history IS 'One row per topology that a node exported, with its period; until is NULL for the present one';

-- Drift of all kinds, most severe first. Capacity is worse than slow, slow worse than wiring.
CREATE VIEW node_drift AS
SELECT node, CASE WHEN h.node IS NOT NULL OR d.severity = 'capacity' THEN 'capacity' WHEN s.severity IS NULL THEN d.severity ELSE s.severity END AS severity,
       least(d.since, s.since, h.since) AS since,
       coalesce(h.changes, '[]') || CASE WHEN d.severity = 'capacity' THEN d.changes || coalesce(s.changes, '[]')
                                         ELSE coalesce(s.changes, '[]') || coalesce(d.changes, '[]') END AS changes
FROM drift d
FULL JOIN slow_node s USING (node)
FULL JOIN same_hardware h USING (node);

CREATE VIEW topiary_drift AS
SELECT d.node, 'c' || b.class AS class, d.severity, d.since, c.change->>'object' AS object, c.change->>'what' AS what,
       c.change->>'direction' AS direction, c.change->>'from' AS expected, c.change->>'to' AS found,
       c.change->>'severity' AS change_severity, c.change->>'words' AS words
FROM node_drift d
JOIN node n ON n.name = d.node
JOIN layout f ON f.id = n.layout
JOIN base b ON b.id = f.base
CROSS JOIN LATERAL jsonb_array_elements(d.changes) AS c(change);
COMMENT ON VIEW topiary_drift IS 'One row per change of each node that has drifted from its class';
COMMENT ON COLUMN topiary_drift.severity IS 'of the node: its highest';

-- Serial numbers and UUIDs alone are equal on whole series of some vendors, or all zeros. Network addresses are not, but for those that
-- software makes (bit 1 of the first byte) and the links to management controllers: so all addresses of two nodes have to be equal, and
-- the serial numbers and UUIDs too. Of an IPoIB address the last eight bytes are the port's. Returns whether something changed.
CREATE FUNCTION same_hardware_refresh() RETURNS boolean LANGUAGE plpgsql SET jit = off AS $$
DECLARE
	sure timestamptz := clock_timestamp() - interval '10 minutes';
	n integer;
	m integer;
BEGIN
	CREATE TEMP TABLE same_found ON COMMIT DROP AS
	WITH part AS MATERIALIZED (
		SELECT node, fact = 'Address' AS is_address, CASE WHEN fact <> 'Address' THEN fact || ' ' || value ELSE right(value, 23) END AS value
		FROM topiary_facts
		WHERE fact IN ('DMIProductSerial', 'DMIProductUUID', 'DMIBoardSerial')
		      OR (fact = 'Address' AND value ~ '^([0-9a-f][048c]:([0-9a-f]{2}:){4}|([0-9a-f]{2}:){19})[0-9a-f]{2}$'
		          AND value !~ '^[0:]*$')),
	machine AS (
		SELECT node, string_agg(DISTINCT value, ' ') FILTER (WHERE is_address) AS addresses,
		       string_agg(DISTINCT value, ' ') FILTER (WHERE NOT is_address) AS serials
		FROM part GROUP BY node),
	alike AS (
		SELECT array_agg(node ORDER BY node) AS nodes FROM machine WHERE addresses IS NOT NULL
		GROUP BY addresses, serials HAVING count(*) > 1)
	-- The first four others and their number: all names of a large group for each of them would grow with its square.
	SELECT one.node, (array_remove(first, one.node))[1:4] AS others, total - 1 AS total
	FROM (SELECT nodes, nodes[1:5] AS first, cardinality(nodes) AS total FROM alike) AS a, unnest(nodes) AS one(node);

	DELETE FROM same_hardware s WHERE NOT EXISTS (SELECT FROM same_found f WHERE f.node = s.node);
	GET DIAGNOSTICS n = ROW_COUNT;
	INSERT INTO same_hardware (node, others, changes)
	SELECT f.node, f.others, jsonb_build_array(jsonb_build_object(
		'severity', 'capacity', 'direction', 'extra', 'object', 'Machine', 'what', 'same hardware', 'from', '',
		'to', array_to_string(f.others, ','),
		'words', format('the same hardware as %s%s: network addresses and serial numbers are equal',
		                array_to_string(f.others, ', '), CASE WHEN f.total > 4 THEN format(' and %s more', f.total - 4) END)))
	FROM same_found f JOIN node n ON n.name = f.node
	ON CONFLICT (node) DO UPDATE SET others = excluded.others, changes = excluded.changes, since = now()
	WHERE same_hardware.changes <> excluded.changes;
	GET DIAGNOSTICS m = ROW_COUNT;
	UPDATE registry SET compared = sure;
	RETURN n + m > 0;
END
$$;
