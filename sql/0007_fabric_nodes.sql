-- SPDX-License-Identifier: GPL-2.0-or-later
-- The node that each adapter of the fabric belongs to is stored: finding it in the topologies means decoding the GUIDs of all nodes.
-- Works with: 0006

-- Each part has the times of its versions: across a join the planner cannot estimate how many parts are still present.
ALTER TABLE fabric_part ADD COLUMN since timestamptz, ADD COLUMN until timestamptz;
UPDATE fabric_part p SET since = c.since, until = (SELECT w.since FROM fabric w WHERE w.version = p.went)
FROM fabric c WHERE c.version = p.came;
ALTER TABLE fabric_part ALTER COLUMN since SET NOT NULL;
COMMENT ON COLUMN fabric_part.since IS 'time of the version in came';
COMMENT ON COLUMN fabric_part.until IS 'time of the version in went; NULL: still present';

CREATE TABLE fabric_adapter (
	since  timestamptz NOT NULL,
	host   text NOT NULL,
	guid   text,
	port   text,
	node   text,
	device text
);
CREATE INDEX fabric_adapter_host ON fabric_adapter (host, since);
COMMENT ON TABLE fabric_adapter IS 'Adapters of the hosts in fabric_part, and the node that each belongs to';
COMMENT ON COLUMN fabric_adapter.node IS 'the one node with this GUID, of the adapter or its port, at the last fabric_match(); NULL: none';
COMMENT ON COLUMN fabric_adapter.device IS 'name of the adapter in that node''s topology';

ALTER TABLE registry ADD COLUMN matched timestamptz NOT NULL DEFAULT '-infinity';
COMMENT ON COLUMN registry.matched IS 'fabric_adapter.node covers all topologies that were stored before';

