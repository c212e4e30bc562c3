-- SPDX-License-Identifier: GPL-2.0-or-later
-- Works with: 0015
-- One machine under two names: Slurm counts its cores twice, or root of one node exports another's topology.

CREATE TABLE same_hardware (
	node    text PRIMARY KEY REFERENCES node ON DELETE CASCADE ON UPDATE CASCADE,
	since   timestamptz NOT NULL DEFAULT now(),
	others  text[] NOT NULL,
	changes jsonb NOT NULL
);
COMMENT ON TABLE same_hardware IS 'nodes that exported the hardware of others, as found by upkeep; the drift hook is not run for them';
COMMENT ON COLUMN same_hardware.others IS 'the first four';
COMMENT ON COLUMN same_hardware.changes IS 'as in drift';
ALTER TABLE registry ADD COLUMN compared timestamptz NOT NULL DEFAULT '-infinity';
COMMENT ON COLUMN registry.compared IS 'same_hardware covers all topologies that were stored before';

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

-- As in 0012, with these.
CREATE OR REPLACE VIEW node_drift AS
SELECT node, CASE WHEN h.node IS NOT NULL OR d.severity = 'capacity' THEN 'capacity' WHEN s.severity IS NULL THEN d.severity ELSE s.severity END AS severity,
       least(d.since, s.since, h.since) AS since,
       coalesce(h.changes, '[]') || CASE WHEN d.severity = 'capacity' THEN d.changes || coalesce(s.changes, '[]')
                                         ELSE coalesce(s.changes, '[]') || coalesce(d.changes, '[]') END AS changes
FROM drift d
FULL JOIN slow_node s USING (node)
FULL JOIN same_hardware h USING (node);

CREATE OR REPLACE VIEW topiary_nodes AS
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

CREATE OR REPLACE VIEW topiary_classes AS
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
