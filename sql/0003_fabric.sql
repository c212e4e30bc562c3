-- SPDX-License-Identifier: GPL-2.0-or-later
-- The fabric: switches, hosts and the links between them, as they were imported, with their history. A version is a time at which something
-- changed; each part has the version that added it and the one that removed it, so that a version costs what changed.

CREATE TABLE fabric (
	version integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	since   timestamptz NOT NULL DEFAULT clock_timestamp(),
	signer  bigint NOT NULL,
	levels  text
);
CREATE UNIQUE INDEX fabric_since ON fabric (since);
COMMENT ON TABLE fabric IS 'When the fabric changed';
COMMENT ON COLUMN fabric.signer IS 'the user who imported it';
COMMENT ON COLUMN fabric.levels IS 'the text of the file, if it lists levels (lib/fabric/model/hierarchy.h)';

CREATE TABLE fabric_part (
	kind  text NOT NULL CHECK (kind IN ('plane', 'switch', 'host', 'link')),
	name  text NOT NULL,
	value jsonb NOT NULL,
	came  integer NOT NULL REFERENCES fabric,
	went  integer REFERENCES fabric CHECK (went > came),
	since timestamptz NOT NULL,
	until timestamptz,
	PRIMARY KEY (kind, name, came)
);
CREATE UNIQUE INDEX fabric_part_present ON fabric_part (kind, name) WHERE went IS NULL;
COMMENT ON TABLE fabric_part IS 'A plane, a switch, a host or a link, and the versions that have it';
COMMENT ON COLUMN fabric_part.name IS 'a plane''s number, or a name; of a link both names, with a blank between them';
COMMENT ON COLUMN fabric_part.value IS 'as in the reply to GET /v1/fabric';
COMMENT ON COLUMN fabric_part.went IS 'the first version without it, or with another value; NULL: still present';
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

-- The parts of a fabric's document (lib/fabric/read/json.h).
CREATE FUNCTION fabric_parts(document jsonb) RETURNS TABLE (kind text, name text, value jsonb) LANGUAGE sql IMMUTABLE AS $$
	SELECT 'plane', (p.n - 1)::text, p.value FROM jsonb_array_elements(document->'planes') WITH ORDINALITY p(value, n)
	UNION ALL
	SELECT 'switch', s.value->>'name', s.value FROM jsonb_array_elements(document->'switches') s
	UNION ALL
	SELECT 'host', h.value->>'name', h.value FROM jsonb_array_elements(document->'hosts') h
	UNION ALL
	SELECT 'link', concat_ws(' ', l.value->>'a', l.value->>'b'), l.value FROM jsonb_array_elements(document->'links') l
$$;

CREATE FUNCTION fabric_adapters_of(version integer) RETURNS void LANGUAGE sql AS $$
	INSERT INTO fabric_adapter (host, since, guid, port)
	SELECT p.name, p.since, a.value->>'guid', a.value->>'port'
	FROM fabric_part p
	CROSS JOIN LATERAL jsonb_array_elements(p.value->'adapters') a
	WHERE p.kind = 'host' AND p.came = version
$$;

-- Of the nodes whose topology was stored after a time; a GUID that several of them have is returned without a node.
-- hwloc writes 506b:4b03:003c:eee8; of a GID the second half is the GUID of its port. The colons are where the base's value has them, so that
-- only the digits of each node are read. ROWS: the planner expects as many different GUIDs, and looks them up by their hash.
CREATE FUNCTION fabric_guids(after timestamptz) RETURNS TABLE (guid text, node text, object text)
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

CREATE VIEW fabric_guid AS SELECT guid, node, object FROM fabric_guids('-infinity') WHERE node IS NOT NULL;
COMMENT ON VIEW fabric_guid IS 'The node of each GUID; one that several nodes have belongs to none';

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

-- Stores a document: which version it is, and whether that is a new one, because something changed. The planner does not know how many parts
-- there are, and they are compared with as many: hence no nested loops.
CREATE FUNCTION fabric_keep(document jsonb, signer bigint, OUT version integer, OUT changed boolean) LANGUAGE plpgsql
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

-- The version of a time; NULL: there was none yet.
CREATE FUNCTION fabric_version(at timestamptz) RETURNS integer LANGUAGE sql STABLE AS $$
	SELECT version FROM fabric WHERE since <= at ORDER BY since DESC LIMIT 1
$$;

-- What a version has of a kind, as a list of JSON.
CREATE FUNCTION fabric_list(of integer, wanted text) RETURNS json LANGUAGE sql STABLE AS $$
	SELECT coalesce(json_agg(value ORDER BY name), '[]') FROM fabric_part
	WHERE kind = wanted AND came <= of AND (went IS NULL OR went > of)
$$;

CREATE VIEW topiary_fabric AS
SELECT f.version, f.since, lead(f.since) OVER (ORDER BY f.version) AS until, f.signer, f.levels,
       coalesce(c.came, 0) AS came, coalesce(w.went, 0) AS went
