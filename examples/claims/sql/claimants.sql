-- One row per statement about a claimant: names and places trimmed, codes in capitals, a phone number as its digits.
SELECT
  upper(trim(claimant_id))                         AS claimant_id,
  source_system,
  trim(first_name)                                 AS first_name,
  trim(last_name)                                  AS last_name,
  try_cast(date_of_birth AS DATE)                  AS date_of_birth,
  nullif(lower(trim(email)), '')                   AS email,      -- an empty address is no address
  nullif(regexp_replace(phone, '[^0-9]', ''), '')  AS phone,
  trim(street)                                     AS street,
  trim(city)                                       AS city,
  upper(trim(state))                               AS state,
  trim(postal_code)                                AS postal_code,
  ingestion_ts,
  _kafka_offset
FROM source_incremental
