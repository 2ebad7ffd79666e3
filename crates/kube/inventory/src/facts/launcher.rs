//! By which argument the command of a container says how many processes it starts, one for each
//! GPU. Nothing else of it is kept.

/// Arguments of launchers and inference servers that count processes or GPUs.
const COUNTS: [&str; 27] = [
    "--data-parallel-size",
    "--devices",
    "--dp-size",
    "--gpus",
    "--n_gpus",
    "--ngpus",
    "--nproc-per-node",
    "--nproc_per_node",
    "--num-gpus",
    "--num-processes",
    "--num-shard",
    "--num_gpus",
    "--num_processes",
    "--num_shard",
    "--pipeline-parallel-size",
    "--pp-size",
    "--tensor-parallel-size",
    "--tensor_parallel_size",
    "--tp",
    "--tp-size",
    "--tp_size",
    "--trainer.devices",
    "--world-size",
    "--world_size",
    "-dp",
    "-pp",
    "-tp",
];

/// Whether a value is a number, or a variable that may be one. One process fits any number of GPUs;
/// and without a value, nobody knows.
fn may_count(value: &str) -> bool {
    let begins = |first: char| first.is_ascii_digit() || first == '$' || first == '{';
    value.is_empty() || value != "1" && value.starts_with(begins)
}

/// The first of these arguments with a number of its own; a script in a word is read word by word.
pub(crate) fn count_of_processes<'a>(words: impl Iterator<Item = &'a str>) -> Option<&'static str> {
    let mut words = words.flat_map(str::split_whitespace).peekable();
    while let Some(word) = words.next() {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let Some(known) = COUNTS.into_iter().find(|known| *known == name) else { continue };
        let value =
            if value.is_empty() { words.peek().copied().unwrap_or_default() } else { value };
        if may_count(value.trim_matches(['"', '\''])) {
            return Some(known);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_and_servers_say_how_many_processes_they_start() {
        let of = |words: &[&str]| {
            let found = count_of_processes(words.iter().copied());
            // What is kept says the same.
            assert_eq!(found.and_then(|flag| count_of_processes([flag].into_iter())), found);
            found
        };
        let torchrun = Some("--nproc_per_node");
        assert_eq!(of(&["torchrun", "--nproc_per_node=8", "train.py"]), torchrun);
        assert_eq!(of(&["sh", "-c", "exec torchrun --nproc_per_node 8 train.py"]), torchrun);
        assert_eq!(of(&["torchrun", "--nproc-per-node", "$(GPUS)"]), Some("--nproc-per-node"));
        let serve = ["vllm", "serve", "m-8b", "-tp", "1", "--pipeline-parallel-size", "8"];
        assert_eq!(of(&serve), Some("--pipeline-parallel-size"));
        assert_eq!(of(&["accelerate", "launch", "--num_processes=8"]), Some("--num_processes"));
        // These start as many as there are GPUs.
        assert_eq!(of(&["torchrun", "--nproc_per_node=gpu", "train.py"]), None);
        assert_eq!(of(&["vllm", "serve", "m-8b", "--tensor-parallel-size", "1"]), None);
        assert_eq!(of(&["launch", "--nproc_per_node=-1", "--gpus", "\"all\""]), None);
        // A kind of device is no number.
        assert_eq!(of(&["python", "train.py", "--devices", "cuda"]), None);
        assert_eq!(of(&["serve", "--devices=cuda", "--tp", "${GPUS}"]), Some("--tp"));
        assert_eq!(of(&["python", "train.py", "--epochs=8"]), None);
    }
}
