-- {clustered} and {bytes} are each database's own words.

CREATE TABLE cluster (
    id BIGINT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    writes BIGINT NOT NULL,
    -- The first hours that are kept one by one: of devices, and of nodes.
    devices_from_hour BIGINT NOT NULL,
    nodes_from_hour BIGINT NOT NULL
);

-- Everything with a name, by number. The parent of a device is its node, of a pod its workload, of
-- a workload its party. The digest is of the kind, the parent's digest and the body, so it is the
-- same in every ledger.
CREATE TABLE names (
    cluster BIGINT NOT NULL,
    id BIGINT NOT NULL,
    kind BIGINT NOT NULL,
    parent BIGINT NOT NULL,
    digest TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (cluster, id)
) {clustered};
CREATE UNIQUE INDEX names_by_digest ON names (cluster, digest);

-- What of the time was read, of each source; spans neither overlap nor touch.
CREATE TABLE covered (
    cluster BIGINT NOT NULL,
    source TEXT NOT NULL,
    from_ms BIGINT NOT NULL,
    to_ms BIGINT NOT NULL,
    PRIMARY KEY (cluster, source, from_ms)
) {clustered};

-- Intervals of one device in one hour.
CREATE TABLE device_hour (
    cluster BIGINT NOT NULL,
    hour_number BIGINT NOT NULL,
    device BIGINT NOT NULL,
    node BIGINT NOT NULL,
    states {bytes} NOT NULL,
    PRIMARY KEY (cluster, hour_number, device)
) {clustered};

-- CPU and memory that was kept for a pod in one hour.
CREATE TABLE kept (
    cluster BIGINT NOT NULL,
    hour_number BIGINT NOT NULL,
    node BIGINT NOT NULL,
    holder BIGINT NOT NULL,
    cpu_milli_ms BIGINT NOT NULL,
    memory_kib_ms BIGINT NOT NULL,
    PRIMARY KEY (cluster, hour_number, node, holder)
) {clustered};

-- Charges of one node in one hour; holder, party and workload 0 are nobody. Pricing says which
-- costs are known: 0 none, 1 all but by `residual`, 2 all; what is not known stands as 0.
CREATE TABLE hourly (
    cluster BIGINT NOT NULL,
    hour_number BIGINT NOT NULL,
    node BIGINT NOT NULL,
    holder BIGINT NOT NULL,
    paid BIGINT NOT NULL,
    node_group BIGINT NOT NULL,
    party BIGINT NOT NULL,
    workload BIGINT NOT NULL,
    pricing BIGINT NOT NULL,
    gpu_milli_ms BIGINT NOT NULL,
    cost_all_in BIGINT NOT NULL,
    cost_residual BIGINT NOT NULL,
    cost_aws_split BIGINT NOT NULL,
    cost_opencost BIGINT NOT NULL,
    cost_datadog BIGINT NOT NULL,
    PRIMARY KEY (cluster, hour_number, node, holder, paid)
) {clustered};

-- Charges of a day (UTC): grain 0 by party, grain 1 by workload too.
CREATE TABLE daily (
    cluster BIGINT NOT NULL,
    grain BIGINT NOT NULL,
    day_number BIGINT NOT NULL,
    party BIGINT NOT NULL,
    workload BIGINT NOT NULL,
    node_group BIGINT NOT NULL,
    paid BIGINT NOT NULL,
    pricing BIGINT NOT NULL,
    charges BIGINT NOT NULL,
    gpu_milli_ms BIGINT NOT NULL,
    cost_all_in BIGINT NOT NULL,
    cost_residual BIGINT NOT NULL,
    cost_aws_split BIGINT NOT NULL,
    cost_opencost BIGINT NOT NULL,
    cost_datadog BIGINT NOT NULL,
    PRIMARY KEY (cluster, grain, day_number, party, workload, node_group, paid, pricing)
) {clustered};
