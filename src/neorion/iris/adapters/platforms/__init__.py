"""Where slices come from: one folder per platform, and what they share.

A platform makes, lists and ends slices. When there should be more or fewer of them is the autoscaler's to say.
"""
