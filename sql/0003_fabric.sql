-- SPDX-License-Identifier: GPL-2.0-or-later
-- The fabric: switches, hosts and the links between them, as they were imported, with their history. A version is a time at which
-- something changed; each part tells with which version it came and with which it went, so that a version costs what changed.

CREATE TABLE fabric (
	version integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	since   timestamptz NOT NULL DEFAULT clock_timestamp(),
	signer  bigint NOT NULL,
	levels  text
);
CREATE UNIQUE INDEX fabric_since ON fabric (since);
COMMENT ON TABLE fabric IS 'When the fabric changed';
COMMENT ON COLUMN fabric.signer IS 'the user who imported it';
COMMENT ON COLUMN fabric.levels IS 'the levels as the file told them, where it was one that tells levels (lib/fabric/hierarchy.h)';

CREATE TABLE fabric_part (
	kind  text NOT NULL CHECK (kind IN ('plane', 'switch', 'host', 'link')),
	name  text NOT NULL,
	value jsonb NOT NULL,
	came  integer NOT NULL REFERENCES fabric,
	went  integer REFERENCES fabric CHECK (went > came),
	PRIMARY KEY (kind, name, came)
);
CREATE UNIQUE INDEX fabric_part_present ON fabric_part (kind, name) WHERE went IS NULL;
COMMENT ON TABLE fabric_part IS 'A plane, a switch, a host or a link, as it was from one version to another';
COMMENT ON COLUMN fabric_part.name IS 'a plane''s number, or a name; of a link the two, with a blank between them';
COMMENT ON COLUMN fabric_part.value IS 'as GET /v1/fabric tells it';
COMMENT ON COLUMN fabric_part.went IS 'the version that has it no more, or otherwise; NULL: it is there';

-- The parts of a fabric's document (lib/fabric/json.h).
CREATE FUNCTION fabric_parts(document jsonb) RETURNS TABLE (kind text, name text, value jsonb) LANGUAGE sql IMMUTABLE AS $$
	SELECT 'plane', (p.n - 1)::text, p.value FROM jsonb_array_elements(document->'planes') WITH ORDINALITY p(value, n)
	UNION ALL
	SELECT 'switch', s.value->>'name', s.value FROM jsonb_array_elements(document->'switches') s
	UNION ALL
	SELECT 'host', h.value->>'name', h.value FROM jsonb_array_elements(document->'hosts') h
	UNION ALL
	SELECT 'link', concat_ws(' ', l.value->>'a', l.value->>'b'), l.value FROM jsonb_array_elements(document->'links') l
$$;

-- Keep a document: which version it is, and whether that is a new one, because something changed.
-- How many parts there are, the planner does not know: that many are compared with as many.
CREATE FUNCTION fabric_keep(document jsonb, signer bigint, OUT version integer, OUT changed boolean) LANGUAGE plpgsql
SET enable_nestloop = off AS $$
DECLARE
	last fabric;
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
	INSERT INTO fabric (signer, levels) VALUES (fabric_keep.signer, document->>'text') RETURNING fabric.version INTO version;
	UPDATE fabric_part p SET went = fabric_keep.version
	FROM (SELECT p.kind, p.name
	      FROM fabric_part p LEFT JOIN fabric_parts(document) n ON (n.kind, n.name) = (p.kind, p.name)
	      WHERE p.went IS NULL AND n.value IS DISTINCT FROM p.value) gone
	WHERE p.went IS NULL AND (p.kind, p.name) = (gone.kind, gone.name);
	INSERT INTO fabric_part (kind, name, value, came)
	SELECT n.kind, n.name, n.value, fabric_keep.version
	FROM fabric_parts(document) n LEFT JOIN fabric_part p ON p.went IS NULL AND (p.kind, p.name) = (n.kind, n.name)
	WHERE p.kind IS NULL;
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
COMMENT ON VIEW topiary_fabric IS 'A line a version of the fabric, from when until when; until is NULL for the present one';
COMMENT ON COLUMN topiary_fabric.came IS 'switches, hosts and links that are new or otherwise than before';
COMMENT ON COLUMN topiary_fabric.went IS 'switches, hosts and links that are no more, or otherwise now';

-- Of what the following views show, since and until are the times of the versions: at a time t there is what has since <= t and not
-- until <= t.
CREATE VIEW fabric_span AS
SELECT p.kind, p.name, p.value, c.since, w.since AS until
FROM fabric_part p
JOIN fabric c ON c.version = p.came
LEFT JOIN fabric w ON w.version = p.went;

CREATE VIEW topiary_fabric_planes AS
SELECT name::integer AS plane, value->>'kind' AS kind, (value->>'switches')::integer AS switches, (value->>'hosts')::integer AS hosts,
       (value->>'links')::integer AS links, (value->>'cables')::integer AS cables, since, until
