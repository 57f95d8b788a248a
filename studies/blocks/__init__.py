"""Generated blocks of numbers in the README and the documents, made from the records in results/."""
