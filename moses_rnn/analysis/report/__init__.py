"""A report on a scored table and its model: everything the paper shows, as one page of HTML."""
