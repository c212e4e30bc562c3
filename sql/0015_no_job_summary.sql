-- SPDX-License-Identifier: GPL-2.0-or-later
-- What a job did is read from the traces in its folder (topiary trace summary, topiary advise).

DROP VIEW topiary_job_metrics;
DROP TABLE job_summary;
