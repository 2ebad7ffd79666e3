-- {clustered} is each database's own word.

-- What a node was on a day (UTC) beside its GPUs, as it was read last: the number of a name.
CREATE TABLE node_day (
    cluster BIGINT NOT NULL,
    day_number BIGINT NOT NULL,
    node BIGINT NOT NULL,
    facts BIGINT NOT NULL,
    PRIMARY KEY (cluster, day_number, node)
) {clustered};

-- The longest distance of two samples that anything of an hour rests on. An hour without a row was
-- read by a version that did not keep it.
CREATE TABLE resolution (
    cluster BIGINT NOT NULL,
    hour_number BIGINT NOT NULL,
    step_ms BIGINT NOT NULL,
    PRIMARY KEY (cluster, hour_number)
) {clustered};

-- What owners were told, and when last.
CREATE TABLE notice (
    cluster BIGINT NOT NULL,
    subject TEXT NOT NULL,
    told_ms BIGINT NOT NULL,
    PRIMARY KEY (cluster, subject)
) {clustered};
