//! The script of a scheduler's requests, against the fake server.

use dovetail_testkit::FakeApi;

use crate::script::{Answer, Step, run};
use crate::session::Session;
use crate::steps::{AROUND, BINDING, CUSTOM, EVICTING, READING, WRITING};

fn all_steps() -> Vec<Step> {
    let parts = [READING, WRITING, BINDING, EVICTING, AROUND, CUSTOM];
    parts.into_iter().flatten().map(Step::copied).collect()
}

async fn fake_answers() -> Vec<Answer> {
    let api = FakeApi::start().expect("a free port");
    let session = Session::plain(api.url());
    run(&session, "script-1", &all_steps()).await
}

#[tokio::test]
async fn the_fake_server_answers_every_step_as_written_down() {
    let lines = fake_answers().await.iter().map(Answer::line).collect::<Vec<_>>();
    let expected = include_str!("../golden/conformance.txt");
    for (line, expected) in lines.iter().zip(expected.lines()) {
        assert_eq!(line, expected);
    }
    assert_eq!(lines.len(), expected.lines().count(), "{lines:#?}");
}
