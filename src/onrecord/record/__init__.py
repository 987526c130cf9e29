"""The record: documents, versions, chunks, vectors and answers in one SQL database."""
