//! The gate in front of every tool call an AI agent makes.
