//! The frame of HTML files that need nothing else: no script, no font, no request.

/// Everything before the content.
pub(crate) fn start(title: &str, style: &str) -> String {
    format!(
        "<!doctype html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
{style}</style>
</head>
<body>
<main>
"
    )
}

/// Everything after it.
pub(crate) const END: &str = "</main>\n</body>\n</html>\n";