FROM fabric_span WHERE kind = 'plane';
COMMENT ON VIEW topiary_fabric_planes IS 'Sets of switches with no link between them, the one with most hosts first';

CREATE VIEW topiary_fabric_switches AS
SELECT name AS switch, value->>'guid' AS guid, value->>'told' AS told, (value->>'plane')::integer AS plane,
       (value->>'rank')::integer AS rank, since, until
FROM fabric_span WHERE kind = 'switch';
COMMENT ON VIEW topiary_fabric_switches IS 'A line a switch';
COMMENT ON COLUMN topiary_fabric_switches.told IS 'what the subnet calls it, where that is not its name here';
COMMENT ON COLUMN topiary_fabric_switches.rank IS 'cables to the nearest leaf switch; 0: it is one';

CREATE VIEW topiary_fabric_links AS
SELECT value->>'a' AS a, value->>'b' AS b, (value->>'cables')::integer AS cables, nullif((value->>'mbps')::bigint, 0) AS mbps,
       since, until
FROM fabric_span WHERE kind = 'link';
COMMENT ON VIEW topiary_fabric_links IS 'A line for all cables between the same two';
COMMENT ON COLUMN topiary_fabric_links.cables IS 'more than one: a trunk';
COMMENT ON COLUMN topiary_fabric_links.mbps IS 'of all together; NULL: not known';

-- hwloc writes 506b:4b03:003c:eee8; of a GID the second half is the GUID of its port.
CREATE VIEW fabric_guid AS
SELECT right(replace(value, ':', ''), 16) AS guid, min(node) AS node, min(object) AS object
FROM topiary_facts
WHERE (fact = 'NodeGUID' OR fact ~ '^Port[0-9]+GID0$') AND value ~ '^[0-9a-f:]{19,39}$'
GROUP BY 1
HAVING count(DISTINCT node) = 1;
COMMENT ON VIEW fabric_guid IS 'Which node a GUID is of; one that several nodes tell is of none';

CREATE VIEW topiary_fabric_adapters AS
SELECT s.name AS host, a.value->>'guid' AS guid, a.value->>'port' AS port, coalesce(n.node, m.node) AS node,
       coalesce(n.object, m.object) AS device, s.since, s.until
FROM fabric_span s
CROSS JOIN LATERAL jsonb_array_elements(s.value->'adapters') a
LEFT JOIN fabric_guid n ON n.guid = a.value->>'guid'
LEFT JOIN fabric_guid m ON m.guid = a.value->>'port'
WHERE s.kind = 'host';
COMMENT ON VIEW topiary_fabric_adapters IS 'A line an adapter that a host of the fabric has';
COMMENT ON COLUMN topiary_fabric_adapters.node IS 'whose topology has this GUID, of the adapter or of its port; NULL: none';
COMMENT ON COLUMN topiary_fabric_adapters.device IS 'its name there';

CREATE VIEW topiary_fabric_hosts AS
SELECT s.name AS host, coalesce(g.node, n.name) AS node, (s.value->>'known')::boolean AS known, s.value->>'guid' AS guid,
       s.value->>'told' AS told, (s.value->>'plane')::integer AS plane, s.since, s.until
FROM fabric_span s
LEFT JOIN (SELECT host, since, min(node) AS node FROM topiary_fabric_adapters GROUP BY host, since) g
       ON g.host = s.name AND g.since = s.since
LEFT JOIN node n ON n.name = s.name
WHERE s.kind = 'host';
COMMENT ON VIEW topiary_fabric_hosts IS 'A line a host';
COMMENT ON COLUMN topiary_fabric_hosts.node IS 'the node it is, by a GUID of its adapters, else by its name; NULL: the registry knows none';
COMMENT ON COLUMN topiary_fabric_hosts.known IS 'the fabric tells its name; otherwise it is named after its GUID';
COMMENT ON COLUMN topiary_fabric_hosts.plane IS 'that of its first link; NULL: it has none to a switch';

CREATE VIEW topiary_fabric_changes AS
SELECT v.version, v.since, v.kind, v.name, CASE WHEN v.before IS NULL THEN 'came' WHEN v.after IS NULL THEN 'went' ELSE 'changed' END AS change,
       v.before, v.after
FROM (SELECT f.version, f.since, p.kind, p.name, (array_agg(p.value) FILTER (WHERE p.went = f.version))[1] AS before,
             (array_agg(p.value) FILTER (WHERE p.came = f.version))[1] AS after
      FROM fabric f
      JOIN fabric_part p ON f.version IN (p.came, p.went)
      WHERE p.kind <> 'plane'
      GROUP BY f.version, f.since, p.kind, p.name) v;
COMMENT ON VIEW topiary_fabric_changes IS 'A line for each switch, host and link that came, went or is otherwise since a version';
