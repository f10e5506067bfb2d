-- One row per statement about a payment: amounts as money, one vocabulary for its status.
SELECT
  upper(trim(payment_id))     AS payment_id,
  source_system,
  upper(trim(claim_id))       AS claim_id,
  upper(trim(payee))          AS payee,
  try_cast(regexp_replace(amount, '[$,]', '') AS DECIMAL(18, 2)) AS amount,
  CASE upper(trim(status))
    WHEN 'SENT' THEN 'ISSUED'
    ELSE upper(trim(status))
  END                         AS status,
  try_cast(paid_on AS DATE)   AS paid_on,
  ingestion_ts,
  _kafka_offset
FROM source_incremental
