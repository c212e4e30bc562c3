-- SPDX-License-Identifier: GPL-2.0-or-later
-- Tables and columns under the names that docs/sql.md, the API and topiaryd use for what they hold. An earlier topiaryd does not know them.

ALTER TABLE form RENAME TO layout;
ALTER INDEX form_pkey RENAME TO layout_pkey;
ALTER INDEX form_base RENAME TO layout_base;
ALTER SEQUENCE form_id_seq RENAME TO layout_id_seq;
ALTER TABLE layout RENAME COLUMN made TO created;
ALTER TABLE field RENAME COLUMN form TO layout;
ALTER TABLE node RENAME COLUMN form TO layout;
ALTER TABLE past RENAME COLUMN form TO layout;
ALTER INDEX past_form RENAME TO past_layout;

ALTER TABLE class RENAME COLUMN golden TO baseline;
ALTER TABLE class RENAME COLUMN retell TO recompare_since;
ALTER TABLE class RENAME COLUMN made TO created;
ALTER TABLE base RENAME COLUMN made TO created;
ALTER TABLE drift RENAME COLUMN told TO reported;
ALTER INDEX drift_untold RENAME TO drift_unreported;
ALTER TABLE registry RENAME COLUMN checked TO verify_cursor;
ALTER TABLE registry RENAME COLUMN whole TO verified;

ALTER VIEW topiary_classes RENAME COLUMN golden TO baseline;
ALTER VIEW topiary_classes RENAME COLUMN made TO created;

COMMENT ON TABLE class IS 'Classes: nodes that are expected to be identical but for serial numbers and addresses; drift is the difference from the baseline';
COMMENT ON COLUMN class.baseline IS 'the base that the nodes of the class are compared with';
COMMENT ON COLUMN class.accepted_from IS 'the class that its baseline drifted from until an administrator accepted it';
COMMENT ON COLUMN base.drift IS 'changes from the baseline of its class as JSON; NULL without drift';

-- As in 0006; the text of a function does not follow a renamed column.
CREATE OR REPLACE FUNCTION topiary_find(wanted text, is_value text) RETURNS TABLE (node text, object text, fact text, value text, line integer)
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

-- As in 0007.
CREATE OR REPLACE FUNCTION fabric_guids(after timestamptz) RETURNS TABLE (guid text, node text, object text)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 150 SET enable_nestloop = off SET jit = off AS $$
	WITH guid_values AS MATERIALIZED (
		SELECT f.id AS layout, f.kind, a.object, a.name, right(replace(a.value, ':', ''), 16) AS guid, w.at, w.width,
		       replace(w.before, ':', '') AS before, replace(w.after, ':', '') AS after
		FROM fact a
		JOIN layout f ON f.base = a.base
		LEFT JOIN field w ON w.layout = f.id AND w.line = a.line
		WHERE (a.name = 'NodeGUID' OR a.name ~ '^Port[0-9]+GID0$')
		      AND coalesce(w.before || w.middle || w.after, a.value) ~ '^[0-9a-f:]{19,39}$'
		      AND (w.layout IS NULL OR w.digits > 0))
	SELECT guid, CASE WHEN min(node) = max(node) THEN min(node) END, min(object)
	FROM (SELECT CASE WHEN t.at IS NULL THEN t.guid
	                  ELSE right(t.before || topiary_digits(n.diff, t.at, t.width) || t.after, 16) END AS guid,
	             n.name AS node, t.object
	      FROM guid_values t
	      JOIN node n ON n.layout = t.layout
	      WHERE n.since > fabric_guids.after
	            AND (t.kind <> 'patch'
	                 OR NOT EXISTS (SELECT 1 FROM node_fact x WHERE x.node = n.name AND x.object = t.object AND x.name = t.name))
	      UNION ALL
	      SELECT right(replace(x.value, ':', ''), 16), x.node, x.object
	      FROM node_fact x
	      JOIN node n ON n.name = x.node
	      WHERE n.since > fabric_guids.after AND x.line >= 0 AND (x.name = 'NodeGUID' OR x.name ~ '^Port[0-9]+GID0$')
	            AND x.value ~ '^[0-9a-f:]{19,39}$') g
	GROUP BY 1
$$;