FROM fabric f
LEFT JOIN (SELECT came AS version, count(*) AS came FROM fabric_part WHERE kind <> 'plane' GROUP BY came) c USING (version)
LEFT JOIN (SELECT went AS version, count(*) AS went FROM fabric_part WHERE kind <> 'plane' GROUP BY went) w USING (version);
COMMENT ON VIEW topiary_fabric IS 'One row per version of the fabric, with its period; until is NULL for the present one';
COMMENT ON COLUMN topiary_fabric.came IS 'switches, hosts and links added or changed';
COMMENT ON COLUMN topiary_fabric.went IS 'switches, hosts and links removed or changed';

-- since and until are the times of the versions: at a time t there is what has since <= t and not until <= t.
CREATE VIEW topiary_fabric_planes AS
SELECT name::integer AS plane, value->>'kind' AS kind, (value->>'switches')::integer AS switches, (value->>'hosts')::integer AS hosts,
       (value->>'links')::integer AS links, (value->>'cables')::integer AS cables, since, until
FROM fabric_part WHERE kind = 'plane';
COMMENT ON VIEW topiary_fabric_planes IS 'Sets of switches without links between them, the one with most hosts first';

CREATE VIEW topiary_fabric_switches AS
SELECT name AS switch, value->>'guid' AS guid, value->>'told' AS told, (value->>'plane')::integer AS plane,
       (value->>'rank')::integer AS rank, since, until
FROM fabric_part WHERE kind = 'switch';
COMMENT ON VIEW topiary_fabric_switches IS 'One row per switch';
COMMENT ON COLUMN topiary_fabric_switches.told IS 'its description in the subnet, where that is not its name here';
COMMENT ON COLUMN topiary_fabric_switches.rank IS 'hops to the nearest leaf switch; 0: it is one';

CREATE VIEW topiary_fabric_links AS
SELECT value->>'a' AS a, value->>'b' AS b, (value->>'cables')::integer AS cables, nullif((value->>'mbps')::bigint, 0) AS mbps,
       since, until
FROM fabric_part WHERE kind = 'link';
COMMENT ON VIEW topiary_fabric_links IS 'One row per pair of connected switches or hosts, with all cables between them';
COMMENT ON COLUMN topiary_fabric_links.cables IS 'more than one: a trunk';
COMMENT ON COLUMN topiary_fabric_links.mbps IS 'of all cables together; NULL: unknown';

-- Topologies stored since the last match are decoded here; where they contradict it the adapter belongs to no node.
CREATE VIEW topiary_fabric_adapters AS
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
JOIN fabric_part s ON s.kind = 'host' AND s.name = a.host AND s.since = a.since;
COMMENT ON VIEW topiary_fabric_adapters IS 'One row per adapter of a host';
COMMENT ON COLUMN topiary_fabric_adapters.node IS 'the node whose topology has the GUID of the adapter or of its port; NULL: none';
COMMENT ON COLUMN topiary_fabric_adapters.device IS 'its name in that topology';

CREATE VIEW topiary_fabric_hosts AS
SELECT s.name AS host, coalesce(g.node, n.name) AS node, (s.value->>'known')::boolean AS known, s.value->>'guid' AS guid,
       s.value->>'told' AS told, (s.value->>'plane')::integer AS plane, s.since, s.until
FROM fabric_part s
LEFT JOIN (SELECT host, since, min(node) AS node FROM topiary_fabric_adapters GROUP BY host, since) g
       ON g.host = s.name AND g.since = s.since
LEFT JOIN node n ON n.name = s.name
WHERE s.kind = 'host';
COMMENT ON VIEW topiary_fabric_hosts IS 'One row per host';
COMMENT ON COLUMN topiary_fabric_hosts.node IS 'the node, by a GUID of its adapters, else by its name; NULL: not in the registry';
COMMENT ON COLUMN topiary_fabric_hosts.known IS 'the fabric has its name; otherwise it is named by its GUID';
COMMENT ON COLUMN topiary_fabric_hosts.plane IS 'plane of its first link; NULL: not connected to a switch';

CREATE VIEW topiary_fabric_changes AS
SELECT v.version, v.since, v.kind, v.name, CASE WHEN v.before IS NULL THEN 'came' WHEN v.after IS NULL THEN 'went' ELSE 'changed' END AS change,
       v.before, v.after
FROM (SELECT f.version, f.since, p.kind, p.name, (array_agg(p.value) FILTER (WHERE p.went = f.version))[1] AS before,
             (array_agg(p.value) FILTER (WHERE p.came = f.version))[1] AS after
      FROM fabric f
      JOIN fabric_part p ON f.version IN (p.came, p.went)
      WHERE p.kind <> 'plane'
      GROUP BY f.version, f.since, p.kind, p.name) v;
COMMENT ON VIEW topiary_fabric_changes IS 'One row per switch, host or link added, removed or changed with a version';
