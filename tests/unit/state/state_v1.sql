-- A store as version 1 left it: no watermarks yet. Never edit this file; it stands for stores out there.
BEGIN;
CREATE TABLE karat_state (
	version INTEGER NOT NULL,
	upgraded_at VARCHAR(32) NOT NULL,
	PRIMARY KEY (version)
);
CREATE TABLE karat_runs (
	run_id VARCHAR(64) NOT NULL,
	project VARCHAR(255) NOT NULL,
	started_at VARCHAR(32) NOT NULL,
	finished_at VARCHAR(32),
	ok BOOLEAN,
	seconds DOUBLE,
	config_hash VARCHAR(128) NOT NULL,
	counts TEXT NOT NULL,
	PRIMARY KEY (run_id)
);
CREATE TABLE karat_stages (
	run_id VARCHAR(64) NOT NULL,
	stage VARCHAR(255) NOT NULL,
	status VARCHAR(16) NOT NULL,
	started_at VARCHAR(32) NOT NULL,
	finished_at VARCHAR(32),
	seconds DOUBLE,
	rows_read BIGINT NOT NULL,
	rows_landed BIGINT NOT NULL,
	rows_copies BIGINT NOT NULL,
	rows_quarantined BIGINT NOT NULL,
	rows_ignored BIGINT NOT NULL,
	rows_inserted BIGINT NOT NULL,
	rows_updated BIGINT NOT NULL,
	rows_deleted BIGINT NOT NULL,
	error TEXT,
	notes TEXT NOT NULL,
	PRIMARY KEY (run_id, stage),
	CONSTRAINT karat_stages_latest UNIQUE (stage, started_at, run_id)
);
CREATE TABLE karat_events (
	id INTEGER NOT NULL,
	run_id VARCHAR(64) NOT NULL,
	at VARCHAR(32) NOT NULL,
	kind VARCHAR(32) NOT NULL,
	body TEXT NOT NULL,
	PRIMARY KEY (id)
);
INSERT INTO karat_state VALUES (1, '2025-03-01T08:59:59.000000+00:00');
INSERT INTO karat_runs VALUES
  ('20250301T090000-a', 'bank', '2025-03-01T09:00:00.000000+00:00', '2025-03-01T09:00:40.125000+00:00', 1, 40.125, 'c0ffee', '{"succeeded": 2}'),
  ('20250302T090000-b', 'bank', '2025-03-02T09:00:00.000000+00:00', '2025-03-02T09:00:31.500000+00:00', 0, 31.5, 'c0ffee', '{"succeeded": 1, "failed": 1}');
INSERT INTO karat_stages VALUES
  ('20250301T090000-a', 'bronze.claims', 'succeeded', '2025-03-01T09:00:01.000000+00:00', '2025-03-01T09:00:21.000000+00:00', 20.0, 100, 100, 0, 0, 0, 100, 0, 0, NULL, '[]'),
  ('20250301T090000-a', 'silver.claims', 'succeeded', '2025-03-01T09:00:21.000000+00:00', '2025-03-01T09:00:40.000000+00:00', 19.0, 100, 0, 0, 0, 0, 100, 0, 0, NULL, '[]'),
  ('20250302T090000-b', 'bronze.claims', 'succeeded', '2025-03-02T09:00:01.000000+00:00', '2025-03-02T09:00:15.000000+00:00', 14.0, 120, 120, 0, 0, 0, 20, 0, 0, NULL, '[]'),
  ('20250302T090000-b', 'silver.claims', 'failed', '2025-03-02T09:00:15.000000+00:00', '2025-03-02T09:00:31.000000+00:00', 16.0, 120, 117, 0, 3, 0, 0, 0, 0, '[CONTRACT_BREACH] id_missing=3', '["look twice"]');
INSERT INTO karat_events (run_id, at, kind, body) VALUES
  ('20250301T090000-a', '2025-03-01T09:00:00.000000+00:00', 'RunStarted', '{"event": "RunStarted", "run_id": "20250301T090000-a", "at": "2025-03-01T09:00:00+00:00", "project": "bank", "stages": ["bronze.claims", "silver.claims"], "config_hash": "c0ffee"}');
COMMIT;
