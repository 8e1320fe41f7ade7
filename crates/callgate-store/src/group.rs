//! Group commit: jobs of concurrent threads share one commit.
//!
//! A commit waits for the disk, which takes far longer than everything else. One thread owns the connection, takes all jobs that are
//! waiting, does each within a savepoint, commits once, and only then tells anybody that their job is done.

use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use callgate::store::StoreError;
use rusqlite::Connection;

use crate::open;

/// The most jobs that one commit makes durable.
const MOST: usize = 256;

/// Reports the result of a job to its caller after the commit.
type Deliver = Box<dyn FnOnce(Result<(), StoreError>) + Send>;
type Job = Box<dyn FnOnce(Result<&Connection, StoreError>) -> Deliver + Send>;

/// Does jobs, many in one commit.
pub(crate) struct Group {
    /// `None` only while it is being dropped.
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Group {
    /// When a store is gone, its file is closed.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // It ends because the job channel is closed.
            let _ = thread.join();
        }
    }
}

callgate_model::debug_fields!(Group);

impl Group {
    /// Opens the database and starts the thread that owns it.
    pub(crate) fn start(path: &Path, patience: Duration) -> Result<Self, StoreError> {
        let connection = open::open(path, patience)?;
        let (jobs, waiting) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("callgate-store".into())
            .spawn(move || serve(&connection, &waiting))
            .map_err(|error| StoreError::Failed(error.to_string()))?;
        Ok(Group { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Does a job in a transaction. When this returns `Ok`, what it did is durable.
    pub(crate) fn run<R: Send + 'static>(
        &self,
        job: impl FnOnce(&Connection) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, StoreError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let gone = || StoreError::Failed("the store thread stopped".into());
        let job: Job = Box::new(move |connection| {
            let result = connection.and_then(|connection| in_savepoint(connection, job));
            Box::new(move |committed| {
                // The caller may have stopped waiting.
                let _ = sender.send(committed.and(result));
            })
        });
        self.jobs.as_ref().ok_or_else(gone)?.send(job).map_err(|_| gone())?;
        receiver.recv().map_err(|_| gone())?
    }
}

/// Runs a job in a savepoint: a job that fails changes nothing, and the others of its group continue.
fn in_savepoint<R>(
    connection: &Connection,
    job: impl FnOnce(&Connection) -> Result<R, StoreError>,
) -> Result<R, StoreError> {
    let run =
        |sql: &str| connection.prepare_cached(sql).and_then(|mut statement| statement.execute([])).map_err(open::error);
    run("SAVEPOINT job")?;
    let result = job(connection);
    if result.is_err() {
        run("ROLLBACK TO job")?;
    }
    run("RELEASE job")?;
    result
}

fn serve(connection: &Connection, waiting: &Receiver<Job>) {
    while let Ok(first) = waiting.recv() {
        let begun = connection.execute_batch("BEGIN IMMEDIATE").map_err(open::error);
        let mut deliveries: Vec<Deliver> = Vec::new();
        let mut next = Some(first);
        while let Some(job) = next {
            deliveries.push(job(begun.as_ref().map(|()| connection).map_err(Clone::clone)));
            next = if deliveries.len() < MOST { waiting.try_recv().ok() } else { None };
        }
        let ended = match &begun {
            Ok(()) => connection.execute_batch("COMMIT").map_err(open::error),
            Err(error) => Err(error.clone()),
        };
        if ended.is_err() && !connection.is_autocommit() {
            // The commit failed; what it should have made durable must not linger in an open transaction.
            let _ = connection.execute_batch("ROLLBACK");
        }
        for deliver in deliveries {
            deliver(ended.clone());
        }
    }
}
