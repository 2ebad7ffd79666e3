//! Texts of JSON while an object is read.

use dovetail_objects::json::JsonText;

#[test]
fn a_text_is_copied_only_where_something_in_it_is_escaped() {
    let json = r#"["plain", "a \"quoted\" word", null]"#;
    let texts: Vec<Option<JsonText<'_>>> = serde_json::from_str(json).expect("a list of texts");
    let is_part = |text: &str| json.as_bytes().as_ptr_range().contains(&text.as_ptr());
    let told: Vec<Option<(&str, bool)>> =
        texts.iter().map(|text| text.as_deref().map(|text| (text, is_part(text)))).collect();
    assert_eq!(told, [Some(("plain", true)), Some(("a \"quoted\" word", false)), None]);
}
