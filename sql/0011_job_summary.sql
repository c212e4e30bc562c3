-- SPDX-License-Identifier: GPL-2.0-or-later
-- Works with: 0009
-- What a job did on the hardware: one summary of all its traces, as its user sent it. Samples stay in the trace files.

CREATE TABLE job_summary (
	job     bigint NOT NULL CHECK (job > 0),
	step    text NOT NULL,
	uid     bigint NOT NULL,
	stored  timestamptz NOT NULL DEFAULT now(),
	summary jsonb NOT NULL CHECK (jsonb_typeof(summary) = 'object'),
	PRIMARY KEY (job, step, uid)
);
CREATE INDEX job_summary_uid ON job_summary (uid, stored);
COMMENT ON TABLE job_summary IS 'Summaries of jobs'' traces, at most 2,560 bytes each; true as far as the user who sent it is honest';
COMMENT ON COLUMN job_summary.step IS 'as Slurm writes it (0, batch ...); empty: the whole job';
COMMENT ON COLUMN job_summary.uid IS 'who signed it; others cannot replace it, and only administrators read it too';
COMMENT ON COLUMN job_summary.summary IS 'lib/trace/summary.h';

CREATE VIEW topiary_job_metrics AS
SELECT j.job, j.step, j.uid, j.stored, (j.summary->>'nodes')::integer AS nodes, (j.summary->>'seconds')::float8 AS seconds,
       m->>'metric' AS metric, m->>'level' AS level, (m->>'total')::numeric AS total, (m->>'average')::float8 AS average,
       (m->>'least')::float8 AS least, m->>'least_at' AS least_at, (m->>'most')::float8 AS most, m->>'most_at' AS most_at
FROM job_summary j, jsonb_array_elements(CASE jsonb_typeof(j.summary->'metrics') WHEN 'array' THEN j.summary->'metrics' END) m;
COMMENT ON VIEW topiary_job_metrics IS 'A line a metric of a job''s summary';
