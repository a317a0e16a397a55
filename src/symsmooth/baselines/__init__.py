"""The methods the paper compares with, written from their papers: one file each, and what they share."""
