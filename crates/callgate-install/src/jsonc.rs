//! JSON as people write settings in it: comments and trailing commas are fine, everything else is as in JSON. The grammar is
//! `jsonc-parser`'s, which also says where everything stands.

use jsonc_parser::{CollectOptions, ParseOptions, ast, parse_to_ast};

/// Where a text stops being JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct Broken {
    /// Counted from one.
    pub line: usize,
    /// Counted from one.
    pub column: usize,
    /// What is wrong.
    pub what: String,
}

/// What a text says; `None` if that is nothing, not even between comments.
pub fn parse(text: &str) -> Result<Option<ast::Value<'_>>, Broken> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options).map_err(|error| Broken {
        line: error.line_display(),
        column: error.column_display(),
        what: error.kind().to_string(),
    })?;
    Ok(parsed.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_trailing_commas_and_nothing_else() {
        for text in ["", "// nothing", "{}", "/* a */ {\"a\": [1, 2,], // b\n}"] {
            assert!(parse(text).is_ok(), "{text}");
        }
        let loose = [
            "{a: 1}",
            "{'a': 1}",
            "{\"a\": 0x1}",
            "{\"a\": +1}",
            "{\"a\": .5}",
            "{\"a\": NaN}",
            "[1 2]",
            "[1,,2]",
            "{} {}",
            "{",
        ];
        for text in loose {
            assert!(parse(text).is_err(), "{text}");
        }
        let broken = parse("{\n  \"a\": ,\n}").map(|_| ()).unwrap_err();
        assert_eq!((broken.line, broken.column), (2, 8));
    }
}
