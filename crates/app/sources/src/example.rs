//! A cluster for readers without one: generated, so that nothing is asked of anybody.

use anyhow::Result;
use dovetail_inventory::dump::{Sink, read_objects};
use dovetail_trace::synth::objects::{
    GeneratedObjects, OBJECTS_AT_S, ObjectKind, ObjectsConfig, objects,
};

/// What it is called where files are named.
pub const NAME: &str = "example";

/// Its seed and size: the dump of `dovetail trace synth --seed 42 --nodes 32 --dump FOLDER`.
const CONFIG: ObjectsConfig = ObjectsConfig { seed: 42, nodes: 32 };

/// Its moment, in ms since 1970.
pub(crate) const AT_MS: u64 = OBJECTS_AT_S * 1_000;

fn cluster() -> Result<GeneratedObjects> {
    Ok(objects(&CONFIG)?)
}

/// Hands all its objects to a sink.
///
/// # Errors
/// None, as long as the generator writes what the reader reads.
pub fn read_into(sink: &mut dyn Sink) -> Result<()> {
    let cluster = cluster()?;
    for kind in ObjectKind::ALL {
        for object in cluster.of_kind(kind) {
            read_objects(object.to_string().as_bytes(), NAME, sink)?;
        }
    }
    Ok(())
}

/// What its GPUs did, as a usage file.
///
/// # Errors
/// As [`read_into`].
pub fn usage() -> Result<Vec<u8>> {
    let mut file = Vec::new();
    cluster()?.write_usage(&mut file)?;
    Ok(file)
}
