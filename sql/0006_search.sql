-- SPDX-License-Identifier: GPL-2.0-or-later
-- Values are decoded for 100,000 nodes at a time: what is the same for all nodes of a form is worked out once.

ALTER TABLE field ADD COLUMN pattern text GENERATED ALWAYS AS (
	CASE WHEN digits > 0 THEN regexp_replace(replace(middle, '%', '%%'), '[0-9a-f]', '%s', 'g') END) STORED;

-- So many hexadecimal digits, from one of them on.
CREATE FUNCTION topiary_digits(diff bytea, at integer, width integer) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	SELECT substr(encode(substr(diff, at / 2 + 1, (at % 2 + width + 1) / 2), 'hex'), at % 2 + 1, width)
$$;

CREATE OR REPLACE FUNCTION topiary_field(w field, diff bytea) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
	SELECT w.before || CASE
	       WHEN w.digits > 0 THEN format(w.pattern, VARIADIC string_to_array(topiary_digits(diff, w.at, w.width), NULL))
	       WHEN w.ordinal = 0 THEN convert_from(substr(diff, w.at + 1, w.width), 'UTF8')
	       ELSE split_part(convert_from(substr(diff, w.at + 1), 'UTF8'), E'\n', w.ordinal)
	       END || w.after
$$;

-- The facts of one name and value. The view topiary_facts has to decode the value of every node to compare it; here the value is encoded
-- as each form has it, and compared with what is stored.
CREATE FUNCTION topiary_find(wanted text, is_value text) RETURNS TABLE (node text, object text, fact text, value text, line integer)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
	WITH likely AS MATERIALIZED (
		SELECT f.id AS form, f.kind, a.object, a.name, a.value, a.line, w, m,
		       CASE WHEN w.digits > 0 THEN regexp_replace(substr(is_value, length(w.before) + 1, length(w.middle)), '[^0-9a-f]', '', 'g') END
		       AS digits
		FROM fact a
		JOIN form f ON f.base = a.base
		LEFT JOIN field w ON w.form = f.id AND w.line = a.line
		LEFT JOIN field m ON w.pages AND m.form = w.form AND m.n = w.alias
		WHERE a.name = wanted AND CASE
		      WHEN w.form IS NULL THEN a.value = is_value
		      WHEN w.pages THEN true
		      WHEN w.digits > 0 THEN regexp_replace(is_value, '[0-9a-f]', '0', 'g')
		                             = regexp_replace(w.before || w.middle || w.after, '[0-9a-f]', '0', 'g')
		                             AND starts_with(is_value, w.before) AND right(is_value, length(w.after)) = w.after
		      ELSE starts_with(is_value, w.before) AND right(is_value, length(w.after)) = w.after
		      END)
	SELECT n.name, l.object, l.name, is_value, l.line
	FROM likely l
	JOIN node n ON n.form = l.form
	WHERE CASE
	      WHEN (l.w).form IS NULL THEN true
	      WHEN (l.w).pages THEN topiary_pages(l.value, l.name, l.m, n.diff) = is_value
	      WHEN l.digits IS NOT NULL THEN topiary_digits(n.diff, (l.w).at, (l.w).width) = l.digits
	      ELSE topiary_field(l.w, n.diff) = is_value
	      END
	      AND (l.kind <> 'patch' OR NOT EXISTS (SELECT 1 FROM node_fact x WHERE x.node = n.name AND x.object = l.object AND x.name = l.name))
	UNION ALL
	SELECT x.node, x.object, x.name, x.value, x.line FROM node_fact x WHERE x.line >= 0 AND x.name = wanted AND x.value = is_value
$$;
COMMENT ON FUNCTION topiary_find(text, text) IS 'The lines of topiary_facts with this fact and value, without looking at the others';

