//! What the words of a container's command say of the model that it serves: how many weights, at
//! how many bits. Nothing else of them is kept.

use dovetail_facts::ServedModel;

/// Flags of inference servers that name a model.
const NAMES: [&str; 5] =
    ["--model", "--model-id", "--model-name", "--model-path", "--served-model-name"];

/// Flags that name a way to quantise.
const WAYS: [&str; 2] = ["--quantization", "--quantize"];

/// The flag that names a type of numbers.
const TYPE: &str = "--dtype";

/// Bits of a way to quantise that nobody knows.
const SOME_BITS: u32 = 8;

/// What command and arguments say; a script in one of them is read word by word.
pub(crate) fn model_of_words<'a>(words: impl Iterator<Item = &'a str>) -> Option<ServedModel> {
    let mut words = words.flat_map(str::split_whitespace).peekable();
    let mut found = ServedModel::default();
    let (mut by_way, mut by_type) = (None, None);
    while let Some(word) = words.next() {
        let (flag, value) = word.split_once('=').unwrap_or((word, ""));
        let flag = flag.replace('_', "-");
        // `vllm serve NAME`
        let is_name = NAMES.contains(&&*flag) || flag == "serve";
        let is_way = WAYS.contains(&&*flag);
        if !is_name && !is_way && flag != TYPE {
            continue;
        }
        let value = match value {
            "" => words.next_if(|next| !next.starts_with('-')).unwrap_or_default(),
            value => value,
        };
        let value = value.trim_matches(['"', '\'']);
        if is_name {
            let named = ServedModel::of_name(value).unwrap_or_default();
            found.weights_millions = found.weights_millions.or(named.weights_millions);
            found.bits = found.bits.or(named.bits);
        } else if is_way && !value.is_empty() && !value.eq_ignore_ascii_case("none") {
            by_way = by_way.or(Some(ServedModel::bits_of(value).unwrap_or(SOME_BITS)));
        } else if flag == TYPE {
            by_type = by_type.or_else(|| ServedModel::bits_of(value));
        }
    }
    found.bits = by_way.or(found.bits).or(by_type);
    (found != ServedModel::default()).then_some(found)
}

/// An argument that says the same, and nothing else.
pub(crate) fn argument(model: ServedModel) -> String {
    let weights = model.weights_millions.map(|millions| format!("{millions}m"));
    let bits = model.bits.map(|bits| format!("{bits}bit"));
    let parts: Vec<String> = weights.into_iter().chain(bits).collect();
    format!("--model={}", parts.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_told_their_model_in_many_ways() {
        let of = |words: &[&str]| {
            let found = model_of_words(words.iter().copied());
            // What is kept says the same.
            let again = found.and_then(|model| model_of_words([&*argument(model)].into_iter()));
            assert_eq!(again, found, "{words:?}");
            found.map(|model| (model.weights_millions, model.bits))
        };
        let eight = Some((Some(8_000), None));
        assert_eq!(of(&["--model", "meta-llama/Llama-3.1-8B-Instruct", "--port=80"]), eight);
        assert_eq!(of(&["vllm", "serve", "org/m-8b", "--max-model-len", "4096"]), eight);
        assert_eq!(of(&["sh", "-c", "exec vllm serve 'org/m-8b' --port 80"]), eight);
        assert_eq!(of(&["--model_path=/models/m-8b", "--dtype", "auto"]), eight);
        let quantised = Some((Some(8_000), Some(8)));
        assert_eq!(of(&["--model=m-8b", "--quantization", "fp8", "--dtype=bfloat16"]), quantised);
        assert_eq!(of(&["--model-id", "m-8b", "--quantize", "eetq"]), quantised);
        assert_eq!(of(&["--model", "m-8b-awq", "--dtype", "half"]), Some((Some(8_000), Some(4))));
        assert_eq!(of(&["--model", "m-8b", "--dtype", "half"]), Some((Some(8_000), Some(16))));
        assert_eq!(of(&["--model", "--quantization"]), None);
        assert_eq!(of(&["--token=abc-8b", "train.py", "serve"]), None);
    }
}
