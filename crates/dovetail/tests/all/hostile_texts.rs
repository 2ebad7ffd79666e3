//! Hostile texts in the forms of output.

use dovetail_render::text::{html, markdown, sarif};

#[test]
fn nothing_that_was_read_acts_where_it_is_shown() {
    let hostile = "<script>alert('x')</script>";
    assert_eq!(html(hostile), "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;");
    let link = "[a](http://x) | @all `b` <i>";
    let safe = r"\[a\](http&#58;//x) \| &#64;all \`b\` &lt;i&gt;";
    assert_eq!(markdown(link), safe);
    assert_eq!(
        markdown("its pods (1): $240, :smile: $x$"),
        r"its pods (1): $240, &#58;smile: \$x\$"
    );
    // People read the source of an index, too.
    let plain = "a toleration for nvidia.com/gpu:NoSchedule to Deployment ml/tr at 12:00:00Z; a:b";
    assert_eq!(markdown(plain), plain);
    assert_eq!(sarif("{0} [a](1)"), r"{{0}} \[a\](1)");
}
