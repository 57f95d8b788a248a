"""The blocks of figures in the README and the documents, each made from the records in results/."""
