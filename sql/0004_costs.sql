-- SPDX-License-Identifier: GPL-2.0-or-later
-- Latency and bandwidth of nodes as topiary bench node measured them, their medians by class, and nodes slower than their class.

CREATE VIEW measured_node AS
SELECT c.node, b.class, c.shape, c.list, c.measured, c.uid, c.value
FROM node_costs c
JOIN node n ON n.name = c.node
JOIN layout f ON f.id = n.layout AND f.shape = c.shape
JOIN base b ON b.id = f.base;

CREATE FUNCTION costs_is_rate(quantity text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	SELECT starts_with(quantity, 'memory bandwidth,')
$$;

CREATE FUNCTION costs_text(quantity text, value double precision) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	SELECT CASE WHEN costs_is_rate(quantity) THEN round((value / 1e9)::numeric, 1) || ' GB/s' ELSE round((value * 1e9)::numeric, 1) || ' ns' END
$$;

-- The worst value that is not slow. 1.4826 median absolute deviations are a standard deviation of normally distributed values: six of them,
-- so that with 200 values of each of 1,000 equal nodes none is expected beyond it by chance; and at least a tenth, since nodes may differ by
-- a few per cent without being broken. Of few nodes a deviation is uncertain: hence that of its kind. NULL: too few nodes.
CREATE FUNCTION costs_limit(quantity text, median double precision, spread double precision, nodes integer) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	SELECT CASE WHEN nodes >= 8 THEN median + CASE WHEN costs_is_rate(quantity) THEN -1 ELSE 1 END
	       * greatest(0.1 * median, 6 * 1.4826 * spread) END
$$;

CREATE VIEW topiary_node_costs AS
SELECT m.node, 'c' || m.class AS class, m.measured, m.uid, u.quantity, u.value, u.median, k.nodes, u.worst AS "limit",
       coalesce(CASE WHEN costs_is_rate(u.quantity) THEN u.value < u.worst ELSE u.value > u.worst END, false) AS slow, u.line
FROM measured_node m
JOIN cost_list l ON l.name = m.list
LEFT JOIN class_costs k USING (class, shape, list)
CROSS JOIN LATERAL unnest(m.value, l.quantity, k.median, k.worst) WITH ORDINALITY u(value, quantity, median, worst, line);
COMMENT ON VIEW topiary_node_costs IS 'One row per value that topiary bench node measured of a node, beside its class';
COMMENT ON COLUMN topiary_node_costs.value IS 'memory bandwidth: bytes a second; others: seconds';
COMMENT ON COLUMN topiary_node_costs.nodes IS 'of the class, that were measured';
COMMENT ON COLUMN topiary_node_costs."limit" IS 'a worse value is slow; NULL: too few nodes were measured';
COMMENT ON COLUMN topiary_node_costs.line IS 'to sort by';

-- The medians of a class, then its slow nodes: of each kind of quantity the worst. nodes is NULL if none is left; there are no medians if the
-- last node was removed since costs_refresh() counted them.
CREATE FUNCTION class_costs_refresh(of_class integer, of_shape text, of_list text, nodes integer, mark numeric) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM class_costs k WHERE (k.class, k.shape, k.list) = (of_class, of_shape, of_list);
	IF nodes IS NOT NULL THEN
		INSERT INTO class_costs
		WITH v AS MATERIALIZED (
			SELECT u.i, u.value
			FROM measured_node m, unnest(m.value) WITH ORDINALITY u(value, i)
			WHERE (m.class, m.shape, m.list) = (of_class, of_shape, of_list)),
		middle AS MATERIALIZED (SELECT i, percentile_cont(0.5) WITHIN GROUP (ORDER BY value) AS median FROM v GROUP BY i),
		both_of AS (
			SELECT i, c.median, percentile_cont(0.5) WITHIN GROUP (ORDER BY abs(v.value - c.median)) AS spread
			FROM v JOIN middle c USING (i) GROUP BY i, c.median),
		named AS (
			SELECT b.*, l.quantity[b.i] AS quantity, split_part(l.quantity[b.i], ', ', 1) AS kind
			FROM both_of b JOIN cost_list l ON l.name = of_list),
		kinds AS (
			SELECT kind, percentile_cont(0.5) WITHIN GROUP (ORDER BY spread / median) AS part FROM named GROUP BY kind),
		wide AS (SELECT i, quantity, median, greatest(spread, part * median) AS spread FROM named JOIN kinds USING (kind))
		SELECT of_class, of_shape, of_list, class_costs_refresh.nodes, class_costs_refresh.mark, array_agg(median ORDER BY i),
		       array_agg(spread ORDER BY i),
		       array_agg(costs_limit(quantity, median, spread, class_costs_refresh.nodes) ORDER BY i)
		FROM wide
		HAVING count(*) > 0;
	END IF;
	WITH worse AS (
		SELECT m.node, u.quantity, split_part(u.quantity, ', ', 1) AS kind, u.value, u.median, 'c' || of_class AS class,
		       CASE WHEN costs_is_rate(u.quantity) THEN u.median / u.value ELSE u.value / u.median END AS ratio
		FROM measured_node m
		JOIN cost_list l ON l.name = m.list
		JOIN class_costs k USING (class, shape, list)
		CROSS JOIN LATERAL unnest(m.value, l.quantity, k.median, k.worst) u(value, quantity, median, worst)
		WHERE (m.class, m.shape, m.list) = (of_class, of_shape, of_list)
		      AND CASE WHEN costs_is_rate(u.quantity) THEN u.value < u.worst ELSE u.value > u.worst END),
	worst AS (
		SELECT DISTINCT ON (node, kind) *, count(*) OVER (PARTITION BY node, kind) AS alike
		FROM worse ORDER BY node, kind, ratio DESC, quantity),
	found AS (
		SELECT node, jsonb_agg(jsonb_build_object(
			'severity', 'slow', 'direction', 'changed', 'object', substr(quantity, length(kind) + 3), 'what', kind,
			'from', median::text, 'to', value::text,
			'words', format('%s: %s, %s has %s%s', quantity, costs_text(quantity, value), worst.class, costs_text(quantity, median),
			                CASE WHEN alike > 1 THEN format(' (and %s more of %s)', alike - 1, kind) END)) ORDER BY ratio DESC) AS changes
		FROM worst GROUP BY node),
	mended AS (
		DELETE FROM slow_node s
		WHERE (s.class, s.shape, s.list) = (of_class, of_shape, of_list) AND s.node NOT IN (SELECT node FROM found))
	INSERT INTO slow_node (node, class, shape, list, changes) SELECT node, of_class, of_shape, of_list, changes FROM found
	ON CONFLICT (node) DO UPDATE
	SET class = excluded.class, shape = excluded.shape, list = excluded.list, changes = excluded.changes;
END
$$;

-- Called by upkeep: each class of which a measurement, or a measured node, came or went. Returns whether there was one.
CREATE FUNCTION costs_refresh() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	g record;
	changed boolean := false;
BEGIN
	FOR g IN
		SELECT class, shape, list, n.nodes, n.mark
		FROM (SELECT m.class, m.shape, m.list, count(*)::integer AS nodes,
		             sum(hashtextextended(m.node || ' ' || extract(epoch FROM m.measured), 0)::numeric) AS mark
		      FROM measured_node m GROUP BY 1, 2, 3) n
		FULL JOIN class_costs k USING (class, shape, list)
		WHERE n.mark IS DISTINCT FROM k.mark
	LOOP
		PERFORM class_costs_refresh(g.class, g.shape, g.list, g.nodes, g.mark);
		changed := true;
	END LOOP;
	RETURN changed;
END
$$;

-- For topiary map: each class and shape with all its nodes, measured or not.
CREATE VIEW published_costs AS
SELECT k.class, k.shape, l.quantity, k.median, n.names
FROM (SELECT DISTINCT ON (class, shape) * FROM class_costs ORDER BY class, shape, nodes DESC, list) k
JOIN cost_list l ON l.name = k.list
JOIN (SELECT b.class, f.shape, string_agg(n.name, ',') AS names
      FROM node n JOIN layout f ON f.id = n.layout JOIN base b ON b.id = f.base
      GROUP BY b.class, f.shape) n USING (class, shape);
