-- Charges of a day (UTC), grain 2: by party alone, of all groups of nodes. The rows of days that
-- are there are grain 0 added up.
INSERT INTO daily
SELECT
    cluster, 2, day_number, party, 0, 0, paid, pricing,
    CAST(SUM(charges) AS BIGINT),
    CAST(SUM(gpu_milli_ms) AS BIGINT),
    CAST(SUM(cost_all_in) AS BIGINT),
    CAST(SUM(cost_residual) AS BIGINT),
    CAST(SUM(cost_aws_split) AS BIGINT),
    CAST(SUM(cost_opencost) AS BIGINT),
    CAST(SUM(cost_datadog) AS BIGINT)
FROM daily
WHERE grain = 0
GROUP BY cluster, day_number, party, paid, pricing;
