//! An exporter for whoever scrapes one.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::mpsc;

use super::PATIENCE;

/// An exporter that answers every scrape with the next of its pages, and the last one for ever.
#[derive(Debug)]
pub struct FakeExporter {
    /// Host and port.
    pub address: String,
    scrapes: mpsc::Receiver<()>,
}

impl FakeExporter {
    /// Starts one.
    ///
    /// # Panics
    /// Without a free port.
    pub fn start(pages: Vec<String>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let (sender, scrapes) = mpsc::channel();
        std::thread::spawn(move || {
            let mut pages = pages.into_iter().peekable();
            for connection in listener.incoming().map_while(Result::ok) {
                let last = pages.peek().cloned().unwrap_or_default();
                let page = pages.next_if(|_| true).unwrap_or(last);
                if pages.peek().is_none() {
                    pages = vec![page.clone()].into_iter().peekable();
                }
                if answer(connection, &page).is_ok() && sender.send(()).is_err() {
                    return;
                }
            }
        });
        Self { address, scrapes }
    }

    /// Waits for so many scrapes from now on.
    ///
    /// # Panics
    /// If they do not come.
    pub fn wait_for_scrapes(&self, count: usize) {
        for _ in 0..count {
            self.scrapes.recv_timeout(PATIENCE).expect("a scrape in time");
        }
    }
}

/// One request and one answer, and the connection is over.
fn answer(mut connection: std::net::TcpStream, page: &str) -> std::io::Result<()> {
    connection.set_read_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") {
        connection.read_exact(&mut byte)?;
        request.push(byte[0]);
    }
    write!(
        connection,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{page}",
        page.len()
    )
}
