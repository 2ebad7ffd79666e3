//! Requests and tokens that inference servers count, by pod.
//!
//! | server | requests | tokens read, tokens written |
//! |---|---|---|
//! | vLLM | `vllm:request_success_total` | `vllm:prompt_tokens_total`, `vllm:generation_tokens_total` |
//! | SGLang | `sglang:num_requests_total` | `sglang:prompt_tokens_total`, `sglang:generation_tokens_total` |
//! | TGI | `tgi_request_success` | `tgi_request_input_length_sum`, `tgi_request_generated_tokens_sum` |
//! | NIM | `request_success_total` | `prompt_tokens_total`, `generation_tokens_total` |
//! | Triton | `nv_inference_request_success` | none |
//!
//! Of a pod in which two of them count (Triton with vLLM inside) the first counts.

use std::collections::{BTreeMap, BTreeSet};

use crate::prometheus::{Series, own_label};

/// What a server counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServingCounter {
    Requests,
    /// Tokens of questions.
    PromptTokens,
    /// Tokens of answers.
    GeneratedTokens,
}

/// One series of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerSeries {
    /// The server; of a pod the first of them counts.
    pub server: InferenceServer,
    pub counted: ServingCounter,
    pub series: &'static str,
}

/// Inference servers, in the order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InferenceServer {
    /// vLLM.
    Vllm,
    Sglang,
    /// Hugging Face's text-generation-inference.
    Tgi,
    /// NVIDIA NIM for language models.
    Nim,
    Triton,
}

impl InferenceServer {
    /// Name in every output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vLLM",
            Self::Sglang => "SGLang",
            Self::Tgi => "TGI",
            Self::Nim => "NIM",
            Self::Triton => "Triton",
        }
    }
}

const fn series(
    server: InferenceServer,
    counted: ServingCounter,
    series: &'static str,
) -> ServerSeries {
    ServerSeries { server, counted, series }
}

/// All counters that are read.
pub const SERVER_SERIES: [ServerSeries; 13] = [
    series(InferenceServer::Vllm, ServingCounter::Requests, "vllm:request_success_total"),
    series(InferenceServer::Vllm, ServingCounter::PromptTokens, "vllm:prompt_tokens_total"),
    series(InferenceServer::Vllm, ServingCounter::GeneratedTokens, "vllm:generation_tokens_total"),
    series(InferenceServer::Sglang, ServingCounter::Requests, "sglang:num_requests_total"),
    series(InferenceServer::Sglang, ServingCounter::PromptTokens, "sglang:prompt_tokens_total"),
    series(
        InferenceServer::Sglang,
        ServingCounter::GeneratedTokens,
        "sglang:generation_tokens_total",
    ),
    series(InferenceServer::Tgi, ServingCounter::Requests, "tgi_request_success"),
    series(InferenceServer::Tgi, ServingCounter::PromptTokens, "tgi_request_input_length_sum"),
    series(
        InferenceServer::Tgi,
        ServingCounter::GeneratedTokens,
        "tgi_request_generated_tokens_sum",
    ),
    series(InferenceServer::Nim, ServingCounter::Requests, "request_success_total"),
    series(InferenceServer::Nim, ServingCounter::PromptTokens, "prompt_tokens_total"),
    series(InferenceServer::Nim, ServingCounter::GeneratedTokens, "generation_tokens_total"),
    series(InferenceServer::Triton, ServingCounter::Requests, "nv_inference_request_success"),
];

impl ServerSeries {
    /// The query for what was counted in a window before its moment, by pod and model. Prometheus
    /// makes up for restarts, and estimates what lies before the first and after the last sample.
    pub fn query(self, window_ms: u64) -> String {
        format!(
            "sum by (namespace, pod, exported_namespace, exported_pod, model_name, model) (increase({}[{}ms]))",
            self.series,
            window_ms.max(1)
        )
    }
}

/// What was counted, by namespace and pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServedRequests {
    /// Pods in which a server counts.
    pub pods: BTreeMap<(String, String), PodServed>,
}

/// What the server of a pod counted.
#[derive(Clone, Debug, PartialEq)]
pub struct PodServed {
    pub server: InferenceServer,
    /// By what is counted; what is not in it the server did not count.
    pub counts: BTreeMap<ServingCounter, f64>,
    /// Models that it names.
    pub models: BTreeSet<String>,
}

impl ServedRequests {
    /// Takes the answer to a query; what names no pod, and what nobody can count, is left out.
    pub fn take(&mut self, asked: ServerSeries, series: Vec<Series>) {
        for Series { labels, samples } in series {
            let Some(sample) = samples.last() else { continue };
            let pod = own_label(&labels, "pod");
            let Some(key) = own_label(&labels, "namespace").zip(pod) else { continue };
            // Nobody answers so many requests.
            if !(0.0..1e18).contains(&sample.value) {
                continue;
            }
            let fresh = || PodServed {
                server: asked.server,
                counts: BTreeMap::new(),
                models: BTreeSet::new(),
            };
            let pod = self.pods.entry(key).or_insert_with(fresh);
            if asked.server < pod.server {
                *pod = fresh();
            }
            if asked.server == pod.server {
                *pod.counts.entry(asked.counted).or_default() += sample.value;
                let model = own_label(&labels, "model_name");
                pod.models.extend(model.or_else(|| own_label(&labels, "model")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prometheus::SeriesSample;

    #[test]
    fn the_server_within_counts_and_nonsense_does_not() {
        let of = |name: &str| {
            *SERVER_SERIES.iter().find(|known| known.series == name).expect("a known series")
        };
        let one = |pod: &str, model: &str, value: f64| {
            let labels = [("namespace", "prod"), ("pod", pod), ("model_name", model)];
            let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let samples = vec![SeriesSample { at_ms: 0, value }];
            vec![Series { labels: labels.into_iter().collect(), samples }]
        };
        let mut served = ServedRequests::default();
        // Triton came first, and has a vLLM inside.
        served.take(of("nv_inference_request_success"), one("chat-0", "ensemble", 70.0));
        served.take(of("vllm:request_success_total"), one("chat-0", "llama", 40.0));
        served.take(of("vllm:request_success_total"), one("chat-0", "llama-lora", 2.0));
        served.take(of("nv_inference_request_success"), one("chat-0", "ensemble", 70.0));
        served.take(of("vllm:generation_tokens_total"), one("chat-0", "llama", f64::NAN));
        served.take(of("vllm:generation_tokens_total"), one("chat-1", "llama", -1.0));
        let key = ("prod".to_owned(), "chat-0".to_owned());
        let wanted = PodServed {
            server: InferenceServer::Vllm,
            counts: BTreeMap::from([(ServingCounter::Requests, 42.0)]),
            models: BTreeSet::from(["llama".to_owned(), "llama-lora".to_owned()]),
        };
        assert_eq!(served.pods, BTreeMap::from([(key, wanted)]));
    }
}
