"""The rules of conformance: from observations to verdicts, from verdicts to claims, and the forms of every artefact.

Pure: values in, values out. Reads no cluster, no file and no clock.
"""
