"""Writes an exam from documents, without a language model: questions that they answer, and near misses they don't."""
