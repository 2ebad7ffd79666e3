//! Random selectors of devices: CEL expressions of the kinds that drivers document and people
//! write, and of the functions that Kubernetes adds, nested at random. What dovetail is known to
//! evaluate otherwise (crate `dovetail-devices`, `cel`) is not drawn.

use serde_json::{Value, json};

use super::random::Draw;

/// The driver whose attributes most expressions name.
const DRIVER: &str = "gpu.example.com";

/// An expression from a seed. Nearly all compile; some fail on some devices, as by a name that is
/// not there, a type that does not fit or a division by zero.
pub fn selector(seed: u64) -> String {
    let mut draw = Draw::new(seed);
    let depth = draw.below(4);
    truth(depth, &mut draw)
}

/// Devices that differ in what selectors may name, each as its driver publishes it.
pub fn selected_devices() -> Vec<Value> {
    let device = |driver: &str, attributes: Value, capacity: Value, several: bool| {
        json!({"driver": driver, "device": {"name": "d", "attributes": attributes,
            "capacity": capacity, "allowMultipleAllocations": several}})
    };
    vec![
        device(
            DRIVER,
            json!({"model": {"string": "A100-SXM4-80GB"}, "index": {"int": 3},
                "healthy": {"bool": true}, "driverVersion": {"version": "550.54.14"},
                "uuid": {"string": "GPU-18db0e85"}, "rack.example.com/name": {"string": "r1"}}),
            json!({"memory": {"value": "80Gi"}, "multiprocessors": {"value": "108"}}),
            false,
        ),
        device(
            DRIVER,
            json!({"model": {"string": "T4"}, "index": {"int": 0}, "healthy": {"bool": false},
                "driverVersion": {"version": "1.2.3-rc.1"}, "uuid": {"string": ""}}),
            json!({"memory": {"value": "1500m"}, "multiprocessors": {"value": "40"}}),
            true,
        ),
        device(
            DRIVER,
            json!({"index": {"int": -7}, "model": {"string": "é größe 10"}}),
            json!({"memory": {"value": "16e9"}}),
            false,
        ),
        device("nic.example.com", json!({"index": {"int": 9}}), json!({}), false),
    ]
}

fn truth(depth: usize, draw: &mut Draw) -> String {
    if depth > 0 {
        let d = depth - 1;
        match draw.below(9) {
            0 | 1 => return format!("({} && {})", truth(d, draw), truth(d, draw)),
            2 | 3 => return format!("({} || {})", truth(d, draw), truth(d, draw)),
            4 => return format!("!{}", bracketed(truth(d, draw))),
            5 => {
                let [a, b, c] = [(); 3].map(|()| truth(d, draw));
                return format!("({a} ? {b} : {c})");
            }
            6 => return over_list(d, draw),
            _ => {}
        }
    }
    match draw.below(14) {
        0 => format!("device.driver == \"{}\"", draw.pick(&[DRIVER, "nic.example.com", ""])),
        1 => draw.pick(&["device.allowMultipleAllocations", "true", "false"]).to_owned(),
        2 => attribute(&["healthy", "healthy", "missing", "index"], draw),
        3 => there(&["model", "index", "missing", "healthy"], draw),
        4 | 5 => {
            let op = draw.pick(&["==", "!=", "<", "<=", ">", ">="]);
            format!("{} {op} {}", number(depth, draw), number(depth, draw))
        }
        6 => {
            let op = draw.pick(&["==", "!=", "<", ">="]);
            format!("{} {op} {}", text(depth, draw), text(depth, draw))
        }
        7 => of_text(depth, draw),
        8 | 9 => of_amounts(depth, draw),
        10 | 11 => of_versions(DRIVER, draw),
        12 => {
            let list = draw.pick(&["[0, 3, 9]", "[\"T4\", \"A100-SXM4-80GB\"]"]);
            let of = if list.contains('"') { text(0, draw) } else { number(0, draw) };
            format!("{of} in {list}")
        }
        _ => format!("isQuantity({0}) || isSemver({0})", text(0, draw)),
    }
}

fn bracketed(of: String) -> String {
    if of.starts_with('(') { of } else { format!("({of})") }
}

/// Whether a domain, or a name in it, is there.
fn there(names: &[&str], draw: &mut Draw) -> String {
    let name = draw.pick(names);
    let domain = draw.pick(&[DRIVER, "rack.example.com", "none.example.com"]);
    match draw.below(5) {
        0 => format!("\"{name}\" in device.attributes[\"{domain}\"]"),
        1 => format!("\"{domain}\" in device.attributes"),
        2 => format!("has(device.attributes[\"{domain}\"].{name})"),
        3 => format!("device.attributes[\"{domain}\"].?{name}.hasValue()"),
        _ => format!("device.capacity[?\"{domain}\"].?memory.hasValue()"),
    }
}

fn attribute(names: &[&str], draw: &mut Draw) -> String {
    let name = draw.pick(names);
    match draw.below(12) {
        0 => format!("device.attributes[\"{DRIVER}\"][\"{name}\"]"),
        1 => format!("device.attributes[\"rack.example.com\"].{name}"),
        2 => format!("device.attributes[device.driver].{name}"),
        _ => format!("device.attributes[\"{DRIVER}\"].{name}"),
    }
}

fn number(depth: usize, draw: &mut Draw) -> String {
    if depth > 0 && draw.chance(50) {
        let d = depth - 1;
        let op = draw.pick(&["+", "-", "*", "/", "%"]);
        return format!("({} {op} {})", number(d, draw), number(d, draw));
    }
    match draw.below(9) {
        0 | 1 => draw.between(-9, 9).to_string(),
        2 => draw.pick(&["9223372036854775807", "0", "int(\"12\")", "size([1, 2])"]).to_owned(),
        3 => format!("size({})", text(0, draw)),
        4 => format!("{}.indexOf(\"1\")", text(0, draw)),
        5 => format!("{}.asInteger()", amount(DRIVER, draw)),
        6 => format!("{}.orValue(5)", format_args!("device.attributes[\"{DRIVER}\"].?index")),
        _ => attribute(&["index", "index", "index", "model", "missing"], draw),
    }
}

