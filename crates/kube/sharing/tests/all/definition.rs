//! The CustomResourceDefinition in `deploy/` is that of the code.

use std::path::Path;

use dovetail_sharing::definition;

#[test]
fn the_definition_in_deploy_is_that_of_the_code() {
    let file = "../../../deploy/sharing/policy-definition.yaml";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = std::fs::read_to_string(path).expect("the definition");
    assert_eq!(text, definition().manifest(), "run `cargo xtask codegen sharing`");
}