-- hwloc writes 506b:4b03:003c:eee8; of a GID the second half is the GUID of its port. The colons stand where they stand in the base's
-- value, so that the digits alone are taken of each node. A function: of its rows the planner believes that none has another's GUID, as is
-- the case, since it expects fewer than the 200 values that it takes for granted; so it looks GUIDs up by their hash.
CREATE FUNCTION fabric_guids() RETURNS TABLE (guid text, node text, object text) LANGUAGE sql STABLE PARALLEL SAFE
ROWS 150 SET enable_nestloop = off AS $$
	WITH told AS MATERIALIZED (
		SELECT f.id AS form, f.kind, a.object, a.name, right(replace(a.value, ':', ''), 16) AS guid, w.at, w.width,
		       replace(w.before, ':', '') AS before, replace(w.after, ':', '') AS after
		FROM fact a
		JOIN form f ON f.base = a.base
		LEFT JOIN field w ON w.form = f.id AND w.line = a.line
		WHERE (a.name = 'NodeGUID' OR a.name ~ '^Port[0-9]+GID0$') AND coalesce(w.before || w.middle || w.after, a.value) ~ '^[0-9a-f:]{19,39}$'
		      AND (w.form IS NULL OR w.digits > 0))
	SELECT guid, min(node) AS node, min(object) AS object
	FROM (SELECT CASE WHEN t.at IS NULL THEN t.guid ELSE right(t.before || topiary_digits(n.diff, t.at, t.width) || t.after, 16) END AS guid,
	             n.name AS node, t.object
	      FROM told t
	      JOIN node n ON n.form = t.form
	      WHERE t.kind <> 'patch' OR NOT EXISTS (SELECT 1 FROM node_fact x WHERE x.node = n.name AND x.object = t.object AND x.name = t.name)
	      UNION ALL
	      SELECT right(replace(value, ':', ''), 16), node, object
	      FROM node_fact
	      WHERE line >= 0 AND (name = 'NodeGUID' OR name ~ '^Port[0-9]+GID0$') AND value ~ '^[0-9a-f:]{19,39}$') g
	GROUP BY 1
	HAVING min(node) = max(node)
$$;

CREATE OR REPLACE VIEW fabric_guid AS SELECT guid, node, object FROM fabric_guids();

-- Without a join to the version that ended a part: all versions have a time, from which the planner would conclude that one part at most
-- is there still, and it would compare each with each.
CREATE OR REPLACE VIEW fabric_span AS
SELECT p.kind, p.name, p.value, c.since, CASE WHEN p.went IS NOT NULL THEN (SELECT w.since FROM fabric w WHERE w.version = p.went) END AS until
FROM fabric_part p
JOIN fabric c ON c.version = p.came;

-- Each step is materialized: how many adapters a host has the planner does not know, and what it made of a guess compared each with each.
CREATE OR REPLACE VIEW topiary_fabric_adapters AS
WITH known AS MATERIALIZED (SELECT guid, node, object FROM fabric_guid),
adapter AS MATERIALIZED (
	SELECT s.name, a.value->>'guid' AS guid, a.value->>'port' AS port, s.since, s.until
	FROM fabric_span s
	CROSS JOIN LATERAL jsonb_array_elements(s.value->'adapters') a
	WHERE s.kind = 'host')
SELECT a.name AS host, a.guid, a.port, coalesce(n.node, m.node) AS node, coalesce(n.object, m.object) AS device, a.since, a.until
FROM adapter a
LEFT JOIN known n ON n.guid = a.guid
LEFT JOIN known m ON m.guid = a.port;

CREATE OR REPLACE VIEW topiary_fabric_hosts AS
WITH found AS MATERIALIZED (SELECT host, since, min(node) AS node FROM topiary_fabric_adapters GROUP BY host, since),
host AS MATERIALIZED (
	SELECT s.name AS host, coalesce(g.node, n.name) AS node, (s.value->>'known')::boolean AS known, s.value->>'guid' AS guid,
	       s.value->>'told' AS told, (s.value->>'plane')::integer AS plane, s.since, s.until
	FROM fabric_span s
	LEFT JOIN found g ON g.host = s.name AND g.since = s.since
	LEFT JOIN node n ON n.name = s.name
	WHERE s.kind = 'host')
SELECT host, node, known, guid, told, plane, since, until FROM host;

COMMENT ON COLUMN field.pattern IS 'of a value made of hexadecimal digits what stands between them, for format()';