fn text(depth: usize, draw: &mut Draw) -> String {
    if depth > 0 && draw.chance(40) {
        let of = text(depth - 1, draw);
        return match draw.below(9) {
            0 => format!("{of}.lowerAscii()"),
            1 => format!("{of}.upperAscii()"),
            2 => format!("{of}.trim()"),
            3 => format!("{of}.replace(\"0\", \"é\")"),
            4 => format!("{of}.substring({})", draw.between(0, 6)),
            5 => format!("{of}.charAt({})", draw.between(0, 4)),
            6 => format!("{of}.split(\"-\")[{}]", draw.below(3)),
            7 => format!("({of} + {})", text(depth - 1, draw)),
            _ => format!("{of}.split(\"-\").join(\"+\")"),
        };
    }
    match draw.below(8) {
        0 => draw.pick(&["\"T4\"", "\"a\\u00e9\"", "r\"A\\d\"", "\"\"", "\"10Gi\""]).to_owned(),
        1 => "device.driver".to_owned(),
        2 => format!("string({})", draw.pick(&["7", "-3", "true", "1.5", "2u"])),
        3 => format!("device.attributes[\"{DRIVER}\"].?model.orValue(\"none\")"),
        _ => attribute(&["model", "model", "uuid", "missing", "index"], draw),
    }
}

fn of_text(depth: usize, draw: &mut Draw) -> String {
    let of = text(depth, draw);
    match draw.below(5) {
        0 => format!("{of}.startsWith(\"A1\")"),
        1 => format!("{of}.endsWith(\"B\")"),
        2 => format!("{of}.contains({})", text(0, draw)),
        3 => {
            let pattern = draw.pick(&["^A100", "[0-9]+GB$", "(?i)t4", ".*", "\\\\d{2}"]);
            format!("{of}.matches(\"{pattern}\")")
        }
        _ => format!("{of}.lastIndexOf(\"0\") > {}", draw.between(-1, 5)),
    }
}

fn amount(driver: &str, draw: &mut Draw) -> String {
    match draw.below(8) {
        0 => format!("quantity(\"{}\")", draw.pick(&["10Gi", "80Gi", "0", "1500m", "-2k", "1e3"])),
        1 => format!("{}.add(quantity(\"1Gi\"))", of_capacity(driver, draw)),
        2 => format!("{}.sub({})", of_capacity(driver, draw), draw.between(0, 100)),
        _ => of_capacity(driver, draw),
    }
}

fn of_capacity(driver: &str, draw: &mut Draw) -> String {
    let name = draw.pick(&["memory", "memory", "multiprocessors", "missing"]);
    format!("device.capacity[\"{driver}\"].{name}")
}

fn of_amounts(depth: usize, draw: &mut Draw) -> String {
    let (one, other) = (amount(DRIVER, draw), amount(DRIVER, draw));
    match draw.below(7) {
        0 => format!("{one}.compareTo({other}) >= 0"),
        1 => format!("{one}.isGreaterThan({other})"),
        2 => format!("{one}.isLessThan({other})"),
        3 => format!("{one}.isInteger()"),
        4 => format!("{one}.sign() == {}", number(depth.min(1), draw)),
        5 => format!("{one}.asApproximateFloat() > {}", draw.pick(&["1.0", "8e10", "-0.5"])),
        // Kubernetes fails to compare a sum with `==`.
        _ => format!("{} == {}", of_capacity(DRIVER, draw), of_capacity(DRIVER, draw)),
    }
}

fn version(driver: &str, draw: &mut Draw) -> String {
    match draw.below(4) {
        0 => {
            let text = draw.pick(&["1.2.3", "550.54.14", "1.2.3-rc.1", "1.2", "v2.0.0", "1.02.3"]);
            let normal = draw.pick(&["", "", ", true"]);
            format!("semver(\"{text}\"{normal})")
        }
        _ => format!("device.attributes[\"{driver}\"].driverVersion"),
    }
}

fn of_versions(driver: &str, draw: &mut Draw) -> String {
    let (one, other) = (version(driver, draw), version(driver, draw));
    match draw.below(5) {
        0 => format!("{one}.compareTo({other}) < 1"),
        1 => format!("{one}.isGreaterThan({other})"),
        2 => format!("{one}.isLessThan({other})"),
        3 => format!("{one}.{}() == {}", draw.pick(&["major", "minor", "patch"]), number(0, draw)),
        _ => format!("{one} == {other}"),
    }
}

/// A macro over a list.
fn over_list(depth: usize, draw: &mut Draw) -> String {
    let list = draw.pick(&["[1, 3, 9]", "[0]", "[]", "[3, -7].map(i, i + 1)"]);
    let inside = match draw.below(3) {
        0 => format!("i == {}", attribute(&["index"], draw)),
        1 => format!("i > {}", number(0, draw)),
        _ => truth(depth.min(1), draw),
    };
    match draw.below(5) {
        0 => format!("{list}.all(i, {inside})"),
        1 => format!("{list}.exists(i, {inside})"),
        2 => format!("{list}.exists_one(i, {inside})"),
        3 => format!("{list}.filter(i, {inside}).size() > {}", draw.between(0, 1)),
        _ => format!("device.attributes.exists(domain, domain == \"{DRIVER}\")"),
    }
}
