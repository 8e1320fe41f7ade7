use super::tests::{Place, started};
use super::*;
use crate::verify::Status;

fn brief(place: &Place) -> Log {
    Log::open_briefly(place.settings()).unwrap()
}

#[test]
fn brief_and_long_writers_share_a_log() {
    let place = Place::new();
    std::thread::scope(|scope| {
        for writer in 0..6 {
            let place = &place;
            scope.spawn(move || {
                let long = (writer % 3 == 0).then(|| place.log());
                for call in 0..50 {
                    match &long {
                        Some(log) => log.append(&started(call)).unwrap(),
                        None => brief(place).append_all(&[started(call), started(call)]).unwrap(),
                    };
                }
            });
        }
    });
    assert_eq!(place.entries().len(), 1 + 2 * 50 + 4 * 100);
    assert_eq!(place.report().status, Status::Intact);
}

#[test]
fn a_brief_writer_looks_at_nothing_until_it_writes_and_holds_no_lock_between() {
    let place = Place::new();
    let (first, second) = (brief(&place), brief(&place));
    assert!(!place.segment(1).exists());
    for call in 0..3 {
        first.append(&started(call)).unwrap();
        second.append(&started(call)).unwrap();
        place.log().append(&started(call)).unwrap();
    }
    assert_eq!(first.id().unwrap(), second.id().unwrap());
    assert_eq!(place.report().status, Status::Intact);
}

#[test]
fn a_brief_writer_signs_by_number_but_not_by_age_unless_checkpoints_are_sent() {
    let place = Place::new();
    let signed = |change: fn(&mut LogSettings)| {
        let before = place.entries().iter().filter(|entry| entry.record.body.kind() == "checkpoint").count();
        let mut settings = place.settings();
        settings.checkpoint_age = Duration::ZERO;
        change(&mut settings);
        Log::open_briefly(settings).unwrap().append(&started(1)).unwrap();
        place.entries().iter().filter(|entry| entry.record.body.kind() == "checkpoint").count() - before
    };
    place.log().append(&started(0)).unwrap();
    assert_eq!(signed(|_| {}), 0);
    assert_eq!(signed(|settings| settings.checkpoint_entries = 1), 1);
    let sent = |settings: &mut LogSettings| {
        settings.deliveries = vec![Arc::new(crate::deliver::ToFile(settings.directory.with_extension("sent")))];
    };
    assert_eq!(signed(sent), 1);
    assert!(place.settings().directory.with_extension("sent").exists());
}

#[test]
fn a_brief_writer_refuses_a_log_that_is_not_as_its_head_says() {
    let place = Place::new();
    place.log().append(&started(0)).unwrap();
    let mut text = fs::read(place.segment(1)).unwrap();
    text.extend_from_slice(b"garbage\n");
    fs::write(place.segment(1), text).unwrap();
    let log = brief(&place);
    assert_eq!(log.append(&started(1)).unwrap_err().kind(), "damaged");
    assert_eq!(log.append(&started(1)).unwrap_err().kind(), "damaged", "and goes on refusing");
}
