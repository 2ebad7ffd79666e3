-- {clustered} is each database's own word.

-- Why what was free on a node was free, as far as somebody looked in an hour.
CREATE TABLE free_look (
    cluster BIGINT NOT NULL,
    hour_number BIGINT NOT NULL,
    node BIGINT NOT NULL,
    looks TEXT NOT NULL,
    PRIMARY KEY (cluster, hour_number, node)
) {clustered};
