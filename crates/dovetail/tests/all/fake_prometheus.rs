//! A server that answers Prometheus' query API with made-up series.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use serde_json::{Value, json};

/// What a query asks for.
pub(crate) struct Query {
    pub(crate) text: String,
    /// Moments in seconds: many of a range, one of an instant.
    pub(crate) moments: Vec<f64>,
    is_range: bool,
}

/// Labels of a series with its value at each place of the moments; `None` is no sample.
pub(crate) type Made = (Value, Box<dyn Fn(usize) -> Option<f64>>);

/// Answers until the test ends; the address stands in `url`.
pub(crate) struct FakePrometheus {
    pub(crate) url: String,
}

impl FakePrometheus {
    /// Starts it; `make` has the series of a query.
    pub(crate) fn start(make: impl Fn(&Query) -> Vec<Made> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of this machine");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        let make = Arc::new(make);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let make = Arc::clone(&make);
                std::thread::spawn(move || serve(&stream, &*make));
            }
        });
        Self { url }
    }
}

/// One connection, request by request.
fn serve(stream: &TcpStream, make: &dyn Fn(&Query) -> Vec<Made>) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        let mut line = String::new();
        while reader.read_line(&mut line).unwrap_or(0) > 0 && line.trim() != "" {
            line.clear();
        }
        let path = first.split(' ').nth(1).unwrap_or_default();
        let query = Query::of(path);
        let body = answer(&query, make(&query)).to_string();
        let length = body.len();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
        let mut writer = stream;
        if write!(writer, "{head} {length}\r\n\r\n{body}").is_err() {
            return;
        }
    }
}

impl Query {
    fn of(path: &str) -> Self {
        let (_, parameters) = path.split_once('?').unwrap_or_default();
        let pairs = parameters.split('&').filter_map(|pair| pair.split_once('='));
        let values: BTreeMap<&str, String> =
            pairs.map(|(name, value)| (name, decoded(value))).collect();
        let number = |name: &str| values.get(name).and_then(|text| text.parse::<f64>().ok());
        let is_range = values.contains_key("step");
        let moments = match (number("start"), number("end"), number("step")) {
            (Some(start), Some(end), Some(step)) => {
                let count = ((end - start) / step) as usize + 1;
                (0..count).map(|place| start + place as f64 * step).collect()
            }
            _ => number("time").into_iter().collect(),
        };
        Self { text: values.get("query").cloned().unwrap_or_default(), moments, is_range }
    }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digits: Option<Vec<u8>> =
            (byte == b'%').then(|| [rest.next(), rest.next()].into_iter().flatten().collect());
        let decoded = digits
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok());
        bytes.push(decoded.unwrap_or(byte));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn answer(query: &Query, made: Vec<Made>) -> Value {
    let result: Vec<Value> = made
        .into_iter()
        .map(|(labels, value)| {
            let samples = query.moments.iter().enumerate();
            let samples: Vec<Value> =
                samples.filter_map(|(place, at)| Some(json!([at, text(value(place)?)]))).collect();
            match query.is_range {
                true => json!({"metric": labels, "values": samples}),
                false => json!({"metric": labels, "value": samples.first()}),
            }
        })
        .collect();
    let kind = if query.is_range { "matrix" } else { "vector" };
    json!({"status": "success", "data": {"resultType": kind, "result": result}})
}

/// A number as Prometheus writes it.
fn text(value: f64) -> String {
    if value == f64::INFINITY { "+Inf".to_owned() } else { value.to_string() }
}

/// Two GPUs of one node, always: one held by a pod that computes in even hours, one free.
pub(crate) fn two_gpus(query: &Query) -> Vec<Made> {
    if !query.text.contains("GR_ENGINE_ACTIVE[") {
        return Vec::new();
    }
    let moments = query.moments.clone();
    let busy = move |place: usize| Some(f64::from((moments[place] as u64 / 3600 + 1) as u32 % 2));
    let free = json!({"UUID": "b", "Hostname": "n1", "modelName": "NVIDIA H100"});
    let mut held = free.clone();
    held["UUID"] = json!("a");
    held["pod"] = json!("train-0");
    held["namespace"] = json!("vision");
    vec![(held, Box::new(busy)), (free, Box::new(|_| Some(0.0)))]
}
