//! Taints and amounts as people write them in commands and manifests.

use dovetail_model::Taint;

/// A taint as kubectl writes it.
pub fn taint_text(taint: &Taint) -> String {
    let equals = if taint.value.is_empty() { "" } else { "=" };
    format!("{}{equals}{}:{}", taint.key, taint.value, taint.effect.name())
}

/// CPU in thousandths or memory in bytes, as people write it.
pub fn amount_text(resource: &str, amount: i64) -> String {
    const MIB: i64 = 1 << 20;
    const GIB: i64 = 1 << 30;
    match resource {
        "cpu" if amount % 1000 == 0 => (amount / 1000).to_string(),
        "cpu" => format!("{amount}m"),
        _ if amount % GIB == 0 => format!("{}Gi", amount / GIB),
        _ if amount % MIB == 0 => format!("{}Mi", amount / MIB),
        _ => amount.to_string(),
    }
}
