-- One row per statement about a claim: both systems' words for its status become one vocabulary, amounts become money.
SELECT
  upper(trim(claim_id))                           AS claim_id,
  source_system,
  upper(trim(policy_id))                          AS policy_id,
  upper(trim(claimant_id))                        AS claimant_id,
  upper(trim(provider_id))                        AS provider_id,
  replace(upper(trim(care_type)), ' ', '_')       AS care_type,
  upper(trim(diagnosis_code))                     AS diagnosis_code,
  CASE upper(trim(status))
    WHEN 'OPEN'         THEN 'SUBMITTED'
    WHEN 'UNDER REVIEW' THEN 'IN_REVIEW'
    WHEN 'REJECTED'     THEN 'DENIED'
    ELSE replace(upper(trim(status)), ' ', '_')
  END                                             AS status,
  try_cast(regexp_replace(amount_claimed, '[$,]', '') AS DECIMAL(18, 2))  AS amount_claimed,
  try_cast(regexp_replace(amount_approved, '[$,]', '') AS DECIMAL(18, 2)) AS amount_approved,
  ingestion_ts,
  _kafka_offset
FROM source_incremental
