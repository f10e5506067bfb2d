-- One row per statement about a policy: one vocabulary for its status, the daily benefit as money.
SELECT
  upper(trim(policy_id))                                          AS policy_id,
  source_system,
  upper(trim(claimant_id))                                        AS claimant_id,
  upper(trim(plan_code))                                          AS plan_code,
  CASE upper(trim(status))
    WHEN 'IN FORCE' THEN 'ACTIVE'
    ELSE replace(upper(trim(status)), ' ', '_')
  END                                                             AS status,
  try_cast(regexp_replace(daily_benefit, '[$,]', '') AS DECIMAL(18, 2)) AS daily_benefit,  -- 'n/a' becomes null
  try_cast(elimination_days AS INT)                               AS elimination_days,
  try_cast(issued_on AS DATE)                                     AS issued_on,
  ingestion_ts,
  _kafka_offset
FROM source_incremental
