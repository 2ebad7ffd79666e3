//! How large a served model is, by its name.

/// What is known of the weights of a served model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServedModel {
    /// Number of weights, in millions; `None` if nothing says.
    pub weights_millions: Option<u64>,
    /// Bits of a weight, where a name or an argument says so.
    pub bits: Option<u32>,
}

/// Bits of a weight of which nothing is said: most models are published with so many.
const USUAL_BITS: u32 = 16;

/// No model has more weights, in millions.
const MOST_MILLIONS: u64 = 100_000_000;

/// Bits that a weight can have.
const WIDTHS: [u32; 8] = [2, 3, 4, 5, 6, 8, 16, 32];

/// Models that are published with fewer bits and do not say so in their names.
const PUBLISHED_SMALL: [(&str, u32); 5] =
    [("deepseek-r1", 8), ("deepseek-v3", 8), ("gpt-oss", 4), ("kimi-k2", 8), ("minimax-m2", 8)];

/// Made of these by training on their answers: with weights of its own.
const DISTILLED: &str = "distill";

/// Ways to quantise by name, with bits of a weight.
const QUANTISED: [(&str, u32); 11] = [
    ("awq", 4),
    ("bitsandbytes", 4),
    ("bnb", 4),
    ("exl2", 4),
    ("gguf", 4),
    ("gptq", 4),
    ("marlin", 4),
    ("nf4", 4),
    ("mxfp4", 4),
    ("nvfp4", 4),
    ("torchao", 8),
];

impl ServedModel {
    /// What a name says, such as `meta-llama/Llama-3.1-8B-Instruct-FP8`; `None` if it says nothing.
    pub fn of_name(name: &str) -> Option<Self> {
        let name = name.to_lowercase();
        let last = name.trim_end_matches('/').rsplit('/').next().unwrap_or(&name);
        let mut model = Self::default();
        let mut words = last.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.');
        model.weights_millions = words.find_map(weights_millions);
        model.bits = Self::bits_of(last);
        let is_small = |(family, _): &&(&str, u32)| last.contains(family);
        let published = PUBLISHED_SMALL.iter().find(is_small);
        let published = published.filter(|_| !last.contains(DISTILLED)).map(|(_, bits)| *bits);
        model.bits = model.bits.or(published);
        (model != Self::default()).then_some(model)
    }

    /// Bits of a weight that the name of a way to quantise or of a type says.
    pub fn bits_of(word: &str) -> Option<u32> {
        let word = word.to_lowercase();
        word.split(|letter: char| !letter.is_ascii_alphanumeric()).find_map(bits)
    }

    /// Bits of a weight: those that are said, else the usual 16.
    pub fn likely_bits(&self) -> u32 {
        self.bits.unwrap_or(USUAL_BITS)
    }

    /// Memory of its weights, in bytes, where their number is known.
    pub fn weight_bytes(&self) -> Option<u64> {
        let bits = self.weights_millions?.checked_mul(1_000_000)?;
        Some(bits.checked_mul(u64::from(self.likely_bits()))? / 8)
    }
}

/// `8b`, `0.5b`, `135m`, `8x7b`; not `a3b`, which are the weights that a token needs.
fn weights_millions(word: &str) -> Option<u64> {
    let (number, scale_thousandths) = match word.strip_suffix('b') {
        Some(number) => (number, 1_000),
        None => (word.strip_suffix('m')?, 1),
    };
    let (times, number) = match number.split_once('x') {
        Some((times, number)) => (times.parse().ok().filter(|times| *times < 1_000)?, number),
        None => (1u64, number),
    };
    let millions = thousandths(number)?.checked_mul(scale_thousandths)?.checked_mul(times)? / 1_000;
    (1..=MOST_MILLIONS).contains(&millions).then_some(millions)
}

/// A plain decimal number in thousandths.
fn thousandths(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 9 || part.len() > 3 || !is_plain(whole) || !is_plain(part)
    {
        return None;
    }
    format!("{whole}{part:0<3}").parse().ok()
}

/// `fp8`, `int4`, `w4a16`, `8bit`, `q4`, `awq`.
fn bits(word: &str) -> Option<u32> {
    if let Some((_, bits)) = QUANTISED.iter().find(|(name, _)| *name == word) {
        return Some(*bits);
    }
    match word {
        "half" | "float16" | "bfloat16" => return Some(16),
        "float" | "float32" => return Some(32),
        _ => {}
    }
    let number = |text: &str| text.parse::<u32>().ok().filter(|bits| WIDTHS.contains(bits));
    if let Some(bits) = word.strip_suffix("bit").and_then(number) {
        return Some(bits);
    }
    for prefix in ["fp", "bf", "int", "f", "q"] {
        if let Some(bits) = word.strip_prefix(prefix).and_then(number) {
            return Some(bits);
        }
    }
    let (weights, activations) = word.strip_prefix('w')?.split_once('a')?;
    number(activations).and(number(weights))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_how_many_weights_and_at_how_many_bits() {
        let of = |name: &str| {
            ServedModel::of_name(name).map(|model| (model.weights_millions, model.bits))
        };
        for (name, weights_millions, bits) in [
            ("meta-llama/Llama-3.1-8B-Instruct", Some(8_000), None),
            ("neuralmagic/Meta-Llama-3.1-70B-Instruct-FP8", Some(70_000), Some(8)),
            ("Qwen/Qwen2.5-0.5B-Instruct-AWQ", Some(500), Some(4)),
            ("mistralai/Mixtral-8x7B-Instruct-v0.1", Some(56_000), None),
            ("Qwen/Qwen3-30B-A3B", Some(30_000), None),
            ("RedHatAI/gemma-2-9b-it-quantized.w4a16", Some(9_000), Some(4)),
            ("RedHatAI/Qwen2.5-7B-Instruct-w8a8", Some(7_000), Some(8)),
            ("TheBloke/Llama-2-13B-chat-GGUF", Some(13_000), Some(4)),
            ("HuggingFaceTB/SmolLM2-135M", Some(135), None),
            ("/models/llama-3-8b/", Some(8_000), None),
            ("llama3:8b-instruct-q4_K_M", Some(8_000), Some(4)),
            ("deepseek-ai/DeepSeek-V3", None, Some(8)),
            ("deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", Some(32_000), None),
            ("openai/gpt-oss-120b", Some(120_000), Some(4)),
            ("nvidia/Llama-3.3-70B-Instruct-NVFP4", Some(70_000), Some(4)),
        ] {
            assert_eq!(of(name), Some((weights_millions, bits)), "{name}");
        }
        for nothing in
            ["default", "my-model", "", "phi-4", "b", "x7b", "99999999999999999999b", "0b"]
        {
            assert_eq!(of(nothing), None, "{nothing}");
        }
        let bytes = |name: &str| ServedModel::of_name(name).and_then(|model| model.weight_bytes());
        assert_eq!(bytes("llama-8b"), Some(16_000_000_000));
        assert_eq!(bytes("llama-8b-fp8"), Some(8_000_000_000));
        assert_eq!(bytes("deepseek-v3"), None);
        let types = ["fp8", "auto", "bfloat16", "compressed-tensors", "bitsandbytes"];
        assert_eq!(types.map(ServedModel::bits_of), [Some(8), None, Some(16), None, Some(4)]);
    }
}
