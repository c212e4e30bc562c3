-- SPDX-License-Identifier: GPL-2.0-or-later
-- Roles for a site that separates duties; run by the database's superuser with psql, before topiaryd first starts or later, and again
-- for another database or to restore grants. topiaryd also works with one role that owns everything: name it with `-v owner=ROLE`, and
-- its tables are opened to topiary_read.
--
--	topiary_owner	owns the tables; its members apply migrations: topiaryd --migrate
--	topiary_ingest	topiaryd: keeps exports, but changes no table
--	topiary_read	people, dashboards
--
-- With peer authentication, create one login role per system user and grant it one of these. What a member of topiary_owner makes
-- must be that role's own: ALTER ROLE member SET role = 'topiary_owner'.

\if :{?owner}
\else
\set owner topiary_owner
SELECT 'CREATE ROLE topiary_owner NOLOGIN' WHERE to_regrole('topiary_owner') IS NULL \gexec
\endif
SELECT format('CREATE ROLE %I NOLOGIN', r) FROM unnest(ARRAY['topiary_ingest', 'topiary_read']) r WHERE to_regrole(r) IS NULL \gexec

GRANT CREATE, USAGE ON SCHEMA public TO :"owner";
GRANT USAGE ON SCHEMA public TO topiary_ingest, topiary_read;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO topiary_read;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO topiary_ingest;
ALTER DEFAULT PRIVILEGES FOR ROLE :"owner" IN SCHEMA public GRANT SELECT ON TABLES TO topiary_read;
ALTER DEFAULT PRIVILEGES FOR ROLE :"owner" IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO topiary_ingest;
