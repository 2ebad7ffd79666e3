//! The data of the ConfigMaps that components read.

use dovetail_objects::yaml;
use serde_json::{Map, Value, json};

use crate::component::Component;
use crate::names::{AMD_CONFIG_KEY, CONFIG_KEY};

/// Where Device Config Manager has its profiles.
const PROFILES: &str = "gpu-config-profiles";

/// Settings by name.
pub(crate) type Named = Map<String, Value>;

/// The layouts in the data of a ConfigMap, and what a component has beside them.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn read(of: Component, data: &Value) -> Result<(Named, Named), String> {
    Ok(match of {
        Component::MigManager => (mig_parted(data)?, Named::new()),
        Component::DevicePlugin => (data.as_object().cloned().unwrap_or_default(), Named::new()),
        Component::DeviceConfigManager => profiles(data)?,
    })
}

/// The data of a ConfigMap with these layouts.
pub(crate) fn data(of: Component, named: &Named, others: &Named) -> Value {
    match of {
        Component::MigManager => {
            let config = json!({"version": "v1", "mig-configs": named});
            json!({CONFIG_KEY: yaml(&config)})
        }
        Component::DevicePlugin => Value::Object(named.clone()),
        Component::DeviceConfigManager => {
            let mut config = others.clone();
            config.insert(PROFILES.to_owned(), json!(named));
            json!({AMD_CONFIG_KEY: format!("{:#}\n", Value::Object(config))})
        }
    }
}

/// The layouts of a ConfigMap for mig-manager.
fn mig_parted(data: &Value) -> Result<Named, String> {
    let text = data[CONFIG_KEY].as_str();
    let text = text.ok_or_else(|| format!("it has no key {CONFIG_KEY}"))?;
    let config: Value = serde_saphyr::from_str(text)
        .map_err(|error| format!("{CONFIG_KEY} is not YAML: {error}"))?;
    let named = config["mig-configs"].as_object();
    Ok(named.ok_or_else(|| format!("{CONFIG_KEY} has no mapping `mig-configs`"))?.clone())
}

/// The profiles in a ConfigMap for Device Config Manager, and what is beside them.
fn profiles(data: &Value) -> Result<(Named, Named), String> {
    let text = data[AMD_CONFIG_KEY].as_str();
    let text = text.ok_or_else(|| format!("it has no key {AMD_CONFIG_KEY}"))?;
    let mut config: Named = serde_json::from_str(text)
        .map_err(|error| format!("{AMD_CONFIG_KEY} is not a JSON object: {error}"))?;
    match config.remove(PROFILES) {
        Some(Value::Object(named)) => Ok((named, config)),
        _ => Err(format!("{AMD_CONFIG_KEY} has no object `{PROFILES}`")),
    }
}
