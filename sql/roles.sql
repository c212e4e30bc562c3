-- SPDX-License-Identifier: GPL-2.0-or-later
-- Roles for a site that separates duties; run once by the database's superuser, before topiaryd starts. topiaryd also works with
-- one role that owns everything.
--
--	topiary_owner	owns the tables; its members apply migrations: topiaryd --migrate
--	topiary_ingest	topiaryd: adds exports and never deletes
--	topiary_read	people, dashboards
--
-- With peer authentication, create one login role per system user and grant it one of these.

CREATE ROLE topiary_owner NOLOGIN;
CREATE ROLE topiary_ingest NOLOGIN;
CREATE ROLE topiary_read NOLOGIN;

ALTER DEFAULT PRIVILEGES FOR ROLE topiary_owner IN SCHEMA public GRANT SELECT ON TABLES TO topiary_read;
ALTER DEFAULT PRIVILEGES FOR ROLE topiary_owner IN SCHEMA public GRANT SELECT, INSERT, UPDATE ON TABLES TO topiary_ingest;
GRANT CREATE, USAGE ON SCHEMA public TO topiary_owner;
GRANT USAGE ON SCHEMA public TO topiary_ingest, topiary_read;
