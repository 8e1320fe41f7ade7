//! The public items of `callgate`, listed in `docs/api.txt`, so that a change of the public face is seen in review.

use std::path::{Path, PathBuf};

use crate::step::Failure;

const LISTING: &str = "docs/api.txt";

/// What to do with a listing that is out of date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stale {
    Fails,
    IsWritten,
}

/// Compares the listing with the documentation that `cargo doc` has built.
pub fn check(stale: Stale) -> Result<(), Failure> {
    eprintln!("── public items");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let page = read(&target.join("doc/callgate/all.html"))?;
    let items: String = items(&page).iter().map(|item| format!("{item}\n")).collect();
    if items.is_empty() {
        return Err(Failure::new("rustdoc's list of all items has a form that xtask does not know"));
    }
    if std::fs::read_to_string(LISTING).unwrap_or_default() == items {
        return Ok(());
    }
    match stale {
        Stale::Fails => Err(Failure::new(format!(
            "the public items of callgate are not those of {LISTING}; `cargo xtask api` updates the list"
        ))),
        Stale::IsWritten => {
            std::fs::write(LISTING, items).map_err(|error| Failure::new(format!("cannot write {LISTING}: {error}")))
        }
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))
}

/// The items of rustdoc's `all.html`: `struct Gate`, `trait approvals::Approver`.
fn items(page: &str) -> Vec<String> {
    let list = page.split("class=\"all-items\"").skip(1).flat_map(|list| list.split("<a href=\"").skip(1));
    let mut items: Vec<String> = list
        .filter_map(|link| {
            let (address, rest) = link.split_once("\">")?;
            let (name, _) = rest.split_once("</a>")?;
            let kind = address.rsplit('/').next()?.split('.').next()?;
            Some(format!("{kind} {name}"))
        })
        .collect();
    items.sort();
    items
}

#[cfg(test)]
mod tests {
    use super::items;

    #[test]
    fn items_are_read_from_the_page() {
        let page = "<ul class=\"all-items\"><li><a href=\"struct.Gate.html\">Gate</a></li></ul>\
                    <ul class=\"all-items\"><li><a href=\"grant/fn.in_scope.html\">grant::in_scope</a></li></ul>";
        assert_eq!(items(page), ["fn grant::in_scope", "struct Gate"]);
    }
}
