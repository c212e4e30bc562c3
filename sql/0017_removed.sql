-- SPDX-License-Identifier: GPL-2.0-or-later
-- Works with: 0015
-- A snapshot that lacks most nodes of the one before replaces it only if topiary forget removed them.

ALTER TABLE registry ADD COLUMN removed bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN registry.removed IS 'how many nodes topiary forget has removed; written into each snapshot';
