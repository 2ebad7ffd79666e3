-- {clustered} is each database's own word.

-- How busy the GPUs of pods were on a node in an hour, in slots of five minutes. Hours before this
-- version have no rows: how busy GPUs were then is unknown.
CREATE TABLE used (
    cluster BIGINT NOT NULL,
    hour_number BIGINT NOT NULL,
    node BIGINT NOT NULL,
    slots TEXT NOT NULL,
    PRIMARY KEY (cluster, hour_number, node)
) {clustered};
