"""From passages to an answer whose every sentence is quoted, or to a refusal."""
