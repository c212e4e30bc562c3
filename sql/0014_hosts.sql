-- SPDX-License-Identifier: GPL-2.0-or-later
-- Works with: 0013
-- One spelling of each node's name, and the host that exports it: votes and quotas count hosts.

ALTER TABLE node ADD COLUMN peer inet;
COMMENT ON COLUMN node.peer IS 'address that sent the last export; NULL: not known, or shared by many';
CREATE INDEX node_peer ON node (peer) WHERE peer IS NOT NULL;

ALTER TABLE node_fact DROP CONSTRAINT node_fact_node_fkey, ADD FOREIGN KEY (node) REFERENCES node ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE drift DROP CONSTRAINT drift_node_fkey, ADD FOREIGN KEY (node) REFERENCES node ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE node_costs DROP CONSTRAINT node_costs_node_fkey, ADD FOREIGN KEY (node) REFERENCES node ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE slow_node DROP CONSTRAINT slow_node_node_fkey, ADD FOREIGN KEY (node) REFERENCES node ON DELETE CASCADE ON UPDATE CASCADE;

CREATE FUNCTION node_name_canonical(name text, domain boolean) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	SELECT lower(CASE WHEN domain THEN rtrim(name, '.') ELSE split_part(name, '.', 1) END)
$$;

-- Renames nodes with other spellings. Of several spellings of one name the row that was exported last stays, with the history of all.
CREATE FUNCTION node_names_canonical(domain boolean) RETURNS TABLE (former text, name text, renamed boolean) LANGUAGE plpgsql AS $$
BEGIN
	FOR former, name IN
		SELECT n.name, node_name_canonical(n.name, domain) FROM node n WHERE n.name <> node_name_canonical(n.name, domain)
		ORDER BY n.since + make_interval(secs => n.seen) DESC, n.name
	LOOP
		renamed := NOT EXISTS (SELECT FROM node n WHERE n.name = node_names_canonical.name);
		IF renamed THEN
			UPDATE node n SET name = node_names_canonical.name WHERE n.name = former;
		ELSE
			DELETE FROM node n WHERE n.name = former;
		END IF;
		UPDATE past p SET node = node_names_canonical.name WHERE p.node = former
		       AND NOT EXISTS (SELECT FROM past o WHERE o.node = node_names_canonical.name AND o.since = p.since);
		UPDATE base b SET node = node_names_canonical.name WHERE b.node = former;
		DELETE FROM unreadable u WHERE u.node = former;
		UPDATE fabric_adapter a SET node = node_names_canonical.name WHERE a.node = former;
		RETURN NEXT;
	END LOOP;
END
$$;
