"""Documents: invoices, forms, tables and notices, drawn as pictures."""
