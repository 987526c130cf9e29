"""Files of office programs: sheets, documents, slides, and the archives of parts that most of them are."""
