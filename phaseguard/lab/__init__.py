"""The on-device model: retrieval through real compression kernels, small enough to train on a laptop."""