-- As fabric_guids() of 0006, for nodes whose topology was stored after a time. A GUID that several of them have is returned without a node.
CREATE FUNCTION fabric_guids(after timestamptz) RETURNS TABLE (guid text, node text, object text)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 150 SET enable_nestloop = off SET jit = off AS $$
	WITH told AS MATERIALIZED (
		SELECT f.id AS form, f.kind, a.object, a.name, right(replace(a.value, ':', ''), 16) AS guid, w.at, w.width,
		       replace(w.before, ':', '') AS before, replace(w.after, ':', '') AS after
		FROM fact a
		JOIN form f ON f.base = a.base
		LEFT JOIN field w ON w.form = f.id AND w.line = a.line
		WHERE (a.name = 'NodeGUID' OR a.name ~ '^Port[0-9]+GID0$')
		      AND coalesce(w.before || w.middle || w.after, a.value) ~ '^[0-9a-f:]{19,39}$'
		      AND (w.form IS NULL OR w.digits > 0))
	SELECT guid, CASE WHEN min(node) = max(node) THEN min(node) END, min(object)
	FROM (SELECT CASE WHEN t.at IS NULL THEN t.guid
	                  ELSE right(t.before || topiary_digits(n.diff, t.at, t.width) || t.after, 16) END AS guid,
	             n.name AS node, t.object
	      FROM told t
	      JOIN node n ON n.form = t.form
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
CREATE OR REPLACE VIEW fabric_guid AS SELECT guid, node, object FROM fabric_guids('-infinity') WHERE node IS NOT NULL;
DROP FUNCTION fabric_guids();

-- Called at each import, and by upkeep when topologies were stored since. Ten minutes are more than any transaction that stores an export
-- takes, and allow for the clock of a new primary to be behind the old one's.
CREATE FUNCTION fabric_match() RETURNS void LANGUAGE plpgsql SET enable_nestloop = off SET jit = off AS $$
DECLARE
	sure timestamptz := clock_timestamp() - interval '10 minutes';
BEGIN
	UPDATE fabric_adapter a SET node = m.node, device = m.device
	FROM (WITH known AS MATERIALIZED (SELECT * FROM fabric_guid)
	      SELECT a.ctid AS row, coalesce(n.node, m.node) AS node, coalesce(n.object, m.object) AS device
	      FROM fabric_adapter a
	      LEFT JOIN known n ON n.guid = a.guid
	      LEFT JOIN known m ON m.guid = a.port) m
	WHERE a.ctid = m.row AND (a.node IS DISTINCT FROM m.node OR a.device IS DISTINCT FROM m.device);
	UPDATE registry SET matched = sure;
END
$$;

CREATE FUNCTION fabric_adapters_of(version integer) RETURNS void LANGUAGE sql AS $$
	INSERT INTO fabric_adapter (host, since, guid, port)
	SELECT p.name, p.since, a.value->>'guid', a.value->>'port'
	FROM fabric_part p
	CROSS JOIN LATERAL jsonb_array_elements(p.value->'adapters') a
	WHERE p.kind = 'host' AND p.came = version
$$;

-- As in 0003, with the times and the adapters.
CREATE OR REPLACE FUNCTION fabric_keep(document jsonb, signer bigint, OUT version integer, OUT changed boolean) LANGUAGE plpgsql
SET enable_nestloop = off AS $$
DECLARE
	last fabric;
	made fabric;
BEGIN
	LOCK TABLE fabric IN EXCLUSIVE MODE;
	SELECT * INTO last FROM fabric f ORDER BY f.version DESC LIMIT 1;
	version := last.version;
	changed := version IS NULL OR last.levels IS DISTINCT FROM document->>'text'
	           OR EXISTS (SELECT FROM fabric_parts(document) n
	                      FULL JOIN (SELECT kind, name, value FROM fabric_part WHERE went IS NULL) p USING (kind, name)
	                      WHERE n.value IS DISTINCT FROM p.value);
	IF NOT changed THEN
		RETURN;
	END IF;
	INSERT INTO fabric (signer, levels) VALUES (fabric_keep.signer, document->>'text') RETURNING * INTO made;
	version := made.version;
	UPDATE fabric_part p SET went = made.version, until = made.since
	FROM (SELECT p.kind, p.name
	      FROM fabric_part p LEFT JOIN fabric_parts(document) n ON (n.kind, n.name) = (p.kind, p.name)
	      WHERE p.went IS NULL AND n.value IS DISTINCT FROM p.value) gone
	WHERE p.went IS NULL AND (p.kind, p.name) = (gone.kind, gone.name);
	INSERT INTO fabric_part (kind, name, value, came, since)
	SELECT n.kind, n.name, n.value, made.version, made.since
	FROM fabric_parts(document) n LEFT JOIN fabric_part p ON p.went IS NULL AND (p.kind, p.name) = (n.kind, n.name)
	WHERE p.kind IS NULL;
	PERFORM fabric_adapters_of(made.version);
	PERFORM fabric_match();
END
$$;

SELECT fabric_adapters_of(version) FROM fabric;
SELECT fabric_match();

CREATE OR REPLACE VIEW fabric_span AS SELECT kind, name, value, since, until FROM fabric_part;

-- Topologies stored since the last match are decoded here; where they contradict it the adapter belongs to no node.
CREATE OR REPLACE VIEW topiary_fabric_adapters AS
WITH come AS MATERIALIZED (SELECT g.guid, g.node, g.object FROM registry r, fabric_guids(r.matched) g),
adapter AS (
	SELECT a.host, a.since, a.guid, a.port, a.device, k.name AS was, c.guid IS NOT NULL OR d.guid IS NOT NULL AS anew,
	       coalesce(c.node, d.node) AS is, coalesce(c.object, d.object) AS object
	FROM fabric_adapter a
	LEFT JOIN node k ON k.name = a.node AND k.since <= (SELECT matched FROM registry)
	LEFT JOIN come c ON c.guid = a.guid
	LEFT JOIN come d ON d.guid = a.port)
SELECT a.host, a.guid, a.port, CASE WHEN NOT a.anew THEN a.was WHEN a.was IS NULL OR a.was = a.is THEN a.is END AS node,
       CASE WHEN NOT a.anew AND a.was IS NOT NULL THEN a.device WHEN a.was IS NULL OR a.was = a.is THEN a.object END AS device,
       a.since, s.until
FROM adapter a
JOIN fabric_span s ON s.kind = 'host' AND s.name = a.host AND s.since = a.since;

CREATE OR REPLACE VIEW topiary_fabric_hosts AS
SELECT s.name AS host, coalesce(g.node, n.name) AS node, (s.value->>'known')::boolean AS known, s.value->>'guid' AS guid,
       s.value->>'told' AS told, (s.value->>'plane')::integer AS plane, s.since, s.until
FROM fabric_span s
LEFT JOIN (SELECT host, since, min(node) AS node FROM topiary_fabric_adapters GROUP BY host, since) g
       ON g.host = s.name AND g.since = s.since
LEFT JOIN node n ON n.name = s.name
WHERE s.kind = 'host';
