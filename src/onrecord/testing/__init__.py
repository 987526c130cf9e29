"""Contracts for those who write a backend: plain functions that raise AssertionError where one is broken."""
