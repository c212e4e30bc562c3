-- SPDX-License-Identifier: GPL-2.0-or-later
-- Works with: 0012
-- Statements that took long with thousands of bases, or hundreds of measured classes.

-- As in 0002, but patches are part of the subquery, which the planner then joins. As a filter it was expected to be so expensive that the
-- planner compared every node with every base instead.
CREATE OR REPLACE VIEW topiary_facts AS
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

-- As in 0012, but for the nodes of the class alone instead of all that were measured; and without medians if the last of them was removed
-- since costs_refresh() counted them.
CREATE OR REPLACE FUNCTION class_costs_refresh(of_class integer, of_shape text, of_list text, nodes integer, mark numeric) RETURNS void
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
