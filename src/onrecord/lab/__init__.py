"""The lab: measures whether OnRecord finds, answers and refuses as it should, and says how sure the figures are."""
